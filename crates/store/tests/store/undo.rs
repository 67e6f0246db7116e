//! What is kept of files before a call, and known of them after it: real files, odd ones too.

use super::shelf::{Kept, Shelf};
use protocol::call::{Call, CallOrigin, FileEffect, FileVersion, ToolResult};
use protocol::ids::{CallId, SessionId};
use protocol::store::{FileBackup, FileChanges, FromStore, PriorContent, ToStore};
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Keeps what is at a path, does something, and says what undoing it takes.
fn undo(
    store: &mut Kept,
    number: u32,
    path: &Path,
    call: impl FnOnce(),
) -> Result<Vec<FileBackup>, ToolResult> {
    let id = CallId { session: SessionId("s".to_owned()), number };
    let paths = vec![path.to_str().unwrap().to_owned()];
    let keep = ToStore::BackUp { call: id.clone(), tool: "delete".to_owned(), paths };
    let said = store.say(keep);
    assert!(
        matches!(said.as_slice(), [FromStore::BackedUp { call: kept, .. }] if *kept == id),
        "{said:?}"
    );
    call();
    let ended = ToStore::CallEnded { call: id.clone(), did: None };
    assert_eq!(store.say(ended), [FromStore::ChangesRecorded(id.clone())]);
    restored(store, &json!({"id": number}))
}

#[test]
fn a_directory_comes_back_whole_or_not_at_all() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    let [plain, odd] = ["plain", "odd"].map(|name| project.join(name));
    for directory in [&plain, &odd] {
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("x"), "x").unwrap();
    }
    let kept = undo(&mut store, 1, &plain, || fs::remove_dir_all(&plain).unwrap()).unwrap();
    assert_eq!(kept.len(), 1);
    assert!(
        matches!(&kept[0].before, PriorContent::File { bytes, .. } if bytes == b"x"),
        "{kept:?}"
    );
    // A name that no message can carry would come back as another.
    fs::write(odd.join(OsStr::from_bytes(b"\xff")), "y").unwrap();
    let refused = undo(&mut store, 2, &odd, || fs::remove_dir_all(&odd).unwrap()).unwrap_err();
    assert_eq!(refused.code.as_deref(), Some("not_covered"), "{refused:?}");
    let empty = project.join("empty");
    fs::create_dir(&empty).unwrap();
    let refused = undo(&mut store, 3, &empty, || fs::remove_dir(&empty).unwrap()).unwrap_err();
    assert!(refused.text.contains("there is no copy of"), "{refused:?}");
}

#[test]
fn what_a_call_left_is_not_read_for_ever() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    let file = project.join("file");
    let kept = undo(&mut store, 1, &file, || fs::write(&file, "made").unwrap()).unwrap();
    assert!(kept[0].before == PriorContent::Absent && kept[0].after.is_some(), "{kept:?}");
    // A sparse file: reading all of it would take hours.
    let grown = || fs::File::options().write(true).open(&file).unwrap().set_len(1 << 40).unwrap();
    let refused = undo(&mut store, 2, &file, grown).unwrap_err();
    assert_eq!(refused.code.as_deref(), Some("not_covered"), "{refused:?}");
    // Neither is one of which nothing was kept.
    let touched = || fs::File::options().write(true).open(&file).unwrap().set_len(1 << 39).unwrap();
    let refused = undo(&mut store, 3, &file, touched).unwrap_err();
    assert_eq!(refused.code.as_deref(), Some("not_covered"), "{refused:?}");
    let list = store.call("undo_list", json!({})).text;
    assert!(list.contains("file (not covered: too large now"), "{list}");
}

