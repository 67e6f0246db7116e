//! The audit log on real files: several writers, and everything done to it afterwards is found.

use super::sample::{decided, ended, header, keep_script, refusal};
use journal::{
    Audit, AuditError, AuditFault, AuditFaultKind, AuditRecord, CallFilter, ChainAnchor, ChainHead,
    ConnectionOutcome, DecidedRecord, DecisionRecord, EndedRecord, Journal, JournalRecord,
    LineFault, ProxyConnection, WithRefusals, anchors, calls, entries, script, verify,
};
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::tempdir;

const FILE: &str = "log.jsonl";

/// `calls` calls of one session, two lines each; returns the anchors that its journal would hold.
fn log(dir: &Path, calls: u32) -> Vec<ChainAnchor> {
    let mut audit = Audit::open(dir).unwrap();
    (1..=calls)
        .map(|call| {
            audit.append(&decided("s1", call, DecisionRecord::Allowed)).unwrap();
            audit.append(&ended("s1", call, vec![])).unwrap();
            let head = audit.sync().unwrap();
            ChainAnchor { session: "s1".to_owned(), record: u64::from(call), head }
        })
        .collect()
}

fn lines(dir: &Path) -> Vec<String> {
    fs::read_to_string(dir.join(FILE)).unwrap().lines().map(str::to_owned).collect()
}

fn write(dir: &Path, lines: &[String]) {
    fs::write(dir.join(FILE), lines.iter().map(|line| format!("{line}\n")).collect::<String>())
        .unwrap();
}

fn at(line: u64, kind: AuditFaultKind) -> AuditFault {
    AuditFault { file: FILE.to_owned(), line, kind }
}

fn faults(dir: &Path, anchors: &[ChainAnchor]) -> Vec<AuditFault> {
    verify(dir, anchors).unwrap().faults
}

#[test]
fn an_intact_log_passes_and_is_counted() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), 4);
    let found = verify(dir.path(), &anchors).unwrap();
    assert!(found.is_whole(), "{found:?}");
    assert_eq!((found.lines, found.anchors), (8, 4));
    assert_eq!(found.head, anchors[3].head);
    assert_eq!(found.head.seq, 8);
}

#[test]
fn what_another_has_written_of_a_lost_call_is_found_and_not_written_again() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), 2);
    let end = |session: &str, call| match ended(session, call, vec![]) {
        AuditRecord::Ended(end) => end,
        AuditRecord::Decided(_)
        | AuditRecord::Removed(_)
        | AuditRecord::PortOpened(_)
        | AuditRecord::Unknown(_) => {
            unreachable!()
        }
    };
    let decision = |session: &str, call| match decided(session, call, DecisionRecord::Denied) {
        AuditRecord::Decided(decided) => decided,
        AuditRecord::Ended(_)
        | AuditRecord::Removed(_)
        | AuditRecord::PortOpened(_)
        | AuditRecord::Unknown(_) => unreachable!(),
    };
    let mut audit = Audit::open(dir.path()).unwrap();
    let mut lost =
        |session, call| audit.append_lost(decision(session, call), end(session, call)).unwrap();
    assert_eq!(lost("s1", 1), anchors[0].head);
    assert_eq!(lost("s1", 2), anchors[1].head);
    assert_eq!(lines(dir.path()).len(), 4, "nothing was written");
    for (session, call, seq) in [("s1", 3, 6), ("s2", 1, 8), ("s2", 1, 8), ("s1", 3, 6)] {
        assert_eq!(lost(session, call).seq, seq, "{session}.{call}");
    }
    // Decided, and lost before its end.
    audit.append(&decided("s3", 1, DecisionRecord::Allowed)).unwrap();
    assert_eq!(audit.append_lost(decision("s3", 1), end("s3", 1)).unwrap().seq, 10);
    // What was lost of connections is said where the network was an allow-list.
    for (call, network, said) in [(1, "allow", true), (2, "off", false)] {
        let mut decided = decision("s4", call);
        if let Some(policy) = &mut decided.requested {
            network.clone_into(&mut policy.network);
        }
        audit.append(&AuditRecord::Decided(decided.clone())).unwrap();
        let lost = EndedRecord { connections_cut: Some("lost".to_owned()), ..end("s4", call) };
        audit.append_lost(decided, lost).unwrap();
        let last = entries(dir.path()).unwrap().last().unwrap().unwrap();
        let AuditRecord::Ended(ended) = last.record else { panic!("{last:?}") };
        assert_eq!(ended.connections_cut.is_some(), said, "{network}");
    }
    assert_eq!(faults(dir.path(), &anchors), []);
}

