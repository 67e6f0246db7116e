//! Answers that were given before: real files, which are changed in all the ways that people and
//! programs change them.

use super::shelf::{Kept, Shelf};
use protocol::call::{
    Call, CallOrigin, Outcome, ProcessUsage, ReadEvidence, ReadPart, ReadStamp, RunReport,
    ToolResult,
};
use protocol::ids::{CallId, SessionId};
use protocol::store::{CacheKey, CachedResult, FromStore, MayHaveChanged, ToStore};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longer than a step of the kernel's clock for files.
fn settle() {
    std::thread::sleep(Duration::from_millis(30));
}

fn asked(number: u32, tool: &str, input: &str) -> CacheKey {
    let id = CallId { session: SessionId("s".into()), number };
    let call =
        Call { id, origin: CallOrigin::model("toolu"), tool: tool.into(), input: input.into() };
    CacheKey { call, max_result_chars: 30_000 }
}

/// The answer of a tool that looked at these, now.
fn answer(text: &str, looked_at: &[&Path]) -> RunReport {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let parts = looked_at.iter().map(|path| {
        let was = path.symlink_metadata().ok().map(|meta| ReadStamp {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: meta.mtime() * 1_000_000_000 + meta.mtime_nsec(),
            changed: meta.ctime() * 1_000_000_000 + meta.ctime_nsec(),
        });
        ReadPart { path: path.to_str().unwrap().to_owned(), was }
    });
    RunReport {
        result: ToolResult {
            outcome: Outcome::Done,
            text: text.into(),
            summary: "done".into(),
            is_error: false,
            code: None,
            images: Vec::new(),
        },
        images: Vec::new(),
        full: None,
        effects: Vec::new(),
        seen: Vec::new(),
        instructions: Vec::new(),
        evidence: Some(ReadEvidence {
            began: since.as_nanos().try_into().unwrap(),
            parts: parts.collect(),
        }),
        refusals: Vec::new(),
        refusals_uncounted: 0,
        tampered: Vec::new(),
        usage: ProcessUsage::default(),
        command_pid: None,
    }
}

fn remember(store: &mut Kept, asked: CacheKey, report: RunReport) {
    assert_eq!(store.say(ToStore::CachePut { asked, report }), [], "nobody waits for it");
}

fn recall(store: &mut Kept, asked: CacheKey) -> Option<CachedResult> {
    match store.say(ToStore::CacheGet(asked)).pop() {
        Some(FromStore::CacheAnswer { found, .. }) => found.map(|found| *found),
        other => panic!("no answer: {other:?}"),
    }
}

/// Whether a read of this file is known, under whatever name.
fn knows(store: &mut Kept, named: &str) -> bool {
    let input = serde_json::json!({ "path": named }).to_string();
    recall(store, asked(9, "read", &input)).is_some()
}

