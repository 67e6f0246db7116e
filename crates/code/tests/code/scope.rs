//! Files that are not source text, and every way out of the project, for each of the three tools.

use crate::project;
use crate::project::{Project, fifo, is_root};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};

fn calls(path: &str) -> Vec<(&'static str, Value)> {
    let edits = json!([{"replace": {"pattern": "secret", "replacement": "public"}}]);
    vec![
        ("summary", json!({"path": path})),
        ("scan", json!({"patterns": ["secret"], "path": path, "language": "rust"})),
        ("rewrite", json!({"path": path, "edits": edits})),
    ]
}

#[test]
fn every_way_out_is_refused_by_every_tool() {
    let project = project(&[("dir/file.rs", "fn secret() {}\n")]);
    let link = |name: &str, to: &str| symlink(to, project.path(name)).unwrap();
    link("link-out.rs", "../secret");
    link("link-dir-out", "..");
    link("dangling.rs", "not-there");
    let evil = project.base().join("proj-evil/secret");
    for path in [
        "../secret",
        "dir/../../secret",
        "/etc/passwd",
        "../proj-evil/secret",
        evil.to_str().unwrap(),
        "link-out.rs",
        "link-dir-out/secret",
        "dangling.rs",
        "state/token",
    ] {
        for (tool, input) in calls(path) {
            let text = project.fails(tool, input, "access_denied");
            assert!(text.contains("ACCESS DENIED"), "{tool} {path}: {text}");
        }
    }
    assert_eq!(std::fs::read_to_string(evil).unwrap(), "the secret\n");
    // The positive control: the same calls on a file of the project.
    for (tool, input) in calls("dir/file.rs") {
        project.ok(tool, input);
    }
    assert_eq!(project.content("dir/file.rs"), "fn public() {}\n");
}

fn each(project: &Project, path: &str, code: &str) {
    for (tool, input) in calls(path) {
        project.fails(tool, input, code);
    }
}

#[test]
fn what_is_no_source_file_is_a_coded_error() {
    let project = project(&[]);
    project.put("latin.rs", b"// caf\xe9\nfn a() {}\n");
    project.put("elf.rs", b"\x7fELF\x02\0\0");
    project.put("large.rs", &b"// a line of a large file\n".repeat(200_000));
    fifo(&project.path("fifo.rs"));
    std::fs::create_dir(project.path("dir.rs")).unwrap();
    project.put("closed.rs", b"fn a() {}\n");
    std::fs::set_permissions(project.path("closed.rs"), PermissionsExt::from_mode(0o000)).unwrap();
    each(&project, "missing.rs", "not_found");
    each(&project, "", "invalid_arguments");
    each(&project, "latin.rs", "not_utf8");
    each(&project, "elf.rs", "binary");
    each(&project, "large.rs", "too_large");
    each(&project, "fifo.rs", "not_a_file");
    each(&project, "elf.rs/x", "not_a_directory");
    project.fails("summary", json!({"path": "dir.rs"}), "is_directory");
    if !is_root() {
        each(&project, "closed.rs", "permission_denied");
    }
    for (tool, input) in [
        ("summary", json!({})),
        ("summary", json!({"path": "a", "more": 1})),
        ("scan", json!({"patterns": "x"})),
        ("scan", json!({"patterns": ["x"], "limit": 0})),
        ("scan", json!({"patterns": []})),
        ("rewrite", json!({"path": "a.rs"})),
        ("rewrite", json!({"path": "a.rs", "edits": []})),
        ("rewrite", json!({"path": "a.rs", "edits": [{}]})),
        ("rewrite", json!({"path": "a.rs", "edits": [{"replace": {"pattern": "a"}}]})),
    ] {
        project.put("a.rs", b"fn a() {}\n");
        project.fails(tool, input, "invalid_arguments");
    }
}

/// `agentd-tool` has no engine, and `agentd-code` runs nothing else.
#[test]
fn each_program_runs_its_own_tools() {
    let mut project = project(&[("a.rs", "fn a() {}\n")]);
    project.fails("read", json!({"path": "a.rs"}), "unknown_tool");
    project.engine = tools::Engine::Without;
    project.ok("read", json!({"path": "a.rs"}));
    project.fails("summary", json!({"path": "a.rs"}), "unknown_tool");
}
