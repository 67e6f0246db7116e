//! A session's journal on real files: what is written comes back, one process at a time has it.

use super::sample::{each_kind, interrupted, prompt, proposed, records, result, session, start};
use journal::{
    CallProgress, CreateError, FORMAT, Journal, JournalEntry, JournalRecord, OpenCall, OpenError,
    OwnOriginRecord, Past, ReadError, SessionHeader, Tail, ToolKind, fork, header, read,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::tempdir;

fn open_calls(records: &[JournalRecord]) -> Vec<OpenCall> {
    let entries = (1..).zip(records.iter().cloned());
    let entries = entries.map(|(seq, record)| JournalEntry { seq, time: 0, record });
    Past::fold(&entries.collect::<Vec<_>>()).open_calls()
}

#[test]
fn each_kind_comes_back() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    let mut written = vec![JournalRecord::Session(super::sample::header("s1"))];
    written.extend(each_kind());
    let opened = Journal::open(&dir).unwrap();
    assert_eq!(records(&dir), written);
    assert_eq!(opened.torn, None);
    assert_eq!(opened.journal.last_seq(), written.len() as u64);
    let entries: Vec<_> = read(&dir).unwrap().map(Result::unwrap).collect();
    assert!(entries.iter().zip(1..).all(|(entry, seq)| entry.seq == seq));
    assert!(entries[0].time > 1_600_000_000_000);
    assert_eq!(opened.past.entries[0].record, written[0]);
    assert_eq!(header(&dir).unwrap(), super::sample::header("s1"));
}

#[test]
fn the_sample_has_each_kind_on_disk() {
    let sessions = tempdir().unwrap();
    let text = fs::read_to_string(session(sessions.path(), "s1").join("journal.jsonl")).unwrap();
    for kind in [
        "SESSION",
        "PROMPT",
        "ANSWER",
        "PROPOSED",
        "ASKED",
        "APPROVED",
        "DENIED",
        "EXPIRED",
        "START",
        "RESULT",
        "INTERRUPTED",
        "TURN_ENDED",
    ] {
        assert!(text.contains(&format!(r#""kind":"{kind}""#)), "{kind} in {text}");
    }
}

#[test]
fn an_opened_journal_goes_on() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    let before = records(&dir).len() as u64;
    let mut journal = Journal::open(&dir).unwrap().journal;
    assert_eq!(journal.append(&prompt("more")).unwrap(), before + 1);
    assert_eq!(journal.append_all(&[prompt("a"), prompt("b")]).unwrap(), before + 3);
    assert_eq!(journal.append_all(&[]).unwrap(), before + 3);
    drop(journal);
    assert_eq!(records(&dir)[before as usize..], [prompt("more"), prompt("a"), prompt("b")]);
}

#[test]
fn files_belong_to_their_owner_alone() {
    let sessions = tempdir().unwrap();
    let root = sessions.path().join("state/sessions");
    let dir = session(&root, "s1");
    let mut journal = Journal::open(&dir).unwrap().journal;
    journal.append(&prompt(&"x".repeat(70_000))).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&root), 0o700);
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join("journal.jsonl")), 0o600);
    assert_eq!(mode(&dir.join("blobs")), 0o700);
    for blob in fs::read_dir(dir.join("blobs")).unwrap() {
        assert_eq!(mode(&blob.unwrap().path()), 0o600);
    }
}

#[test]
fn a_second_opener_is_told_that_it_is_held() {
    let sessions = tempdir().unwrap();
    let first = Journal::create(sessions.path(), super::sample::header("s1")).unwrap();
    let dir = sessions.path().join("s1");
    assert!(matches!(Journal::open(&dir), Err(OpenError::Held { .. })));
    // Reading needs no lock.
    assert_eq!(records(&dir).len(), 1);
    drop(first);
    let second = Journal::open(&dir).unwrap();
    assert!(matches!(Journal::open(&dir), Err(OpenError::Held { .. })));
    drop(second);
    Journal::open(&dir).unwrap();
}

