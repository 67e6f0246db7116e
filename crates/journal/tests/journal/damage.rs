//! What happened to the file is found: cut at any byte, changed in any bit, lines moved.

use super::sample::{header, prompt, proposed, records, result, session, start};
use journal::{Journal, LineDamage, OpenError, ReadError, Tail, fork, read};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use tempfile::tempdir;

const FILE: &str = "journal.jsonl";

/// Five records, as small as they get.
fn small(sessions: &Path) -> std::path::PathBuf {
    let mut journal = Journal::create(sessions, header("s1")).unwrap();
    let kind = journal::ToolKind::Mutation;
    journal.append_all(&[prompt("p"), proposed(1, kind), start(1, kind), result(1, "r")]).unwrap();
    sessions.join("s1")
}

#[test]
fn cut_at_every_byte_it_opens_with_the_whole_records_and_keeps_the_rest() {
    let sessions = tempdir().unwrap();
    let dir = small(sessions.path());
    let whole = fs::read(dir.join(FILE)).unwrap();
    let all = records(&dir);
    for cut in 0..=whole.len() {
        fs::write(dir.join(FILE), &whole[..cut]).unwrap();
        // A record that lacks nothing but its line end counts.
        let mut mended = whole[..cut].to_vec();
        mended.push(b'\n');
        let unended = cut > 0 && whole[cut - 1] != b'\n' && whole.starts_with(&mended);
        let ends = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        let expected = ends + usize::from(unended);
        if expected == 0 {
            let opened = Journal::open(&dir);
            assert!(matches!(opened, Err(OpenError::Read(ReadError::NoHeader { .. }))), "{cut}");
            assert_eq!(fs::read(dir.join(FILE)).unwrap(), whole[..cut], "nothing is changed");
            continue;
        }
        assert_eq!(records(&dir), all[..expected], "cut at {cut}");
        // Opening syncs, which takes its time: every place of the last record is enough.
        if expected < all.len() - 1 {
            continue;
        }
        let mut opened = Journal::open(&dir).unwrap();
        assert_eq!(opened.journal.last_seq(), expected as u64, "cut at {cut}");
        assert_eq!(records(&dir), all[..expected], "cut at {cut}");
        let good = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let good = good.map(|(place, _)| place + 1).nth(expected - 1).unwrap();
        assert_eq!(fs::read(dir.join(FILE)).unwrap(), whole[..good]);
        match opened.torn {
            Some(torn) => {
                assert_eq!(fs::read(&torn.kept).unwrap(), whole[good..cut], "cut at {cut}");
                assert_eq!(torn.bytes, (cut - good) as u64);
                fs::remove_file(torn.kept).unwrap();
            }
            None => assert!(cut == good || unended, "cut at {cut}"),
        }
        opened.journal.append(&prompt("on")).unwrap();
        assert_eq!(records(&dir).last(), Some(&prompt("on")), "it goes on");
    }
}

#[test]
fn torn_ends_are_kept_one_beside_the_other() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    for number in 1..=3 {
        let mut bytes = fs::read(dir.join(FILE)).unwrap();
        bytes.extend(format!("half {number}").as_bytes());
        fs::write(dir.join(FILE), bytes).unwrap();
        let torn = Journal::open(&dir).unwrap().torn.unwrap();
        assert_eq!(torn.kept, dir.join(format!("journal.torn-{number}")));
        assert_eq!(fs::read_to_string(torn.kept).unwrap(), format!("half {number}"));
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let sessions = tempdir().unwrap();
    let dir = small(sessions.path());
    let whole = fs::read(dir.join(FILE)).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        fs::write(dir.join(FILE), &changed).unwrap();
        let read_all: Result<Vec<_>, _> = read(&dir).unwrap().collect();
        assert!(read_all.is_err(), "bit {bit}");
        let line = whole[..bit / 8].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        match Journal::open(&dir) {
            Err(OpenError::Read(ReadError::Damaged { line: named, last_good, .. })) => {
                assert_eq!((named, last_good), (line, line - 1), "bit {bit}");
            }
            other => panic!("bit {bit}: {other:?}"),
        }
        assert_eq!(fs::read(dir.join(FILE)).unwrap(), changed, "nothing is changed");
    }
}

#[test]
fn lines_that_are_gone_doubled_or_swapped_are_found() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    let text = fs::read_to_string(dir.join(FILE)).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let gone = [&lines[..4], &lines[5..]].concat();
    let doubled = [&lines[..5], &lines[4..]].concat();
    let mut swapped = lines.clone();
    swapped.swap(4, 5);
    for (what, changed, line) in
        [("gone", gone, 5), ("doubled", doubled, 6), ("swapped", swapped, 5)]
    {
        fs::write(dir.join(FILE), changed.join("\n") + "\n").unwrap();
        let error = Journal::open(&dir).unwrap_err();
        let OpenError::Read(ReadError::Damaged { line: named, damage, .. }) = &error else {
            panic!("{what}: {error:?}");
        };
        assert_eq!(*named, line, "{what}");
        assert!(matches!(damage, LineDamage::Sequence { .. }), "{what}");
    }
}

