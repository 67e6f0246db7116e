//! `apply_patch`.

use crate::project::{Project, is_root};
use protocol::call::FileEffect;
use protocol::tool::JudgedPath;
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use tools::{Cancel, Engine, probe};

fn patch(body: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n{body}*** End Patch\n")})
}

#[test]
fn all_kinds_of_work_in_one_patch() {
    let project = Project::with(&[
        (
            "src/a.py",
            "class A:\n    def f(self):\n        pass\n\nclass B:\n    def f(self):\n        pass\n",
        ),
        ("old.txt", "bye\n"),
        ("name.txt", "one\ntwo\n"),
    ]);
    let body = "*** Update File: src/a.py\n@@ class B:\n     def f(self):\n-        pass\n+        return 2\n\
                *** Add File: new/b.txt\n+hello\n+\n+world\n\
                *** Delete File: old.txt\n\
                *** Update File: name.txt\n*** Move to: moved/name.txt\n@@\n one\n-two\n+2\n";
    let report = project.run("apply_patch", patch(body));
    assert!(!report.result.is_error, "{}", report.result.text);
    assert_eq!(
        project.content("src/a.py"),
        "class A:\n    def f(self):\n        pass\n\nclass B:\n    def f(self):\n        return 2\n"
    );
    assert_eq!(project.content("new/b.txt"), "hello\n\nworld\n");
    assert_eq!(project.content("moved/name.txt"), "one\n2\n");
    assert_eq!(project.names("."), ["moved", "new", "src"]);
    let path = |name: &str| project.path(name).to_str().unwrap().to_owned();
    assert_eq!(
        report.effects,
        [
            FileEffect::Written(path("src/a.py")),
            FileEffect::Created(path("new/b.txt")),
            FileEffect::Deleted(path("old.txt")),
            FileEffect::Deleted(path("name.txt")),
            FileEffect::Created(path("moved/name.txt")),
        ]
    );
    let text = report.result.text;
    assert!(text.starts_with("edited src/a.py\ncreated new/b.txt\ndeleted old.txt\n"), "{text}");
    assert!(text.contains("+        return 2\n") && text.contains("-bye\n"), "{text}");
    assert_eq!(report.seen.len(), 3, "what it wrote is known");
}

