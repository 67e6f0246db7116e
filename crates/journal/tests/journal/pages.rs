//! Pages of a long journal are what reading from the front gives, and cost only what is on them.

use super::sample::{header, prompt, session, start};
use journal::{
    FORMAT, Journal, JournalEntry, JournalRecord, LineDamage, ReadError, SessionHeader, newest,
    page, read,
};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::tempdir;

const FILE: &str = "journal.jsonl";

/// A session with records of these lengths.
fn of_lengths(sessions: &Path, lengths: &[usize]) -> PathBuf {
    let mut journal = Journal::create(sessions, header("s1")).unwrap();
    let text = |length: &usize| prompt(&"x\n".repeat(length / 2));
    journal.append_all(&lengths.iter().map(text).collect::<Vec<_>>()).unwrap();
    sessions.join("s1")
}

fn all(dir: &Path) -> Vec<JournalEntry> {
    read(dir).unwrap().map(Result::unwrap).collect()
}

fn page_of(dir: &Path, before: u64, most: usize) -> Vec<JournalEntry> {
    page(dir, before, most, Some).unwrap()
}

#[test]
fn every_page_of_a_session_is_what_the_front_gives() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    let all = all(&dir);
    for before in 0..=all.len() as u64 + 3 {
        for most in 0..=all.len() + 1 {
            let end = all.len().min(usize::try_from(before.saturating_sub(1)).unwrap());
            let expected = &all[end.saturating_sub(most)..end];
            assert_eq!(page_of(&dir, before, most), expected, "{most} before {before}");
        }
    }
    assert_eq!(newest(&dir, 4, Some).unwrap(), all[all.len() - 4..]);
    assert_eq!(newest(&dir, usize::MAX, Some).unwrap(), all);
}

#[test]
fn only_what_is_shown_counts() {
    let sessions = tempdir().unwrap();
    let mut journal = Journal::create(sessions.path(), header("s1")).unwrap();
    let quiet = start(1, journal::ToolKind::Query);
    for number in 0..5 {
        journal.append(&prompt(&number.to_string())).unwrap();
        journal.append_all(&vec![quiet.clone(); 40]).unwrap();
    }
    let dir = sessions.path().join("s1");
    let words = |entry: JournalEntry| {
        let JournalRecord::Prompt { text, .. } = entry.record else { return None };
        Some((entry.seq, text))
    };
    let two = newest(&dir, 2, words).unwrap();
    assert_eq!(two, [(125, "3".to_owned()), (166, "4".to_owned())]);
    let two = page(&dir, two[0].0, 2, words).unwrap();
    assert_eq!(two, [(43, "1".to_owned()), (84, "2".to_owned())]);
}

#[test]
fn a_page_reads_what_is_on_it_and_no_more() {
    let sessions = tempdir().unwrap();
    let dir = of_lengths(sessions.path(), &[2000; 500]);
    let good = fs::read(dir.join(FILE)).unwrap();
    let mut bytes = good.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(dir.join(FILE), &bytes).unwrap();
    let error = read(&dir).unwrap().find_map(Result::err).unwrap();
    let ReadError::Damaged { line, .. } = error else { panic!("{error:?}") };
    // The damage lies on neither of these.
    assert_eq!(page_of(&dir, u64::MAX, 100).len(), 100);
    assert_eq!(page_of(&dir, 100, 50).len(), 50);
    assert_eq!(page_of(&dir, line, 10).last().unwrap().seq, line - 1);
    // It lies on these.
    for (before, most) in [(line + 1, 1), (line + 30, 50), (u64::MAX, 400)] {
        let error = page(&dir, before, most, Some).unwrap_err();
        let ReadError::Damaged { line: named, last_good, .. } = error else { panic!("{error:?}") };
        assert_eq!((named, last_good), (line, line - 1));
    }
    fs::write(dir.join(FILE), good).unwrap();
    assert_eq!(page_of(&dir, line + 1, 1).len(), 1);
}

#[test]
fn long_texts_are_read_for_the_page_they_are_on() {
    let sessions = tempdir().unwrap();
    let mut journal = Journal::create(sessions.path(), header("s1")).unwrap();
    let long = prompt(&"l".repeat(200_000));
    journal.append_all(&[long.clone(), prompt("a"), prompt("b"), prompt("c")]).unwrap();
    let dir = sessions.path().join("s1");
    assert_eq!(page_of(&dir, 3, 1)[0].record, long);
    fs::remove_dir_all(dir.join("blobs")).unwrap();
    assert_eq!(newest(&dir, 3, Some).unwrap().len(), 3);
    let error = newest(&dir, 4, Some).unwrap_err();
    let ReadError::Damaged { line: 2, last_good: 1, damage: LineDamage::Blob(_), .. } = error
    else {
        panic!("{error:?}")
    };
}

