//! Every file tool against every way out of the project, in its real cage: with the tools' own check,
//! which makes the message, and without it, so that the kernel's refusal is seen.
//!
//! The check is switched off in builds with `--cfg agentd_hooks` only; the second half is no test in
//! others.

use crate::supervisor::Project;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

#[cfg(not(agentd_hooks))]
pub const TESTS: &[crate::Test] = &[("the_check_refuses_every_way_out", the_check_refuses)];

#[cfg(agentd_hooks)]
pub const TESTS: &[crate::Test] = &[
    ("the_check_refuses_every_way_out", the_check_refuses),
    ("without_the_check_the_kernel_refuses_every_way_out", without_the_check::the_kernel_refuses),
    ("without_the_check_the_project_is_as_open", without_the_check::the_project_is_as_open),
];

/// A call of each tool that names a path.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    let replace = json!([{"replace": {"pattern": "secret", "replacement": "public"}}]);
    vec![
        ("read", json!({"path": path})),
        ("ls", json!({"path": path})),
        ("glob", json!({"pattern": "*", "path": path})),
        ("grep", json!({"pattern": "secret", "path": path})),
        ("summary", json!({"path": path})),
        ("scan", json!({"patterns": ["secret"], "language": "rust", "path": path})),
        ("write", json!({"path": path, "content": "overwritten"})),
        ("edit", json!({"path": path, "old_string": "secret", "new_string": "public"})),
        ("multi_edit", json!({"path": path, "edits": [{"find": "secret", "replace": "public"}]})),
        ("rewrite", json!({"path": path, "edits": replace})),
        ("delete", json!({"paths": [path], "recursive": true})),
    ]
}

/// Ways to files outside the project. The first are direct, the others use links.
fn ways_out(project: &Project) -> (Vec<String>, Vec<String>) {
    let link = |name: &str, to: &str| symlink(to, project.path(name)).unwrap();
    link("link-out.rs", "../secret.rs");
    link("link-dir-out", "..");
    link("link-to-link.rs", "link-out.rs");
    for name in ["secret.rs", "proj-evil/secret.rs"] {
        std::fs::write(project.base.join(name), "fn secret() { the_secret() }\n").unwrap();
    }
    let base = project.base.display();
    let direct = [
        "../secret.rs".to_owned(),
        "../new.rs".to_owned(),
        "not/there/../../../secret.rs".to_owned(),
        "../proj-evil/secret.rs".to_owned(),
        "../proj-evil/new.rs".to_owned(),
        format!("{base}/secret.rs"),
        format!("{base}/proj/../proj-evil/secret.rs"),
        format!("/proc/self/root{base}/secret.rs"),
    ];
    let linked =
        ["link-out.rs", "link-dir-out/secret.rs", "link-dir-out/new.rs", "link-to-link.rs"];
    (direct.to_vec(), linked.map(str::to_owned).to_vec())
}

/// Files outside the project are unchanged.
fn nothing_happened(project: &Project) {
    for name in ["secret.rs", "proj-evil/secret.rs"] {
        let text = std::fs::read_to_string(project.base.join(name)).unwrap();
        assert_eq!(text, "fn secret() { the_secret() }\n", "{name}");
    }
    assert!(!project.base.join("new.rs").exists());
    assert!(!project.base.join("proj-evil/new.rs").exists());
}

fn the_check_refuses() {
    let project = Project::new();
    let (direct, linked) = ways_out(&project);
    for path in direct.iter().chain(&linked) {
        for (tool, input) in calls(path) {
            let result = project.run(tool, input).result;
            assert_eq!(result.code.as_deref(), Some("access_denied"), "{tool} {path}");
            assert!(result.text.contains("ACCESS DENIED"), "{tool} {path}: {}", result.text);
        }
    }
    nothing_happened(&project);
}

#[cfg(agentd_hooks)]
mod without_the_check {
    use super::{calls, nothing_happened, ways_out};
    use crate::supervisor::{Project, SCOPE};

    pub fn the_kernel_refuses() {
        let project = Project::new();
        let (direct, linked) = ways_out(&project);
        SCOPE.set("off");
        for path in direct.iter().chain(&linked) {
            for (tool, input) in calls(path) {
                // The link would be removed, and it is in the project.
                if tool == "delete" && !path.contains('/') {
                    continue;
                }
                let result = project.run(tool, input).result;
                let code = result.code.as_deref().unwrap_or_default();
                assert!(result.is_error, "{tool} {path}: {}", result.text);
                assert!(!result.text.contains("the_secret"), "{tool} {path}: {}", result.text);
                // The cage refused the open or does not contain the file; it is not the tool's
                // check.
                let by_kernel = ["permission_denied", "not_found", "not_a_directory", "io"];
                if direct.contains(path) {
                    assert!(by_kernel.contains(&code), "{tool} {path}: {}", result.text);
                }
            }
        }
        // Directories with programs are readable, but never writable.
        for path in ["/etc/passwd", "/usr/bin/new"] {
            for (tool, input) in calls(path).into_iter().filter(|(tool, _)| is_mutation(tool)) {
                let result = project.run(tool, input).result;
                assert!(result.is_error, "{tool} {path}: {}", result.text);
            }
        }
        SCOPE.set("on");
        nothing_happened(&project);
    }

    fn is_mutation(tool: &str) -> bool {
        ["write", "edit", "multi_edit", "rewrite", "delete"].contains(&tool)
    }

    /// The positive control: with the check off the same calls do their work in the project.
    pub fn the_project_is_as_open() {
        let project = Project::new();
        SCOPE.set("off");
        for (tool, input) in calls("in.rs") {
            std::fs::write(project.path("in.rs"), "fn secret() {}\n").unwrap();
            if matches!(tool, "ls" | "glob") {
                continue;
            }
            let result = project.run(tool, input).result;
            assert!(!result.is_error, "{tool}: {}", result.text);
        }
        SCOPE.set("on");
    }
}
