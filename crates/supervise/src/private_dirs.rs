//! A session's private directories: its commands see them at `/tmp`, and in tier A also at
//! `/var/tmp` and at the home. They are kept as long as the session's files, or until the session
//! was unused for [`UNUSED_LIMIT`]. Calls may have left anything in them, so only the remover's
//! thread enters them. This file only renames them, which takes one step regardless of their
//! content.

use crate::remover::Remover;
use launch::session_lock::SessionLock;
use protocol::confinement::{Confinement, FilePath};
use setup::private_paths::{HOME, PREFIX, TMP, VAR_TMP};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Prefix of a directory that is to be removed. No session id has this form, so an older build
/// ignores it.
const REMOVED_PREFIX: &str = "agentd-removed-";
/// How many names are tried for a session's directory. Each but the first ends in a random number,
/// so that no other user can take them in advance.
const MAX_NAMES: u32 = 8;
/// A link to the session's files, in the session's private directory: when they are gone, it is
/// removed.
const OWNER: &str = "session";
/// As long as systemd keeps unused files in `/tmp` (tmpfiles.d, `q /tmp 1777 root root 10d`).
const UNUSED_LIMIT: Duration = Duration::from_secs(10 * 24 * 60 * 60);

/// Those of MCP servers, one each, and the package caches within.
const SERVERS: &str = "servers";
const CACHES: &str = "caches";

/// Makes the directory, readable by this user alone, and returns its path. If something else stays
/// at the preferred path, another name is used. A directory of an earlier run of the session is
/// reused; one of an older build is first renamed for removal, with everything that calls left in
/// it. The caller holds the session's journal, so no other supervisor uses the directory.
///
/// # Errors
/// If none can be made.
pub(crate) fn make(wanted: &Path, session: &Path, remover: &Remover) -> io::Result<PathBuf> {
    let mut refused = io::ErrorKind::AlreadyExists.into();
    for path in names(wanted, session)? {
        match make_at(&path, session, remover) {
            Ok(()) => return Ok(path),
            Err(error) if path.symlink_metadata().is_ok() => {
                tracing::warn!(path = %path.display(), %error, "it cannot be replaced; another \
                                                                name is used");
                refused = error;
            }
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

/// Keeps systemd-tmpfiles from removing the session's directory, however long its files are unused:
/// it skips locked directories (tmpfiles.d(5), "Age"). Without the lock the usual limit applies.
pub(crate) fn hold_against_cleanup(path: &Path) -> Option<File> {
    let held = File::open(path).ok()?;
    held.try_lock_shared().ok().map(|()| held)
}

fn make_at(path: &Path, session: &Path, remover: &Remover) -> io::Result<()> {
    match private(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_own(path)? => {
            let of_session = std::fs::read_link(path.join(OWNER));
            if of_session.is_ok_and(|owner| owner == session) {
                return make_within(path);
            }
            remover.remove(put_aside(path)?);
            private(path)?;
        }
        made => made?,
    }
    symlink(session, path.join(OWNER))?;
    make_within(path)
}

fn make_within(path: &Path) -> io::Result<()> {
    for name in [TMP, VAR_TMP, HOME] {
        let within = path.join(name);
        match private(&within) {
            // A call may have changed its mode; its content must not be lost for that.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_own(&within)? => {
                std::fs::set_permissions(&within, std::fs::Permissions::from_mode(0o700))?;
            }
            made => made?,
        }
    }
    Ok(())
}

fn private(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

/// The names to try, in order: the preferred one, then the name that an earlier run of the session
/// got instead, then new ones.
fn names(wanted: &Path, session: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = vec![wanted.to_owned()];
    let prefix = format!("{}-", wanted.file_name().unwrap_or_default().to_string_lossy());
    if wanted.symlink_metadata().is_ok() && !is_of(wanted, session) {
        let entries = wanted.parent().map(std::fs::read_dir).into_iter().flatten().flatten();
        let others = entries
            .flatten()
            .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()));
        names.extend(others.map(|entry| entry.path()).filter(|path| is_of(path, session)));
    }
    for _ in 1..MAX_NAMES {
        names.push(wanted.with_file_name(format!("{prefix}{:08x}", random()?)));
    }
    Ok(names)
}

/// True if this user made the directory for this session.
fn is_of(path: &Path, session: &Path) -> bool {
    is_own(path).unwrap_or(false)
        && std::fs::read_link(path.join(OWNER)).is_ok_and(|owner| owner == session)
}

fn random() -> io::Result<u32> {
    let mut number = [0; 4];
    getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(u32::from_ne_bytes(number))
}

/// In `/tmp` only the owner can change a mode, and a call may have.
fn is_own(path: &Path) -> io::Result<bool> {
    let there = std::fs::symlink_metadata(path)?;
    Ok(there.is_dir() && there.uid() == nix::unistd::geteuid().as_raw())
}

/// Gives a server directories of its own in place of those that the session's commands share: what it leaves
/// there, no command and no other server meets.
///
/// # Errors
/// If one cannot be made.
pub(crate) fn set_own(name: &str, confinement: &mut Confinement) -> io::Result<()> {
    let session = confinement.temp.to_path();
    let own = session.parent().unwrap_or(&session).join(SERVERS).join(name);
    let private = confinement.private.iter_mut().map(|dir| &mut dir.kept_at);
    for kept_at in std::iter::once(&mut confinement.temp).chain(private) {
        let old = kept_at.to_path();
        *kept_at = FilePath::from(own.join(old.file_name().unwrap_or_default()));
    }
    let caches = own.join(CACHES);
    let dirs = confinement.private.iter().map(|dir| &dir.kept_at).chain([&confinement.temp]);
    for dir in dirs.map(FilePath::to_path).chain([caches.clone()]) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    confinement.caches = Some(FilePath::from(caches));
    Ok(())
}

/// Removes the directory, in the background.
pub(crate) fn remove(path: &Path, remover: &Remover) {
    match put_aside(path) {
        Ok(aside) => remover.remove(aside),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // It is removed where it is, or handled by the session's next run or the next start.
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a temporary directory cannot be \
                                                            removed");
        }
    }
}

