//! A session's temporary directory: made for it alone, removed with it.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes it, readable by nobody else.
///
/// # Errors
/// `AlreadyExists` when something is there: names are random, so it is somebody else's.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

/// Removes it with all that is in it. Links are removed, not followed.
pub(crate) fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_dir_all(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "a temporary directory stays behind");
    }
}
