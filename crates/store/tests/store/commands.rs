//! What commands change, found by comparing and kept: real files, odd ones too.

use super::shelf::{Kept, Shelf};
use protocol::call::{Call, CallOrigin, ToolResult};
use protocol::ids::{CallId, SessionId};
use protocol::store::{
    ChangeSet, FileBackup, FromStore, PriorContent, SnapshotBefore, StoreCommand, ToStore,
    UndoCover, UndoScope,
};
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn command(number: u32) -> StoreCommand {
    let call = CallId { session: SessionId("s".to_owned()), number };
    StoreCommand { call, tool: "bash".to_owned(), text: "do   it".to_owned() }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos().try_into().unwrap()
}

fn begin(store: &mut Kept, number: u32) {
    let said = store.say(ToStore::TakeSnapshot(command(number)));
    let call = command(number).call;
    assert!(
        matches!(said.as_slice(), [FromStore::BackedUp { call: kept, .. }] if *kept == call),
        "{said:?}"
    );
}

fn end(store: &mut Kept, number: u32) {
    let command = command(number);
    let call = command.call.clone();
    let said =
        store.say(ToStore::CommandEnded { command, ended: now(), before: SnapshotBefore::Looked });
    assert_eq!(said, [FromStore::ChangesRecorded(call)]);
}

fn fetch(store: &mut Kept, number: u32) -> Result<Vec<FileBackup>, ToolResult> {
    let input = json!({"id": number}).to_string();
    let id = command(number).call;
    let fetch =
        Call { id, origin: CallOrigin::model("toolu"), tool: "undo_restore".to_owned(), input };
    match store.say(ToStore::FetchBackups(fetch)).as_slice() {
        [FromStore::BackupsFetched { files, .. }] => files.clone(),
        other => panic!("{other:?}"),
    }
}

/// What undoing a command takes.
fn undo(store: &mut Kept, number: u32, run: impl FnOnce()) -> Result<Vec<FileBackup>, ToolResult> {
    begin(store, number);
    run();
    end(store, number);
    fetch(store, number)
}

fn list(store: &mut Kept) -> String {
    store.call("undo_list", json!({})).text
}

fn names(kept: &[FileBackup], project: &Path) -> Vec<String> {
    let name = |file: &FileBackup| {
        Path::new(&file.path).strip_prefix(project).unwrap().to_str().unwrap().to_owned()
    };
    kept.iter().map(name).collect()
}

/// Folders one in the other, deeper than a path is long, with rules in each of the upper ones.
fn deep(project: &Path) {
    use nix::fcntl::{OFlag, open, openat};
    use nix::sys::stat::{Mode, mkdirat};
    let place = OFlag::O_PATH | OFlag::O_DIRECTORY;
    let mut at = open(project, place, Mode::empty()).unwrap();
    for level in 0..15_000 {
        mkdirat(&at, "d", Mode::S_IRWXU).unwrap();
        at = openat(&at, "d", place, Mode::empty()).unwrap();
        if level < 2_000 {
            let new = OFlag::O_CREAT | OFlag::O_WRONLY;
            let rules = openat(&at, ".gitignore", new, Mode::S_IRWXU).unwrap();
            fs::File::from(rules).write_all(b"*.log\n!kept.log\n").unwrap();
        }
    }
}

/// Whoever removes the project's directory by recursion does not come so deep.
fn clear(tree: &Path) {
    assert!(process::Command::new("rm").arg("-rf").arg(tree).status().unwrap().success());
}

#[test]
fn a_tree_of_any_depth_keeps_no_command_and_nothing_beside_it_from_being_covered() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::write(project.join("beside"), "before").unwrap();
    deep(&project);
    let begin = Instant::now();
    let kept = undo(&mut store, 1, || {
        fs::write(project.join("beside"), "after").unwrap();
        fs::write(project.join("d/d/d/new"), "new").unwrap();
    });
    let took = begin.elapsed();
    clear(&project.join("d"));
    assert_eq!(names(&kept.unwrap(), &project), ["beside", "d/d/d/new"]);
    // Two looks have 0.7 s each; the rest is a hang guard.
    assert!(took < Duration::from_secs(30), "{took:?}");
    let said = list(&mut store);
    assert!(said.contains("1 directories that lie too deep"), "{said}");
}

