//! `delete`.

use crate::project::{Project, fifo, is_root};
use protocol::call::FileEffect;
use protocol::tool::JudgedPath;
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};

fn of(paths: &[&str]) -> Value {
    json!({ "paths": paths })
}

fn all_of(path: &str) -> Value {
    json!({"paths": [path], "recursive": true})
}

#[test]
fn files_go_and_their_text_is_kept() {
    let project = Project::with(&[("a", "one\ntwo\n"), ("dir/b", "b"), ("c", "")]);
    let report = project.run("delete", of(&["a", "dir/b", "c"]));
    assert_eq!(
        report.result.text,
        concat!(
            "deleted a, dir/b, c\n",
            "--- a/a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n",
            "--- a/dir/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n\\ No newline at end of file\n",
            "[c: an empty file]\n",
        )
    );
    let deleted = |name: &str| FileEffect::Deleted(project.path(name).to_str().unwrap().to_owned());
    assert_eq!(report.effects, ["a", "dir/b", "c"].map(deleted));
    assert_eq!(project.names("."), ["dir"]);
    assert!(project.names("dir").is_empty());
}

#[test]
fn a_long_text_is_kept_whole_in_its_diff() {
    let mut project = Project::new();
    let long: String = (0..1000).map(|i| format!("{i}\n")).collect();
    project.put("long", long.as_bytes());
    project.max_result_chars = 1_000_000;
    let text = project.ok("delete", of(&["long"]));
    assert!(text.ends_with("-998\n-999\n"), "no line is cut: {}", &text[text.len() - 80..]);
}

#[test]
fn what_is_no_text_is_named_with_its_size() {
    let project = Project::new();
    project.put("latin1", b"caf\xe9");
    project.put("big", &vec![b'x'; 9 << 20]);
    let text = project.ok("delete", of(&["latin1", "big"]));
    assert!(text.contains("[latin1: 4 bytes, not text, content not kept]"), "{text}");
    assert!(text.contains("[big: 9437184 bytes, too large, content not kept]"), "{text}");
    assert!(project.names(".").is_empty());
}

#[test]
fn what_is_kept_of_all_of_them_has_a_bound_and_the_rest_is_counted() {
    let mut project = Project::new();
    project.max_result_chars = 100 << 20;
    project.put("first", &[b'x'; 3 << 20]);
    project.put("second", &[b'x'; 2 << 20]);
    project.put("third", b"small\n");
    let text = project.ok("delete", of(&["first", "second", "third"]));
    assert!(
        text.contains("[second: 2097152 bytes, too large, content not kept]"),
        "of all of them"
    );
    assert!(text.ends_with("-small\n"), "what has room still is kept");
    assert!(project.names(".").is_empty());
    // Exactly at the limit; in a diff each line is longer by one.
    let line = [&[b'x'; 2047][..], b"\n"].concat();
    project.put("lines", &line.repeat(2047));
    for name in ["a", "b", "c"] {
        project.put(&format!("dir/{name}"), b"text\n");
    }
    let input = json!({"paths": ["lines", "dir"], "recursive": true});
    let text = project.ok("delete", input);
    let end = &text[text.len() - 60..];
    assert!(end.ends_with("x\n[… and 4 more entries …]\n"), "{end:?}");
    assert!(project.names(".").is_empty());
}

#[test]
fn of_a_link_only_the_link_goes() {
    let project = Project::with(&[("real", "x"), ("dir/y", "y")]);
    symlink("real", project.path("link")).unwrap();
    symlink("dir", project.path("dir-link")).unwrap();
    let text = project.ok("delete", of(&["link", "dir-link"]));
    assert!(text.contains("[the symbolic link link is removed; its target stays]"), "{text}");
    assert_eq!(project.names("."), ["dir", "real"]);
    assert_eq!(project.names("dir"), ["y"]);
}