#[test]
fn a_log_that_never_was_is_whole_unless_an_anchor_speaks_of_it() {
    let dir = tempdir().unwrap();
    let anchors = log(&dir.path().join("other"), 1);
    let none = dir.path().join("none");
    assert!(verify(&none, &[]).unwrap().is_whole());
    let cut = AuditFaultKind::Cut { session: "s1".to_owned(), record: 2 };
    assert_eq!(faults(&none, &anchors), [at(1, cut)]);
    assert_eq!(entries(&none).unwrap().count(), 0);
}

#[test]
fn every_flipped_bit_of_a_log_is_found() {
    let dir = tempdir().unwrap();
    let mut audit = Audit::open(dir.path()).unwrap();
    let head = audit.append(&ended("s1", 1, vec![])).unwrap();
    // A changed line end makes half a line of it, which only the anchor misses.
    let anchors = [ChainAnchor { session: "s1".to_owned(), record: 1, head }];
    let whole = fs::read(dir.path().join(FILE)).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        fs::write(dir.path().join(FILE), changed).unwrap();
        assert!(!faults(dir.path(), &anchors).is_empty(), "bit {bit}");
    }
}

#[test]
fn a_changed_line_is_named() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), 3);
    let mut lines = lines(dir.path());
    lines[2] = lines[2].replace("echo 2", "echo 9");
    write(dir.path(), &lines);
    let changed = at(3, AuditFaultKind::Changed(LineFault::Hash));
    assert_eq!(faults(dir.path(), &anchors), std::slice::from_ref(&changed));
    assert_eq!(faults(dir.path(), &[]), [changed]);
}

#[test]
fn removed_lines_are_named() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), 4);
    let mut lines = lines(dir.path());
    lines.drain(2..4);
    write(dir.path(), &lines);
    let removed = at(3, AuditFaultKind::Removed { from: 3, to: 4 });
    assert_eq!(faults(dir.path(), &[]), std::slice::from_ref(&removed));
    assert_eq!(faults(dir.path(), &anchors), [removed]);
    lines.remove(0);
    write(dir.path(), &lines);
    let first = at(1, AuditFaultKind::Removed { from: 1, to: 1 });
    assert_eq!(faults(dir.path(), &[])[0], first);
}

#[test]
fn inserted_lines_are_named() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), 3);
    let forged = tempdir().unwrap();
    // A forger who continues the real chain with a record of their own.
    write(forged.path(), &lines(dir.path())[..2]);
    let mut forger = Audit::open(forged.path()).unwrap();
    forger.append(&decided("s1", 99, DecisionRecord::Denied)).unwrap();
    let mut lines = lines(dir.path());
    lines.insert(2, self::lines(forged.path())[2].clone());
    write(dir.path(), &lines);
    let inserted = at(3, AuditFaultKind::Inserted);
    assert_eq!(faults(dir.path(), &[]), std::slice::from_ref(&inserted));
    assert_eq!(faults(dir.path(), &anchors), [inserted]);
    lines[2] = "rubbish".to_owned();
    write(dir.path(), &lines);
    let found = faults(dir.path(), &[]);
    assert!(found.iter().all(|fault| fault.line == 3) && !found.is_empty(), "{found:?}");
}