#[test]
fn hunks_find_their_place() {
    for (name, old, body, new) in [
        ("in their order", "a\nb\na\nb\n", "@@\n-a\n+1\n b\n a\n@@\n-b\n+2\n", "1\nb\na\n2\n"),
        ("without a mark", "a\nb\n", "-a\n+1\n", "1\nb\n"),
        ("lines to add at the end", "a\n", "@@\n+b\n", "a\nb\n"),
        ("lines to add behind a line", "f:\n  x\ng:\n", "@@ f:\n+  y\n", "f:\n  y\n  x\ng:\n"),
        ("the last of several", "a\nx\na\n", "@@\n-a\n+b\n*** End of File\n", "a\nx\nb\n"),
        (
            "by the beginning of a line",
            "fn f(x: u8) {\n  1\n}\n",
            "@@ fn f\n-  1\n+  2\n",
            "fn f(x: u8) {\n  2\n}\n",
        ),
        ("several anchors", "a:\n x\nb:\n x\n", "@@ b:\n@@\n- x\n+ y\n", "a:\n x\nb:\n y\n"),
        ("numbers of other patches", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a\nc\n"),
        ("an empty line that lost its space", "a\n\nb\n", "@@\n a\n\n-b\n+c\n", "a\n\nc\n"),
        ("space at a line's end stays", "a  \nb\n", "@@\n a\n-b\n+c\n", "a  \nc\n"),
        ("windows lines", "a\r\nb\r\n", "@@\n a\n-b\n+c\n+d\n", "a\r\nc\r\nd\r\n"),
        ("no newline at the end", "a\nb", "@@\n a\n-b\n+c\n", "a\nc"),
        ("an empty file", "", "@@\n+a\n", "a\n"),
    ] {
        let project = Project::with(&[("f", old)]);
        project.ok("apply_patch", patch(&format!("*** Update File: f\n{body}")));
        assert_eq!(project.content("f"), new, "{name}");
    }
}

#[test]
fn one_part_that_does_not_fit_and_nothing_is_changed() {
    let good = "*** Add File: x/new\n+new\n*** Update File: a\n@@\n-one\n+1\n";
    for (bad, code) in [
        ("*** Update File: b\n@@\n-three\n+3\n", "no_match"),
        ("*** Update File: b\n@@ nowhere\n-two\n+3\n", "no_match"),
        ("*** Update File: twice\n@@\n-x\n+y\n", "ambiguous"),
        ("*** Update File: missing\n@@\n-x\n+y\n", "not_found"),
        ("*** Delete File: missing\n", "not_found"),
        ("*** Delete File: dir\n", "is_directory"),
        ("*** Add File: b\n+x\n", "already_exists"),
        ("*** Update File: b\n*** Move to: a\n", "already_exists"),
        ("*** Update File: bin\n@@\n-x\n+y\n", "binary"),
        ("*** Delete File: link\n", "invalid_arguments"),
        ("*** Add File: .git/hooks/x\n+x\n", "protected"),
        ("*** Add File: dir/\n+x\n", "is_directory"),
        ("*** Add File: ../x\n+x\n", "access_denied"),
    ] {
        let project =
            Project::with(&[("a", "one\n"), ("b", "two\n"), ("twice", "x\nx\n"), ("dir/c", "")]);
        project.put("bin", b"\0\x01\x02");
        symlink("a", project.path("link")).unwrap();
        let names = project.names(".");
        project.fails("apply_patch", patch(&format!("{good}{bad}")), code);
        assert_eq!((project.content("a"), project.content("b")), ("one\n".into(), "two\n".into()));
        assert_eq!(project.names("."), names, "{bad}");
    }
}

#[test]
fn what_is_no_patch_is_said_with_its_line() {
    let project = Project::with(&[("a", "one\n")]);
    for (text, words) in [
        ("*** Update File: a\n", "begins with `*** Begin Patch`"),
        ("*** Begin Patch\n*** Update File: a\n@@\n-one\n+1\n", "ends with `*** End Patch`"),
        ("*** Begin Patch\n*** End Patch", "names no file"),
        ("*** Begin Patch\n*** Replace File: a\n*** End Patch", "line 2 of the patch"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "changes nothing"),
        ("*** Begin Patch\n*** Update File: a\n@@\n one\n*** End Patch", "changes nothing"),
        ("*** Begin Patch\n*** Update File: a\n@@\n*one\n*** End Patch", "begins with neither"),
        ("*** Begin Patch\n*** Add File: b\nx\n*** End Patch", "begins with `+`"),
    ] {
        let said = project.fails("apply_patch", json!({"patch": text}), "invalid_arguments");
        assert!(said.contains(words), "{text:?}: {said}");
    }
    assert_eq!(project.content("a"), "one\n");
}

#[test]
fn parts_of_a_patch_see_those_before_them() {
    let project = Project::with(&[("a", "one\ntwo\n"), ("b", "b\n")]);
    let body = "*** Update File: a\n@@\n-one\n+1\n*** Update File: ./a\n@@\n-two\n+2\n\
                *** Delete File: b\n*** Add File: b\n+new\n";
    let text = project.ok("apply_patch", patch(body));
    assert_eq!((project.content("a"), project.content("b")), ("1\n2\n".into(), "new\n".into()));
    assert!(text.starts_with("edited a\nedited b\n"), "{text}");
}

#[test]
fn a_file_that_moves_keeps_its_permissions() {
    let project = Project::with(&[("run.sh", "#!/bin/sh\n")]);
    let mode = |name: &str| project.path(name).metadata().unwrap().permissions().mode() & 0o777;
    let executable = std::fs::Permissions::from_mode(0o750);
    std::fs::set_permissions(project.path("run.sh"), executable).unwrap();
    project.ok("apply_patch", patch("*** Update File: run.sh\n*** Move to: bin/run\n"));
    assert_eq!((mode("bin/run"), project.names(".")), (0o750, vec!["bin".to_owned()]));
}

/// A directory that takes no file makes the last step fail when the others are done.
#[test]
fn a_step_that_fails_takes_those_before_it_back() {
    if is_root() {
        return mounts::a_step_that_fails();
    }
    let project = Project::with(&[("a", "one\n"), ("shut/b", "two\n")]);
    let shut = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(project.path("shut"), mode).unwrap();
    };
    shut(0o500);
    let body =
        "*** Update File: a\n@@\n-one\n+1\n*** Add File: new/c\n+c\n*** Delete File: shut/b\n";
    let text = project.fails("apply_patch", patch(body), "permission_denied");
    shut(0o700);
    assert!(text.contains("; nothing was changed"), "{text}");
    assert_eq!((project.content("a"), project.content("shut/b")), ("one\n".into(), "two\n".into()));
    assert_eq!(project.names("."), ["a", "shut"], "nor is the directory that it made there");
}

/// Root may write anywhere but where the file system itself says no.
mod mounts {
    use super::{Project, patch};
    use std::process::Command;

    pub fn a_step_that_fails() {
        let project = Project::with(&[("a", "one\n"), ("shut/b", "two\n")]);
        let set = |flag: &str| {
            let b = project.path("shut/b");
            Command::new("chattr").arg(flag).arg(b).status().is_ok_and(|status| status.success())
        };
        assert!(set("+i"), "root's half of this test needs chattr and a file system that knows it");
        let body =
            "*** Update File: a\n@@\n-one\n+1\n*** Add File: new/c\n+c\n*** Delete File: shut/b\n";
        let text = project.fails("apply_patch", patch(body), "permission_denied");
        assert!(set("-i"));
        assert!(text.contains("; nothing was changed"), "{text}");
        assert_eq!(project.content("a"), "one\n");
        assert_eq!(project.names("."), ["a", "shut"]);
    }
}