#[test]
fn all_that_a_command_does_to_files_is_found() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    for name in ["changed", "deleted", "moved", "touched", "mode", "same"] {
        fs::write(project.join(name), name).unwrap();
    }
    fs::create_dir_all(project.join("old/sub")).unwrap();
    fs::write(project.join("old/sub/in"), "in").unwrap();
    symlink("changed", project.join("link")).unwrap();
    let kept = undo(&mut store, 1, || {
        fs::write(project.join("changed"), "CHANGED").unwrap();
        fs::remove_file(project.join("deleted")).unwrap();
        fs::rename(project.join("moved"), project.join("there")).unwrap();
        fs::write(project.join("touched"), "touched").unwrap();
        fs::set_permissions(project.join("mode"), PermissionsExt::from_mode(0o755)).unwrap();
        // The files in it are as old as they were.
        fs::rename(project.join("old"), project.join("new")).unwrap();
        fs::remove_file(project.join("link")).unwrap();
        symlink("mode", project.join("link")).unwrap();
    })
    .unwrap();
    let names = names(&kept, &project);
    let want = ["changed", "deleted", "link", "mode", "moved", "new/sub/in", "old/sub/in", "there"];
    assert_eq!(names, want);
    let before = |name: &str| &kept[want.iter().position(|it| *it == name).unwrap()];
    let bytes = |name: &str| match &before(name).before {
        PriorContent::File { bytes, .. } => String::from_utf8(bytes.clone()).unwrap(),
        other @ (PriorContent::Absent | PriorContent::Link(_) | PriorContent::NotKept(_)) => {
            panic!("{name}: {other:?}")
        }
    };
    for name in ["changed", "deleted", "mode", "moved"] {
        assert_eq!(bytes(name), name);
    }
    assert_eq!(before("there").before, PriorContent::Absent);
    assert_eq!(before("new/sub/in").before, PriorContent::Absent);
    assert_eq!(before("link").before, PriorContent::Link("changed".into()));
    assert!(before("deleted").after.is_none() && before("changed").after.is_some());
    let list = list(&mut store);
    assert!(list.contains("1 bash `do it`") && list.contains("8 files: "), "{list}");
    assert!(list.contains("mode (permissions changed)") && !list.contains("touched"), "{list}");
    // One that changed nothing is not there.
    let refused = undo(&mut store, 2, || {}).unwrap_err();
    assert_eq!(refused.code.as_deref(), Some("not_found"), "{refused:?}");
}

#[test]
fn a_change_of_the_same_size_within_a_step_of_the_clock_is_found() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    for number in 1..30 {
        let file = project.join("file");
        fs::write(&file, format!("{number:04}")).unwrap();
        let kept = undo(&mut store, number, || fs::write(&file, format!("x{number:03}")).unwrap());
        let kept = kept.unwrap();
        let was =
            PriorContent::File { bytes: format!("{number:04}").into_bytes(), mode: 0o100_644 };
        assert_eq!(kept[0].before, was, "{kept:?}");
    }
}