#[test]
fn doubled_and_swapped_lines_are_found() {
    let dir = tempdir().unwrap();
    log(dir.path(), 3);
    let whole = lines(dir.path());
    let mut doubled = whole.clone();
    doubled.insert(3, whole[2].clone());
    let mut swapped = whole.clone();
    swapped.swap(2, 3);
    for changed in [doubled, swapped] {
        write(dir.path(), &changed);
        let found = faults(dir.path(), &[]);
        assert!(found.iter().any(|fault| (3..=4).contains(&fault.line)), "{found:?}");
    }
}

#[test]
fn a_cut_end_is_found_by_the_anchors_alone() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), 3);
    let mut lines = lines(dir.path());
    lines.truncate(4);
    write(dir.path(), &lines);
    assert_eq!(faults(dir.path(), &[]), [], "the chain by itself cannot know");
    let cut = AuditFaultKind::Cut { session: "s1".to_owned(), record: 6 };
    assert_eq!(faults(dir.path(), &anchors), [at(5, cut)]);
}

#[test]
fn a_chain_written_anew_is_found_by_the_anchors() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), 3);
    fs::remove_file(dir.path().join(FILE)).unwrap();
    // The same number of good records, of another history.
    let mut forger = Audit::open(dir.path()).unwrap();
    for call in 0..6 {
        forger.append(&decided("s1", call, DecisionRecord::Denied)).unwrap();
    }
    assert_eq!(faults(dir.path(), &[]), [], "the chain by itself cannot know");
    let rewritten = AuditFaultKind::Rewritten { session: "s1".to_owned() };
    let found = faults(dir.path(), &anchors);
    assert_eq!(found[0], at(2, rewritten));
    assert_eq!(found.len(), 3);
}

#[test]
fn anchors_come_from_the_journals() {
    let state = tempdir().unwrap();
    let (sessions, dir) = (state.path().join("sessions"), state.path().join("audit"));
    let mut audit = Audit::open(&dir).unwrap();
    for id in ["s1", "s2"] {
        let mut journal = Journal::create(&sessions, header(id)).unwrap();
        audit.append(&decided(id, 1, DecisionRecord::Allowed)).unwrap();
        audit.append(&ended(id, 1, vec![])).unwrap();
        let head = audit.sync().unwrap();
        let mut result = super::sample::result(1, &"long".repeat(50_000));
        let JournalRecord::Result { audit: anchor, .. } = &mut result else { unreachable!() };
        *anchor = Some(head);
        journal.append(&result).unwrap();
    }
    let found = anchors(&sessions).unwrap();
    assert!(found.unreadable.is_empty());
    let seen: Vec<_> =
        found.found.iter().map(|a| (a.session.as_str(), a.record, a.head.seq)).collect();
    assert_eq!(seen, [("s1", 2, 2), ("s2", 2, 4)]);
    assert!(verify(&dir, &found.found).unwrap().is_whole());
    write(&dir, &lines(&dir)[..3]);
    let cut = AuditFaultKind::Cut { session: "s2".to_owned(), record: 4 };
    assert_eq!(faults(&dir, &found.found), [at(4, cut)]);
    assert_eq!(anchors(&state.path().join("none")).unwrap().found, []);
}

#[test]
fn scripts_are_kept_and_checked() {
    let dir = tempdir().unwrap();
    let mut audit = Audit::open(dir.path()).unwrap();
    let AuditRecord::Decided(denied) = decided("s1", 1, DecisionRecord::Denied) else {
        unreachable!()
    };
    let digest = keep_script(dir.path(), "rm -rf /\n");
    let long = format!(r#"{{"content":"{}"}}"#, "x".repeat(100_000));
    let written =
        AuditRecord::Decided(DecidedRecord { script: Some(digest), input: long, ..denied });
    audit.append(&written).unwrap();
    assert_eq!(script(dir.path(), digest).unwrap(), "rm -rf /\n");
    assert_eq!(entries(dir.path()).unwrap().next().unwrap().unwrap().record, written);
    assert!(fs::metadata(dir.path().join(FILE)).unwrap().len() < 2000);
    let found = verify(dir.path(), &[]).unwrap();
    assert!(found.is_whole());
    assert_eq!(found.texts, 2);
    fs::write(dir.path().join("scripts").join(digest.to_string()), "ls\n").unwrap();
    assert_eq!(faults(dir.path(), &[]), [at(1, AuditFaultKind::Text { digest })]);
    assert!(script(dir.path(), digest).is_err());
}

#[test]
fn several_writers_make_one_chain() {
    let dir = tempdir().unwrap();
    let heads: Vec<ChainHead> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let mut audit = Audit::open(dir.path()).unwrap();
                scope.spawn(move || {
                    let session = format!("s{writer}");
                    (1..=25)
                        .map(|call| audit.append(&decided(&session, call, DecisionRecord::Allowed)))
                        .collect::<Result<Vec<_>, _>>()
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap().unwrap()).collect()
    });
    let anchors: Vec<_> = heads
        .into_iter()
        .map(|head| ChainAnchor { session: "s".to_owned(), record: 1, head })
        .collect();
    let found = verify(dir.path(), &anchors).unwrap();
    assert!(found.is_whole(), "{found:?}");
    assert_eq!((found.lines, found.anchors), (100, 100));
}