/// Each start of a process makes copies of what is open, for as long as the start takes.
#[test]
fn a_session_that_was_let_go_while_processes_start_is_free() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let mut command = std::process::Command::new("true");
                // A large environment makes the start take longer.
                command.env("LONG", "x".repeat(100_000));
                command.status().unwrap();
            }
        });
        for _ in 0..2000 {
            if let Err(error) = Journal::open(&dir) {
                over.store(true, Ordering::Relaxed);
                panic!("{error}");
            }
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_session_whose_making_was_cut_short_is_none() {
    let place = tempdir().unwrap();
    let names = || journal::sessions(place.path()).unwrap();
    assert_eq!(journal::sessions(&place.path().join("nowhere")).unwrap(), Vec::<String>::new());
    session(place.path(), "s1");
    let whole = fs::read(place.path().join("s1/journal.jsonl")).unwrap();
    let header = &whole[..whole.iter().position(|byte| *byte == b'\n').unwrap()];
    for (name, bytes) in [("s2", &header[..0]), ("s3", &header[..header.len() / 2])] {
        fs::create_dir(place.path().join(name)).unwrap();
        fs::write(place.path().join(name).join("journal.jsonl"), bytes).unwrap();
    }
    fs::create_dir(place.path().join("s4")).unwrap();
    fs::write(place.path().join("s5"), "no directory").unwrap();
    assert_eq!(names(), ["s1"]);

    // What is wrong in another way has something to say.
    fs::create_dir_all(place.path().join("s4/blobs")).unwrap();
    fs::write(place.path().join("s2/journal.jsonl"), format!("x{}\n", "y".repeat(80))).unwrap();
    fs::write(place.path().join("s3/journal.jsonl"), header).unwrap();
    assert_eq!(names(), ["s1", "s2", "s3", "s4"]);
}

#[test]
fn a_session_is_begun_once() {
    let sessions = tempdir().unwrap();
    session(sessions.path(), "s1");
    let again = Journal::create(sessions.path(), super::sample::header("s1"));
    assert!(matches!(again, Err(CreateError::Exists { .. })));
}

#[test]
fn a_name_that_is_no_plain_name_is_refused() {
    let sessions = tempdir().unwrap();
    for id in ["", ".", "..", "../x", "a/b", "a b", "a\0b", &"x".repeat(65)] {
        let made = Journal::create(sessions.path(), super::sample::header(id));
        assert!(matches!(made, Err(CreateError::BadName { .. })), "{id:?}");
    }
    assert_eq!(fs::read_dir(sessions.path()).unwrap().count(), 0);
}

#[test]
fn a_missing_session_is_said_to_be_missing() {
    let sessions = tempdir().unwrap();
    let opened = Journal::open(&sessions.path().join("none"));
    assert!(matches!(opened, Err(OpenError::Read(ReadError::Missing { .. }))));
    assert!(matches!(read(&sessions.path().join("none")), Err(ReadError::Missing { .. })));
}

#[test]
fn an_unwritable_directory_is_an_error_that_names_it() {
    let sessions = tempdir().unwrap();
    let file = sessions.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Journal::create(&file, super::sample::header("s1")).unwrap_err();
    assert!(error.to_string().contains("file/s1"), "{error}");
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let sessions = tempdir().unwrap();
    let newer = SessionHeader {
        format: FORMAT + 1,
        agentd: "9.8.7".to_owned(),
        ..super::sample::header("s1")
    };
    Journal::create(sessions.path(), newer).unwrap();
    let error = Journal::open(&sessions.path().join("s1")).unwrap_err();
    assert!(matches!(error, OpenError::Read(ReadError::NewerFormat { found: 2, .. })));
    assert!(error.to_string().contains("9.8.7"), "{error}");
}

#[test]
fn unknown_kinds_are_kept_and_skipped() {
    let sessions = tempdir().unwrap();
    let mut journal = Journal::create(sessions.path(), super::sample::header("s1")).unwrap();
    let fields = serde_json::json!({"call": 1, "deep": [{"$blob": "x"}], "z": null});
    let newer = JournalRecord::Unknown {
        kind: "CHECKPOINT".to_owned(),
        fields: fields.as_object().unwrap().clone(),
    };
    journal.append_all(&[newer.clone(), prompt("on")]).unwrap();
    drop(journal);
    let dir = sessions.path().join("s1");
    assert_eq!(records(&dir)[1..], [newer, prompt("on")]);
    assert_eq!(open_calls(&records(&dir)), []);
}

#[test]
fn long_texts_go_out_and_come_back() {
    let sessions = tempdir().unwrap();
    let long = "\u{1f600}long\n".repeat(20_000);
    let mut journal = Journal::create(sessions.path(), super::sample::header("s1")).unwrap();
    let at_the_cap = "c".repeat(64 << 10);
    let blocks = vec![journal::ContentBlock::Text { text: long.clone() }];
    let answer =
        JournalRecord::Answer { round: 1, blocks, usage: journal::Usage::default(), cost: None };
    let written = [prompt(&long), answer, result(1, &long), prompt(&at_the_cap)];
    journal.append_all(&written).unwrap();
    let dir = sessions.path().join("s1");
    assert_eq!(records(&dir)[1..], written);
    let blobs: Vec<_> = fs::read_dir(dir.join("blobs")).unwrap().collect();
    assert_eq!(blobs.len(), 1, "the same text is kept once");
    assert!(fs::metadata(dir.join("journal.jsonl")).unwrap().len() < 70_000);
}

#[test]
fn what_is_open_and_whether_it_ran() {
    use CallProgress::{MayHaveRun, NeverStarted};
    use ToolKind::{Mutation, Query};
    let all = [
        proposed(1, Mutation),
        proposed(2, Mutation),
        proposed(3, Query),
        proposed(4, Mutation),
        proposed(5, Mutation),
        start(2, Mutation),
        start(3, Query),
        start(4, Mutation),
        result(4, "done"),
        start(5, Mutation),
        interrupted(5, MayHaveRun),
    ];
    let open = |records: &[JournalRecord]| -> Vec<_> {
        open_calls(records).iter().map(|call| (call.number, call.progress)).collect()
    };
    assert_eq!(open(&all), [(1, NeverStarted), (2, MayHaveRun), (3, MayHaveRun)]);
    let refused = [(2, NeverStarted), (3, NeverStarted)];
    assert_eq!(open(&each_kind()), refused, "a decision is no end");
    assert_eq!(open(&all[..5]).len(), 5);
    assert_eq!(
        open_calls(&all[..1]),
        [OpenCall {
            number: 1,
            use_id: "use_1".to_owned(),
            own: None,
            tool: "bash".to_owned(),
            tool_kind: Mutation,
            input: r#"{"command":"echo \"hi\""}"#.to_owned(),
            progress: NeverStarted,
            basis: None,
            refused: None,
        }]
    );
    // A decision is not the end: the result that says so may be lost.
    let expired = [proposed(1, Mutation), JournalRecord::Expired { call: 1 }];
    assert_eq!(open_calls(&expired)[0].refused, Some(journal::RefusedCall::Expired));
}

#[test]
fn barriers_are_those_of_the_design() {
    use ToolKind::{Mutation, Query};
    let synced =
        |records: &[JournalRecord]| records.iter().map(JournalRecord::barrier).collect::<Vec<_>>();
    let of_a_query = [proposed(1, Query), start(1, Query), result(1, "")];
    assert_eq!(synced(&of_a_query), [false, false, true]);
    let of_a_mutation = [proposed(1, Mutation), start(1, Mutation), result(1, "")];
    assert_eq!(synced(&of_a_mutation), [false, true, true]);
    assert!(prompt("").barrier());
    assert!(interrupted(1, CallProgress::NeverStarted).barrier());
    // What follows a result waits for its second copy.
    let in_both: Vec<_> = of_a_mutation.iter().map(JournalRecord::barrier_of_copy).collect();
    assert_eq!(in_both, [false, true, false]);
    assert!(prompt("").barrier_of_copy());
}

#[test]
fn a_fork_has_the_records_and_its_own_name() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "old");
    let mut journal = Journal::open(&dir).unwrap().journal;
    journal.append(&prompt(&"long".repeat(50_000))).unwrap();
    let whole = records(&dir);
    fork(sessions.path(), ("old", "new"), u64::MAX, |_| Vec::new()).unwrap();
    let copy = records(&sessions.path().join("new"));
    assert_eq!(copy[1..], whole[1..]);
    let header = header(&sessions.path().join("new")).unwrap();
    assert_eq!(header.id, "new");
    assert_eq!(header.parent.unwrap().session, "old");
    fork(sessions.path(), ("old", "short"), 3, |_| Vec::new()).unwrap();
    assert_eq!(records(&sessions.path().join("short")).len(), 3);
    assert_eq!(records(&dir), whole);
}

