//! One granted place, opened.

use crate::policy::{Access, FreshMount};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// How the grants will be enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrantVia {
    /// By Landlock alone: no path beneath a grant can be excluded again.
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
    /// The access that the policy grants.
    pub access: Access,
    /// The place itself, opened with `O_PATH`.
    pub fd: OwnedFd,
    /// True for a directory.
    pub is_dir: bool,
    /// Fresh mount that tier A shows at this path in place of the host's.
    pub fresh: Option<FreshMount>,
    /// The directory of the overlay that tier A shows there: commands change a copy.
    pub overlay: Option<PathBuf>,
}

impl PathGrant {
    /// The access of commands at `path`. On the host `access` stays the limit: with an overlay a
    /// command writes to a copy.
    pub(crate) fn shown(&self) -> Access {
        if self.overlay.is_some() { Access::Build } else { self.access }
    }
}