#[test]
fn what_somebody_else_changes_before_the_store_looks_is_not_the_call_s() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    let files = ["written", "deleted/x", "untouched"].map(|name| project.join(name));
    fs::create_dir(project.join("deleted")).unwrap();
    for file in &files {
        fs::write(file, "before").unwrap();
    }
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let id = CallId { session: SessionId("s".to_owned()), number: 1 };
    let paths = files.iter().map(|file| text(file)).collect();
    store.say(ToStore::BackUp { call: id.clone(), tool: "write".to_owned(), paths });
    // The store was stopped, and by the time it hears of the end all of them are another's.
    for file in &files {
        fs::write(file, "another's").unwrap();
    }
    let digest = "d".repeat(64);
    let did = FileChanges {
        effects: vec![
            FileEffect::Written(text(&files[0])),
            FileEffect::Deleted(text(&project.join("deleted"))),
        ],
        left: vec![FileVersion { path: text(&files[0]), digest: digest.clone() }],
    };
    store.say(ToStore::CallEnded { call: id.clone(), did: Some(did) });
    let input = json!({"id": 1}).to_string();
    let fetch =
        Call { id, origin: CallOrigin::model("toolu"), tool: "undo_restore".to_owned(), input };
    let said = store.say(ToStore::FetchBackups(fetch));
    let [FromStore::BackupsFetched { files: Ok(kept), .. }] = said.as_slice() else {
        panic!("{said:?}")
    };
    let kept: Vec<_> = kept.iter().map(|file| (file.path.clone(), file.after.clone())).collect();
    // What the call left is told from what is there, so that putting back finds the conflict.
    assert_eq!(kept, [(text(&files[1]), None), (text(&files[0]), Some(digest))]);
}

/// Puts something else in the place of the copies, which no store has open.
fn spoil(shelf: &Shelf, how: &str) {
    let session = shelf.project_store("a").join("sessions/s");
    let file = session.join("undo.db");
    let mut bytes = fs::read(&file).unwrap();
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(session.join(format!("undo.db{ending}")));
    }
    match how {
        "garbage" => fs::write(&file, "no database, and long enough to be read as one").unwrap(),
        "middle" => {
            for page in bytes.chunks_mut(4096).skip(1) {
                page[..100].fill(0xff);
            }
            fs::write(&file, &bytes).unwrap();
        }
        _ => fs::create_dir(&file).unwrap(),
    }
}

/// A call that meets the damage goes on with its own copy; what there was before is told as lost
/// whenever the list is shown, not only once.
#[test]
fn damaged_copies_are_set_aside_and_what_is_not_covered_is_said() {
    for how in ["garbage", "middle", "directory"] {
        let shelf = Shelf::new();
        let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
        let file = project.join("file");
        for number in 1..10 {
            let text = format!("{number} {}", "x".repeat(3000));
            undo(&mut store, number, &file, || fs::write(&file, text).unwrap()).unwrap();
        }
        let list = store.call("undo_list", json!({})).text;
        assert!(!list.contains("damaged"), "the control: {list}");
        drop(store);
        spoil(&shelf, how);

        let mut store = shelf.store("a", "s");
        let id = CallId { session: SessionId("s".to_owned()), number: 10 };
        let paths = vec![file.to_str().unwrap().to_owned()];
        let keep = ToStore::BackUp { call: id.clone(), tool: "write".to_owned(), paths };
        let said = store.say(keep);
        let [FromStore::Log(line), FromStore::BackedUp { call: kept, .. }] = said.as_slice() else {
            panic!("{how}: {said:?}")
        };
        assert_eq!(*kept, id);
        assert!(line.text.contains("the undo data was damaged ("), "{how}: {line:?}");
        fs::write(&file, "after").unwrap();
        assert_eq!(
            store.say(ToStore::CallEnded { call: id.clone(), did: None }),
            [FromStore::ChangesRecorded(id)]
        );
        let mut fetch = |number: u32| {
            let id = CallId { session: SessionId("s".to_owned()), number: 100 + number };
            let (origin, tool) = (CallOrigin::model("toolu"), "undo_restore".to_owned());
            let input = json!({"id": number}).to_string();
            match store.say(ToStore::FetchBackups(Call { id, origin, tool, input })).as_slice() {
                [FromStore::BackupsFetched { files, .. }] => files.clone(),
                other => panic!("{other:?}"),
            }
        };
        let kept = fetch(10).unwrap();
        assert!(
            matches!(&kept[0].before, PriorContent::File { bytes, .. } if bytes.starts_with(b"9 x"))
        );
        assert_eq!(fetch(9).unwrap_err().code.as_deref(), Some("not_covered"), "{how}");
        for _ in 0..2 {
            let list = store.call("undo_list", json!({})).text;
            assert!(list.starts_with("10 write, ") && !list.contains("\n9 "), "{how}: {list}");
            assert!(list.contains("is not covered: its copies were damaged"), "{how}: {list}");
            assert!(list.contains("undo.db.damaged-"), "{how}: {list}");
        }
    }
}