#[test]
fn damage_names_the_line_and_the_way_on() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    let good = records(&dir);
    let text = fs::read_to_string(dir.join(FILE)).unwrap();
    fs::write(dir.join(FILE), text.replacen("use_1", "use_9", 2)).unwrap();
    let message = Journal::open(&dir).unwrap_err().to_string();
    assert!(message.contains("line 3 is damaged"), "{message}");
    assert!(message.contains("2 records before it are good and can be forked"), "{message}");
    fork(sessions.path(), ("s1", "s2"), u64::MAX, |_| Vec::new()).unwrap();
    assert_eq!(records(&sessions.path().join("s2"))[1..], good[1..2]);
}

#[test]
fn one_damaged_session_does_not_hide_the_others() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    session(sessions.path(), "s2");
    fs::write(dir.join(FILE), "rubbish\n").unwrap();
    assert!(Journal::open(&dir).is_err());
    let anchors = journal::anchors(sessions.path()).unwrap();
    assert_eq!(anchors.found.len(), 1);
    assert_eq!(anchors.unreadable[0].0, "s1");
}

#[test]
fn a_first_line_that_is_no_header_is_damage() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    let text = fs::read_to_string(dir.join(FILE)).unwrap();
    let rest = text.split_once('\n').unwrap().1;
    fs::write(dir.join(FILE), rest).unwrap();
    assert!(matches!(
        Journal::open(&dir),
        Err(OpenError::Read(ReadError::Damaged { line: 1, last_good: 0, .. }))
    ));
}

#[test]
fn a_blob_that_is_gone_or_changed_is_damage_of_its_line() {
    for change in ["gone", "cut", "changed"] {
        let sessions = tempdir().unwrap();
        let mut journal = Journal::create(sessions.path(), header("s1")).unwrap();
        journal.append(&prompt(&"x".repeat(100_000))).unwrap();
        drop(journal);
        let dir = sessions.path().join("s1");
        drop(Journal::open(&dir).unwrap());
        let blob = fs::read_dir(dir.join("blobs")).unwrap().next().unwrap().unwrap().path();
        match change {
            "gone" => fs::remove_file(blob).unwrap(),
            "cut" => fs::write(blob, "x".repeat(99_999)).unwrap(),
            _ => fs::write(blob, "y".repeat(100_000)).unwrap(),
        }
        let read = read(&dir).unwrap().find_map(Result::err).unwrap();
        // Texts are read when they are needed; that they are there is seen before.
        let opened = match Journal::open(&dir) {
            Err(OpenError::Read(error)) => Some(error),
            Err(error) => panic!("{change}: {error:?}"),
            Ok(_) => None,
        };
        assert_eq!(opened.is_some(), change != "changed");
        for error in opened.into_iter().chain([read]) {
            let ReadError::Damaged { line: 2, last_good: 1, damage, .. } = &error else {
                panic!("{change}: {error:?}");
            };
            assert!(matches!(damage, LineDamage::Blob(_)), "{change}: {damage:?}");
        }
    }
}

#[test]
fn a_damaged_blob_is_written_anew_when_its_text_comes_again() {
    let sessions = tempdir().unwrap();
    let mut journal = Journal::create(sessions.path(), header("s1")).unwrap();
    let long = prompt(&"x".repeat(100_000));
    journal.append(&long).unwrap();
    let dir = sessions.path().join("s1");
    let blob = fs::read_dir(dir.join("blobs")).unwrap().next().unwrap().unwrap().path();
    fs::write(blob, "y").unwrap();
    journal.append(&long).unwrap();
    assert_eq!(records(&dir)[1..], [long.clone(), long]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever stands in the file: no panic, and either an error or a prefix of what was written.
    #[test]
    fn no_damage_reads_as_something_else(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        tail in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let sessions = tempdir().unwrap();
        let dir = session(sessions.path(), "s1");
        let good = records(&dir);
        let mut bytes = fs::read(dir.join(FILE)).unwrap();
        for (place, value) in edits {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        bytes.extend(tail);
        fs::write(dir.join(FILE), bytes).unwrap();
        if let Ok(opened) = Journal::open(&dir) {
            let got = records(&dir);
            prop_assert_eq!(opened.journal.last_seq(), got.len() as u64);
            prop_assert_eq!(&got[..], &good[..got.len()]);
            let mut reader = read(&dir).unwrap();
            prop_assert!(reader.by_ref().all(|entry| entry.is_ok()));
            prop_assert_eq!(reader.tail(), Tail::Clean);
        }
    }

    #[test]
    fn any_words_come_back(texts in proptest::collection::vec(any::<String>(), 0..6)) {
        let sessions = tempdir().unwrap();
        let mut journal = Journal::create(sessions.path(), header("s1")).unwrap();
        let written: Vec<_> = texts.iter().map(|text| prompt(text)).collect();
        for record in &written {
            journal.append(record).unwrap();
        }
        drop(journal);
        prop_assert_eq!(&records(&sessions.path().join("s1"))[1..], &written[..]);
    }
}