/// The same for a session whose files are gone. A directory with another name is left to the next
/// start.
pub(crate) fn remove_if_owned(path: &Path, session: &Path, remover: &Remover) {
    if is_of(path, session) {
        remove(path, remover);
    }
}

/// Renames it, so that only the removal finds it.
fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let session = name.trim_start_matches(PREFIX);
    let aside = format!("{REMOVED_PREFIX}{session}-{:08x}", random()?);
    let aside = path.with_file_name(aside);
    std::fs::rename(path, &aside)?;
    Ok(aside)
}

/// Removes directories of sessions that are gone or were unused for long, and those renamed for
/// removal earlier. Directories of other users are ignored. Directories of an older build, which
/// have no owner link, are removed if their session in `sessions` is not open.
pub(crate) fn remove_unused(root: &Path, sessions: &Path, remover: &Remover) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if !is_of_session(&name) || !is_own(&path).unwrap_or(false) {
            continue;
        }
        if name.to_string_lossy().starts_with(REMOVED_PREFIX) {
            remover.remove(path);
            continue;
        }
        let session = match std::fs::read_link(path.join(OWNER)) {
            Ok(owner) if !owner.is_dir() => {
                // The session may be on a disk that is not mounted now.
                if owner.parent().is_some_and(Path::is_dir) || is_unused(&path) {
                    remove(&path, remover);
                }
                continue;
            }
            Ok(owner) if is_unused(&owner) => owner,
            Ok(_) => continue,
            Err(_) => match session_of(&name, sessions) {
                Some(session) => session,
                None => continue,
            },
        };
        // Locked until it is renamed: a session that opens makes its directory after that.
        if let Ok(_hold) = SessionLock::try_acquire(&session) {
            tracing::info!(path = %path.display(), "an unused temporary directory is removed");
            remove(&path, remover);
        }
    }
}

