//! Memory in its three scopes, on real files.

use super::shelf::Shelf;
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn what_is_remembered_is_found_where_it_belongs_and_nowhere_else() {
    let shelf = Shelf::new();
    let mut one = shelf.store("a", "s1");
    for (scope, word) in [("session", "ephemeral"), ("project", "makefile"), ("user", "tabs")] {
        let text = format!("colour {word}");
        let said = one.call("memory_add", json!({"text": text, "scope": scope}));
        assert!(!said.is_error, "{said:?}");
    }
    let search = json!({"query": "colour"});
    let all = one.call("memory_search", search.clone()).text;
    assert!(["ephemeral", "makefile", "tabs"].iter().all(|word| all.contains(word)), "{all}");
    let other_session = shelf.store("a", "s2").call("memory_search", search.clone()).text;
    assert_eq!(other_session.lines().count(), 2, "{other_session}");
    assert!(!other_session.contains("ephemeral"), "{other_session}");
    let other_project = shelf.store("b", "s1").call("memory_search", search.clone()).text;
    assert!(other_project.starts_with("u1 (user), saved 20"), "{other_project}");
    assert!(other_project.ends_with("/projects/a: colour tabs\n"), "{other_project}");
    let only = one.call("memory_search", json!({"query": "colour", "scope": "project"})).text;
    assert_eq!(only, "p1 (project): colour makefile\n");
}

#[test]
fn a_search_takes_any_words_and_shows_the_best_first() {
    let shelf = Shelf::new();
    let mut store = shelf.store("a", "s");
    for text in ["The tests need a database.", "Tests are run with just test.", "Nothing of both."]
    {
        store.call("memory_add", json!({"text": text}));
    }
    let found = store.call("memory_search", json!({"query": "running \"test\" AND ("})).text;
    assert!(found.starts_with("p2 (project): Tests are run"), "{found}");
    assert_eq!(found.lines().count(), 2, "{found}");
    let none = store.call("memory_search", json!({"query": "aardvark"}));
    assert_eq!(
        (none.is_error, none.text.as_str()),
        (false, "nothing is remembered of \"aardvark\"\n")
    );
    for number in 0..30 {
        store.call("memory_add", json!({"text": format!("bulk {number}")}));
    }
    let capped = store.call("memory_search", json!({"query": "bulk", "limit": 20})).text;
    assert_eq!(capped.lines().count(), 21);
    assert!(capped.contains("[… 10 more left out"), "{capped}");
}

#[test]
fn a_call_is_done_once_however_often_it_is_asked_for() {
    let shelf = Shelf::new();
    let add = json!({"text": "once"});
    let first = shelf.store("a", "s").call_as(7, "memory_add", add.clone());
    // Another life, as after a kill between the write and the answer.
    let again = shelf.store("a", "s").call_as(7, "memory_add", add.clone());
    assert_eq!(first, again);
    let mut store = shelf.store("a", "s");
    assert_eq!(store.call("memory_search", json!({"query": "once"})).text.lines().count(), 1);
    let other = store.call_as(8, "memory_add", add);
    assert!(other.text.contains("p2"), "another call is another text: {other:?}");
    let gone = store.call_as(9, "memory_remove", json!({"id": "p1"}));
    assert_eq!(gone, shelf.store("a", "s").call_as(9, "memory_remove", json!({"id": "p1"})));
    assert_eq!(store.call("memory_remove", json!({"id": "p1"})).code.as_deref(), Some("not_found"));
}

#[test]
fn each_bad_argument_has_its_code() {
    let shelf = Shelf::new();
    let mut store = shelf.store("a", "s");
    for (tool, input, code) in [
        ("memory_add", json!({"text": " \n"}), "invalid_arguments"),
        ("memory_add", json!({"text": "x".repeat(4_001)}), "too_large"),
        ("memory_remove", json!({"id": "12"}), "invalid_arguments"),
        ("memory_remove", json!({"id": "é"}), "invalid_arguments"),
        ("memory_remove", json!({"id": ""}), "invalid_arguments"),
        ("memory_remove", json!({"id": "p99"}), "not_found"),
        ("memory_search", json!({"query": "!?"}), "invalid_arguments"),
        ("no_such_tool", json!({}), "unknown_tool"),
    ] {
        let said = store.call(tool, input.clone());
        assert_eq!(said.code.as_deref(), Some(code), "{tool} {input}: {said:?}");
        assert!(said.is_error && said.text.starts_with(&format!("Error [{code}] {tool}: ")));
    }
    let longest = store.call("memory_add", json!({"text": "x".repeat(4_000)}));
    assert!(!longest.is_error, "{longest:?}");
}

