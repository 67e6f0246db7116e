//! What the audit log says of its own removals is believed as far as a session confirms it, and no line
//! that somebody puts in hides what they took out.

use super::sample::{decided, ended, keep_script};
use journal::{
    Audit, AuditError, AuditFaultKind, AuditRecord, CallFilter, ChainAnchor, ChainHead,
    DecidedRecord, DecisionRecord, Digest, RemovedRecord, Retention, RetentionBound, calls,
    entries, verify, verify_bounded,
};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tempfile::{TempDir, tempdir};

const FILE: &str = "log.jsonl";

fn anchor(head: ChainHead) -> ChainAnchor {
    ChainAnchor { session: "s1".to_owned(), record: 1, head }
}

fn lines(dir: &Path) -> Vec<String> {
    fs::read_to_string(dir.join(FILE)).unwrap().lines().map(str::to_owned).collect()
}

fn write(dir: &Path, lines: &[String]) {
    fs::write(dir.join(FILE), lines.iter().map(|line| format!("{line}\n")).collect::<String>())
        .unwrap();
}

fn kinds(dir: &Path, anchors: &[ChainAnchor]) -> Vec<AuditFaultKind> {
    verify(dir, anchors).unwrap().faults.into_iter().map(|fault| fault.kind).collect()
}

/// Appends records, and returns the anchor that a session would have of the last.
fn append(dir: &Path, records: &[AuditRecord]) -> ChainAnchor {
    let mut audit = Audit::open(dir).unwrap();
    for record in records {
        audit.append(record).unwrap();
    }
    anchor(audit.sync().unwrap())
}

/// A log of six calls whose records 1 to 4 are cut off, the anchors of all six, and the removal that
/// whoever cut it would say.
fn cut() -> (TempDir, Vec<ChainAnchor>, RemovedRecord) {
    let dir = tempdir().unwrap();
    let call = |call| [decided("s1", call, DecisionRecord::Allowed), ended("s1", call, vec![])];
    let anchors: Vec<_> = (1..=6).map(|number| append(dir.path(), &call(number))).collect();
    let before = entries(dir.path()).unwrap().nth(4).unwrap().unwrap().time;
    let to_hash = anchors[1].head.hash;
    write(dir.path(), &lines(dir.path())[4..]);
    (dir, anchors, RemovedRecord { from: 1, to: 4, to_hash, before, bound: RetentionBound::Size })
}

fn next() -> AuditRecord {
    decided("s1", 7, DecisionRecord::Allowed)
}

#[test]
fn a_removal_counts_where_a_session_saw_it_or_there_is_none_that_could() {
    let (dir, mut anchors, removed) = cut();
    assert_eq!(kinds(dir.path(), &anchors), [AuditFaultKind::Removed { from: 1, to: 4 }]);
    append(dir.path(), &[AuditRecord::Removed(removed.clone())]);
    let found = verify(dir.path(), &anchors).unwrap();
    assert_eq!(found.faults.len(), 1, "{found:#?}");
    assert_eq!(found.faults[0].kind, AuditFaultKind::NotConfirmed { to: 4 });
    assert_eq!((found.faults[0].line, found.removed), (9, None));
    assert!(found.faults[0].to_string().contains("not confirmed by any session"));
    // Also where all that a session saw is before what is left.
    assert_eq!(kinds(dir.path(), &anchors[..1]), [AuditFaultKind::NotConfirmed { to: 4 }]);
    let alone = verify(dir.path(), &[]).unwrap();
    assert!(alone.is_whole(), "{alone:#?}");
    assert_eq!((alone.anchors, alone.removed.as_ref()), (0, Some(&removed)));

    let last = append(dir.path(), &[next()]);
    let other = ChainHead { hash: Digest::NONE, ..last.head };
    let forged = kinds(dir.path(), &[anchors.clone(), vec![anchor(other)]].concat());
    assert!(forged.contains(&AuditFaultKind::NotConfirmed { to: 4 }), "{forged:?}");
    anchors.push(last);
    let found = verify(dir.path(), &anchors).unwrap();
    assert!(found.is_whole(), "{found:#?}");
    assert_eq!(found.removed, Some(removed));
    assert_eq!(found.anchors, 6, "what the first saw is not there to be compared");
}