#[test]
fn a_directory_goes_only_where_that_is_said() {
    let project = Project::with(&[("dir/a", "a\n"), ("dir/sub/b", "b\n"), ("kept", "")]);
    fifo(&project.path("dir/fifo"));
    symlink("../kept", project.path("dir/link")).unwrap();
    let text = project.fails("delete", of(&["dir"]), "is_directory");
    assert!(text.contains("recursive"), "{text}");
    assert_eq!(project.names("dir"), ["a", "fifo", "link", "sub"]);
    let text = project.ok("delete", all_of("dir"));
    for kept in [
        "[the directory dir with all its content:]",
        "-a\n",
        "--- a/dir/sub/b",
        "[dir/fifo: a FIFO]",
        "[dir/link: a link]",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert_eq!(project.names("."), ["kept"]);
}

#[test]
fn all_or_none() {
    let project = Project::with(&[("a", "a"), ("b", "b"), ("dir/x", "x")]);
    for (paths, code) in [
        (&["a", "not-there"][..], "not_found"),
        (&["a", "dir"], "is_directory"),
        (&["a", "b", "a"], "invalid_arguments"),
        (&["a", "./b/../b", "b"], "not_a_directory"),
        (&["a", "../secret"], "access_denied"),
        (&["a", ".envrc"], "protected"),
        (&["a", ""], "invalid_arguments"),
        (&[], "invalid_arguments"),
    ] {
        project.fails("delete", of(paths), code);
        assert_eq!(project.names("."), ["a", "b", "dir"], "{paths:?}");
    }
    let nested = json!({"paths": ["dir", "dir/x"], "recursive": true});
    let text = project.fails("delete", nested, "invalid_arguments");
    assert!(text.contains("contains the other"), "{text}");
    let many: Vec<String> = (0..101).map(|i| format!("f{i}")).collect();
    project.fails("delete", json!({ "paths": many }), "invalid_arguments");
    assert_eq!(project.names("."), ["a", "b", "dir"]);
    assert_eq!(project.names("dir"), ["x"]);
}

#[test]
fn what_holds_something_protected_stays() {
    let project = Project::with(&[
        ("repo/.git/config", "[core]"),
        ("repo/src/x", "x"),
        ("tools/.agentd/config.toml", ""),
        ("state/token", "t"),
        ("nested/state", "a file"),
    ]);
    for path in ["repo", "repo/.git", "tools", "tools/.agentd", "repo/.git/config"] {
        project.fails("delete", all_of(path), "protected");
    }
    let root = project.place.project.to_str().unwrap().to_owned();
    let added = project.base().join("added").to_str().unwrap().to_owned();
    for path in [root.as_str(), added.as_str()] {
        project.fails("delete", all_of(path), "protected");
    }
    for path in [".", "repo/..", "..", "/"] {
        let report = project.run("delete", all_of(path)).result;
        assert!(report.is_error, "{path}: {}", report.text);
    }
    assert_eq!(project.names("."), ["nested", "repo", "state", "tools"]);
    assert_eq!(project.names("repo"), [".git", "src"]);
    project.ok("delete", all_of("repo/src"));
}

#[test]
fn too_many_entries_are_refused_before_anything_goes() {
    let project = Project::new();
    std::fs::create_dir(project.path("many")).unwrap();
    for i in 0..10_001 {
        std::fs::File::create(project.path(&format!("many/{i}"))).unwrap();
    }
    let text = project.fails("delete", all_of("many"), "too_large");
    assert!(text.contains("more than 10000"), "{text}");
    assert_eq!(project.names("many").len(), 10_001);
}

/// A call may be killed at any time, and then no process would move back a file that is aside.
#[test]
fn one_file_has_no_other_name_on_its_way() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let (alone, over) = (Project::new(), AtomicBool::new(false));
    // True if an unknown name appeared during the deletion.
    let root = alone.place.project.clone();
    let seen = |calls: &dyn Fn(usize)| {
        over.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let looking = scope.spawn(|| {
                let mut found = None;
                while !over.load(Ordering::Relaxed) {
                    let entries = std::fs::read_dir(&root).unwrap().flatten();
                    let mut names =
                        entries.filter_map(|entry| entry.file_name().into_string().ok());
                    found = found.or_else(|| names.find(|name| name.starts_with(".agentd-")));
                }
                found
            });
            (0..400).for_each(calls);
            over.store(true, Ordering::Relaxed);
            looking.join().unwrap()
        })
    };
    let one = seen(&|_| {
        alone.put("a", b"x");
        alone.ok("delete", of(&["a"]));
    });
    assert_eq!(one, None);
    // The control: of several each is aside until all are, and is seen to be.
    let names: Vec<String> = (0..20).map(|n| format!("file{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let several = seen(&|n| {
        if n < 100 {
            names.iter().for_each(|name| alone.put(name, b"x"));
            alone.ok("delete", of(&names));
        }
    });
    let several = several.expect("several go together");
    assert!(several.contains(".file") && several.ends_with(".gone"), "{several}");
}

#[test]
fn other_kinds_of_files() {
    let project = Project::new();
    fifo(&project.path("fifo"));
    project.fails("delete", of(&["fifo"]), "not_a_file");
    project.fails("delete", of(&["/dev/null"]), "access_denied");
    assert_eq!(project.names("."), ["fifo"]);
}

#[test]
fn a_file_that_changed_since_the_verdict_stays() {
    let mut project = Project::with(&[("a", "what was shown\n")]);
    let real = project.path("a").to_str().unwrap().to_owned();
    project.judged = vec![JudgedPath { real, digest: Some("0".repeat(64)) }];
    project.fails("delete", of(&["a"]), "stale");
    assert_eq!(project.content("a"), "what was shown\n");
}

#[test]
fn a_directory_that_the_user_may_not_write_to() {
    let project = Project::with(&[("open", "x"), ("locked/file", "x")]);
    std::fs::set_permissions(project.path("locked"), std::fs::Permissions::from_mode(0o555))
        .unwrap();
    if is_root() {
        project.ok("delete", of(&["open", "locked/file"]));
    } else {
        project.fails("delete", of(&["open", "locked/file"]), "permission_denied");
        assert_eq!(project.content("open"), "x", "what was moved aside is back");
        assert_eq!(project.names("."), ["locked", "open"]);
    }
    std::fs::set_permissions(project.path("locked"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
}