/// A store that died with the call, whose file is damaged when the next one hears of the end.
#[test]
fn a_call_whose_copy_is_damaged_before_its_end_is_not_covered() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    let file = project.join("file");
    let id = CallId { session: SessionId("s".to_owned()), number: 1 };
    let paths = vec![file.to_str().unwrap().to_owned()];
    store.say(ToStore::BackUp { call: id.clone(), tool: "write".to_owned(), paths });
    drop(store);
    spoil(&shelf, "garbage");
    fs::write(&file, "made").unwrap();
    let mut store = shelf.store("a", "s");
    let said = store.say(ToStore::CallEnded { call: id.clone(), did: None });
    assert!(
        matches!(&said[..], [FromStore::Log(_), FromStore::ChangesRecorded(of)] if *of == id),
        "{said:?}"
    );
    let list = store.call("undo_list", json!({})).text;
    assert!(list.contains("is not covered: its copies were damaged"), "{list}");
    assert!(!list.contains("1 write"), "{list}");
}

#[test]
fn what_a_list_leaves_out_is_counted_with_the_way_to_it() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    let many = project.join("many");
    fs::create_dir(&many).unwrap();
    for number in 0..30 {
        fs::write(many.join(format!("a-name-{number:02}")), "x").unwrap();
    }
    undo(&mut store, 1, &many, || fs::remove_dir_all(&many).unwrap()).unwrap();
    let file = project.join("file");
    for number in 2..=20 {
        undo(&mut store, number, &file, || fs::write(&file, number.to_string()).unwrap()).unwrap();
    }
    let list = store.call("undo_list", json!({}));
    let row = list.text.lines().find(|line| line.starts_with("1 delete")).unwrap();
    let shown = row.matches("a-name-").count();
    assert!((5..30).contains(&shown), "{row}");
    let first = "a-name-00 (removed), many/a-name-01 (removed)";
    assert!(row.contains(first) && !row.contains('…'), "{row}");
    assert!(row.contains(&format!("(removed), and {} more files", 30 - shown)), "{row}");
    assert!(!list.text.contains("older") && list.summary == "20 changes", "{list:?}");
    for number in 21..=27 {
        undo(&mut store, number, &file, || fs::write(&file, number.to_string()).unwrap()).unwrap();
    }
    let list = store.call("undo_list", json!({}));
    let way = "\n[… 7 older changes; they are shown by undo_list with before = 8 …]\n";
    assert!(list.text.contains(way) && !list.text.contains("\n7 "), "{list:?}");
    assert_eq!(list.summary, "27 changes");
    let older = store.call("undo_list", json!({"before": 8}));
    assert!(older.text.starts_with("7 delete") && older.text.contains("\n1 delete"), "{older:?}");
    assert!(!older.text.contains("older changes") && older.summary == "7 changes", "{older:?}");
    let none = store.call("undo_list", json!({"before": 1})).text;
    assert!(none.starts_with("nothing older than change 1 is kept\n"), "{none}");
}

