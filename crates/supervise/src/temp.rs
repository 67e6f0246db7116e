//! A session's temporary directory: made for it alone, put aside with its end, and swept when
//! everybody who should have done that was killed. A call may have left anything in it, so only the
//! remover's thread goes into it: here it is renamed, which takes one step whatever it holds.

use crate::hold::Hold;
use crate::remover::Remover;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How the name of a session's directory begins; the session's own follows.
const OF_SESSION: &str = "agentd-";
/// How the name of one begins that was put aside. No session's name is of this form, so an older
/// build leaves it alone.
const ASIDE: &str = "agentd-removed-";
/// How many names a session's directory may have, where what has the others stays.
const NAMES: u32 = 8;

/// Where the session's directory is made if nothing is in the way.
pub(crate) fn place(root: &Path, session: &str) -> PathBuf {
    root.join(format!("{OF_SESSION}{session}"))
}

/// Makes it, readable by nobody else, and gives its path: another name is taken where something stays
/// at this one. A directory that an earlier life of the session left behind is put aside first,
/// whatever calls made of it; the caller holds the session's journal, so nobody else uses it.
///
/// # Errors
/// Where none can be made.
pub(crate) fn make(wanted: &Path, remover: &Remover) -> io::Result<PathBuf> {
    let other_names = (2..=NAMES).map(|number| with_ending(wanted, number));
    let mut refused = io::ErrorKind::AlreadyExists.into();
    for path in std::iter::once(wanted.to_owned()).chain(other_names) {
        match make_at(&path, remover) {
            Ok(()) => return Ok(path),
            Err(error) if path.symlink_metadata().is_ok() => {
                tracing::warn!(path = %path.display(), %error, "it stays; another name is taken");
                refused = error;
            }
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

fn make_at(path: &Path, remover: &Remover) -> io::Result<()> {
    let create = || std::fs::DirBuilder::new().mode(0o700).create(path);
    match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_own(path)? => {
            remover.remove(put_aside(path)?);
            create()
        }
        made => made,
    }
}

fn with_ending(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("-{number}"));
    name.into()
}

/// Only the owner can change the mode of what is in `/tmp`, and a call may have.
fn is_own(path: &Path) -> io::Result<bool> {
    let there = std::fs::symlink_metadata(path)?;
    Ok(there.is_dir() && there.uid() == nix::unistd::geteuid().as_raw())
}

/// Takes it away, to be removed.
pub(crate) fn remove(path: &Path, remover: &Remover) {
    match put_aside(path) {
        Ok(aside) => remover.remove(aside),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // It is removed where it lies, or taken up by the session's next life or the next start.
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a temporary directory stays behind");
        }
    }
}

/// Renames it to a name that only the sweep knows.
fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let mut number = [0; 4];
    getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let session = name.trim_start_matches(OF_SESSION);
    let aside = format!("{ASIDE}{session}-{:08x}", u32::from_ne_bytes(number));
    let aside = path.with_file_name(aside);
    std::fs::rename(path, &aside)?;
    Ok(aside)
}

/// Takes away the directories of sessions in `sessions` that nobody holds, and those that were put
/// aside before. Those of other users, or of sessions that are kept elsewhere, are not looked at.
pub(crate) fn sweep(root: &Path, sessions: &Path, remover: &Remover) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if !is_of_session(&name) || !is_own(&path).unwrap_or(false) {
            continue;
        }
        if name.to_string_lossy().starts_with(ASIDE) {
            remover.remove(path);
            continue;
        }
        let Some(session) = session_of(&name, sessions) else { continue };
        // Held until it is put aside: whoever opens the session makes the directory after that.
        if let Ok(_hold) = Hold::take_if_free(&session) {
            tracing::info!(path = %path.display(), "a deserted temporary directory is removed");
            remove(&path, remover);
        }
    }
}

fn is_of_session(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(OF_SESSION.as_bytes())
}

/// The directory of the session whose temporary directory has this name, where it is kept here.
fn session_of(name: &OsStr, sessions: &Path) -> Option<PathBuf> {
    let id = name.to_str()?.strip_prefix(OF_SESSION)?;
    let other_name = id.rsplit_once('-').filter(|(_, number)| number.parse::<u32>().is_ok());
    let ids = [Some(id), other_name.map(|(id, _)| id)];
    let found = |id: &&str| !id.is_empty() && sessions.join(id).is_dir();
    ids.into_iter().flatten().find(found).map(|id| sessions.join(id))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::Duration;

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

    #[tokio::test]
    async fn what_a_call_did_to_its_modes_stops_neither_the_removal_nor_the_next_life() {
        let mode = std::fs::Permissions::from_mode;
        let root = tempfile::tempdir().unwrap();
        let remover = Remover::start(root.path()).unwrap();
        let path = place(root.path(), "0123456789ab");
        for last in [remove, |path: &Path, remover: &Remover| _ = make(path, remover).unwrap()] {
            assert_eq!(make(&path, &remover).unwrap(), path);
            std::fs::create_dir_all(path.join("shut/cache")).unwrap();
            std::fs::write(path.join("shut/cache/file"), "x").unwrap();
            std::fs::set_permissions(path.join("shut/cache"), mode(0o555)).unwrap();
            std::fs::set_permissions(path.join("shut"), mode(0o000)).unwrap();
            std::fs::set_permissions(&path, mode(0o000)).unwrap();
            last(&path, &remover);
            assert!(!path.join("shut").exists());
        }
        removed(&remover).await;
        assert_eq!(names(root.path()), ["agentd-0123456789ab"]);
        assert_eq!(names(&path), [""; 0]);
    }

    /// Somebody else's link, and a directory that cannot be moved: no session waits for either.
    #[tokio::test]
    async fn where_something_stays_another_name_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let remover = Remover::start(root.path()).unwrap();
        let path = place(root.path(), "0123456789ab");
        symlink(root.path(), &path).unwrap();
        let other = make(&path, &remover).unwrap();
        assert_eq!(other, place(root.path(), "0123456789ab-2"));
        std::fs::write(other.join("left"), "x").unwrap();
        assert_eq!(make(&path, &remover).unwrap(), other, "an own directory is replaced");
        assert_eq!(names(&other), [""; 0]);
        remove(&other, &remover);
        removed(&remover).await;
        assert_eq!(names(root.path()), ["agentd-0123456789ab"], "the link is left alone");
        let nowhere = make(&root.path().join("none/agentd-a"), &remover).unwrap_err();
        assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn only_what_nobody_holds_of_the_sessions_here_is_swept() {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let remover = Remover::start(root.path()).unwrap();
        let ids = ["aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"];
        for id in ids {
            make(&place(root.path(), id), &remover).unwrap();
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
        let held = Hold::take(&state.path().join(ids[1])).unwrap();
        sweep(root.path(), state.path(), &remover);
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
