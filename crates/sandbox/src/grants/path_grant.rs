//! One granted place, opened.

use crate::policy::{Access, FreshMount};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// How the grants will be enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrantVia {
    /// By Landlock alone: what lies beneath a grant cannot be taken out of it again.
    Landlock,
    /// By Landlock and a root of our own, in which places can be covered.
    MountedRoot,
}

/// A place that was found.
#[derive(Debug)]
pub(crate) struct PathGrant {
    /// Where, links resolved.
    pub path: PathBuf,
    /// Where it is on the host; elsewhere than `path` for a private directory alone.
    pub host: PathBuf,
    /// What may be done.
    pub access: Access,
    /// The place itself, opened with `O_PATH`.
    pub fd: OwnedFd,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// What tier A mounts there instead.
    pub fresh: Option<FreshMount>,
    /// The directory of the overlay that tier A shows there: commands change a copy.
    pub overlay: Option<PathBuf>,
}

impl PathGrant {
    /// What commands may do at `path`. On the host nothing more than `access` is granted.
    pub(crate) fn shown(&self) -> Access {
        if self.overlay.is_some() { Access::Build } else { self.access }
    }
}
