//! `glob`.

use crate::project::Project;
use serde_json::json;
use std::fs::File;
use std::time::{Duration, SystemTime};

fn age(project: &Project, name: &str, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    File::options().write(true).open(project.path(name)).unwrap().set_modified(time).unwrap();
}

#[test]
fn newest_first() {
    let project = Project::with(&[
        ("old.rs", ""),
        ("src/new.rs", ""),
        ("src/deep/mid.rs", ""),
        ("other.txt", ""),
    ]);
    age(&project, "old.rs", 300);
    age(&project, "src/deep/mid.rs", 200);
    age(&project, "src/new.rs", 100);
    for (input, expected) in [
        (json!({"pattern": "*.rs"}), "src/new.rs\nsrc/deep/mid.rs\nold.rs"),
        (json!({"pattern": "/*.rs"}), "old.rs"),
        (json!({"pattern": "./*.rs"}), "old.rs"),
        (json!({"pattern": "src/*.rs"}), "src/new.rs"),
        (json!({"pattern": "src/**/*.rs"}), "src/new.rs\nsrc/deep/mid.rs"),
        (json!({"pattern": "*.rs", "path": "src"}), "src/new.rs\nsrc/deep/mid.rs"),
        (json!({"pattern": "{new,mid}.rs"}), "src/new.rs\nsrc/deep/mid.rs"),
        (json!({"pattern": "deep/"}), "src/deep"),
        (json!({"pattern": "*.py"}), "no file matches \"*.py\""),
    ] {
        assert_eq!(project.ok("glob", input.clone()), expected, "{input}");
    }
}

#[test]
fn ignored_files_and_links_out_are_not_found() {
    let project = Project::with(&[
        ("node_modules/a.rs", ""),
        (".git/a.rs", ""),
        (".gitignore", "t/\n!node_modules/\n"),
        ("t/a.rs", ""),
        ("a.rs", ""),
    ]);
    std::os::unix::fs::symlink(project.base(), project.path("out")).unwrap();
    std::fs::write(project.base().join("outside.rs"), "").unwrap();
    assert_eq!(project.ok("glob", json!({"pattern": "*.rs"})), "a.rs");
    assert_eq!(
        project.ok("glob", json!({"pattern": "*.rs", "path": "t"})),
        "t/a.rs",
        "named, it is looked into"
    );
}

#[test]
fn a_long_list_is_cut_with_its_count() {
    let project = Project::new();
    for i in 0..203 {
        project.put(&format!("d{}/f{i}.txt", i % 3), b"");
    }
    age(&project, "d0/f0.txt", 1000);
    let text = project.ok("glob", json!({"pattern": "*.txt"}));
    assert_eq!(text.lines().count(), 201);
    assert!(!text.contains("d0/f0.txt\n"), "the oldest goes first");
    assert!(
        text.ends_with(
            "[showing the newest 200 of 203; 3 not shown, narrow the pattern or the path]"
        ),
        "{text}"
    );
}

#[test]
fn patterns_that_are_none() {
    let project = Project::with(&[("a", "")]);
    for pattern in ["", "!a", "a[", "{a"] {
        project.fails("glob", json!({"pattern": pattern}), "invalid_pattern");
    }
    assert_eq!(project.ok("glob", json!({"pattern": "#a"})), "no file matches \"#a\"");
    project.fails("glob", json!({"pattern": "*", "path": "a"}), "not_a_directory");
    project.fails("glob", json!({"pattern": "*", "path": "b"}), "not_found");
}