#[test]
fn a_removal_that_does_not_fit_what_is_left_does_not_count() {
    let missing = [AuditFaultKind::Removed { from: 1, to: 4 }];
    let said = |change: fn(&mut RemovedRecord)| {
        let (dir, mut anchors, mut removed) = cut();
        change(&mut removed);
        anchors.push(append(dir.path(), &[AuditRecord::Removed(removed), next()]));
        (dir, anchors)
    };
    let (dir, anchors) = said(|_| {});
    assert_eq!(kinds(dir.path(), &anchors), []);
    // A session saw another record where the removal ends.
    let mut others = anchors;
    others[1].head.hash = Digest::NONE;
    assert_eq!(kinds(dir.path(), &others), missing);
    // A line before the first good one: files are removed as a whole.
    write(dir.path(), &[&["rubbish".to_owned()], &lines(dir.path())[..]].concat());
    assert_eq!(verify(dir.path(), &[]).unwrap().removed, None);
    for change in [
        (|removed| removed.before += 1) as fn(&mut RemovedRecord),
        |removed| removed.to = 5,
        |removed| removed.to = u64::MAX,
        |removed| removed.to_hash = Digest::NONE,
        |removed| removed.bound = RetentionBound::Age,
    ] {
        let (dir, anchors) = said(change);
        assert_eq!(kinds(dir.path(), &anchors), missing);
    }
    let (dir, anchors) = said(|removed| removed.bound = RetentionBound::Age);
    let young = Retention { age: Duration::ZERO, ..Retention::default() };
    assert!(verify_bounded(dir.path(), &anchors, young).unwrap().is_whole());
}

/// A log whose first record names a script and has a long input, the script's file and the input's.
fn with_texts() -> (TempDir, Digest, Digest, ChainHead) {
    let dir = tempdir().unwrap();
    let mut audit = Audit::open(dir.path()).unwrap();
    let AuditRecord::Decided(plain) = decided("s1", 1, DecisionRecord::Allowed) else {
        unreachable!()
    };
    let script = keep_script(dir.path(), "ls");
    let input = "x".repeat(100_000);
    let text = Digest::of(input.as_bytes());
    let record = DecidedRecord { script: Some(script), input, ..plain };
    let head = audit.append(&AuditRecord::Decided(record)).unwrap();
    audit.append(&decided("s1", 2, DecisionRecord::Allowed)).unwrap();
    (dir, script, text, head)
}

fn file(dir: &Path, text: Digest) -> std::path::PathBuf {
    dir.join("scripts").join(text.to_string())
}

#[test]
fn a_removal_excuses_texts_that_are_gone_with_what_it_names_and_no_other() {
    let (dir, script, text, head) = with_texts();
    let dir = dir.path();
    let removed = |to, to_hash| {
        AuditRecord::Removed(RemovedRecord {
            from: 1,
            to,
            to_hash,
            before: 0,
            bound: RetentionBound::Size,
        })
    };
    let missing = AuditFaultKind::Text { digest: text };
    fs::remove_file(file(dir, text)).unwrap();
    let mut last = append(dir, &[removed(1_000, head.hash), removed(u64::MAX, head.hash)]);
    assert_eq!(kinds(dir, &[last.clone()]), std::slice::from_ref(&missing));
    last = append(dir, &[removed(1, Digest::NONE), removed(2, head.hash)]);
    assert_eq!(kinds(dir, &[last.clone()]), [missing]);
    let begun = append(dir, &[removed(1, head.hash)]);
    assert_eq!(kinds(dir, &[last]), [AuditFaultKind::NotConfirmed { to: 1 }]);
    assert_eq!(kinds(dir, &[]), []);
    assert_eq!(kinds(dir, std::slice::from_ref(&begun)), []);
    // What was changed was not removed.
    fs::write(file(dir, script), "rm").unwrap();
    assert_eq!(kinds(dir, &[begun]), [AuditFaultKind::Text { digest: script }]);
}

