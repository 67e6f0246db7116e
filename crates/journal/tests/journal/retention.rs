//! The audit log in several files: put away when full, removed when too much, killed in between.

use super::sample::{decided, ended, keep_script};
use journal::{
    Audit, AuditFault, AuditFaultKind, AuditRecord, CallFilter, ChainAnchor, ChainHead,
    DecidedRecord, DecisionRecord, Digest, LineFault, RemovedRecord, Retention, RetentionBound,
    calls, script, verify, verify_bounded,
};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tempfile::tempdir;

const AGES: Duration = Duration::from_secs(1 << 40);
/// A few records a file, and all of them kept.
const SMALL: Retention =
    Retention { file_bytes: 3000, file_age: AGES, all_bytes: u64::MAX, age: AGES };
/// The same, and only the newest of them kept.
const LITTLE: Retention = Retention { all_bytes: 20_000, ..SMALL };

/// So many calls of one session, and the anchors that its journal would hold.
fn log(dir: &Path, retention: Retention, calls: u32) -> Vec<ChainAnchor> {
    let mut audit = Audit::open_bounded(dir, retention).unwrap();
    (1..=calls)
        .map(|call| {
            audit.append(&decided("s1", call, DecisionRecord::Allowed)).unwrap();
            audit.append(&ended("s1", call, vec![])).unwrap();
            anchor(audit.sync().unwrap())
        })
        .collect()
}

fn anchor(head: ChainHead) -> ChainAnchor {
    ChainAnchor { session: "s1".to_owned(), record: 1, head }
}

/// The earlier files, oldest first.
fn earlier(dir: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut found: Vec<_> = all.filter(|path| name(path).starts_with("log-")).collect();
    found.sort();
    found
}

/// Number of a file's first record, as its first line says.
fn first(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    line["seq"].as_u64().unwrap()
}

fn named(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[track_caller]
fn whole(dir: &Path, anchors: &[ChainAnchor]) -> Option<RemovedRecord> {
    let found = verify(dir, anchors).unwrap();
    assert!(found.is_whole(), "{found:#?}");
    found.removed
}

fn faults(dir: &Path, anchors: &[ChainAnchor]) -> Vec<AuditFault> {
    verify(dir, anchors).unwrap().faults
}

#[test]
fn a_full_file_is_put_away_and_the_chain_goes_on_in_the_next() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), SMALL, 20);
    let files = earlier(dir.path());
    assert!(files.len() >= 5, "{files:?}");
    for file in &files {
        assert_eq!(named(file), format!("log-{:012}.jsonl", first(file)));
        assert!(fs::metadata(file).unwrap().len() < 2 * SMALL.file_bytes);
    }
    let found = verify(dir.path(), &anchors).unwrap();
    assert!(found.is_whole(), "{found:#?}");
    assert_eq!((found.lines, found.anchors, found.removed), (40, 20, None));
    assert_eq!(found.head, anchors[19].head);
    let listed = calls(dir.path(), &CallFilter::default()).unwrap();
    assert_eq!(listed.len(), 20);
    assert!(listed.iter().all(|call| call.entries.len() == 2));
    // A later process goes on from there, also where nothing stands in the file yet.
    let mut audit = Audit::open_bounded(dir.path(), SMALL).unwrap();
    assert_eq!(audit.head(), anchors[19].head);
    assert_eq!(audit.append(&ended("s1", 21, vec![])).unwrap().seq, 41);
    whole(dir.path(), &anchors);
}

#[test]
fn a_file_that_is_gone_or_changed_is_found_and_named() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), SMALL, 12);
    let files = earlier(dir.path());
    let put_back = |path: &Path| {
        let text = fs::read(path).unwrap();
        fs::remove_file(path).unwrap();
        move |path: &Path| fs::write(path, &text).unwrap()
    };
    for gone in 0..files.len() - 1 {
        let (from, to) = (first(&files[gone]), first(&files[gone + 1]) - 1);
        let back = put_back(&files[gone]);
        let missing = AuditFault {
            file: named(&files[gone + 1]),
            line: 1,
            kind: AuditFaultKind::Removed { from, to },
        };
        assert_eq!(faults(dir.path(), &[]), std::slice::from_ref(&missing));
        assert_eq!(faults(dir.path(), &anchors), [missing]);
        back(&files[gone]);
    }
    whole(dir.path(), &anchors);

    let text = fs::read_to_string(&files[1]).unwrap();
    fs::write(&files[1], text.replacen("\"s1\"", "\"s2\"", 1)).unwrap();
    let changed = AuditFault {
        file: named(&files[1]),
        line: 1,
        kind: AuditFaultKind::Changed(LineFault::Hash),
    };
    assert_eq!(faults(dir.path(), &[]), std::slice::from_ref(&changed));
    assert_eq!(
        changed.to_string().split(": ").next().unwrap(),
        format!("{}, line 1", named(&files[1]))
    );
    fs::write(&files[1], &text).unwrap();

    // The end of a file cut off, and two in each other's place.
    let half = text.len() / 2;
    fs::write(&files[1], &text[..half]).unwrap();
    assert_eq!(faults(dir.path(), &[])[0].file, named(&files[2]));
    fs::write(&files[1], fs::read(&files[2]).unwrap()).unwrap();
    assert!(!faults(dir.path(), &[]).is_empty());
    fs::write(&files[1], &text).unwrap();
    whole(dir.path(), &anchors);

    // The file that is written taken away, and all the others.
    fs::remove_file(dir.path().join("log.jsonl")).unwrap();
    assert!(matches!(faults(dir.path(), &anchors)[0].kind, AuditFaultKind::Cut { .. }));
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
    assert!(matches!(faults(dir.path(), &anchors)[0].kind, AuditFaultKind::Cut { .. }));
}