/// A store that knows what is in `a`, of the project `p`.
fn with_a(shelf: &Shelf) -> Kept {
    let a = shelf.project("p").join("a");
    fs::write(&a, "one").unwrap();
    settle();
    let mut store = shelf.store("p", "s");
    remember(&mut store, asked(1, "read", r#"{"path":"a"}"#), answer("one", &[&a]));
    assert!(knows(&mut store, "a"));
    store
}

#[test]
fn the_same_question_in_other_words_is_the_same_question() {
    let shelf = Shelf::new();
    let mut store = with_a(&shelf);
    let a = shelf.project("p").join("a");
    symlink("a", a.with_file_name("link")).unwrap();
    fs::create_dir(a.with_file_name("sub")).unwrap();
    for named in ["a", "./a", "sub/../a", "link", a.to_str().unwrap()] {
        assert!(knows(&mut store, named), "{named}");
    }
    // The order of keys is none of the question; that of a list is.
    let patterns = r#"{"patterns":["x","y"],"path":"."}"#;
    settle();
    let project = shelf.project("p");
    remember(&mut store, asked(2, "scan", patterns), answer("found", &[&project, &a]));
    let known = |store: &mut Kept, input: &str| recall(store, asked(3, "scan", input));
    let found = known(&mut store, r#"{"path":"./","patterns":["x","y"]}"#).unwrap();
    assert_eq!((found.by, found.report.result.text.as_str()), (2, "found"));
    assert_eq!(found.probe.paths[0].named, "./");
    assert!(known(&mut store, r#"{"patterns":["x","y"]}"#).is_some(), "the project is meant");
    assert!(known(&mut store, r#"{"path":".","patterns":["y","x"]}"#).is_none());
    assert!(known(&mut store, r#"{"path":"sub","patterns":["x","y"]}"#).is_none());
    let shorter = CacheKey { max_result_chars: 10, ..asked(3, "scan", patterns) };
    assert!(recall(&mut store, shorter).is_none(), "it would be cut elsewhere");
    assert!(recall(&mut store, asked(3, "grep", patterns)).is_none(), "another tool");
}

#[test]
fn what_a_tool_would_refuse_is_not_answered() {
    let shelf = Shelf::new();
    let mut store = with_a(&shelf);
    let project = shelf.project("p");
    remember(&mut store, asked(2, "ls", r#"{"path":"."}"#), answer("a", &[&project]));
    assert!(recall(&mut store, asked(3, "ls", "{}")).is_some(), "the control");
    assert!(recall(&mut store, asked(3, "ls", r#"{"path":""}"#)).is_none());
    assert!(!knows(&mut store, "a/"));
    assert!(!knows(&mut store, "a/."));
    assert!(!knows(&mut store, "a\0"));
    // Outside the project nothing is kept, whatever the name it has inside.
    let outside = shelf.project("p-evil").join("b");
    fs::write(&outside, "two").unwrap();
    symlink(&outside, project.join("b")).unwrap();
    settle();
    for named in ["b", "../p-evil/b", outside.to_str().unwrap()] {
        let input = serde_json::json!({ "path": named }).to_string();
        remember(&mut store, asked(2, "read", &input), answer("two", &[&outside]));
        assert!(!knows(&mut store, named), "{named}");
    }
    // A link that leads elsewhere now is another file.
    fs::remove_file(project.join("b")).unwrap();
    symlink("a", project.join("b")).unwrap();
    assert!(knows(&mut store, "b"));
}

#[test]
fn every_change_is_seen() {
    let shelf = Shelf::new();
    let a = shelf.project("p").join("a");
    type Change = fn(&Path);
    let changes: [(&str, Change); 7] = [
        ("the same size, in the same second", |a| fs::write(a, "two").unwrap()),
        ("the same size and time of content", |a| {
            let modified = a.metadata().unwrap().modified().unwrap();
            fs::write(a, "two").unwrap();
            fs::File::options().write(true).open(a).unwrap().set_modified(modified).unwrap();
        }),
        ("another file in its place", |a| {
            fs::write(a.with_extension("new"), "two").unwrap();
            fs::rename(a.with_extension("new"), a).unwrap();
        }),
        ("the rights", |a| {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(a, fs::Permissions::from_mode(0o600)).unwrap();
        }),
        ("gone", |a| fs::remove_file(a).unwrap()),
        ("gone and back", |a| {
            fs::remove_file(a).unwrap();
            fs::write(a, "one").unwrap();
        }),
        ("a link in its place", |a| {
            fs::rename(a, a.with_extension("real")).unwrap();
            symlink("a.real", a).unwrap();
        }),
    ];
    for (what, change) in changes {
        let _ = fs::remove_file(&a);
        let mut store = with_a(&shelf);
        change(&a);
        assert!(!knows(&mut store, "a"), "{what}");
        // Nor does another life of the store, from its file.
        drop(store);
        assert!(!knows(&mut shelf.store("p", "s"), "a"), "{what}, from the file");
    }
}

#[test]
fn what_was_changed_a_moment_before_it_was_read_is_not_kept() {
    let shelf = Shelf::new();
    let mut store = with_a(&shelf);
    let a = shelf.project("p").join("a");
    // Within one step of the clock it could be changed once more, and look the same.
    fs::write(&a, "two").unwrap();
    remember(&mut store, asked(2, "read", r#"{"path":"a"}"#), answer("two", &[&a]));
    assert!(!knows(&mut store, "a"));
    settle();
    let report = answer("two", &[&a]);
    fs::write(&a, "tri").unwrap();
    settle();
    remember(&mut store, asked(2, "read", r#"{"path":"a"}"#), report);
    assert!(!knows(&mut store, "a"), "it was changed while it was read");
}

#[test]
fn a_file_that_was_not_there_counts_as_much() {
    let shelf = Shelf::new();
    let mut store = with_a(&shelf);
    let project = shelf.project("p");
    let (a, rules) = (project.join("a"), project.join(".gitignore"));
    let question = || asked(2, "grep", r#"{"pattern":"x"}"#);
    remember(&mut store, question(), answer("a:1:x", &[&project, &a, &rules]));
    assert!(recall(&mut store, question()).is_some());
    fs::write(&rules, "a\n").unwrap();
    assert!(recall(&mut store, question()).is_none());
}

#[test]
fn of_257_answers_the_one_goes_that_was_not_asked_for_the_longest() {
    let shelf = Shelf::new();
    let mut store = with_a(&shelf);
    let project = shelf.project("p");
    let a = project.join("a");
    // Of a tool whose answers are in memory only; the one of `with_a` is one of the 256.
    let question = |number: u32| {
        asked(number, "grep", &serde_json::json!({ "pattern": number.to_string() }).to_string())
    };
    for number in 1..=255 {
        remember(&mut store, question(number), answer("x", &[&project, &a]));
    }
    assert!(recall(&mut store, question(1)).is_some(), "all have room; it is the newest now");
    assert!(knows(&mut store, "a"));
    remember(&mut store, question(256), answer("x", &[&project, &a]));
    assert!(recall(&mut store, question(2)).is_none(), "the 257th took its place");
    for number in [1, 3, 255, 256] {
        assert!(recall(&mut store, question(number)).is_some(), "{number}");
    }
}

/// Between the look and the keeping a link on the way may come to lead elsewhere.
#[test]
fn an_answer_is_kept_for_what_it_was_made_from_and_for_nothing_else() {
    let shelf = Shelf::new();
    let mut store = with_a(&shelf);
    let (a, b) = (shelf.project("p").join("a"), shelf.project("p").join("b"));
    fs::write(&b, "other").unwrap();
    symlink("b", a.with_file_name("link")).unwrap();
    settle();
    remember(&mut store, asked(2, "read", r#"{"path":"link"}"#), answer("one", &[&a]));
    assert!(!knows(&mut store, "b"), "it is what stands in a");
    remember(&mut store, asked(3, "read", r#"{"path":"link"}"#), answer("other", &[&b]));
    assert!(knows(&mut store, "b"));
}

#[test]
fn who_changes_something_outdates_what_it_is_in_and_what_is_in_it() {
    let shelf = Shelf::new();
    let project = shelf.project("p");
    fs::create_dir_all(project.join("src/deep")).unwrap();
    fs::create_dir_all(project.join("src-other")).unwrap();
    for file in ["src/deep/x", "src/y", "src-other/z"] {
        fs::write(project.join(file), "x").unwrap();
    }
    settle();
    let all = ["src/deep/x", "src/deep", "src/y", "src", "src-other/z", "src-other", "."];
    let question =
        |named: &str| asked(1, "read", &serde_json::json!({ "path": named }).to_string());
    let left = |changed: MayHaveChanged| {
        let mut store = shelf.store("p", "s");
        for named in all {
            let real = project.join(named).canonicalize().unwrap();
            remember(&mut store, question(named), answer("x", &[&real]));
        }
        assert_eq!(store.say(ToStore::Invalidate(changed)), []);
        // The files are as they were: only what was said makes a difference.
        let in_memory: Vec<&str> =
            all.into_iter().filter(|named| knows(&mut store, named)).collect();
        drop(store);
        let mut store = shelf.store("p", "s");
        let in_file: Vec<&str> = all.into_iter().filter(|named| knows(&mut store, named)).collect();
        assert_eq!(in_memory, in_file);
        in_memory
    };
    let at = |named: &str| project.join(named).to_str().unwrap().to_owned();
    assert_eq!(left(MayHaveChanged::Paths(vec![])), all);
    assert_eq!(
        left(MayHaveChanged::Paths(vec![at("src/deep/x")])),
        ["src/y", "src-other/z", "src-other"]
    );
    assert_eq!(left(MayHaveChanged::Paths(vec![at("src")])), ["src-other/z", "src-other"]);
    assert_eq!(left(MayHaveChanged::Paths(vec![at("new")])), all[..6]);
    assert_eq!(left(MayHaveChanged::Paths(vec![at("src/.gitignore")])), [""; 0], "a walk's rules");
    assert_eq!(left(MayHaveChanged::Anything), [""; 0]);
}

#[test]
fn reads_outlive_the_store_and_belong_to_their_session_and_project() {
    let shelf = Shelf::new();
    drop(with_a(&shelf));
    let found = recall(&mut shelf.store("p", "s"), asked(7, "read", r#"{"path":"a"}"#)).unwrap();
    assert_eq!((found.by, found.report.result.text.as_str()), (1, "one"));
    assert!(!knows(&mut shelf.store("p", "another"), "a"));
    // The same name, the same text, another project.
    fs::write(shelf.project("q").join("a"), "one").unwrap();
    assert!(!knows(&mut shelf.store("q", "s"), "a"));
    let outside = shelf.project("p").join("a");
    assert!(!knows(&mut shelf.store("q", "s"), outside.to_str().unwrap()));
}

#[test]
fn a_damaged_file_of_answers_is_begun_anew() {
    let shelf = Shelf::new();
    drop(with_a(&shelf));
    let file = shelf.project_store("p").join("sessions/s/cache.db");
    fs::write(&file, "no database, but long enough to look like one to a careless reader").unwrap();
    let mut store = shelf.store("p", "s");
    let said = store.say(ToStore::CacheGet(asked(2, "read", r#"{"path":"a"}"#)));
    assert!(
        matches!(&said[0], FromStore::Log(line) if line.text.contains("was damaged")),
        "{said:?}"
    );
    assert!(matches!(said[1], FromStore::CacheAnswer { found: None, .. }), "{said:?}");
    let a = shelf.project("p").join("a");
    remember(&mut store, asked(3, "read", r#"{"path":"a"}"#), answer("one", &[&a]));
    drop(store);
    assert!(knows(&mut shelf.store("p", "s"), "a"));
}
