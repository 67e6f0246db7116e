//! A list of sessions is right about each, and reads little of those that are long.

use super::sample::{header, prompt, session};
use journal::{Journal, glance};
use std::fs;
use tempfile::tempdir;

#[test]
fn a_short_session_is_counted() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    let entries: Vec<_> = journal::read(&dir).unwrap().map(Result::unwrap).collect();
    let seen = glance(&dir);
    let prompts =
        entries.iter().filter(|it| matches!(it.record, journal::JournalRecord::Prompt { .. }));
    assert_eq!(seen.turns, Some(u32::try_from(prompts.count()).unwrap()));
    assert_eq!((seen.began, seen.last), (entries[0].time, entries.last().unwrap().time));
    assert!(!seen.first_prompt.is_empty() && seen.trouble.is_none(), "{seen:?}");
    assert_eq!(seen.header.unwrap().id, "s1");
}

#[test]
fn of_a_long_session_only_both_ends_are_read_and_its_prompts_are_counted() {
    let sessions = tempdir().unwrap();
    let mut journal = Journal::create(sessions.path(), header("s1")).unwrap();
    let records: Vec<_> =
        (0..6000).map(|n| prompt(&format!("words {n} {}", "x".repeat(60)))).collect();
    journal.append_all(&records).unwrap();
    drop(journal);
    let dir = sessions.path().join("s1");
    let file = dir.join("journal.jsonl");
    let seen = glance(&dir);
    assert!(seen.first_prompt.starts_with("words 0 "), "{}", seen.first_prompt);
    assert_eq!(seen.turns, Some(6000));
    assert!(seen.last > 0 && seen.trouble.is_none(), "{seen:?}");
    // What stands in the middle is not looked at, what stands at the ends is.
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, whole.replace("words 3000 ", "wards 3000 ")).unwrap();
    assert!(glance(&dir).trouble.is_none());
    assert!(journal::read(&dir).unwrap().any(|entry| entry.is_err()), "it is damaged");
    for damaged in [0, 5999] {
        let (good, bad) = (format!("words {damaged} "), format!("wards {damaged} "));
        fs::write(&file, whole.replace(&good, &bad)).unwrap();
        let trouble = glance(&dir).trouble.map(|error| error.to_string()).unwrap_or_default();
        assert!(trouble.contains("damaged"), "{damaged}: {trouble}");
    }
}

#[test]
fn one_that_cannot_be_read_says_so_and_what_could_be() {
    let sessions = tempdir().unwrap();
    let dir = session(sessions.path(), "s1");
    let file = dir.join("journal.jsonl");
    let lines: Vec<_> = fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect();
    let mut damaged = lines.clone();
    let half = damaged[2].len() / 2;
    damaged[2].truncate(half);
    fs::write(&file, damaged.join("\n") + "\n").unwrap();
    let seen = glance(&dir);
    assert!(seen.trouble.is_some() && seen.header.is_some() && seen.began > 0, "{seen:?}");
    fs::remove_file(&file).unwrap();
    let seen = glance(&dir);
    assert!(seen.trouble.is_some() && seen.header.is_none(), "{seen:?}");
}