#[test]
fn a_memory_that_is_full_takes_no_more_until_something_is_removed() {
    let shelf = Shelf::new();
    let mut store = shelf.store("a", "s");
    assert!(!store.call("memory_add", json!({"text": "first"})).is_error);
    // By hand: as calls they would be synced to disk one by one.
    let file = rusqlite::Connection::open(shelf.project_store("a").join("memory.db")).unwrap();
    let fill = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 9998) \
                INSERT INTO memory (time, text) SELECT 0, 'word' || x FROM n";
    file.execute(fill, []).unwrap();
    let last = store.call("memory_add", json!({"text": "last"}));
    assert_eq!(last.text, "remembered as p10000 (project)\n");
    let refused = store.call("memory_add", json!({"text": "one more"}));
    assert_eq!(refused.code.as_deref(), Some("too_large"), "{refused:?}");
    assert!(refused.text.contains("the memory of this project holds 10000 texts"), "{refused:?}");
    assert!(refused.text.contains("memory_search"), "{refused:?}");
    let other = store.call("memory_add", json!({"text": "one more", "scope": "user"}));
    assert!(!other.is_error, "each memory has its own room: {other:?}");
    assert!(!store.call("memory_remove", json!({"id": "p1"})).is_error);
    assert!(!store.call("memory_add", json!({"text": "one more"})).is_error);
}

#[test]
fn control_codes_reach_nobody() {
    let shelf = Shelf::new();
    let mut store = shelf.store("a", "s");
    store.call("memory_add", json!({"text": "red \u{1b}[31mtext\r"}));
    let found = store.call("memory_search", json!({"query": "red"})).text;
    assert_eq!(found, "p1 (project): red \u{241b}[31mtext\n");
}

#[test]
fn what_is_damaged_is_set_aside_and_a_new_one_begun_and_said_so() {
    for spoil in ["garbage", "header", "middle", "directory", "link"] {
        let shelf = Shelf::new();
        let file = shelf.project_store("a").join("memory.db");
        let mut first = shelf.store("a", "s");
        for number in 0..12 {
            let text = format!("before {number} {}", "x".repeat(2_000));
            first.call_as(number, "memory_add", json!({"text": text}));
        }
        drop(first);
        let whole = fs::read(&file).unwrap();
        let mut bytes = whole.clone();
        fs::remove_file(&file).unwrap();
        match spoil {
            "garbage" => {
                fs::write(&file, "this is no database at all, and long enough to be read").unwrap()
            }
            "header" => {
                bytes[..16].fill(0x55);
                fs::write(&file, &bytes).unwrap();
            }
            "middle" => {
                for page in bytes.chunks_mut(4096).skip(1) {
                    page[..100].fill(0xff);
                }
                fs::write(&file, &bytes).unwrap();
            }
            "directory" => fs::create_dir(&file).unwrap(),
            _ => symlink("/nonexistent/elsewhere", &file).unwrap(),
        }
        let mut store = shelf.store("a", "s");
        let said = store.call_as(1_000, "memory_add", json!({"text": "after"}));
        assert!(!said.is_error, "{spoil}: {said:?}");
        assert!(
            said.text.starts_with("Note: this project's memory was damaged ("),
            "{spoil}: {said:?}"
        );
        assert!(store.logged.iter().any(|line| line.contains("moved to")), "{spoil}");
        let kept: Vec<_> = fs::read_dir(shelf.project_store("a"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().contains("memory.db.damaged-"))
            .filter(|path| !path.to_string_lossy().ends_with("-wal"))
            .filter(|path| !path.to_string_lossy().ends_with("-shm"))
            .collect();
        assert_eq!(kept.len(), 1, "{spoil}: {kept:?}");
        if spoil == "middle" {
            assert_eq!(fs::read(&kept[0]).unwrap(), bytes, "it is kept as it was");
        }
        let found = store.call_as(1_001, "memory_search", json!({"query": "after before"}));
        assert_eq!(
            found.text, "p1 (project): after\n",
            "{spoil}: said once, and the new one works"
        );
    }
}

#[test]
fn a_file_that_was_taken_away_is_begun_anew() {
    let shelf = Shelf::new();
    let mut store = shelf.store("a", "s");
    store.call("memory_add", json!({"text": "one"}));
    fs::remove_file(shelf.project_store("a").join("memory.db")).unwrap();
    let said = store.call("memory_search", json!({"query": "one"}));
    assert_eq!(said.text, "nothing is remembered of \"one\"\n");
    store.call("memory_add", json!({"text": "two"}));
    let found = shelf.store("a", "s").call("memory_search", json!({"query": "two"})).text;
    assert_eq!(found, "p1 (project): two\n", "what was written is where others find it");
}

#[test]
fn two_sessions_write_to_one_project() {
    let shelf = Shelf::new();
    std::thread::scope(|scope| {
        for session in ["s1", "s2", "s3"] {
            let shelf = &shelf;
            scope.spawn(move || {
                let mut store = shelf.store("a", session);
                for number in 0..20 {
                    let text = format!("shared {session} {number}");
                    let mut add = || store.call_as(number, "memory_add", json!({"text": text}));
                    // On a slow disk one waits in vain for the others, and is told to try again.
                    let mut said = add();
                    while said.code.as_deref() == Some("busy") {
                        said = add();
                    }
                    assert!(!said.is_error, "{said:?}");
                }
            });
        }
    });
    let found =
        shelf.store("a", "s").call("memory_search", json!({"query": "shared", "limit": 20}));
    assert!(found.text.contains("[… 40 more"), "{}", found.text);
}

#[test]
fn damage_that_shows_only_in_the_middle_of_a_change_is_set_aside_at_once() {
    let shelf = Shelf::new();
    let file = shelf.project_store("a").join("memory.db");
    let mut store = shelf.store("a", "s");
    for number in 0..12 {
        let text = format!("before {number} {}", "x".repeat(2_000));
        store.call("memory_add", json!({"text": text}));
    }
    // All of it goes into the file itself; the store has it open and was content with it.
    let other = rusqlite::Connection::open(&file).unwrap();
    other.pragma_update(None, "user_version", 7).unwrap();
    other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    // What is asked before the change itself is whole.
    let mut whole =
        other.prepare("SELECT rootpage FROM sqlite_master WHERE tbl_name = 'done'").unwrap();
    let whole = whole.query_map([], |row| row.get(0)).unwrap();
    let whole: Vec<u32> = whole.map(Result::unwrap).chain([1]).collect();
    let mut bytes = fs::read(&file).unwrap();
    for (page, number) in bytes.chunks_mut(4096).zip(1..) {
        if !whole.contains(&number) {
            page[..100].fill(0xff);
        }
    }
    let there = fs::File::options().write(true).open(&file).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&there, &bytes, 0).unwrap();
    let said = store.call("memory_add", json!({"text": "after"}));
    assert!(!said.is_error, "{said:?}");
    assert!(said.text.starts_with("Note: this project's memory was damaged ("), "{said:?}");
    assert!(said.text.contains("remembered as p1"), "{said:?}");
}

