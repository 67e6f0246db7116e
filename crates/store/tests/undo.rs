//! What is kept of files before a call, and known of them after it: real files, odd ones too.
#![allow(clippy::unwrap_used)]

mod shelf;

use protocol::call::{Call, ToolResult};
use protocol::ids::{CallId, SessionId};
use protocol::store::{FromStore, KeptFile, ToStore, Was};
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
    assert_eq!(store.say(ToStore::Ended(id.clone())), [FromStore::Settled(id.clone())]);
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