#[test]
fn a_page_of_long_texts_is_cut_and_the_next_goes_on_where_it_began() {
    let sessions = tempdir().unwrap();
    let mut journal = Journal::create(sessions.path(), header("s1")).unwrap();
    let long: Vec<_> = (0..10).map(|n| prompt(&format!("{n}").repeat(1 << 20))).collect();
    journal.append_all(&long).unwrap();
    let dir = sessions.path().join("s1");
    let mut pages = Vec::new();
    let mut seen = Vec::new();
    let mut before = u64::MAX;
    loop {
        let page = page_of(&dir, before, usize::MAX);
        let Some(first) = page.first() else { break };
        before = first.seq;
        pages.push(page.len());
        seen.splice(0..0, page);
    }
    assert_eq!(seen, all(&dir));
    assert!(pages.len() > 1 && pages.iter().all(|length| *length < 10), "{pages:?}");
}

#[test]
fn what_a_writer_is_in_the_middle_of_is_not_on_the_page() {
    let sessions = tempdir().unwrap();
    let dir = of_lengths(sessions.path(), &[10, 10, 10]);
    let whole = fs::read(dir.join(FILE)).unwrap();
    let all = all(&dir);
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in last..whole.len() {
        fs::write(dir.join(FILE), &whole[..cut]).unwrap();
        let expected = if cut == whole.len() - 1 { &all[..] } else { &all[..3] };
        assert_eq!(newest(&dir, 10, Some).unwrap(), expected, "{cut}");
        assert_eq!(page_of(&dir, 3, 1), all[1..2], "{cut}");
    }
    // Such a record may have been acted on.
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() = b' ';
    fs::write(dir.join(FILE), changed).unwrap();
    let error = newest(&dir, 1, Some).unwrap_err();
    let ReadError::Damaged { line: 4, damage: LineDamage::LineEnd, .. } = error else {
        panic!("{error:?}")
    };
}

#[test]
fn lines_that_are_gone_or_doubled_are_found_on_the_page() {
    let sessions = tempdir().unwrap();
    let dir = of_lengths(sessions.path(), &[10; 8]);
    let text = fs::read_to_string(dir.join(FILE)).unwrap();
    let lines: Vec<_> = text.lines().collect();
    for (changed, line) in
        [([&lines[..6], &lines[7..]].concat(), 7), ([&lines[..6], &lines[5..]].concat(), 7)]
    {
        fs::write(dir.join(FILE), changed.join("\n") + "\n").unwrap();
        let error = newest(&dir, 5, Some).unwrap_err();
        let ReadError::Damaged { line: named, damage: LineDamage::Sequence { .. }, .. } = error
        else {
            panic!("{error:?}")
        };
        assert_eq!(named, line);
    }
}

#[test]
fn a_newer_format_has_no_pages_here() {
    let sessions = tempdir().unwrap();
    let newer = SessionHeader { format: FORMAT + 1, ..header("s1") };
    let mut journal = Journal::create(sessions.path(), newer).unwrap();
    journal.append(&prompt("x")).unwrap();
    let pages = newest(&sessions.path().join("s1"), 1, Some);
    assert!(matches!(pages, Err(ReadError::NewerFormat { .. })));
    let missing = newest(&sessions.path().join("s2"), 1, Some);
    assert!(matches!(missing, Err(ReadError::Missing { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    /// Lines shorter and longer than what is read at once.
    #[test]
    fn pages_of_any_lengths_are_what_the_front_gives(
        lengths in proptest::collection::vec(prop_oneof![0..300_usize, 60_000..65_000_usize], 1..30),
        before in 0..45_u64,
        most in 0..12_usize,
    ) {
        let sessions = tempdir().unwrap();
        let dir = of_lengths(sessions.path(), &lengths);
        let all = all(&dir);
        let end = all.len().min(usize::try_from(before.saturating_sub(1)).unwrap());
        prop_assert_eq!(&page_of(&dir, before, most)[..], &all[end.saturating_sub(most)..end]);
        let end = all.len();
        let newest = newest(&dir, most, Some).unwrap();
        prop_assert_eq!(&newest[..], &all[end.saturating_sub(most)..end]);
    }

    /// Whatever stands in the file: no panic, and either an error or what was written.
    #[test]
    fn no_damage_is_on_a_page_as_something_else(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..2),
        cut in prop::option::of(any::<prop::sample::Index>()),
        before in 0..20_u64,
    ) {
        let sessions = tempdir().unwrap();
        let dir = session(sessions.path(), "s1");
        let good = all(&dir);
        let mut bytes = fs::read(dir.join(FILE)).unwrap();
        for (place, value) in edits {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        prop_assert!(page(&dir, before, 5, Some).is_ok(), "the control: undamaged");
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        fs::write(dir.join(FILE), bytes).unwrap();
        if let Ok(page) = page(&dir, before, 5, Some) {
            prop_assert!(page.iter().all(|entry| good.contains(entry)));
        }
    }
}
