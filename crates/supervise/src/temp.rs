//! A session's temporary directory: made for it alone, removed with it, and swept when everybody who
//! should have removed it was killed.

use crate::hold::Hold;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Makes it, readable by nobody else. One that an earlier life of the session left behind is
/// removed first, whatever calls made of it; the caller holds the session's journal, so nobody
/// else uses it.
///
/// # Errors
/// `AlreadyExists` when something is there that is not this user's own directory.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    let create = || std::fs::DirBuilder::new().mode(0o700).create(path);
    match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_own(path)? => {
            remove_all(path)?;
            create()
        }
        made => made,
    }
}

/// Only the owner can change the mode of what is in `/tmp`, and a call may have.
fn is_own(path: &Path) -> io::Result<bool> {
    let there = std::fs::symlink_metadata(path)?;
    Ok(there.is_dir() && there.uid() == nix::unistd::geteuid().as_raw())
}

/// Removes it with all that is in it. Links are removed, not followed.
pub(crate) fn remove(path: &Path) {
    if let Err(error) = remove_all(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "a temporary directory stays behind");
    }
}

/// Removes the directories of sessions in `sessions` that nobody holds. Those of other users, or of
/// sessions that are kept elsewhere, are not looked at.
pub(crate) fn sweep(root: &Path, sessions: &Path) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let id = name.to_str().and_then(|name| name.strip_prefix("agentd-"));
        let Some(id) = id.filter(|id| !id.is_empty()) else { continue };
        let session = sessions.join(id);
        if !session.is_dir() || !is_own(&path).unwrap_or(false) {
            continue;
        }
        // Held until it is removed: whoever opens the session makes the directory after that.
        if let Ok(_hold) = Hold::take_if_free(&session) {
            remove(&path);
            tracing::info!(path = %path.display(), "a deserted temporary directory was removed");
        }
    }
}

/// A call may have left directories that their owner cannot enter or change; caches of programs
/// are often read-only.
fn remove_all(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            std::fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

/// Lets the owner into every directory.
fn open_up(path: &Path) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        // The type is the entry's own: a link to a directory is none.
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_a_call_did_to_its_modes_stops_neither_the_removal_nor_the_next_life() {
        let mode = std::fs::Permissions::from_mode;
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("agentd-0123456789ab");
        for last in [remove, |path: &Path| make(path).unwrap()] {
            make(&path).unwrap();
            std::fs::create_dir_all(path.join("shut/cache")).unwrap();
            std::fs::write(path.join("shut/cache/file"), "x").unwrap();
            std::fs::set_permissions(path.join("shut/cache"), mode(0o555)).unwrap();
            std::fs::set_permissions(path.join("shut"), mode(0o000)).unwrap();
            std::fs::set_permissions(&path, mode(0o755)).unwrap();
            last(&path);
            assert!(!path.join("shut").exists());
        }
    }

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

    #[test]
    fn only_what_nobody_holds_of_the_sessions_here_is_swept() {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let ids = ["aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"];
        for id in ids {
            make(&root.path().join(format!("agentd-{id}"))).unwrap();
        }
        std::fs::create_dir(root.path().join("agentd-")).unwrap();
        for id in &ids[..2] {
            std::fs::create_dir(state.path().join(id)).unwrap();
        }
        let held = Hold::take(&state.path().join(ids[1])).unwrap();
        sweep(root.path(), state.path());
        let mut left: Vec<_> = std::fs::read_dir(root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["agentd-", "agentd-bbbbbbbbbbbb", "agentd-cccccccccccc"]);
        drop(held);
    }
}
