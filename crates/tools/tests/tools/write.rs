//! `write`.

use crate::project::{Project, fifo, is_root};
use protocol::call::FileEffect;
use serde_json::json;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

fn mode(project: &Project, name: &str) -> u32 {
    std::fs::metadata(project.path(name)).unwrap().mode() & 0o7777
}

#[test]
fn makes_a_file_and_its_directories() {
    let project = Project::new();
    let report = project.run("write", json!({"path": "a/b/c.txt", "content": "one\ntwo\n"}));
    assert_eq!(
        report.result.text,
        "created a/b/c.txt: 8 bytes\n--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    );
    assert_eq!(project.content("a/b/c.txt"), "one\ntwo\n");
    assert_eq!(
        report.effects,
        [FileEffect::Created(project.path("a/b/c.txt").to_str().unwrap().to_owned())]
    );
    assert_eq!(project.names("a/b"), ["c.txt"], "nothing is left beside it");
    project.put("by-the-system", b"");
    assert_eq!(mode(&project, "a/b/c.txt"), mode(&project, "by-the-system"));
}

#[test]
fn overwrites_in_one_step_and_keeps_the_mode() {
    let project = Project::with(&[("run.sh", "old\n")]);
    std::fs::set_permissions(project.path("run.sh"), std::fs::Permissions::from_mode(0o751))
        .unwrap();
    let held = std::fs::File::open(project.path("run.sh")).unwrap();
    let report = project.run("write", json!({"path": "run.sh", "content": "new\n"}));
    assert_eq!(
        report.result.text,
        "overwrote run.sh: 4 bytes\n--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-old\n+new\n"
    );
    assert_eq!(
        report.effects,
        [FileEffect::Written(project.path("run.sh").to_str().unwrap().to_owned())]
    );
    assert_eq!(mode(&project, "run.sh"), 0o751);
    assert_eq!(
        std::io::read_to_string(held).unwrap(),
        "old\n",
        "who had it open sees the old file whole"
    );
    assert_eq!(project.names("."), ["run.sh"]);
}

#[test]
fn the_same_content_is_not_written() {
    let project = Project::with(&[("a", "same")]);
    let before = std::fs::metadata(project.path("a")).unwrap().ino();
    let report = project.run("write", json!({"path": "a", "content": "same"}));
    assert!(report.result.text.contains("nothing was written"));
    assert!(report.effects.is_empty());
    assert_eq!(std::fs::metadata(project.path("a")).unwrap().ino(), before);
}

#[test]
fn through_a_link_inside_the_project() {
    let project = Project::with(&[("real", "old"), ("dir/x", "")]);
    symlink("real", project.path("link")).unwrap();
    symlink("dir", project.path("dir-link")).unwrap();
    project.ok("write", json!({"path": "link", "content": "new"}));
    assert_eq!(project.content("real"), "new");
    assert!(project.path("link").is_symlink(), "the link stays one");
    project.ok("write", json!({"path": "dir-link/new", "content": "y"}));
    assert_eq!(project.content("dir/new"), "y");
}

#[test]
fn shows_no_diff_where_it_cannot() {
    let project = Project::new();
    project.put("latin1", b"caf\xe9");
    project.put("big", &vec![b'x'; 9 << 20]);
    let text = project.ok("write", json!({"path": "latin1", "content": "café"}));
    assert!(text.contains("[no diff: the 4 replaced bytes are not UTF-8]"), "{text}");
    let text = project.ok("write", json!({"path": "big", "content": "small"}));
    assert!(
        text.contains("[no diff: the 9437184 replaced bytes are too large to compare]"),
        "{text}"
    );
    let long: String = (0..1000).map(|i| format!("{i}\n")).collect();
    let text = project.ok("write", json!({"path": "long", "content": long}));
    assert!(text.contains("[diff truncated: 603 more lines]"), "{text}");
}

#[test]
fn what_cannot_be_written_says_why_and_leaves_nothing() {
    let project = Project::with(&[("dir/x", "x"), ("file", "x")]);
    fifo(&project.path("fifo"));
    let long = format!("new/deep/{}", "n".repeat(300));
    for (path, code) in [
        ("dir", "is_directory"),
        (".", "is_directory"),
        ("new/", "is_directory"),
        ("file/x", "not_a_directory"),
        ("fifo", "not_a_file"),
        ("", "invalid_arguments"),
        (".git/hooks/pre-commit", "protected"),
        (".git/config", "protected"),
        (".agentd/config.toml", "protected"),
        (".envrc", "protected"),
        (&long, "invalid_arguments"),
    ] {
        project.fails("write", json!({"path": path, "content": "y"}), code);
    }
    assert_eq!(
        project.names("."),
        ["dir", "fifo", "file"],
        "directories made on the way are gone again"
    );
    assert_eq!(project.content("file"), "x");
}

#[test]
fn what_git_runs_by_its_settings_or_in_a_bare_repository_is_protected() {
    let project = Project::with(&[
        (".git/HEAD", "ref: refs/heads/main\n"),
        (
            ".git/config",
            "[include]\n\tpath = ../team.gitconfig\n[core]\n\thooksPath = tools/hooks\n",
        ),
        ("team.gitconfig", "[include]\n\tpath = more\n"),
        ("lib/HEAD", "ref: refs/heads/main\n"),
        ("lib/objects/x", ""),
        ("part/objects/x", ""),
        ("part/refs/x", ""),
    ]);
    let write = |path: &str| json!({"path": path, "content": "y"});
    // The control: a directory that git does not take for a repository, and names next to those in
    // the settings.
    for path in ["lib/config", "lib/hooks/post-commit", "tools/x", "other.gitconfig"] {
        project.ok("write", write(path));
    }
    for path in [
        "lib/refs/heads/main",
        "part/HEAD",
        "team.gitconfig",
        "more",
        "tools/hooks/post-commit",
        ".git/worktrees/x/config.worktree",
        ".git/rebase-merge/git-rebase-todo",
        ".git/rebase-merge/strategy",
        ".git/MERGE_RR",
        "lib/commondir",
    ] {
        project.fails("write", write(path), "protected");
    }
    std::fs::create_dir(project.path("lib/refs")).unwrap();
    for path in ["lib/config", "lib/hooks/post-commit", "lib/info/attributes"] {
        project.fails("write", write(path), "protected");
    }
    project.ok("write", write("lib/description"));
}

#[test]
fn a_directory_that_the_user_may_not_write_to() {
    let project = Project::with(&[("locked/file", "x")]);
    std::fs::set_permissions(project.path("locked"), std::fs::Permissions::from_mode(0o555))
        .unwrap();
    let input = json!({"path": "locked/file", "content": "y"});
    if is_root() {
        project.ok("write", input);
    } else {
        project.fails("write", input, "permission_denied");
        project.fails(
            "write",
            json!({"path": "locked/new/file", "content": "y"}),
            "permission_denied",
        );
        assert_eq!(project.content("locked/file"), "x");
    }
    std::fs::set_permissions(project.path("locked"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
}