#[test]
fn half_a_line_is_set_aside_by_the_next_writer() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), 2);
    let mut bytes = fs::read(dir.path().join(FILE)).unwrap();
    bytes.extend(br#"{"seq":5,"#);
    fs::write(dir.path().join(FILE), bytes).unwrap();
    assert!(verify(dir.path(), &anchors).unwrap().is_whole(), "it never counted");
    let mut audit = Audit::open(dir.path()).unwrap();
    assert_eq!(audit.append(&ended("s1", 3, vec![])).unwrap().seq, 5);
    assert_eq!(fs::read(dir.path().join("log.torn-1")).unwrap(), br#"{"seq":5,"#);
    let found = verify(dir.path(), &anchors).unwrap();
    assert!(found.is_whole());
    assert_eq!(found.lines, 5);
}

#[test]
fn of_many_half_lines_the_newest_are_kept() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), 2);
    // What somebody else put there stays, and is in nobody's way.
    for other in ["log.torn-4294967295", "log.torn-x"] {
        fs::write(dir.path().join(other), "not ours").unwrap();
    }
    for number in 1..=40 {
        let mut file = fs::File::options().append(true).open(dir.path().join(FILE)).unwrap();
        file.write_all(format!("{{\"half\":{number},").as_bytes()).unwrap();
        Audit::open(dir.path()).unwrap();
    }
    let kept = |number: u32| fs::read_to_string(dir.path().join(format!("log.torn-{number}")));
    for number in 1..=24 {
        assert!(kept(number).is_err(), "{number}");
    }
    for number in 25..=40 {
        assert_eq!(kept(number).unwrap(), format!("{{\"half\":{number},"));
    }
    assert_eq!(
        (kept(u32::MAX).unwrap().as_str(), verify(dir.path(), &anchors).unwrap().lines),
        ("not ours", 4)
    );
}

#[test]
fn a_record_that_lacks_its_line_end_alone_counts() {
    let dir = tempdir().unwrap();
    let anchors = log(dir.path(), 2);
    let bytes = fs::read(dir.path().join(FILE)).unwrap();
    fs::write(dir.path().join(FILE), &bytes[..bytes.len() - 1]).unwrap();
    let mut audit = Audit::open(dir.path()).unwrap();
    assert_eq!(audit.append(&ended("s1", 3, vec![])).unwrap().seq, 5);
    let found = verify(dir.path(), &anchors).unwrap();
    assert!(found.is_whole(), "{found:?}");
    assert_eq!(found.lines, 5);
}

#[test]
fn a_log_whose_only_line_is_torn_begins_anew() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join(FILE), "x".repeat(40_000)).unwrap();
    let mut audit = Audit::open(dir.path()).unwrap();
    assert_eq!(audit.head(), ChainHead::EMPTY);
    assert_eq!(audit.append(&ended("s1", 1, vec![])).unwrap().seq, 1);
    assert!(verify(dir.path(), &[]).unwrap().is_whole());
}

