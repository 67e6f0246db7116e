//! What is kept of files before a call, and known of them after it: real files, odd ones too.
#![allow(clippy::unwrap_used)]

mod shelf;

use protocol::call::{Call, Effect, SeenFile, ToolResult};
use protocol::ids::{CallId, SessionId};
use protocol::store::{Did, FromStore, KeptFile, ToStore, Was};
use serde_json::json;
use shelf::{Kept, Shelf};
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
) -> Result<Vec<KeptFile>, ToolResult> {
    let id = CallId { session: SessionId("s".to_owned()), number };
    let paths = vec![path.to_str().unwrap().to_owned()];
    let keep = ToStore::Keep { call: id.clone(), tool: "delete".to_owned(), paths };
    assert_eq!(store.say(keep), [FromStore::Kept(id.clone())]);
    call();
    let ended = ToStore::Ended { call: id.clone(), did: None };
    assert_eq!(store.say(ended), [FromStore::Settled(id.clone())]);
    let input = json!({"id": number}).to_string();
    let fetch = Call { id, use_id: "toolu".to_owned(), tool: "undo_restore".to_owned(), input };
    match store.say(ToStore::Fetch(fetch)).as_slice() {
        [FromStore::Fetched { files, .. }] => files.clone(),
        other => panic!("{other:?}"),
    }
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
    assert!(matches!(&kept[0].before, Was::File { bytes, .. } if bytes == b"x"), "{kept:?}");
    // A name that no message can carry would come back as another.
    fs::write(odd.join(OsStr::from_bytes(b"\xff")), "y").unwrap();
    let refused = undo(&mut store, 2, &odd, || fs::remove_dir_all(&odd).unwrap()).unwrap_err();
    assert_eq!(refused.code.as_deref(), Some("not_covered"), "{refused:?}");
    let empty = project.join("empty");
    fs::create_dir(&empty).unwrap();
    let refused = undo(&mut store, 3, &empty, || fs::remove_dir(&empty).unwrap()).unwrap_err();
    assert!(refused.text.contains("no copy was kept"), "{refused:?}");
}

#[test]
fn what_a_call_left_is_not_read_for_ever() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    let file = project.join("file");
    let kept = undo(&mut store, 1, &file, || fs::write(&file, "made").unwrap()).unwrap();
    assert!(kept[0].before == Was::Absent && kept[0].after.is_some(), "{kept:?}");
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
    store.say(ToStore::Keep { call: id.clone(), tool: "write".to_owned(), paths });
    // The store was stopped, and by the time it hears of the end all of them are another's.
    for file in &files {
        fs::write(file, "another's").unwrap();
    }
    let digest = "d".repeat(64);
    let did = Did {
        effects: vec![
            Effect::Written(text(&files[0])),
            Effect::Deleted(text(&project.join("deleted"))),
        ],
        left: vec![SeenFile { path: text(&files[0]), digest: digest.clone() }],
    };
    store.say(ToStore::Ended { call: id.clone(), did: Some(did) });
    let input = json!({"id": 1}).to_string();
    let fetch = Call { id, use_id: "toolu".to_owned(), tool: "undo_restore".to_owned(), input };
    let said = store.say(ToStore::Fetch(fetch));
    let [FromStore::Fetched { files: Ok(kept), .. }] = said.as_slice() else { panic!("{said:?}") };
    let kept: Vec<_> = kept.iter().map(|file| (file.path.clone(), file.after.clone())).collect();
    // What the call left is told from what is there, so that putting back finds the conflict.
    assert_eq!(kept, [(text(&files[1]), None), (text(&files[0]), Some(digest))]);
}