#[test]
fn one_who_writes_for_too_long_is_not_waited_for() {
    let shelf = Shelf::new();
    let mut store = shelf.store("a", "s");
    store.call("memory_add", json!({"text": "one"}));
    let other = rusqlite::Connection::open(shelf.project_store("a").join("memory.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let said = store.call_as(7, "memory_add", json!({"text": "two"}));
    assert_eq!(said.code.as_deref(), Some("busy"), "{said:?}");
    assert!(said.text.contains("Nothing was changed; try again."), "{said:?}");
    let found = store.call("memory_search", json!({"query": "one"})).text;
    assert!(found.contains("p1"), "who only looks does not wait: {found}");
    other.execute_batch("ROLLBACK").unwrap();
    let said = store.call_as(7, "memory_add", json!({"text": "two"}));
    assert!(said.text.contains("remembered as p2"), "the same call, done now: {said:?}");
}

#[test]
fn a_text_of_a_person_is_stored_within_the_bounds_of_the_tool() {
    let dir = tempfile::tempdir().unwrap();
    let mut kept = store::KeptMemories::of(&dir.path().join("p"), &dir.path().join("u"));
    for (scope, id) in [("project", "p1"), ("user", "u1")] {
        let added = kept.add(scope, "/project", " tabs \n").unwrap();
        let line: serde_json::Value = serde_json::from_str(&added).unwrap();
        assert_eq!((&line["id"], &line["text"]), (&json!(id), &json!("tabs")));
        assert_eq!((&line["scope"], &line["project"]), (&json!(scope), &json!("/project")));
    }
    let long = "x".repeat(4_001);
    for (scope, text, why) in [
        ("session", "x", "scope"),
        ("project", " \n", "empty"),
        ("user", long.as_str(), "the most is 4000"),
    ] {
        let refused = kept.add(scope, "/project", text).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(kept.list().unwrap().lines().count(), 2);
}
