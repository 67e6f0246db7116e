//! The look before a verdict.

use crate::project::{Project, fifo};
use protocol::call::ProbedPath;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn probe(project: &Project, tool: &str, input: &Value) -> protocol::call::ProbeReport {
    tools::probe(tool, &input.to_string(), &project.place, &project.cancel, project.engine).unwrap()
}

#[test]
fn real_path_scope_digest_and_diff() {
    let project = Project::with(&[("dir/a", "old\n")]);
    std::os::unix::fs::symlink("dir", project.path("link")).unwrap();
    let input = json!({"path": "link/a", "old_string": "old", "new_string": "new"});
    let found = probe(&project, "edit", &input);
    let digest: String =
        Sha256::digest(b"old\n").iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        found.paths,
        [ProbedPath {
            named: "link/a".to_owned(),
            real: project.path("dir/a").to_str().unwrap().to_owned(),
            in_scope: true,
            digest: Some(digest),
        }]
    );
    assert_eq!(found.diff, "--- a/dir/a\n+++ b/dir/a\n@@ -1 +1 @@\n-old\n+new\n");
    assert_eq!(project.content("dir/a"), "old\n", "a probe changes nothing");
    let ran = project.ok("edit", input);
    assert!(ran.ends_with(&found.diff), "what is shown is what is done");
}

#[test]
fn a_new_file_and_a_query() {
    let project = Project::with(&[("a", "x\n")]);
    let found = probe(&project, "write", &json!({"path": "new/b", "content": "y\n"}));
    assert_eq!((found.paths[0].in_scope, &found.paths[0].digest), (true, &None));
    assert_eq!(found.paths[0].real, project.path("new/b").to_str().unwrap());
    assert!(found.diff.ends_with("+y\n"));
    assert!(project.names(".") == ["a"]);
    let found = probe(&project, "read", &json!({"path": "a"}));
    assert_eq!((found.paths[0].in_scope, found.diff.as_str()), (true, ""));
    let found = probe(&project, "grep", &json!({"pattern": "x"}));
    assert_eq!(found.paths[0].real, project.place.project.to_str().unwrap());
}

#[test]
fn a_call_that_changes_nothing_says_so_before_it_is_asked_about() {
    let project = Project::with(&[("a", "x\n")]);
    let shown = |tool, input| probe(&project, tool, &input).diff;
    let same = "# a has this content already: the call changes nothing\n";
    assert_eq!(shown("write", json!({"path": "a", "content": "x\n"})), same);
    let empty = shown("write", json!({"path": "b", "content": ""}));
    assert_eq!(empty, "# b is created without content\n");
}

#[test]
fn out_of_scope_is_neither_read_nor_compared() {
    let project = Project::new();
    std::os::unix::fs::symlink("../secret", project.path("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", project.path("dangling")).unwrap();
    for path in ["../secret", "link", "dangling", "/etc/passwd"] {
        let found = probe(&project, "write", &json!({"path": path, "content": "y"}));
        assert!(!found.paths[0].in_scope, "{path}");
        assert_eq!((&found.paths[0].digest, found.diff.as_str()), (&None, ""), "{path}");
    }
}

#[test]
fn a_call_that_cannot_succeed_shows_why() {
    let project = Project::with(&[("a", "x\n")]);
    fifo(&project.path("fifo"));
    let found =
        probe(&project, "edit", &json!({"path": "a", "old_string": "y", "new_string": "z"}));
    assert!(
        found.diff.starts_with("# This call would change nothing: old_string is not in"),
        "{}",
        found.diff
    );
    let found = probe(&project, "write", &json!({"path": "fifo", "content": "z"}));
    assert!(found.diff.contains("not_a_file") && found.paths[0].digest.is_none());
    let error =
        tools::probe("edit", "{}", &project.place, &project.cancel, project.engine).unwrap_err();
    assert!(error.contains("missing"), "{error}");
}
