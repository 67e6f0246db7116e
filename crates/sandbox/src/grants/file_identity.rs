//! Device and inode of a file or directory.

use nix::sys::stat::{FileStat, lstat};
use std::path::Path;

/// Device and inode.
pub(super) type FileIdentity = (u64, u64);

/// The identity of what lies at a path, without following a link; none if nothing does.
pub(super) fn identity_of(path: &Path) -> Option<FileIdentity> {
    lstat(path).ok().map(identity)
}

pub(super) fn identity(found: FileStat) -> FileIdentity {
    (found.st_dev, found.st_ino)
}