/// The files that an `undo_restore` of this input restores.
fn restored(store: &mut Kept, input: &serde_json::Value) -> Result<Vec<FileBackup>, ToolResult> {
    let id = CallId { session: SessionId("s".to_owned()), number: 100 };
    let (tool, input) = ("undo_restore".to_owned(), input.to_string());
    let fetch = Call { id, origin: CallOrigin::Undo, tool, input };
    match store.say(ToStore::FetchBackups(fetch)).as_slice() {
        [FromStore::BackupsFetched { files, .. }] => files.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_file_comes_back_over_calls_whose_ends_are_known() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    let [made, other] = ["made", "other"].map(|name| project.join(name));
    let write = |path: &Path, text: &'static str| {
        let path = path.to_owned();
        move || fs::write(path, text).unwrap()
    };
    undo(&mut store, 1, &made, write(&made, "one")).unwrap();
    undo(&mut store, 2, &other, write(&other, "x")).unwrap();
    undo(&mut store, 3, &made, write(&made, "two")).unwrap();
    let back = restored(&mut store, &json!({"id": 3, "path": "made", "since": 1})).unwrap();
    assert_eq!(back.len(), 1, "{back:?}");
    assert_eq!(back[0].before, PriorContent::Absent);
    let back = restored(&mut store, &json!({"id": 3, "path": "./x/../made"})).unwrap();
    assert!(matches!(&back[0].before, PriorContent::File { bytes, .. } if bytes == b"one"));
    // The end of a call that created a file was not seen.
    let (lost, id) =
        (project.join("lost"), CallId { session: SessionId("s".to_owned()), number: 4 });
    let paths = vec![lost.to_str().unwrap().to_owned()];
    store.say(ToStore::BackUp { call: id, tool: "write".to_owned(), paths });
    write(&lost, "one")();
    undo(&mut store, 5, &lost, write(&lost, "two")).unwrap();
    undo(&mut store, 6, &made, write(&made, "three")).unwrap();
    for (input, code, words) in [
        (json!({"id": 6, "path": "lost", "since": 1}), "not_covered", "end of change 4"),
        (json!({"id": 6, "path": "lost", "since": 6}), "not_found", "call 6 changed nothing"),
        (json!({"id": 6, "path": "nowhere", "since": 1}), "not_found", "no call from 1 to 6"),
        (json!({"id": 1, "path": "made", "since": 2}), "invalid_arguments", "above id 1"),
        (json!({"id": 1, "since": 1}), "invalid_arguments", "without path"),
        (json!({"id": 1, "path": "made", "except": ["x"]}), "invalid_arguments", "with path"),
        (json!({"id": 1, "except": ["made"]}), "not_found", "restored one by one"),
    ] {
        let refused = restored(&mut store, &input).unwrap_err();
        assert_eq!(refused.code.as_deref(), Some(code), "{input}: {refused:?}");
        assert!(refused.text.contains(words), "{input}: {refused:?}");
    }
    // That call may have changed this one too, before the first change that is known.
    let back = restored(&mut store, &json!({"id": 6, "path": "made", "since": 4})).unwrap();
    let [file, gap] = back.as_slice() else { panic!("{back:?}") };
    assert!(matches!(&file.before, PriorContent::File { bytes, .. } if bytes == b"two"));
    assert!(matches!(&gap.before, PriorContent::NotKept(why) if why.contains("call 4")), "{gap:?}");
    // As it was before: nothing is to be done.
    undo(&mut store, 7, &made, write(&made, "two")).unwrap();
    let same = restored(&mut store, &json!({"id": 7, "path": "made", "since": 6})).unwrap_err();
    assert!(same.text.contains("is as it was before call 6"), "{same:?}");
}

#[test]
fn a_copy_of_a_session_can_undo_the_calls_that_it_shares_and_no_later_ones() {
    let shelf = Shelf::new();
    let (project, mut first) = (shelf.project("a"), shelf.store("a", "s"));
    let [one, two] = ["one", "two"].map(|name| project.join(name));
    undo(&mut first, 1, &one, || fs::write(&one, "1").unwrap()).unwrap();
    undo(&mut first, 2, &two, || fs::write(&two, "2").unwrap()).unwrap();
    // The rest of an attempt that was killed.
    let place = shelf.project_store("a").join("sessions/t");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("undo.part"), "half").unwrap();
    // The first session is still open.
    let mut copy = shelf.copy("a", "t", "s", 1);
    assert_eq!(restored(&mut copy, &json!({"id": 1})).unwrap().len(), 1);
    let unknown = restored(&mut copy, &json!({"id": 2})).unwrap_err();
    assert!(unknown.text.contains("the changes of that call are unknown"), "{unknown:?}");
    assert_eq!(restored(&mut first, &json!({"id": 2})).unwrap().len(), 1, "the first has it");
    // Its own calls go on from there, and another store of it takes nothing over again.
    undo(&mut copy, 2, &two, || fs::write(&two, "other").unwrap()).unwrap();
    let mut again = shelf.copy("a", "t", "s", 1);
    assert_eq!(restored(&mut again, &json!({"id": 2})).unwrap().len(), 1);
    let mut stranger = shelf.store("a", "u");
    restored(&mut stranger, &json!({"id": 1})).unwrap_err();
    let mut of_nothing = shelf.copy("a", "v", "gone", 1);
    restored(&mut of_nothing, &json!({"id": 1})).unwrap_err();
}

#[test]
fn a_copy_of_a_session_whose_changes_cannot_be_read_says_so() {
    let shelf = Shelf::new();
    let place = shelf.project_store("a").join("sessions/s");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("undo.db"), "no database").unwrap();
    let mut copy = shelf.copy("a", "t", "s", 1);
    copy.call("undo_list", json!({}));
    let said = copy.logged.join(" ");
    assert!(said.contains("cannot be undone in it"), "{said}");
    let file = shelf.project("a").join("file");
    undo(&mut copy, 2, &file, || fs::write(&file, "x").unwrap()).unwrap();
}