/// A copy without its end would go on by itself with calls of the other session.
#[test]
fn a_copy_appears_with_its_end_or_not_at_all() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "old");
    let whole = records(&dir);
    let listed = || {
        let mut names: Vec<_> = std::fs::read_dir(sessions.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    fork(sessions.path(), ("old", "new"), u64::MAX, |copy| {
        assert!(!copy.entries.is_empty());
        // A death here leaves this directory.
        assert_eq!(journal::sessions(sessions.path()).unwrap(), ["old"]);
        std::fs::create_dir(sessions.path().join("dead.copy")).unwrap();
        let left = sessions.path().join("new.copy/journal.jsonl");
        std::fs::copy(left, sessions.path().join("dead.copy/journal.jsonl")).unwrap();
        vec![JournalRecord::TakenBack { waiting: Vec::new() }]
    })
    .unwrap();
    let copy = records(&sessions.path().join("new"));
    assert_eq!(copy.len(), whole.len() + 1);
    assert!(matches!(copy.last(), Some(JournalRecord::TakenBack { .. })));
    assert_eq!(listed(), ["dead.copy", "new", "old"]);
    assert_eq!(journal::sessions(sessions.path()).unwrap(), ["new", "old"]);
    // The writing of the end fails: no half copy stays, and what a death left goes too.
    fork(sessions.path(), ("old", "half"), u64::MAX, |_| {
        let blobs = sessions.path().join("half.copy/blobs");
        let _ = std::fs::remove_dir_all(&blobs);
        std::fs::write(blobs, "no directory").unwrap();
        vec![prompt(&"long".repeat(50_000))]
    })
    .unwrap_err();
    assert_eq!(listed(), ["new", "old"]);
    // An unfinished copy that another process writes is left to it.
    std::fs::create_dir(sessions.path().join("live.copy")).unwrap();
    let live = std::fs::File::create(sessions.path().join("live.copy/journal.jsonl")).unwrap();
    live.lock().unwrap();
    fork(sessions.path(), ("old", "more"), u64::MAX, |_| Vec::new()).unwrap();
    assert_eq!(listed(), ["live.copy", "more", "new", "old"]);
    fork(sessions.path(), ("old", "more"), u64::MAX, |_| Vec::new()).unwrap_err();
}

#[test]
fn the_tail_of_a_live_journal_is_no_damage() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    let file = dir.join("journal.jsonl");
    let mut bytes = fs::read(&file).unwrap();
    let whole = bytes.len() as u64;
    bytes.extend(br#"{"seq":16,"time""#);
    fs::write(&file, bytes).unwrap();
    let mut reader = read(&dir).unwrap();
    assert!(reader.by_ref().all(|entry| entry.is_ok()));
    assert_eq!(reader.tail(), Tail::Torn { offset: whole, bytes: 16 });
}

#[test]
fn who_asked_for_a_call_is_kept_as_any_build_wrote_it() {
    let later = OwnOriginRecord::Other("of_a_later_build".to_owned());
    for (number, own, word) in [
        (1, None, None),
        (2, Some(OwnOriginRecord::Undo), Some(r#""own":"undo""#)),
        (3, Some(OwnOriginRecord::PinnedRead), Some(r#""own":"pinned_read""#)),
        (4, Some(later), Some(r#""own":"of_a_later_build""#)),
    ] {
        let sessions = tempdir().unwrap();
        let dir = session(sessions.path(), "old");
        let (use_id, tool, input) = (String::new(), "read".to_owned(), "{}".to_owned());
        let record = JournalRecord::Proposed {
            call: number,
            use_id,
            own,
            tool,
            tool_kind: ToolKind::Query,
            input,
        };
        let mut journal = Journal::open(&dir).unwrap().journal;
        journal.append(&record).unwrap();
        drop(journal);
        fork(sessions.path(), ("old", "new"), u64::MAX, |_| Vec::new()).unwrap();
        for name in ["old", "new"] {
            let dir = sessions.path().join(name);
            assert_eq!(records(&dir).last(), Some(&record), "{name}");
            let text = fs::read_to_string(dir.join("journal.jsonl")).unwrap();
            let line = text.lines().last().unwrap();
            assert_eq!(word.is_some_and(|word| line.contains(word)), word.is_some(), "{line}");
            assert_eq!(line.contains(r#""own""#), word.is_some(), "{line}");
        }
    }
}