#[test]
fn what_is_not_covered_is_said_and_the_rest_comes_back() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::write(project.join(".gitignore"), "ignored\n").unwrap();
    for name in ["ignored", "plain", "later", "node_modules"] {
        fs::write(project.join(name), "before").unwrap();
    }
    fs::write(project.join("large"), vec![b'x'; (256 << 10) + 1]).unwrap();
    fs::write(project.join("exactly"), vec![b'x'; 256 << 10]).unwrap();
    fs::write(project.join(OsStr::from_bytes(b"odd\xff")), "before").unwrap();
    nix::unistd::mkfifo(&project.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let kept = undo(&mut store, 1, || {
        for name in ["ignored", "plain", "large", "exactly", "node_modules"] {
            fs::write(project.join(name), "after").unwrap();
        }
        fs::write(project.join(OsStr::from_bytes(b"odd\xff")), "after").unwrap();
        fs::remove_file(project.join("pipe")).unwrap();
    })
    .unwrap();
    let (not, covered): (Vec<_>, Vec<_>) =
        kept.into_iter().partition(|file| matches!(file.before, PriorContent::NotKept(_)));
    assert_eq!(names(&covered, &project), ["exactly", "plain"]);
    assert_eq!(not.len(), 3, "{not:?}");
    let shown = list(&mut store);
    for line in [
        "large (not covered: larger than 256 KiB)",
        "pipe (not covered: it was no file)",
        "not covered: its name is no UTF-8",
        "ignored files",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    // Nothing but what is not covered.
    let refused =
        undo(&mut store, 2, || fs::write(project.join("large"), vec![b'y'; 300 << 10]).unwrap());
    // It is small now, and a copy of it was made meanwhile.
    assert!(refused.is_ok(), "{refused:?}");
    let refused =
        undo(&mut store, 3, || fs::write(project.join("large"), vec![b'z'; 300 << 10]).unwrap());
    assert_eq!(refused.unwrap_err().code.as_deref(), Some("not_covered"));
}

#[test]
fn what_was_ignored_before_is_never_taken_for_new() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::write(project.join(".gitignore"), "secret\nbuilt/\n").unwrap();
    fs::write(project.join("secret"), "mine").unwrap();
    fs::create_dir(project.join("built")).unwrap();
    fs::write(project.join("built/x"), "mine").unwrap();
    let kept = undo(&mut store, 1, || {
        fs::write(project.join(".gitignore"), "other\n").unwrap();
        fs::write(project.join("secret"), "changed").unwrap();
    })
    .unwrap();
    assert_eq!(names(&kept, &project), [".gitignore", ""], "the rest is named, for a rewind");
    let PriorContent::NotKept(why) = &kept[1].before else { panic!("{kept:?}") };
    assert!(why.starts_with("2 new names that may have existed before"), "{why}");
    let shown = list(&mut store);
    assert!(shown.contains("2 new names that may have existed before"), "{shown}");
    // Where the rules stay as they are, a directory with rules of its own is new with all in it.
    let kept = undo(&mut store, 2, || {
        fs::create_dir(project.join("crate")).unwrap();
        fs::write(project.join("crate/.gitignore"), "target\n").unwrap();
        fs::write(project.join("crate/main"), "x").unwrap();
    })
    .unwrap();
    assert_eq!(names(&kept, &project), ["crate/.gitignore", "crate/main"]);
}

#[test]
fn what_somebody_changed_after_the_command_is_a_conflict() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::write(project.join("a"), "before").unwrap();
    begin(&mut store, 1);
    fs::write(project.join("a"), "the command's").unwrap();
    std::thread::sleep(Duration::from_millis(30));
    let ended = now();
    std::thread::sleep(Duration::from_millis(30));
    // The store was slow, and a person was not.
    fs::write(project.join("a"), "a person's").unwrap();
    store.say(ToStore::CommandEnded { command: command(1), ended, before: SnapshotBefore::Looked });
    let kept = fetch(&mut store, 1).unwrap();
    assert_eq!(kept[0].after.as_deref(), Some("changed since"), "no file has such a digest");
}

#[test]
fn a_store_that_died_meanwhile_finds_it_all_the_same() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::write(project.join("a"), "before").unwrap();
    begin(&mut store, 1);
    drop(store);
    fs::write(project.join("a"), "after").unwrap();
    let mut store = shelf.store("a", "s");
    assert_eq!(store.say(ToStore::RunningCommands(vec![1])), []);
    end(&mut store, 1);
    let kept = fetch(&mut store, 1).unwrap();
    assert_eq!(kept[0].before, PriorContent::File { bytes: b"before".to_vec(), mode: 0o100_644 });
    // One whose end nobody saw is shown, and never put back: a person may have changed it since.
    begin(&mut store, 2);
    fs::write(project.join("a"), "cut short").unwrap();
    drop(store);
    let mut store = shelf.store("a", "s");
    store.say(ToStore::RunningCommands(Vec::new()));
    let refused = fetch(&mut store, 2).unwrap_err();
    assert_eq!(refused.code.as_deref(), Some("not_covered"), "{refused:?}");
    let shown = list(&mut store);
    assert!(shown.contains("a (changed); not covered: agentd was killed"), "{shown}");
}