#[test]
fn a_log_cut_or_replaced_under_its_writer_stops_it() {
    let record = ended("s1", 9, vec![]);
    for change in ["cut", "removed"] {
        let dir = tempdir().unwrap();
        log(dir.path(), 2);
        let mut audit = Audit::open(dir.path()).unwrap();
        match change {
            "cut" => write(dir.path(), &lines(dir.path())[..2]),
            _ => fs::remove_file(dir.path().join(FILE)).unwrap(),
        }
        assert!(matches!(audit.append(&record), Err(AuditError::Cut { .. })), "{change}");
        assert!(matches!(audit.append(&record), Err(AuditError::Closed { .. })), "{change}");
    }
}

#[test]
fn a_damaged_last_line_is_no_ground_to_go_on_from() {
    let dir = tempdir().unwrap();
    log(dir.path(), 1);
    let mut lines = lines(dir.path());
    lines[1] = lines[1].replace("s1", "s2");
    write(dir.path(), &lines);
    let error = Audit::open(dir.path()).unwrap_err();
    assert!(matches!(error, AuditError::Damaged { .. }));
    assert!(error.to_string().contains("agentd audit verify"), "{error}");
}

#[test]
fn a_stopped_writer_does_not_stop_everybody_for_ever() {
    let dir = tempdir().unwrap();
    log(dir.path(), 1);
    let held = fs::File::open(dir.path().join(FILE)).unwrap();
    held.lock().unwrap();
    let started = std::time::Instant::now();
    assert!(matches!(Audit::open(dir.path()), Err(AuditError::Lock { .. })));
    assert!(started.elapsed().as_secs() < 20);
    held.unlock().unwrap();
    Audit::open(dir.path()).unwrap();
}

#[test]
fn its_files_belong_to_their_owner_alone() {
    let state = tempdir().unwrap();
    let dir = state.path().join("audit");
    let mut audit = Audit::open(&dir).unwrap();
    let AuditRecord::Decided(plain) = decided("s1", 1, DecisionRecord::Allowed) else {
        unreachable!()
    };
    let long = Some("x".repeat(100_000));
    audit.append(&AuditRecord::Decided(DecidedRecord { script_text: long, ..plain })).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join(FILE)), 0o600);
    assert_eq!(mode(&dir.join("scripts")), 0o700);
}

#[test]
fn calls_are_listed_by_what_is_asked_for() {
    let dir = tempdir().unwrap();
    let mut audit = Audit::open(dir.path()).unwrap();
    for record in [
        decided("aa1", 1, DecisionRecord::Allowed),
        decided("aa1", 2, DecisionRecord::Denied),
        decided("bb2", 1, DecisionRecord::Allowed),
        ended("aa1", 1, vec![]),
        ended("bb2", 1, vec![refusal()]),
        decided("bb2", 2, DecisionRecord::Expired),
    ] {
        audit.append(&record).unwrap();
    }
    let listed = |filter: CallFilter| -> Vec<_> {
        let calls = calls(dir.path(), &filter).unwrap();
        calls.iter().map(|c| (c.session.clone(), c.call, c.entries.len())).collect()
    };
    let call = |session: &str, call, entries| (session.to_owned(), call, entries);
    let all = [call("aa1", 1, 2), call("aa1", 2, 1), call("bb2", 1, 2), call("bb2", 2, 1)];
    assert_eq!(listed(CallFilter::default()), all);
    let denied = CallFilter { which: WithRefusals::Denied, ..CallFilter::default() };
    assert_eq!(listed(denied), all[1..], "refused as a whole, or in part by the kernel");
    let session = CallFilter { session: Some("b".to_owned()), ..CallFilter::default() };
    assert_eq!(listed(session.clone()), all[2..]);
    assert_eq!(listed(CallFilter { call: Some(1), ..session }), all[2..3]);
    let tool = |name: &str| CallFilter { tool: Some(name.to_owned()), ..CallFilter::default() };
    assert_eq!(listed(tool("bash")), all);
    assert_eq!(listed(tool("read")), []);
    let since = |time| CallFilter { since: Some(time), ..CallFilter::default() };
    assert_eq!(listed(since(0)), all);
    assert_eq!(listed(since(u64::MAX)), []);
}

