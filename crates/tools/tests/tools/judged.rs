//! A call whose file changed after its verdict answers `stale` and changes nothing.

use crate::project::Project;
use protocol::tool::JudgedPath;
use serde_json::{Value, json};

fn judge(project: &mut Project, tool: &str, input: &Value) {
    let probe =
        tools::probe(tool, &input.to_string(), &project.place, &project.cancel, project.engine)
            .unwrap();
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

#[test]
fn what_is_removed_is_what_was_judged() {
    use std::os::unix::fs::symlink;
    let input = json!({"paths": ["x"], "recursive": true});
    type Files = &'static [(&'static str, &'static str)];
    type Change = (&'static str, Files, fn(&Project));
    let (directory, file): (Files, Files) = (&[("x/a", "a")], &[("x", "a")]);
    let changes: [Change; 5] = [
        ("a new file in it", directory, |project| project.put("x/sub/precious", b"p")),
        ("a changed file in it", directory, |project| project.put("x/a", b"precious")),
        ("a link instead", file, |project| {
            std::fs::rename(project.path("x"), project.path("y")).unwrap();
            symlink("y", project.path("x")).unwrap();
        }),
        ("a directory instead", file, |project| {
            std::fs::remove_file(project.path("x")).unwrap();
            project.put("x/precious", b"p");
        }),
        ("a file instead", directory, |project| {
            std::fs::remove_dir_all(project.path("x")).unwrap();
            project.put("x", b"precious");
        }),
    ];
    for (what, files, change) in changes {
        let mut project = Project::with(files);
        judge(&mut project, "delete", &input);
        change(&project);
        let left = project.names(".");
        project.fails("delete", input.clone(), "stale");
        assert_eq!(project.names("."), left, "{what}");

        judge(&mut project, "delete", &input);
        project.ok("delete", input.clone());
        assert!(!project.names(".").contains(&"x".to_owned()), "{what}: as it was judged it goes");
    }
}

/// A rule for the target of a link does not cover the link itself.
#[test]
fn a_link_that_would_go_is_judged_where_it_lies() {
    use std::os::unix::fs::symlink;
    let mut project = Project::with(&[("build/x", "x"), ("src/y", "y")]);
    symlink("../build/x", project.path("src/link")).unwrap();
    symlink("src", project.path("d")).unwrap();
    let input = json!({"paths": ["d/link"]});
    judge(&mut project, "delete", &input);
    let reals: Vec<&str> = project.judged.iter().map(|judged| judged.real.as_str()).collect();
    let expected = [project.path("build/x"), project.path("src/link")];
    assert_eq!(reals, expected.each_ref().map(|path| path.to_str().unwrap()));
    std::fs::remove_file(project.path("src/link")).unwrap();
    symlink("../build/./x", project.path("src/link")).unwrap();
    project.fails("delete", input.clone(), "stale");
    judge(&mut project, "delete", &input);
    project.ok("delete", input);
    assert_eq!(
        (project.names("src"), project.content("build/x")),
        (vec!["y".to_owned()], "x".into())
    );
}

/// The file that a killed call moved aside is not overwritten.
#[test]
fn what_was_left_aside_stays() {
    let project = Project::with(&[("a", "a"), ("b", "b")]);
    let left = format!(".agentd-{}-0-0.a.gone", std::process::id());
    project.put(&left, b"left by another");
    // Of several, each is moved aside.
    project.ok("delete", json!({"paths": ["a", "b"]}));
    assert_eq!(
        (project.names("."), project.content(&left)),
        (vec![left.clone()], "left by another".into())
    );
}