#[test]
fn one_that_could_not_be_followed_is_on_the_list_with_the_reason() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::write(project.join("a"), "before").unwrap();
    begin(&mut store, 1);
    store.say(ToStore::CommandEnded {
        command: command(1),
        ended: now(),
        before: SnapshotBefore::Late,
    });
    // Nobody looked before this one.
    end(&mut store, 2);
    let shown = list(&mut store);
    for (named, why) in [
        ("1 bash `do it`, ", " s ago: not covered: the look at the project took too long"),
        ("2 bash `do it`, ", " s ago: not covered: the state of the project"),
    ] {
        let row = shown.lines().find(|row| row.trim_start().starts_with(named));
        assert!(row.is_some_and(|row| row.contains(why)), "{named}: {shown}");
    }
    for number in [1, 2] {
        let refused = fetch(&mut store, number).unwrap_err();
        assert_eq!(refused.code.as_deref(), Some("not_covered"), "{refused:?}");
    }
}

#[test]
fn a_damaged_snapshot_is_set_aside_and_begun_anew() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::write(project.join("a"), "before").unwrap();
    begin(&mut store, 1);
    drop(store);
    let file = shelf.project_store("a").join("sessions/s/snapshot.db");
    fs::write(&file, "no database").unwrap();
    for ending in ["-wal", "-shm"] {
        let _ = fs::remove_file(
            shelf.project_store("a").join(format!("sessions/s/snapshot.db{ending}")),
        );
    }
    fs::write(project.join("a"), "after").unwrap();
    let mut store = shelf.store("a", "s");
    let said = store.say(ToStore::CommandEnded {
        command: command(1),
        ended: now(),
        before: SnapshotBefore::Looked,
    });
    assert!(format!("{said:?}").contains("was damaged"), "{said:?}");
    let shown = list(&mut store);
    assert!(shown.contains("1 bash") && shown.contains("no longer known"), "{shown}");
    let kept = undo(&mut store, 2, || fs::write(project.join("a"), "third").unwrap()).unwrap();
    assert_eq!(kept[0].before, PriorContent::File { bytes: b"after".to_vec(), mode: 0o100_644 });
}

#[test]
fn copies_are_bounded_and_what_finds_no_room_is_said() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    // All of the room but for a little.
    for number in 0..256 {
        fs::write(project.join(format!("f{number:03}")), vec![b'x'; 256 << 10]).unwrap();
    }
    fs::write(project.join("z"), "before").unwrap();
    // What was just written is read twice.
    std::thread::sleep(Duration::from_millis(50));
    store.say(ToStore::PrepareSnapshot);
    store.works();
    let kept = undo(&mut store, 1, || {
        fs::write(project.join("f000"), "after").unwrap();
        fs::write(project.join("z"), "after").unwrap();
    })
    .unwrap();
    assert_eq!(names(&kept, &project), ["f000", "z"]);
    assert!(matches!(&kept[1].before, PriorContent::NotKept(why) if why.contains("64 MiB")));
    // What made room made it for the next one.
    store.works();
    let kept = undo(&mut store, 2, || fs::write(project.join("z"), "third").unwrap()).unwrap();
    assert_eq!(kept[0].before, PriorContent::File { bytes: b"after".to_vec(), mode: 0o100_644 });
    // More than one call puts back.
    let refused = undo(&mut store, 3, || {
        for number in 1..60 {
            fs::remove_file(project.join(format!("f{number:03}"))).unwrap();
        }
    });
    let refused = refused.unwrap_err();
    assert!(refused.text.contains("59 files, more than one call can restore"), "{refused:?}");
}

