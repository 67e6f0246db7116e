//! A disk that takes no more: the journal and the audit log say so and take nothing afterwards.

use super::sample::{decided, header, prompt, records};
use journal::{AppendError, Audit, AuditError, DecisionRecord, Journal, verify};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::path::Path;
use std::process::Command;
use tempfile::tempdir;

const DIR: &str = "JOURNAL_TEST_DIR";

/// Runs the test of that name below in a process whose files may have 8 KiB at most.
fn within_eight_kib(test: &str, dir: &Path) {
    let run = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -S -f 16; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(DIR, dir)
        .output()
        .unwrap_or_else(|error| panic!("this test needs `sh` on PATH: {error}"));
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
fn a_journal_that_cannot_grow_is_closed_and_keeps_what_it_had() {
    let dir = tempdir().unwrap();
    within_eight_kib("full::in_the_child_fill_a_journal", dir.path());
    let session = dir.path().join("s1");
    let opened = Journal::open(&session).unwrap();
    assert!(opened.torn.is_some(), "half a record was left");
    let texts = &records(&session)[1..];
    assert!(texts.len() > 3);
    assert!(texts.iter().all(|record| *record == prompt(&"x".repeat(500))));
    assert_eq!(opened.journal.last_seq(), texts.len() as u64 + 1);
}

#[test]
#[ignore = "a part of the test above"]
fn in_the_child_fill_a_journal() {
    let dir = std::env::var_os(DIR).unwrap();
    let mut journal = Journal::create(Path::new(&dir), header("s1")).unwrap();
    let record = prompt(&"x".repeat(500));
    let error = (0..100).find_map(|_| journal.append(&record).err()).unwrap();
    assert!(matches!(error, AppendError::Write { .. }), "{error:?}");
    // A short record would find room; it is refused all the same.
    let closed = journal.append(&prompt("")).unwrap_err();
    assert!(matches!(closed, AppendError::ReadOnly { .. }), "{closed:?}");
    assert!(closed.to_string().contains("is the disk full?"), "{closed}");
    assert!(matches!(journal.sync(), Err(AppendError::ReadOnly { .. })));
}

#[test]
fn an_audit_log_that_cannot_grow_is_closed_and_stays_whole() {
    let dir = tempdir().unwrap();
    within_eight_kib("full::in_the_child_fill_an_audit_log", dir.path());
    let found = verify(dir.path(), &[]).unwrap();
    assert!(found.is_whole(), "{found:?}");
    assert!(found.lines > 3);
    Audit::open(dir.path()).unwrap().append(&decided("s1", 1, DecisionRecord::Allowed)).unwrap();
    assert!(verify(dir.path(), &[]).unwrap().is_whole());
}

#[test]
#[ignore = "a part of the test above"]
fn in_the_child_fill_an_audit_log() {
    let dir = std::env::var_os(DIR).unwrap();
    let mut audit = Audit::open(Path::new(&dir)).unwrap();
    let record = decided("s1", 1, DecisionRecord::Allowed);
    let error = (0..100).find_map(|_| audit.append(&record).err()).unwrap();
    assert!(matches!(error, AuditError::Write { .. }), "{error:?}");
    assert!(matches!(audit.append(&record), Err(AuditError::Closed { .. })));
    assert!(matches!(audit.sync(), Err(AuditError::Closed { .. })));
    // The file may still not grow: opening the log again takes nothing more.
    assert!(audit.reopen().and_then(|()| audit.append(&record)).is_err());
}

#[test]
fn an_audit_log_takes_records_again_once_there_is_room() {
    let dir = tempdir().unwrap();
    within_eight_kib("full::in_the_child_make_room_for_an_audit_log", dir.path());
    let found = verify(dir.path(), &[]).unwrap();
    assert!(found.is_whole(), "{found:?}");
}

#[test]
#[ignore = "a part of the test above"]
fn in_the_child_make_room_for_an_audit_log() {
    let dir = std::env::var_os(DIR).unwrap();
    let mut audit = Audit::open(Path::new(&dir)).unwrap();
    audit.reopen().unwrap();
    let record = decided("s1", 1, DecisionRecord::Allowed);
    // The records before the failure are in the file and not confirmed.
    let kept = (0..100).take_while(|_| audit.append(&record).is_ok()).count() as u64;
    let (_, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, hard, hard).unwrap();
    assert!(matches!(audit.append(&record), Err(AuditError::Closed { .. })));
    audit.reopen().unwrap();
    assert_eq!(audit.head().seq, kept);
    assert_eq!(audit.append(&record).unwrap().seq, kept + 1);
    assert_eq!(audit.sync().unwrap().seq, kept + 1);
}

/// Records that are gone are for a person to judge: no room brings the log back.
#[test]
fn an_audit_log_that_was_cut_is_not_opened_again() {
    let dir = tempdir().unwrap();
    let mut audit = Audit::open(dir.path()).unwrap();
    let record = decided("s1", 1, DecisionRecord::Allowed);
    audit.append(&record).unwrap();
    std::fs::File::options()
        .write(true)
        .open(dir.path().join("log.jsonl"))
        .unwrap()
        .set_len(0)
        .unwrap();
    assert!(matches!(audit.append(&record), Err(AuditError::Cut { .. })));
    assert!(matches!(audit.reopen(), Err(AuditError::Closed { .. })));
}