#[test]
fn a_removal_that_was_begun_does_not_hide_the_other_calls() {
    let (dir, _, text, head) = with_texts();
    let dir = dir.path();
    let listed = || calls(dir, &CallFilter::default()).map(|calls| calls.len());
    assert_eq!(listed().unwrap(), 2);
    fs::remove_file(file(dir, text)).unwrap();
    assert!(listed().is_err(), "the log does not say that it was removed");
    let removed = RemovedRecord {
        from: 1,
        to: 1,
        to_hash: head.hash,
        before: 0,
        bound: RetentionBound::Size,
    };
    append(dir, &[AuditRecord::Removed(removed)]);
    assert_eq!(listed().unwrap(), 1);
    fs::write(file(dir, text), "another").unwrap();
    assert!(listed().is_err(), "it is there, and changed");
}

#[test]
fn texts_that_are_removed_while_it_is_verified_are_no_damage() {
    let dir = tempdir().unwrap();
    let often = Retention { file_bytes: 1, all_bytes: 12_000, ..Retention::default() };
    let writing = AtomicBool::new(true);
    let begun = std::thread::scope(|scope| {
        let verifier = scope.spawn(|| {
            let mut removed = 0;
            while writing.load(Ordering::Relaxed) {
                let found = verify(dir.path(), &[]).unwrap();
                assert!(found.is_whole(), "{found:#?}");
                removed += usize::from(found.removed.is_some());
            }
            removed
        });
        let mut audit = Audit::open_bounded(dir.path(), often).unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(86_400);
        for call in 1..=200 {
            if verifier.is_finished() {
                break;
            }
            let AuditRecord::Decided(plain) = decided("s1", call, DecisionRecord::Allowed) else {
                unreachable!()
            };
            let script = keep_script(dir.path(), &format!("echo {call}"));
            let kept = fs::File::options().append(true).open(file(dir.path(), script)).unwrap();
            kept.set_modified(long_ago).unwrap();
            let record = DecidedRecord { script: Some(script), ..plain };
            audit.append(&AuditRecord::Decided(record)).unwrap();
            audit.append(&ended("s1", call, vec![])).unwrap();
        }
        writing.store(false, Ordering::Relaxed);
        verifier.join().unwrap()
    });
    assert!(begun > 0, "it was removed from meanwhile");
}

#[test]
fn a_record_with_the_last_number_that_there_is_is_damage() {
    let dir = tempdir().unwrap();
    let numbered = |seq: u64| {
        let body = format!(r#"{{"seq":{seq},"time":1,"event":"note","prev":"{}""#, Digest::NONE);
        format!(r#"{body},"hash":"{}"}}"#, Digest::of(body.as_bytes()))
    };
    write(dir.path(), &[numbered(u64::MAX), numbered(1)]);
    assert!(!kinds(dir.path(), &[]).is_empty());
    write(dir.path(), &[numbered(u64::MAX - 1), "rubbish".to_owned(), numbered(u64::MAX - 1)]);
    assert!(!kinds(dir.path(), &[]).is_empty());
    write(dir.path(), &[numbered(u64::MAX)]);
    assert!(matches!(Audit::open(dir.path()), Err(AuditError::Damaged { .. })));
    write(dir.path(), &[numbered(u64::MAX - 1)]);
    let mut audit = Audit::open(dir.path()).unwrap();
    assert!(matches!(audit.append(&next()), Err(AuditError::Damaged { .. })));
}

#[test]
fn a_file_that_is_put_away_as_it_is_opened_is_opened_anew() {
    let dir = tempdir().unwrap();
    let log = dir.path().join(FILE);
    let away = tempdir().unwrap();
    let opening = AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if !opening.load(Ordering::Relaxed) {
                    break;
                }
                let _ = fs::File::create_new(&log);
                let _ = fs::rename(&log, away.path().join((number % 64).to_string()));
            }
        });
        let opened = (0..600).find_map(|_| match Audit::open(dir.path()) {
            Err(error @ AuditError::Open { .. }) => Some(error),
            _ => None,
        });
        opening.store(false, Ordering::Relaxed);
        assert!(opened.is_none(), "{opened:?}");
    });
}