fn asked_cover(store: &mut Kept, of: UndoScope) -> UndoCover {
    let call = command(9).call;
    let said = store.say(ToStore::AskUndo { call: call.clone(), of });
    match said.as_slice() {
        [FromStore::UndoCovers { call: same, cover }] if *same == call => cover.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_store_says_before_a_call_whether_undo_would_cover_it() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::create_dir(project.join("dir")).unwrap();
    fs::write(project.join("dir/small"), "x").unwrap();
    let path = |name: &str| UndoScope::Paths(vec![project.join(name).to_str().unwrap().to_owned()]);
    for of in [UndoScope::Project, path("dir/small"), path("dir"), path("new")] {
        assert_eq!(asked_cover(&mut store, of.clone()), UndoCover::Covers, "{of:?}");
    }
    fs::write(project.join("large"), vec![b'x'; 9 << 20]).unwrap();
    fs::create_dir(project.join("empty")).unwrap();
    for name in ["large", "empty"] {
        let cover = asked_cover(&mut store, path(name));
        assert!(matches!(&cover, UndoCover::Leaves(why) if why.contains(name)), "{cover:?}");
    }
    // A file that is too large is a limit of every project; copies that find no room are one of this.
    assert_eq!(asked_cover(&mut store, UndoScope::Project), UndoCover::Covers);
    for number in 0..300 {
        fs::write(project.join(format!("f{number:03}")), vec![b'x'; 256 << 10]).unwrap();
    }
    store.say(ToStore::PrepareSnapshot);
    begin(&mut store, 1);
    end(&mut store, 1);
    store.works();
    let cover = asked_cover(&mut store, UndoScope::Project);
    assert!(matches!(&cover, UndoCover::Leaves(why) if why.contains("64 MiB")), "{cover:?}");
}

#[test]
fn the_project_is_looked_at_anew_for_each_question_and_each_command() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::write(project.join("small"), "x").unwrap();
    assert_eq!(asked_cover(&mut store, UndoScope::Project), UndoCover::Covers);
    let too_many = || {
        for number in 0..300 {
            fs::write(project.join(format!("f{number:03}")), vec![b'x'; 256 << 10]).unwrap();
        }
    };
    too_many();
    let cover = asked_cover(&mut store, UndoScope::Project);
    assert!(matches!(&cover, UndoCover::Leaves(_)), "{cover:?}");
    for number in 0..300 {
        fs::remove_file(project.join(format!("f{number:03}"))).unwrap();
    }
    assert_eq!(asked_cover(&mut store, UndoScope::Project), UndoCover::Covers);
    // What changed since the question shows before the command.
    assert_eq!(cover_before(&mut store, 1), UndoCover::Covers);
    end(&mut store, 1);
    too_many();
    let cover = cover_before(&mut store, 2);
    assert!(matches!(&cover, UndoCover::Leaves(_)), "{cover:?}");
    end(&mut store, 2);
}

/// What undo covers, as the store says once it has taken the snapshot.
fn cover_before(store: &mut Kept, number: u32) -> UndoCover {
    match store.say(ToStore::TakeSnapshot(command(number))).as_slice() {
        [FromStore::BackedUp { cover, .. }] => cover.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn copies_that_could_not_be_made_cover_nothing() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::write(project.join("file"), "x").unwrap();
    assert_eq!(asked_cover(&mut store, UndoScope::Project), UndoCover::Covers);
    drop(store);
    let session = shelf.project_store("a").join("sessions/s");
    fs::remove_dir_all(&session).unwrap();
    fs::write(&session, "no directory").unwrap();
    let mut store = shelf.store("a", "s");
    let path = project.join("file").to_str().unwrap().to_owned();
    let call = command(1).call;
    let keep = ToStore::BackUp { call, tool: "write".to_owned(), paths: vec![path] };
    for asked in [ToStore::TakeSnapshot(command(2)), keep] {
        let said = store.say(asked);
        let last = said.last();
        let left = matches!(last, Some(FromStore::BackedUp { cover: UndoCover::Leaves(_), .. }));
        assert!(left, "{said:?}");
    }
}

#[test]
fn a_command_that_ends_during_a_later_one_leaves_that_one_covered() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::write(project.join("file"), "before").unwrap();
    begin(&mut store, 1);
    begin(&mut store, 2);
    assert_eq!(asked_cover(&mut store, UndoScope::Project), UndoCover::Covers);
    fs::write(project.join("file"), "after").unwrap();
    end(&mut store, 1);
    end(&mut store, 2);
    let kept = fetch(&mut store, 2).unwrap();
    assert_eq!(names(&kept, &project), ["file"]);
    assert!(matches!(&kept[0].before, PriorContent::File { bytes, .. } if bytes == b"before"));
    assert!(list(&mut store).contains("no longer known"), "{}", list(&mut store));
}

