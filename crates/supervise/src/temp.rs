//! A session's temporary directory: made for it alone, removed with it.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Makes it, readable by nobody else. One that an earlier life of the session left behind is
/// removed first; the caller holds the session's journal, so nobody else uses it.
///
/// # Errors
/// `AlreadyExists` when something is there that is not this user's own directory.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    let create = || std::fs::DirBuilder::new().mode(0o700).create(path);
    match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_own(path)? => {
            std::fs::remove_dir_all(path)?;
            create()
        }
        made => made,
    }
}

fn is_own(path: &Path) -> io::Result<bool> {
    let there = std::fs::symlink_metadata(path)?;
    let private = there.mode() & 0o077 == 0;
    Ok(there.is_dir() && private && there.uid() == nix::unistd::geteuid().as_raw())
}

/// Removes it with all that is in it. Links are removed, not followed.
pub(crate) fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_dir_all(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "a temporary directory stays behind");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_an_earlier_life_left_is_replaced_and_what_is_another_s_is_not() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("agentd-0123456789ab");
        make(&path).unwrap();
        std::fs::write(path.join("left"), "x").unwrap();
        make(&path).unwrap();
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
        remove(&path);
        assert!(!path.exists());
        std::os::unix::fs::symlink(place.path(), &path).unwrap();
        assert_eq!(make(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(path.is_symlink(), "somebody else's link is left alone");
    }
}