#[test]
fn the_question_shows_its_diff_and_each_path() {
    let project = Project::with(&[("a", "one\n"), ("b", "two\n")]);
    let body = "*** Update File: a\n*** Move to: c\n@@\n-one\n+1\n*** Delete File: b\n";
    let input = patch(body).to_string();
    let probe =
        probe("apply_patch", &input, &project.place, &Cancel::new().unwrap(), Engine::Without)
            .unwrap();
    let named: Vec<&str> = probe.paths.iter().map(|path| path.named.as_str()).collect();
    assert_eq!(named, ["a", "c", "b"]);
    assert!(probe.paths[0].digest.is_some() && probe.paths[1].digest.is_none());
    for line in ["-one", "+1", "-two", "--- /dev/null", "+++ b/c"] {
        assert!(probe.diff.lines().any(|found| found == line), "{line}: {}", probe.diff);
    }
}

#[test]
fn a_file_that_is_not_what_was_judged_is_not_patched() {
    let mut project = Project::with(&[("a", "one\n"), ("b", "two\n")]);
    let body = "*** Update File: a\n@@\n-one\n+1\n*** Delete File: b\n";
    let input = patch(body);
    let judge = |project: &Project| -> Vec<JudgedPath> {
        let (input, cancel) = (input.to_string(), Cancel::new().unwrap());
        let probe = probe("apply_patch", &input, &project.place, &cancel, Engine::Without).unwrap();
        let judged =
            |path: protocol::call::ProbedPath| JudgedPath { real: path.real, digest: path.digest };
        probe.paths.into_iter().map(judged).collect()
    };
    project.judged = judge(&project);
    project.put("b", b"somebody's\n");
    project.fails("apply_patch", input.clone(), "stale");
    assert_eq!(
        (project.content("a"), project.content("b")),
        ("one\n".into(), "somebody's\n".into())
    );
    project.judged = judge(&project);
    project.ok("apply_patch", input);
    assert_eq!((project.content("a"), project.names(".")), ("1\n".into(), vec!["a".to_owned()]));
}

#[test]
fn no_patch_makes_a_repository_out_of_files_that_are_harmless_alone() {
    let add = |paths: &[&str]| {
        patch(&paths.iter().map(|path| format!("*** Add File: {path}\n+x\n")).collect::<String>())
    };
    for paths in [
        ["nb/HEAD", "nb/objects/x", "nb/refs/x/y", "nb/config"],
        ["nb/config", "nb/refs/x", "nb/objects/x", "nb/HEAD"],
        ["a/NB/head", "a/nb/Objects/x", "A/nb/refs/x", "a/nb/hooks/post-commit"],
        ["HEAD", "objects/x", "refs/x", "config"],
        ["nb/HEAD", "nb/commondir", "nb/x", "nb/y"],
    ] {
        let project = Project::new();
        project.fails("apply_patch", add(&paths), "protected");
        assert!(project.names(".").is_empty(), "{paths:?}");
    }
    let project = Project::with(&[("nb/HEAD", "x"), ("old/refs", "x\n"), ("nb/notes", "x\n")]);
    project.fails("apply_patch", add(&["nb/objects/x", "nb/refs/x"]), "protected");
    let moved = "*** Add File: nb/objects/x\n+x\n*** Update File: old/refs\n*** Move to: nb/refs\n";
    project.fails("apply_patch", patch(moved), "protected");
    // The control: one part is missing, is in another directory, or is removed by the same patch.
    for paths in [&["nb/objects/x", "nb/config"][..], &["of/HEAD", "of/refs/x", "at/objects/x"]] {
        project.ok("apply_patch", add(paths));
    }
}

#[test]
fn a_hunk_in_another_form_fits_and_a_near_miss_is_shown() {
    let file = "top\r\n\u{1112}\u{1161}\u{11ab} e\u{301} one\r\nsay “a”\r\n";
    let patch = |hunk: &str| {
        let patch = format!("*** Begin Patch\n*** Update File: f\n@@\n{hunk}\n*** End Patch");
        json!({ "patch": patch })
    };
    let project = Project::with(&[("f", file)]);
    project.ok("apply_patch", patch(" top\n-한 é one\n+한 é two\n+new\n say \"a\""));
    let expected = file.replace("one\r\n", "two\r\nnew\r\n");
    assert_eq!(project.content("f"), expected);
    let project = Project::with(&[("f", file)]);
    project.ok("apply_patch", patch("-한 é one\n-say \"a\""));
    assert_eq!(project.content("f"), "top\r\n");
    let text = project.fails("apply_patch", patch(" top\n-한 é won\n+x"), "no_match");
    assert!(text.contains("does not fit"), "{text}");
    let project = Project::with(&[("f", file)]);
    let text = project.fails("apply_patch", patch(" top\n-한 é won\n+x"), "no_match");
    assert!(text.contains("the most similar place is lines 1 to 2"), "{text}");
}