#[test]
fn a_session_that_ends_leaves_no_snapshot_but_for_a_command_that_runs() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    let file = shelf.project_store("a").join("sessions/s/snapshot.db");
    fs::write(project.join("a"), "before").unwrap();
    begin(&mut store, 1);
    store.ends();
    assert!(file.exists());
    let mut store = shelf.store("a", "s");
    store.say(ToStore::RunningCommands(vec![1]));
    end(&mut store, 1);
    store.ends();
    assert!(!file.exists());
}

#[test]
fn what_a_link_leads_to_is_not_what_was_in_the_directory_before() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::create_dir(project.join("d")).unwrap();
    fs::write(project.join("d/x"), "precious").unwrap();
    let kept = undo(&mut store, 1, || {
        fs::rename(project.join("d"), project.join("e")).unwrap();
        symlink("e", project.join("d")).unwrap();
    })
    .unwrap();
    assert_eq!(names(&kept, &project), ["d", "d/x", "e/x"]);
    assert_eq!(kept[1].before, PriorContent::File { bytes: b"precious".to_vec(), mode: 0o100_644 });
    assert_eq!(kept[1].after, None, "it is gone: what the link shows is e/x");
}

#[test]
fn nothing_is_copied_while_a_command_runs() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    // More than there is time for.
    for number in 0..12_000 {
        fs::write(project.join(format!("f{number:05}")), "x").unwrap();
    }
    fs::write(project.join("z"), "before").unwrap();
    begin(&mut store, 1);
    fs::write(project.join("z"), "after").unwrap();
    store.works();
    end(&mut store, 1);
    if let Ok(kept) = fetch(&mut store, 1) {
        let before = PriorContent::File { bytes: b"before".to_vec(), mode: 0o100_644 };
        assert_eq!(kept[0].before, before, "what the command wrote was not there before");
    }
    assert!(list(&mut store).contains("z ("));
}

/// A project of so many files is watched instead of being scanned for each command.
#[test]
fn a_large_project_is_followed_as_a_small_one_is() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    for number in 0..2_500 {
        let dir = project.join(format!("d{}", number % 50));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(format!("f{number}")), "before").unwrap();
    }
    let at = |name: &str| project.join(name);
    let before = PriorContent::File { bytes: b"before".to_vec(), mode: 0o100_644 };
    for number in 1..4 {
        begin(&mut store, number);
        store.works();
        end(&mut store, number);
    }
    // Nothing was changed since the last look.
    let kept = undo(&mut store, 4, || fs::write(at("d7/f7"), "after").unwrap()).unwrap();
    assert_eq!(names(&kept, &project), ["d7/f7"]);
    assert_eq!(kept[0].before, before);
    // A person's change between two commands is no command's, and is the state before the next one.
    fs::write(at("d8/f8"), "of a person").unwrap();
    let kept = undo(&mut store, 5, || fs::create_dir(at("new")).unwrap());
    assert!(kept.is_err(), "directories alone are nothing to restore: {kept:?}");
    fs::write(at("new/inner"), "of a person").unwrap();
    let kept = undo(&mut store, 6, || {
        fs::write(at("d8/f8"), "after").unwrap();
        fs::write(at("new/inner"), "after").unwrap();
        fs::write(at("new/other"), "after").unwrap();
    })
    .unwrap();
    assert_eq!(names(&kept, &project), ["d8/f8", "new/inner", "new/other"]);
    for changed in &kept[..2] {
        let PriorContent::File { bytes, .. } = &changed.before else { panic!("{changed:?}") };
        assert_eq!(bytes, b"of a person", "{}", changed.path);
    }
    // A directory that was moved is watched where it is now.
    undo(&mut store, 7, || fs::rename(at("d9"), at("moved")).unwrap()).unwrap();
    let kept = undo(&mut store, 8, || fs::write(at("moved/f9"), "after").unwrap()).unwrap();
    assert_eq!(names(&kept, &project), ["moved/f9"]);
    assert_eq!(kept[0].before, before);
}

