//! Writers that are killed in the middle: what they were told is kept is kept.

use super::sample::{decided, header, prompt};
use journal::{
    Audit, ChainAnchor, ChainHead, DecisionRecord, Journal, JournalRecord, read, verify,
};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use tempfile::tempdir;

const DIR: &str = "JOURNAL_TEST_DIR";
const NAME: &str = "JOURNAL_TEST_NAME";

/// Runs the test of that name below as a process of its own.
fn writer(test: &str, dir: &Path, name: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(DIR, dir)
        .env(NAME, name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.take().unwrap());
    (child, said)
}

/// What the child says is kept, up to so many times, or to its end.
fn kept(said: &mut BufReader<ChildStdout>, times: usize) -> Vec<String> {
    let lines = said.split(b'\n').map(|line| String::from_utf8(line.unwrap()).unwrap());
    // The last line may be cut short as well; then it was not said.
    let ours = |line: String| Some(line.strip_prefix("kept ")?.strip_suffix('.')?.to_owned());
    lines.filter_map(ours).take(times).collect()
}

fn say(word: impl std::fmt::Display) {
    let mut out = std::io::stdout();
    writeln!(out, "\nkept {word}.").unwrap();
    out.flush().unwrap();
}

#[test]
fn a_session_has_every_record_that_was_acknowledged() {
    let dir = tempdir().unwrap();
    let mut total = 0;
    for round in 0..12 {
        let (mut child, mut said) =
            writer("killed::in_the_child_append_for_ever", dir.path(), "s1");
        kept(&mut said, 1 + round);
        std::thread::sleep(Duration::from_micros(137 * round as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        let acknowledged = kept(&mut said, usize::MAX);
        let acknowledged = acknowledged.last().map_or(total, |seq| seq.parse().unwrap());
        let opened = Journal::open(&dir.path().join("s1")).unwrap();
        let held = opened.journal.last_seq();
        assert!(held >= acknowledged.max(total + round as u64), "{held} of {acknowledged}");
        for entry in read(&dir.path().join("s1")).unwrap().skip(1).map(Result::unwrap) {
            let JournalRecord::Prompt { text, .. } = &entry.record else { panic!("{entry:?}") };
            assert!(text.starts_with(&format!("{} ", entry.seq)), "{entry:?}");
        }
        total = held;
    }
}

#[test]
#[ignore = "a part of the test above"]
fn in_the_child_append_for_ever() {
    let (dir, name) = (std::env::var_os(DIR).unwrap(), std::env::var(NAME).unwrap());
    let sessions = Path::new(&dir);
    let mut journal = match sessions.join(&name).exists() {
        true => Journal::open(&sessions.join(&name)).unwrap().journal,
        false => Journal::create(sessions, header(&name)).unwrap(),
    };
    loop {
        let number = journal.last_seq() + 1;
        let long = if number.is_multiple_of(5) { 100_000 } else { 3000 };
        say(journal.append(&prompt(&format!("{number} {}", "x".repeat(long)))).unwrap());
    }
}

#[test]
fn an_audit_log_of_killed_writers_is_one_whole_chain() {
    let dir = tempdir().unwrap();
    let mut anchors = Vec::new();
    for round in 0..5 {
        let mut writers = ["a", "b", "c"]
            .map(|name| writer("killed::in_the_child_audit_for_ever", dir.path(), name));
        let mut heads = Vec::new();
        for (child, said) in &mut writers {
            heads.extend(kept(said, 3 + round));
            child.kill().unwrap();
        }
        for (mut child, mut said) in writers {
            child.wait().unwrap();
            heads.extend(kept(&mut said, usize::MAX));
        }
        assert!(heads.len() >= 9, "{heads:?}");
        anchors.extend(heads.iter().map(|head| ChainAnchor {
            session: "s".to_owned(),
            record: 1,
            head: serde_json::from_str::<ChainHead>(head).unwrap(),
        }));
        let found = verify(dir.path(), &anchors).unwrap();
        assert!(found.is_whole(), "{found:?}");
    }
}

#[test]
#[ignore = "a part of the test above"]
fn in_the_child_audit_for_ever() {
    let (dir, name) = (std::env::var_os(DIR).unwrap(), std::env::var(NAME).unwrap());
    let mut audit = Audit::open(Path::new(&dir)).unwrap();
    for call in 1.. {
        audit.append(&decided(&name, call, DecisionRecord::Allowed)).unwrap();
        say(serde_json::to_string(&audit.sync().unwrap()).unwrap());
    }
}