/// True if no file in this directory was written for long. In a session's directory that is its
/// journal.
fn is_unused(directory: &Path) -> bool {
    let written = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let written = written.filter_map(|entry| entry.metadata().ok()?.modified().ok()).max();
    let age = written.and_then(|at| SystemTime::now().duration_since(at).ok());
    age.is_some_and(|age| age > UNUSED_LIMIT)
}

fn is_of_session(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// The directory of the session whose private directory has this name, if it exists.
fn session_of(name: &OsStr, sessions: &Path) -> Option<PathBuf> {
    let id = name.to_str()?.strip_prefix(PREFIX)?;
    let other_name = id.rsplit_once('-').filter(|(_, number)| number.parse::<u32>().is_ok());
    let ids = [Some(id), other_name.map(|(id, _)| id)];
    let found = |id: &&str| !id.is_empty() && sessions.join(id).is_dir();
    ids.into_iter().flatten().find(found).map(|id| sessions.join(id))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use setup::private_paths::session_dir_path;

    fn names(root: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(root).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    async fn removed(remover: &Remover) {
        remover.finish(Duration::from_secs(60)).await;
    }

    /// Fills it with files that cannot be listed or removed without changing modes.
    fn shut(path: &Path) {
        let mode = std::fs::Permissions::from_mode;
        std::fs::create_dir_all(path.join("shut/cache")).unwrap();
        std::fs::write(path.join("shut/cache/file"), "x").unwrap();
        std::fs::set_permissions(path.join("shut/cache"), mode(0o555)).unwrap();
        std::fs::set_permissions(path.join("shut"), mode(0o000)).unwrap();
        std::fs::set_permissions(path, mode(0o000)).unwrap();
    }

    #[tokio::test]
    async fn what_a_call_did_to_its_modes_stops_neither_the_removal_nor_the_next_life() {
        let (root, session) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let remover = Remover::start(&[root.path().to_owned()]).unwrap();
        let path = session_dir_path(root.path(), "0123456789ab");
        let again = || make(&path, session.path(), &remover).unwrap();
        assert_eq!(again(), path);
        shut(&path.join(TMP));
        assert_eq!(again(), path);
        assert_eq!(names(&path.join(TMP)), ["shut"], "the next life finds what was there");
        remove(&path, &remover);
        assert_eq!(again(), path);
        removed(&remover).await;
        assert_eq!(names(root.path()), ["agentd-0123456789ab"]);
        assert_eq!(names(&path.join(TMP)), [""; 0]);
        assert_eq!(names(&path), [HOME, OWNER, TMP, VAR_TMP]);
    }

    #[test]
    fn a_cleaner_sees_that_the_directory_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let of_cleaner = || File::open(dir.path()).unwrap().try_lock();
        let held = hold_against_cleanup(dir.path());
        assert!(of_cleaner().is_err());
        drop(held);
        assert!(of_cleaner().is_ok(), "the control");
    }

    /// A directory without an owner link, or with another owner, is not of this session.
    #[tokio::test]
    async fn what_another_build_or_session_left_is_not_used() {
        let (root, session) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let remover = Remover::start(&[root.path().to_owned()]).unwrap();
        let path = session_dir_path(root.path(), "0123456789ab");
        std::fs::create_dir_all(path.join("tmp/left")).unwrap();
        make(&path, session.path(), &remover).unwrap();
        assert_eq!(names(&path.join(TMP)), [""; 0]);
        std::fs::create_dir_all(path.join("tmp/left")).unwrap();
        make(&path, root.path(), &remover).unwrap();
        assert_eq!(names(&path.join(TMP)), [""; 0]);
        removed(&remover).await;
        assert_eq!(names(root.path()), ["agentd-0123456789ab"]);
    }

    #[tokio::test]
    async fn a_directory_ends_with_its_session_or_when_nobody_used_that_for_long() {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let remover = Remover::start(&[root.path().to_owned()]).unwrap();
        for id in ["aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc", "dddddddddddd"] {
            let session = state.path().join(id);
            std::fs::create_dir(&session).unwrap();
            make(&session_dir_path(root.path(), id), &session, &remover).unwrap();
            let journal = std::fs::File::create(session.join("journal.jsonl")).unwrap();
            if ["bbbbbbbbbbbb", "dddddddddddd"].contains(&id) {
                let long_ago = SystemTime::now() - UNUSED_LIMIT - Duration::from_secs(60);
                journal.set_modified(long_ago).unwrap();
            }
        }
        std::fs::remove_dir_all(state.path().join("aaaaaaaaaaaa")).unwrap();
        let held = SessionLock::acquire(&state.path().join("dddddddddddd")).unwrap();
        // Sessions in another state directory are checked too: the owner link leads there.
        make(&session_dir_path(root.path(), "eeeeeeeeeeee"), Path::new("/nowhere/e"), &remover)
            .unwrap();
        remove_unused(root.path(), Path::new("/nowhere"), &remover);
        removed(&remover).await;
        let left = ["agentd-cccccccccccc", "agentd-dddddddddddd", "agentd-eeeeeeeeeeee"];
        assert_eq!(names(root.path()), left);
        drop(held);
    }

    /// A foreign link and a directory that cannot be moved block no session.
    #[tokio::test]
    async fn where_something_stays_another_name_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let remover = Remover::start(&[root.path().to_owned()]).unwrap();
        let path = session_dir_path(root.path(), "0123456789ab");
        symlink(root.path(), &path).unwrap();
        let session = tempfile::tempdir().unwrap();
        let other = make(&path, session.path(), &remover).unwrap();
        let name = other.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("agentd-0123456789ab-"), "{name}");
        std::fs::write(other.join("tmp/left"), "x").unwrap();
        assert_eq!(make(&path, session.path(), &remover).unwrap(), other);
        assert_eq!(names(&other.join(TMP)), ["left"], "it is the session's own");
        remove(&other, &remover);
        removed(&remover).await;
        assert_eq!(names(root.path()), ["agentd-0123456789ab"], "the link is left alone");
        let nowhere = root.path().join("none/agentd-a");
        let nowhere = make(&nowhere, session.path(), &remover).unwrap_err();
        assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn of_an_older_build_only_what_nobody_holds_of_the_sessions_here_is_swept() {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let remover = Remover::start(&[root.path().to_owned()]).unwrap();
        let ids = ["aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"];
        for id in ids {
            std::fs::create_dir(session_dir_path(root.path(), id)).unwrap();
        }
        for other in ["agentd-", "agentd-aaaaaaaaaaaa-2", "agentd-bbbbbbbbbbbb-2"] {
            std::fs::create_dir(root.path().join(other)).unwrap();
        }
        // A removal that was cut short, and names that only look like one.
        std::fs::create_dir_all(root.path().join("agentd-removed-0123456789abcdef/7/d")).unwrap();
        symlink(state.path(), root.path().join("agentd-removed-link")).unwrap();
        std::fs::write(root.path().join("agentd-removed-file"), "x").unwrap();
        for id in &ids[..2] {
            std::fs::create_dir(state.path().join(id)).unwrap();
        }
        let held = SessionLock::acquire(&state.path().join(ids[1])).unwrap();
        remove_unused(root.path(), state.path(), &remover);
        removed(&remover).await;
        let left = [
            "agentd-",
            "agentd-bbbbbbbbbbbb",
            "agentd-bbbbbbbbbbbb-2",
            "agentd-cccccccccccc",
            "agentd-removed-file",
            "agentd-removed-link",
        ];
        assert_eq!(names(root.path()), left);
        drop(held);
    }
}
