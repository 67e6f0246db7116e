//! A call whose file changed after its verdict answers `stale` and changes nothing.

use crate::project::Project;
use protocol::tool::JudgedPath;
use serde_json::{Value, json};

fn judge(project: &mut Project, tool: &str, input: &Value) {
    let probe = tools::probe(tool, &input.to_string(), &project.place, &project.cancel).unwrap();
    project.judged = probe
        .paths
        .into_iter()
        .map(|path| JudgedPath { real: path.real, digest: path.digest })
        .collect();
}

#[test]
fn an_unchanged_file_is_changed_as_judged() {
    let mut project = Project::with(&[("a", "old\n")]);
    for (tool, input) in [
        ("edit", json!({"path": "a", "old_string": "old", "new_string": "new"})),
        ("write", json!({"path": "a", "content": "newer\n"})),
        ("write", json!({"path": "b/c", "content": "made\n"})),
        ("read", json!({"path": "a"})),
    ] {
        judge(&mut project, tool, &input);
        project.ok(tool, input);
    }
    assert_eq!(project.content("a"), "newer\n");
}

#[test]
fn somebody_elses_change_makes_it_stale() {
    for (tool, input) in [
        ("edit", json!({"path": "a", "old_string": "old", "new_string": "new"})),
        ("write", json!({"path": "a", "content": "new\n"})),
    ] {
        let mut project = Project::with(&[("a", "old\n")]);
        judge(&mut project, tool, &input);
        project.put("a", b"old, but changed by a person\n");
        project.fails(tool, input.clone(), "stale");
        assert_eq!(project.content("a"), "old, but changed by a person\n");
        std::fs::remove_file(project.path("a")).unwrap();
        let code = project.run(tool, input).result.code.unwrap();
        assert_eq!(code, "stale", "{tool}");
        assert!(project.names(".").is_empty());
    }
}

#[test]
fn a_file_made_meanwhile_makes_it_stale() {
    let mut project = Project::new();
    let input = json!({"path": "a", "content": "new\n"});
    judge(&mut project, "write", &input);
    project.put("a", b"made by a person\n");
    project.fails("write", input, "stale");
    assert_eq!(project.content("a"), "made by a person\n");
}

#[test]
fn a_path_that_leads_elsewhere_makes_it_stale() {
    for tool in ["read", "write"] {
        let mut project = Project::with(&[("a", "public\n"), ("private", "private\n")]);
        let input = if tool == "read" {
            json!({"path": "a"})
        } else {
            json!({"path": "a", "content": "x"})
        };
        judge(&mut project, tool, &input);
        std::fs::remove_file(project.path("a")).unwrap();
        std::os::unix::fs::symlink("private", project.path("a")).unwrap();
        let text = project.fails(tool, input, "stale");
        assert!(!text.contains("private\n"));
        assert_eq!(project.content("private"), "private\n");
    }
}
