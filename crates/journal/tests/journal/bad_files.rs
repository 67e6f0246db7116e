//! What stands where a journal should stand: each its own error, with its place and a way on.

use super::sample::session;
use journal::{Journal, OpenError, ReadError, fork, header, newest, read};
use nix::sys::stat::Mode;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::tempdir;

const FILE: &str = "journal.jsonl";

/// Opening, reading, its header and its pages say the same.
#[track_caller]
fn said(dir: &Path) -> String {
    let opened = Journal::open(dir).unwrap_err().to_string();
    let read = read(dir).and_then(|reader| reader.collect::<Result<Vec<_>, _>>()).unwrap_err();
    assert_eq!(read.to_string(), opened);
    assert_eq!(header(dir).unwrap_err().to_string(), opened);
    assert_eq!(newest(dir, 1, Some).unwrap_err().to_string(), opened);
    assert!(opened.contains(dir.to_str().unwrap()), "{opened}");
    opened
}

#[test]
fn a_named_pipe_or_a_directory_is_no_journal_and_nobody_waits_for_it() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    drop(Journal::open(&dir).unwrap());
    fs::remove_file(dir.join(FILE)).unwrap();
    nix::unistd::mkfifo(&dir.join(FILE), Mode::S_IRWXU).unwrap();
    assert!(said(&dir).contains("is no file; move it away"));
    fs::remove_file(dir.join(FILE)).unwrap();
    fs::create_dir(dir.join(FILE)).unwrap();
    assert!(said(&dir).contains("is no file; move it away"));
}

#[test]
fn a_journal_of_no_length_was_never_begun() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    fs::write(dir.join(FILE), "").unwrap();
    assert!(said(&dir).contains("was never begun; its directory can be removed"));
}

#[test]
fn a_session_s_directory_that_is_a_file_holds_no_journal() {
    let sessions = tempdir().unwrap();
    fs::write(sessions.path().join("s1"), "").unwrap();
    said(&sessions.path().join("s1"));
}

#[test]
fn a_blob_that_is_a_named_pipe_is_damage_and_nobody_waits_for_it() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    Journal::open(&dir)
        .unwrap()
        .journal
        .append(&super::sample::prompt(&"x".repeat(70_000)))
        .unwrap();
    let blob = fs::read_dir(dir.join("blobs")).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&blob).unwrap();
    nix::unistd::mkfifo(&blob, Mode::S_IRWXU).unwrap();
    let opened = Journal::open(&dir).unwrap_err();
    assert!(matches!(opened, OpenError::Read(ReadError::Damaged { .. })), "{opened:?}");
    let read = read(&dir).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(read, ReadError::Damaged { .. }), "{read:?}");
}

/// Root may open anything, so that this half is a user's.
#[test]
fn a_session_without_permission_says_how_to_get_it_back() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    let as_user = || {
        if nix::unistd::geteuid().is_root() {
            // This thread only: the system call, not the library's, which would take them all.
            nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65534));
        }
    };
    let permit = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
    permit(sessions.path(), 0o755).unwrap();
    for (path, mode) in [(dir.clone(), 0o000), (dir.join(FILE), 0o000)] {
        let before = fs::metadata(&path).unwrap().permissions();
        permit(&path, mode).unwrap();
        let there = dir.clone();
        let said = std::thread::spawn(move || {
            as_user();
            said(&there)
        });
        let said = said.join().unwrap();
        assert!(said.contains("may not be opened by this user"), "{said}");
        assert!(said.contains("chmod u+rwX"), "{said}");
        fs::set_permissions(&path, before).unwrap();
    }
    drop(Journal::open(&dir).unwrap());
}

#[test]
fn a_name_that_leads_elsewhere_is_forked_neither_from_nor_to() {
    let place = tempdir().unwrap();
    let sessions = place.path().join("sessions");
    session(&sessions, "s1");
    session(place.path(), "outside");
    for (from, to) in [("../outside", "s2"), ("s1", "../s2"), ("", "s2"), (".", "s2")] {
        let error = fork(&sessions, (from, to), u64::MAX, |_| Vec::new()).unwrap_err().to_string();
        assert!(error.contains("is no name for a session"), "{from} {to}: {error}");
    }
    fork(&sessions, ("s1", "s2"), u64::MAX, |_| Vec::new()).unwrap();
}