#[test]
fn what_the_bounds_remove_is_told_and_no_more_than_that_may_be_gone() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), LITTLE, 60);
    let all: u64 = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(all <= LITTLE.all_bytes + 2 * LITTLE.file_bytes, "{all} bytes");
    let removed = whole(dir.path(), &anchors).unwrap();
    assert_eq!(removed.bound, RetentionBound::Size);
    let files = earlier(dir.path());
    assert_eq!(removed.to + 1, first(&files[0]));
    assert!(removed.from > 1, "removed file by file, each with its record");
    let listed = calls(dir.path(), &CallFilter::default()).unwrap();
    assert!(listed.len() < 60 && listed.last().unwrap().call == 60);

    // One more, by hand: the log does not say so.
    fs::remove_file(&files[0]).unwrap();
    let missing = AuditFaultKind::Removed { from: 1, to: first(&files[1]) - 1 };
    let fault = AuditFault { file: named(&files[1]), line: 1, kind: missing };
    assert_eq!(faults(dir.path(), &anchors), [fault]);
}

/// A call may run for an hour, and whoever verifies meanwhile has done nothing wrong.
#[test]
fn a_removal_waits_for_the_end_of_a_call() {
    let dir = tempdir().unwrap();
    let mut audit = Audit::open_bounded(dir.path(), LITTLE).unwrap();
    let (mut anchors, mut removals) = (Vec::new(), 0);
    for call in 1..=80 {
        let before = earlier(dir.path()).first().cloned();
        audit.append(&decided("s1", call, DecisionRecord::Allowed)).unwrap();
        audit.sync().unwrap();
        whole(dir.path(), &anchors);
        assert!(before.as_ref().is_none_or(|file| file.exists()), "call {call} runs");
        audit.append(&ended("s1", call, vec![])).unwrap();
        anchors.push(anchor(audit.sync().unwrap()));
        removals += usize::from(before.is_some_and(|file| !file.exists()));
        whole(dir.path(), &anchors);
    }
    assert!(removals > 5, "{removals}");
}

#[test]
fn what_is_too_old_is_removed_and_evidence_is_not() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), SMALL, 12);
    let files = earlier(dir.path());
    let briefly = Retention { file_bytes: 1, age: Duration::from_millis(5), ..SMALL };
    std::thread::sleep(Duration::from_millis(10));
    // Where the end of the oldest does not meet the next, it stays.
    let text = fs::read_to_string(&files[0]).unwrap();
    fs::write(&files[0], text.replace("\"s1\"", "\"s2\"")).unwrap();
    log(dir.path(), briefly, 1);
    assert!(files[0].exists());
    fs::write(&files[0], text).unwrap();
    let anchors = [anchors, log(dir.path(), briefly, 1)].concat();
    assert!(!files[0].exists());
    let found = verify_bounded(dir.path(), &anchors, briefly).unwrap();
    assert!(found.is_whole(), "{found:#?}");
    let removed = found.removed.unwrap();
    // By bounds that are not those of who removed it, it was too early.
    let missing = AuditFaultKind::Removed { from: 1, to: removed.to };
    assert_eq!(faults(dir.path(), &anchors)[0].kind, missing);
    assert_eq!(removed.bound, RetentionBound::Age);
    assert!(removed.before > 0);
}

