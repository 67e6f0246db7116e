//! `ls`.

use crate::project::{Project, fifo};
use serde_json::json;
use std::os::unix::fs::symlink;

#[test]
fn one_level_directories_first() {
    let project = Project::with(&[
        ("b.txt", "12345"),
        ("a.txt", ""),
        ("sub/deep/file", "x"),
        (".env", "K=V"),
        (".github/x", ""),
    ]);
    symlink("b.txt", project.path("link")).unwrap();
    symlink("nowhere", project.path("broken")).unwrap();
    fifo(&project.path("pipe"));
    let text = project.ok("ls", json!({}));
    let lines: Vec<&str> = text.lines().collect();
    let size = std::fs::symlink_metadata(project.path("sub")).unwrap().len();
    assert_eq!(
        lines,
        [
            &format!("d {} .github", std::fs::metadata(project.path(".github")).unwrap().len()),
            &format!("d {size} sub"),
            "f 3 .env",
            "f 0 a.txt",
            "f 5 b.txt",
            "l 7 broken -> nowhere",
            "l 5 link -> b.txt",
            "p 0 pipe",
        ]
    );
    assert!(project.ok("list_directory", json!({"path": "sub"})).ends_with(" deep\n"));
}

#[test]
fn ignored_names_are_left_out() {
    let project = Project::with(&[
        (".gitignore", "*.log\n!node_modules\n!.git\n!.agentd\n"),
        (".ignore", "hidden-by-ignore\n"),
        (".git/info/exclude", "excluded\n"),
        (".git/HEAD", "x"),
        (".agentd/x", "x"),
        ("node_modules/x", "x"),
        ("sub/.gitignore", "nested\n"),
        ("sub/nested", "x"),
        ("sub/a.log", "x"),
        ("sub/kept", "x"),
        ("a.log", "x"),
        ("hidden-by-ignore", "x"),
        ("excluded", "x"),
        ("kept", "x"),
    ]);
    let text = project.ok("ls", json!({}));
    let names = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('['));
        lines.map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&text), ["sub", ".gitignore", ".ignore", "kept"]);
    let text = project.ok("ls", json!({"path": "sub"}));
    assert_eq!(names(&text), [".gitignore", "kept"], "rules of parents hold below them");
}

#[test]
fn a_long_list_is_cut_with_its_count() {
    let project = Project::new();
    for i in 0..510 {
        project.put(&format!("file-{i:03}"), b"");
    }
    std::fs::create_dir(project.path("zz-directory")).unwrap();
    let text = project.ok("ls", json!({}));
    assert!(text.starts_with("d "), "directories come first also where files are cut");
    assert!(text.ends_with("[500 of 511 entries; 11 not shown, find them with glob]"), "{text}");
    assert_eq!(text.lines().count(), 501);
}

#[test]
fn errors_and_odd_names() {
    let project = Project::with(&[("file", "x"), ("evil\u{1b}[2J\nname", "x")]);
    project.fails("ls", json!({"path": "file"}), "not_a_directory");
    project.fails("ls", json!({"path": "fil"}), "not_found");
    std::fs::create_dir(project.path("empty")).unwrap();
    assert_eq!(project.ok("ls", json!({"path": "empty"})), "(empty directory)");
    let text = project.ok("ls", json!({}));
    assert!(text.contains("f 1 evil\u{241b}[2J\u{240a}name\n"), "{text}");
}

#[test]
fn ignore_files_that_are_none_do_not_hold_up_the_walk() {
    let project = Project::with(&[("kept", "hit"), ("b.log", "hit"), ("sub/c.log", "hit")]);
    fifo(&project.path(".gitignore"));
    std::os::unix::fs::symlink("/dev/zero", project.path(".ignore")).unwrap();
    project.put("sub/.gitignore", &vec![b'x'; 2 << 20]);
    let note = "not a valid ignore file and was not applied]";
    let text = project.ok("ls", json!({}));
    assert!(text.contains(" kept\n") && text.contains(note), "{text}");
    let text = project.ok("glob", json!({"pattern": "*.log"}));
    assert!(text.contains("sub/c.log") && text.contains(note), "{text}");
    let text = project.ok("grep", json!({"pattern": "hit"}));
    assert!(text.contains("b.log:1:hit") && text.contains(note), "{text}");
}

#[test]
fn rules_hold_from_the_granted_directory_on() {
    let project = Project::with(&[
        (".gitignore", "*.log\n"),
        ("sub/.gitignore", "!kept.log\n"),
        ("sub/kept.log", ""),
        ("sub/gone.log", ""),
        ("module/.git/HEAD", ""),
        ("module/own.log", ""),
        (".ignore", "never\n"),
        ("strong/.gitignore", "!never\n"),
        ("strong/never", ""),
    ]);
    std::fs::write(project.base().join(".gitignore"), "*\n").unwrap();
    let names = |pattern: &str| {
        let text = project.ok("glob", json!({"pattern": pattern}));
        let lines = text.lines().filter(|line| !line.starts_with('['));
        let mut names: Vec<String> = lines.map(str::to_owned).collect();
        names.sort();
        names
    };
    assert_eq!(
        names("*.log"),
        ["module/own.log", "sub/kept.log"],
        "a repository within has its own rules"
    );
    assert_eq!(
        names("never"),
        ["no file matches \"never\""],
        ".ignore is stronger than .gitignore"
    );
}