#[test]
fn a_store_that_comes_back_while_a_command_runs_does_not_look_anew() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::write(project.join("a"), "before").unwrap();
    begin(&mut store, 1);
    drop(store);
    fs::write(project.join("a"), "after").unwrap();
    let mut store = shelf.store("a", "s");
    store.say(ToStore::RunningCommands(vec![1]));
    store.say(ToStore::PrepareSnapshot);
    store.works();
    end(&mut store, 1);
    let kept = fetch(&mut store, 1).unwrap();
    assert_eq!(kept[0].before, PriorContent::File { bytes: b"before".to_vec(), mode: 0o100_644 });
}

#[test]
fn a_directory_without_passage_hides_what_is_in_it_and_proves_nothing() {
    // Root passes everywhere: this thread is nobody, and all it makes is theirs.
    nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65_534));
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    let passage = |mode| {
        fs::set_permissions(project.join("d"), PermissionsExt::from_mode(mode)).unwrap();
    };
    fs::create_dir(project.join("d")).unwrap();
    fs::write(project.join("d/x"), "a person's").unwrap();
    passage(0o600);
    // It was there before, though nobody could see that.
    begin(&mut store, 1);
    passage(0o700);
    fs::write(project.join("d/x"), "changed").unwrap();
    end(&mut store, 1);
    assert_eq!(fetch(&mut store, 1).unwrap_err().code.as_deref(), Some("not_covered"));
    assert!(!list(&mut store).contains("d/x (made)"), "{}", list(&mut store));
    // And it is not gone because nobody can see it.
    begin(&mut store, 2);
    passage(0o600);
    end(&mut store, 2);
    assert_eq!(fetch(&mut store, 2).unwrap_err().code.as_deref(), Some("not_covered"));
    let shown = list(&mut store);
    assert!(shown.contains("d/x (not covered: the current content could not be read"), "{shown}");
    // The control: what can be seen is taken back.
    passage(0o700);
    let kept = undo(&mut store, 3, || fs::remove_file(project.join("d/x")).unwrap()).unwrap();
    assert_eq!(names(&kept, &project), ["d/x"]);
}

#[test]
fn what_could_not_be_read_once_is_read_before_the_next_command() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::create_dir(project.join("d")).unwrap();
    fs::write(project.join("d/x"), "before").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    store.say(ToStore::PrepareSnapshot);
    fs::rename(project.join("d"), project.join("away")).unwrap();
    store.works();
    fs::rename(project.join("away"), project.join("d")).unwrap();
    let kept = undo(&mut store, 1, || fs::write(project.join("d/x"), "after").unwrap()).unwrap();
    assert_eq!(kept[0].before, PriorContent::File { bytes: b"before".to_vec(), mode: 0o100_644 });
}

#[test]
fn a_list_that_takes_no_rows_shows_a_command_all_the_same_whenever_that_is_found() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    fs::write(project.join("a"), "before").unwrap();
    undo(&mut store, 1, || fs::write(project.join("a"), "first").unwrap()).unwrap();
    begin(&mut store, 2);
    drop(store);
    fs::write(project.join("a"), "second").unwrap();
    // Somebody holds the list's file.
    let file = shelf.project_store("a").join("sessions/s/undo.db");
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut store = shelf.store("a", "s");
    store.say(ToStore::RunningCommands(Vec::new()));
    let shown = list(&mut store);
    assert!(shown.contains("2 bash `do it`: not covered"), "{shown}");
    // Once it takes rows again, what was before is still known.
    other.execute_batch("ROLLBACK").unwrap();
    store.say(ToStore::RunningCommands(Vec::new()));
    let shown = list(&mut store);
    assert!(shown.contains("2 bash `do it`, ") && shown.contains("a ("), "{shown}");
}