#[test]
fn a_call_that_only_the_proxy_refused_something_is_listed_among_the_refused() {
    let dir = tempdir().unwrap();
    let mut audit = Audit::open(dir.path()).unwrap();
    for (call, decision) in [
        (1, ConnectionOutcome::Made(String::new())),
        (2, ConnectionOutcome::Refused(String::new())),
    ] {
        let AuditRecord::Ended(mut end) = ended("aa1", call, vec![]) else { panic!("an end") };
        let place = "example.test:443".to_owned();
        end.connections = vec![ProxyConnection { place, decision, count: 1, sent: 0, received: 0 }];
        audit.append(&decided("aa1", call, DecisionRecord::Allowed)).unwrap();
        audit.append(&AuditRecord::Ended(end)).unwrap();
    }
    let denied = CallFilter { which: WithRefusals::Denied, ..CallFilter::default() };
    let listed: Vec<_> = calls(dir.path(), &denied).unwrap().iter().map(|it| it.call).collect();
    assert_eq!(listed, [2]);
}

#[test]
fn an_export_is_the_record_as_json() {
    let dir = tempdir().unwrap();
    log(dir.path(), 1);
    let entry = entries(dir.path()).unwrap().nth(1).unwrap().unwrap();
    let json = serde_json::to_value(&entry).unwrap();
    assert_eq!(json["seq"], 2);
    assert_eq!(json["event"], "ended");
    assert_eq!(json["enforced"]["tier"], "B");
    assert_eq!(json["outcome"]["how"], "exited");
    assert_eq!(json["hash"].as_str().unwrap().len(), 64);
}

#[test]
fn records_newer_than_this_build_are_kept_and_verified() {
    let dir = tempdir().unwrap();
    let fields = serde_json::json!({"event": "reviewed", "session": "s1", "call": 1});
    let newer = AuditRecord::Unknown(fields.as_object().unwrap().clone());
    Audit::open(dir.path()).unwrap().append(&newer).unwrap();
    assert_eq!(entries(dir.path()).unwrap().next().unwrap().unwrap().record, newer);
    assert!(verify(dir.path(), &[]).unwrap().is_whole());
    assert_eq!(calls(dir.path(), &CallFilter::default()).unwrap().len(), 1);
}

#[test]
fn a_damaged_line_does_not_hide_the_next() {
    let dir = tempdir().unwrap();
    log(dir.path(), 1);
    let mut lines = lines(dir.path());
    lines[0] = "rubbish".to_owned();
    write(dir.path(), &lines);
    let read: Vec<_> = entries(dir.path()).unwrap().map(|entry| entry.is_ok()).collect();
    assert_eq!(read, [false, true]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Lines taken out, doubled or moved, in any way that changes the log, are found with anchors.
    #[test]
    fn no_other_order_of_the_lines_passes(
        picked in proptest::collection::vec(0_usize..8, 0..10),
    ) {
        static WHOLE: LazyLock<(Vec<String>, Vec<ChainAnchor>)> = LazyLock::new(|| {
            let dir = tempdir().unwrap();
            let anchors = log(dir.path(), 4);
            (lines(dir.path()), anchors)
        });
        let dir = tempdir().unwrap();
        let (whole, anchors) = &*WHOLE;
        let changed: Vec<_> = picked.iter().map(|line| whole[*line].clone()).collect();
        write(dir.path(), &changed);
        prop_assert_eq!(faults(dir.path(), anchors).is_empty(), changed == *whole);
    }

    #[test]
    fn rubbish_is_verified_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let dir = tempdir().unwrap();
        fs::write(dir.path().join(FILE), &bytes).unwrap();
        let found = verify(dir.path(), &[]).unwrap();
        prop_assert_eq!(found.is_whole(), !bytes.contains(&b'\n'));
        prop_assert!(entries(dir.path()).unwrap().all(|entry| entry.is_err()));
    }
}
