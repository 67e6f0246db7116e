//! Every file tool against every way out of the project. No cage here: this is the check that
//! makes the message; that the kernel refuses the same is tested with the cage.

use crate::project::Project;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

/// A call of each tool that names a path.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("read", json!({"path": path})),
        ("ls", json!({"path": path})),
        ("glob", json!({"pattern": "*", "path": path})),
        ("grep", json!({"pattern": "secret", "path": path})),
        ("write", json!({"path": path, "content": "overwritten"})),
        ("edit", json!({"path": path, "old_string": "secret", "new_string": "public"})),
        ("multi_edit", json!({"path": path, "edits": [{"find": "secret", "replace": "public"}]})),
        ("delete", json!({"paths": [path]})),
        ("apply_patch", json!({"patch": patch(path)})),
        (
            "apply_patch",
            json!({"patch": format!(
                "*** Begin Patch\n*** Add File: {path}\n+overwritten\n*** End Patch"
            )}),
        ),
        (
            "apply_patch",
            json!({"patch": format!(
                "*** Begin Patch\n*** Delete File: {path}\n*** End Patch"
            )}),
        ),
        (
            "apply_patch",
            json!({"patch": format!(
                "*** Begin Patch\n*** Update File: inside\n*** Move to: {path}\n*** End Patch"
            )}),
        ),
    ]
}

fn patch(path: &str) -> String {
    format!("*** Begin Patch\n*** Update File: {path}\n@@\n-no secret\n+no public\n*** End Patch\n")
}

fn project() -> Project {
    let project = Project::with(&[("inside", "no secret\n"), ("dir/file", "no secret\n")]);
    let link = |name: &str, to: &str| symlink(to, project.path(name)).unwrap();
    link("link-out", "../secret");
    link("link-dir-out", "..");
    link("link-absolute", project.base().join("secret").to_str().unwrap());
    link("link-to-link", "link-out");
    link("dangling", "not-there");
    link("dangling-out", "../not-there");
    link("circle", "circle");
    project
}

#[test]
fn every_way_out_is_refused_by_every_tool() {
    let project = project();
    let absolute = project.base().join("secret");
    let evil = project.base().join("proj-evil/secret");
    let inner = format!("{}/../secret", project.place.project.display());
    for path in [
        "../secret",
        "../not-there",
        "dir/../../secret",
        "not/there/../../../secret",
        "..",
        "/",
        "/etc/passwd",
        "/proc/self/root/etc/passwd",
        "/proc/self/environ",
        "/dev/null",
        "../proj-evil/secret",
        "../proj-evil/new",
        absolute.to_str().unwrap(),
        evil.to_str().unwrap(),
        &inner,
        "link-out",
        "link-dir-out/secret",
        "link-dir-out/new",
        "link-absolute",
        "link-to-link",
        "dangling",
        "dangling-out",
        "circle",
        "state/token",
    ] {
        for (tool, input) in calls(path) {
            let text = project.fails(tool, input, "access_denied");
            assert!(text.contains("ACCESS DENIED"), "{tool} {path}: {text}");
            assert!(!text.contains("the secret"), "{tool} {path}: {text}");
        }
    }
    for secret in [&absolute, &evil] {
        assert_eq!(std::fs::read_to_string(secret).unwrap(), "the secret\n");
    }
    assert!(!project.base().join("not-there").exists());
    assert!(!project.path("not-there").exists());
    assert!(!project.base().join("proj-evil/new").exists());
}

#[test]
fn a_refusal_below_tmp_names_the_sessions_own_directory() {
    let project = project();
    let temp =
        format!("put temporary files in $TMPDIR, which is {} here", project.place.temp.display());
    for (path, is_said) in
        [("/tmp/elsewhere/x", true), ("/var/tmp/x", true), ("/etc/passwd", false), ("/tmpx", false)]
    {
        for (tool, input) in calls(path) {
            let text = project.fails(tool, input, "access_denied");
            assert_eq!(text.contains(&temp), is_said, "{tool} {path}: {text}");
        }
    }
}

/// The positive control: the same calls inside the grants succeed.
#[test]
fn what_is_granted_is_used() {
    let project = project();
    std::fs::write(project.base().join("added/file"), "no secret\n").unwrap();
    std::fs::write(project.base().join("temp/file"), "no secret\n").unwrap();
    symlink(project.base().join("added/file"), project.path("link-added")).unwrap();
    let base = project.base().to_str().unwrap().to_owned();
    for path in [
        "inside",
        "./dir/../inside",
        "link-dir-out/proj/inside",
        "../proj/inside",
        "link-added",
        &format!("{base}/added/file"),
        &format!("{base}/temp/file"),
    ] {
        for (tool, input) in calls(path) {
            if matches!(tool, "read" | "grep" | "edit" | "multi_edit") {
                project.ok(tool, input);
                project.ok("write", json!({"path": path, "content": "no secret\n"}));
            }
        }
        project.ok("apply_patch", json!({"patch": patch(path)}));
        project.ok("write", json!({"path": path, "content": "no secret\n"}));
    }
    for path in [".", "dir", "link-dir-out/proj", &format!("{base}/added"), &format!("{base}/temp")]
    {
        project.ok("ls", json!({"path": path}));
        project.ok("glob", json!({"path": path, "pattern": "*"}));
    }
    for path in
        ["link-added", "inside", &format!("{base}/added/file"), &format!("{base}/temp/file")]
    {
        project.ok("delete", json!({"paths": [path]}));
    }
}