fn changes(store: &mut Kept, since: u32) -> ChangeSet {
    match store.say(ToStore::FetchChanges { since }).as_slice() {
        [FromStore::ChangesFetched { since: of, changes: Ok(changes) }] if *of == since => {
            changes.clone()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_changes_since_a_call_are_diffs_against_what_was_before_it() {
    let shelf = Shelf::new();
    let (project, mut store) = (shelf.project("a"), shelf.store("a", "s"));
    let path = |name: &str| project.join(name);
    for (name, text) in [("a", "one\ntwo\n"), ("gone", "g\n"), ("back", "b\n"), ("mine", "m\n")] {
        fs::write(path(name), text).unwrap();
    }
    undo(&mut store, 1, || fs::write(path("a"), "one\n2\n").unwrap()).unwrap();
    // Between two calls a person changes a file that no call has changed.
    fs::write(path("mine"), "changed by a person\n").unwrap();
    undo(&mut store, 2, || {
        fs::write(path("a"), "one\n2\nthree\n").unwrap();
        fs::write(path("back"), "other\n").unwrap();
        fs::write(path("binary"), b"\0\xff").unwrap();
        fs::remove_file(path("gone")).unwrap();
        symlink("a", path("link")).unwrap();
    })
    .unwrap();
    undo(&mut store, 3, || fs::write(path("back"), "b\n").unwrap()).unwrap();
    let all = changes(&mut store, 0);
    let of = |set: &ChangeSet, name: &str| set.files.iter().find(|it| it.path == name).cloned();
    let names: Vec<_> = all.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(names, ["a", "binary", "gone", "link"], "{all:?}");
    let a = of(&all, "a").unwrap();
    assert_eq!(a.calls, [1, 2]);
    assert!(a.diff.starts_with("--- a/a\n+++ b/a\n@@ "), "{}", a.diff);
    assert!(a.diff.contains("\n-two\n+2\n+three\n"), "{}", a.diff);
    let later = of(&changes(&mut store, 2), "a").unwrap();
    assert!(later.calls == [2] && later.diff.contains("\n 2\n+three\n"), "{later:?}");
    assert!(of(&all, "gone").unwrap().diff.contains("+++ /dev/null\n@@ -1 +0,0 @@\n-g\n"));
    assert_eq!(of(&all, "binary").unwrap().diff, "no text: it had 0 bytes and has 2\n");
    assert_eq!(of(&all, "link").unwrap().diff, "it was no link and is a link to a\n");
    assert_eq!(changes(&mut store, 4).files, []);
    // A file of many short lines, and a directory in the place of a file.
    undo(&mut store, 4, || {
        fs::write(path("lines"), "\n".repeat(200 << 10)).unwrap();
        fs::remove_file(path("mine")).unwrap();
    })
    .unwrap();
    fs::create_dir(path("mine")).unwrap();
    fs::write(path("lines"), "\n".repeat(2 << 20)).unwrap();
    let odd = changes(&mut store, 4);
    assert_eq!(of(&odd, "mine").unwrap().diff, "it is too large now, or no file\n");
    let large = of(&odd, "lines").unwrap().diff;
    assert_eq!(large, "too large for a diff: it had 0 bytes and has 2097152\n");
    // What was not followed is named.
    fs::write(path("large"), vec![b'x'; 300 << 10]).unwrap();
    undo(&mut store, 5, || fs::write(path("large"), "small").unwrap()).unwrap_err();
    let notes = changes(&mut store, 5).notes.join("\n");
    assert!(notes.contains("large"), "{notes}");
}