#[test]
fn texts_go_with_the_last_record_that_names_them() {
    let dir = tempdir().unwrap();
    let name_text = |audit: &mut Audit, call, text: &str| -> Digest {
        let AuditRecord::Decided(plain) = decided("s1", call, DecisionRecord::Allowed) else {
            unreachable!()
        };
        let digest = keep_script(dir.path(), text);
        audit
            .append(&AuditRecord::Decided(DecidedRecord { script: Some(digest), ..plain }))
            .unwrap();
        digest
    };
    let mut audit = Audit::open_bounded(dir.path(), LITTLE).unwrap();
    let once = name_text(&mut audit, 1, "once");
    let again = name_text(&mut audit, 2, "again");
    let lately = name_text(&mut audit, 3, "lately");
    let long_ago = SystemTime::now() - Duration::from_secs(86_400);
    for text in [once, again] {
        let path = dir.path().join("scripts").join(text.to_string());
        fs::File::options().append(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }
    for call in 4..60 {
        match call {
            50 => {
                name_text(&mut audit, call, "again");
            }
            _ => {
                audit.append(&ended("s1", call, vec![])).unwrap();
            }
        }
    }
    audit.sync().unwrap();
    assert!(whole(dir.path(), &[]).unwrap().to > 3);
    assert!(script(dir.path(), once).is_err());
    assert_eq!(script(dir.path(), again).unwrap(), "again");
    assert_eq!(script(dir.path(), lately).unwrap(), "lately", "its record may still be written");
}

#[test]
fn texts_beside_it_fill_a_file_too() {
    let dir = tempdir().unwrap();
    let mut audit = Audit::open_bounded(dir.path(), SMALL).unwrap();
    audit.append(&decided("s1", 1, DecisionRecord::Allowed)).unwrap();
    audit.append(&decided("s1", 2, DecisionRecord::Allowed)).unwrap();
    assert_eq!(earlier(dir.path()).len(), 0);
    let AuditRecord::Decided(plain) = decided("s1", 3, DecisionRecord::Allowed) else {
        unreachable!()
    };
    let long = Some("x".repeat(100_000));
    audit.append(&AuditRecord::Decided(DecidedRecord { script_text: long, ..plain })).unwrap();
    audit.append(&decided("s1", 4, DecisionRecord::Allowed)).unwrap();
    assert_eq!(earlier(dir.path()).len(), 1);
}

/// Goes on with a log in this state: it is whole before and after, and takes records.
#[track_caller]
fn goes_on(dir: &Path, anchors: &[ChainAnchor], what: &str) {
    assert!(verify(dir, anchors).unwrap().is_whole(), "{what}: {:?}", faults(dir, anchors));
    let head = anchors.last().unwrap().head;
    let mut audit = Audit::open_bounded(dir, LITTLE).unwrap();
    assert_eq!(audit.head().seq, head.seq, "{what}");
    for call in 100..130 {
        audit.append(&decided("s1", call, DecisionRecord::Allowed)).unwrap();
    }
    let now = anchor(audit.sync().unwrap());
    assert!(now.head.seq >= head.seq + 30, "{what}");
    whole(dir, &[anchors, &[now]].concat());
}

#[test]
fn each_state_that_a_death_may_leave_is_gone_on_from() {
    let make = || {
        let dir = tempdir().unwrap();
        let anchors = log(dir.path(), SMALL, 12);
        (dir, anchors)
    };
    let current = |dir: &Path| dir.join("log.jsonl");
    let away = |dir: &Path| dir.join(format!("log-{:012}.jsonl", first(&current(dir))));
    let (dir, anchors) = make();
    fs::rename(current(dir.path()), away(dir.path())).unwrap();
    goes_on(dir.path(), &anchors, "put away, and no next made");
    let (dir, anchors) = make();
    fs::rename(current(dir.path()), away(dir.path())).unwrap();
    fs::write(current(dir.path()), "").unwrap();
    goes_on(dir.path(), &anchors, "the next is empty");
    let (dir, anchors) = make();
    fs::rename(current(dir.path()), away(dir.path())).unwrap();
    fs::write(current(dir.path()), "{\"seq\":25,\"ti").unwrap();
    goes_on(dir.path(), &anchors, "half a line in the next");
}

#[test]
fn a_file_whose_removal_was_said_and_not_done_is_no_damage() {
    let dir = tempdir().unwrap();
    let mut audit = Audit::open_bounded(dir.path(), SMALL).unwrap();
    let AuditRecord::Decided(plain) = decided("s2", 1, DecisionRecord::Allowed) else {
        unreachable!()
    };
    let text = keep_script(dir.path(), "gone");
    audit.append(&AuditRecord::Decided(DecidedRecord { script: Some(text), ..plain })).unwrap();
    drop(audit);
    log(dir.path(), SMALL, 12);
    let oldest = earlier(dir.path())[0].clone();
    let bytes = fs::read(&oldest).unwrap();
    // One file too much and not two, and so one goes.
    let all: u64 = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    let tight = Retention { all_bytes: all + 1200, ..SMALL };
    let mut anchors = Vec::new();
    while oldest.exists() {
        anchors = log(dir.path(), tight, 1);
    }
    let begins = whole(dir.path(), &anchors).unwrap();
    assert_eq!(begins.from, 1);
    fs::remove_file(dir.path().join("scripts").join(text.to_string())).unwrap();
    fs::write(&oldest, bytes).unwrap();
    assert_eq!(whole(dir.path(), &anchors), None, "it begins at its first record");
    let anchors = log(dir.path(), LITTLE, 20);
    assert!(!oldest.exists(), "the next time takes it");
    whole(dir.path(), &anchors).unwrap();
}

#[test]
fn several_writers_put_away_and_remove_and_make_one_chain() {
    let dir = tempdir().unwrap();
    // It holds a file that the others put away and remove.
    let mut idle = Audit::open_bounded(dir.path(), LITTLE).unwrap();
    idle.append(&decided("idle", 1, DecisionRecord::Allowed)).unwrap();
    let writing = AtomicBool::new(true);
    let anchors: Vec<ChainAnchor> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while writing.load(Ordering::Relaxed) {
                whole(dir.path(), &[]);
                assert!(calls(dir.path(), &CallFilter::default()).is_ok());
            }
        });
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let mut audit = Audit::open_bounded(dir.path(), LITTLE).unwrap();
                scope.spawn(move || {
                    let session = format!("s{writer}");
                    (1..=60)
                        .map(|call| {
                            audit
                                .append(&decided(&session, call, DecisionRecord::Allowed))
                                .unwrap();
                            audit.append(&ended(&session, call, vec![])).unwrap();
                            anchor(audit.sync().unwrap())
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let anchors = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        writing.store(false, Ordering::Relaxed);
        anchors
    });
    let begins = whole(dir.path(), &anchors).unwrap().to;
    assert!(begins > 1, "{begins}");
    let seen = anchors.iter().map(|anchor| anchor.head.seq).max().unwrap();
    // With the record of another removal before it, where the file is full.
    let head = idle.append(&decided("idle", 2, DecisionRecord::Allowed)).unwrap();
    assert!(head.seq > seen);
    whole(dir.path(), &[anchors, vec![anchor(head)]].concat());
}

const DIR: &str = "RETENTION_TEST_DIR";

#[test]
fn a_writer_that_is_killed_while_it_puts_away_and_removes_loses_nothing() {
    let dir = tempdir().unwrap();
    let mut anchors: Vec<ChainAnchor> = Vec::new();
    for round in 0..40_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "retention::in_the_child_audit_for_ever", "--ignored", "--nocapture"])
            .env(DIR, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut kept = |most: usize| -> Vec<ChainAnchor> {
            let heads = said.by_ref().map_while(Result::ok).filter_map(|line| {
                let head = line.strip_prefix("kept ")?.strip_suffix('.')?;
                Some(anchor(serde_json::from_str(head).unwrap()))
            });
            heads.take(most).collect()
        };
        anchors.extend(kept(2));
        std::thread::sleep(Duration::from_micros(round * 173));
        child.kill().unwrap();
        child.wait().unwrap();
        anchors.extend(kept(usize::MAX));
        let found = verify(dir.path(), &anchors).unwrap();
        // A death behind a removal leaves it without an anchor, until the next call ends.
        let is_open =
            |fault: &AuditFault| matches!(fault.kind, AuditFaultKind::NotConfirmed { .. });
        assert!(found.faults.iter().all(is_open), "round {round}: {found:#?}");
        assert!(found.head.seq >= anchors.last().unwrap().head.seq);
    }
    let mut audit = Audit::open_bounded(dir.path(), SMALL).unwrap();
    anchors.push(anchor(audit.append(&decided("s1", 0, DecisionRecord::Allowed)).unwrap()));
    assert!(whole(dir.path(), &anchors).unwrap().to > 20, "it was removed from, too");
}

#[test]
#[ignore = "a part of the test above"]
fn in_the_child_audit_for_ever() {
    let dir = std::env::var_os(DIR).unwrap();
    // Each record is put away at once, and a few are kept: a death falls where it shall.
    let often = Retention { file_bytes: 1, all_bytes: 8000, ..SMALL };
    let mut audit = Audit::open_bounded(Path::new(&dir), often).unwrap();
    for call in 1.. {
        audit.append(&ended("s1", call, vec![])).unwrap();
        let head = serde_json::to_string(&audit.sync().unwrap()).unwrap();
        let mut out = std::io::stdout();
        writeln!(out, "\nkept {head}.").unwrap();
        out.flush().unwrap();
    }
}
