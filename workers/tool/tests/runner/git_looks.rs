//! Read-only git calls on repositories of every shape: they work, they write nothing, and they run
//! no program that the repository names. Git itself shows that each trap works.

use crate::supervisor::{Project, Runner, run};
use protocol::call::Outcome;
use protocol::tool::{RunnerJob, ToTool};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

pub const TESTS: &[crate::Test] = &[
    ("git_looks_at_repositories_of_every_shape", git_looks_at_repositories_of_every_shape),
    ("git_runs_nothing_that_a_repository_names", git_runs_nothing_that_a_repository_names),
    ("git_of_the_project_is_not_the_git_that_looks", git_of_the_project_is_not_the_git_that_looks),
    ("git_says_which_filter_was_not_run", git_says_which_filter_was_not_run),
];

const LOOKS: [(&str, &str); 4] = [
    ("git_status", "{}"),
    ("git_diff", "{}"),
    ("git_log", "{}"),
    ("git_show", r#"{"ref":"HEAD"}"#),
];

/// Git outside of any cage, without the settings of the user who runs the tests.
fn plain(at: &Path, words: &[&str]) -> std::process::Output {
    let ours = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    let files = ["-c", "protocol.file.allow=always"];
    Command::new("git")
        .args(ours)
        .args(files)
        .args(words)
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git is needed for these tests")
}

fn by_hand(at: &Path, words: &[&str]) {
    let ran = plain(at, words);
    assert!(ran.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A repository with one commit of `a`.
fn repository(at: &Path) {
    std::fs::create_dir_all(at).unwrap();
    std::fs::write(at.join("a"), "one\n").unwrap();
    by_hand(at, &["init", "--quiet", "--initial-branch=main"]);
    by_hand(at, &["add", "-A"]);
    by_hand(at, &["commit", "--quiet", "-m", "The first"]);
}

/// Every file below these, with the metadata that a write would change.
fn all(roots: &[PathBuf]) -> BTreeMap<PathBuf, (i64, i64, u64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut left = roots.to_vec();
    while let Some(path) = left.pop() {
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            left.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        }
        let bytes = if meta.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        found.insert(path, (meta.mtime(), meta.mtime_nsec(), meta.ino(), bytes));
    }
    found
}

fn git_looks_at_repositories_of_every_shape() {
    type Shape = (&'static str, fn(&Project));
    let shapes: [Shape; 3] = [
        ("plain", |project| repository(&project.path(""))),
        ("linked worktree", |project| {
            repository(&project.base.join("main"));
            let at = project.path("");
            let at = at.to_str().unwrap();
            by_hand(&project.base.join("main"), &["worktree", "add", "--quiet", at, "-b", "other"]);
        }),
        ("submodule", |project| {
            repository(&project.base.join("source"));
            let base = project.base.join("outer");
            repository(&base);
            by_hand(&base, &["submodule", "--quiet", "add", "../source", "proj"]);
        }),
    ];
    for (shape, make) in shapes {
        let mut project = Project::new();
        make(&project);
        if shape == "submodule" {
            project.base = project.base.join("outer");
            std::fs::create_dir(project.base.join("temp")).unwrap();
        }
        // Of another time than the index has, but for one line the same.
        let at = project.path("");
        std::fs::write(at.join("b"), "staged\n").unwrap();
        by_hand(&at, &["add", "b"]);
        std::fs::write(at.join("a"), "one\n").unwrap();
        std::fs::write(at.join("b"), "changed\n").unwrap();
        let before = all(std::slice::from_ref(&project.base));
        for (tool, input) in LOOKS {
            let result = project.run(tool, serde_json::from_str(input).unwrap()).result;
            assert_eq!(result.outcome, Outcome::Exited { code: 0 }, "{shape}: {}", result.text);
            let wanted = match tool {
                "git_status" => "AM b\n",
                "git_diff" => "+changed",
                _ => "The first",
            };
            assert!(result.text.contains(wanted), "{shape} {tool}: {}", result.text);
            assert!(!result.text.contains("the cage"), "{shape} {tool}: {}", result.text);
        }
        let after = all(std::slice::from_ref(&project.base));
        let changed: Vec<_> =
            after.iter().filter(|(path, it)| before.get(*path) != Some(it)).collect();
        assert!(changed.is_empty() && before.len() == after.len(), "{shape}: {changed:?}");
        // Git itself writes the files that a read-only call does not.
        by_hand(&at, &["status"]);
        assert_ne!(all(std::slice::from_ref(&project.base)), after, "{shape}: the control");
        // The tool commits the staged files.
        by_hand(&at, &["config", "user.name", "A"]);
        by_hand(&at, &["config", "user.email", "a@example.org"]);
        let result = project.run("git_commit", json!({"subject": "The second"})).result;
        assert_eq!(result.outcome, Outcome::Exited { code: 0 }, "{shape}: {}", result.text);
    }
}

/// A program that leaves a mark.
fn trap(project: &Project) -> (String, PathBuf) {
    let (program, mark) = (project.base.join("trap"), project.path("ran"));
    std::fs::write(&program, format!("#!/bin/sh\ntouch '{}'\n", mark.display())).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    (program.to_str().unwrap().to_owned(), mark)
}

fn git_runs_nothing_that_a_repository_names() {
    let commit = ("git_commit", json!({"subject": "x"}));
    let look = |tool: &'static str| (tool, json!({}));
    let by_commit = &["commit", "--quiet", "-m", "x"][..];
    type Case<'a> = (&'a str, &'a str, (&'a str, Value), &'a [&'a str]);
    let cases: [Case<'_>; 12] = [
        ("core.fsmonitor", "", look("git_status"), &["status"]),
        ("diff.external", "", look("git_diff"), &["diff"]),
        ("diff.x.command", "a diff=x", look("git_diff"), &["diff"]),
        ("diff.x.textconv", "a diff=x", look("git_diff"), &["diff"]),
        ("filter.x.clean", "a filter=x", look("git_status"), &["status"]),
        ("filter.x.clean", "a filter=x", look("git_diff"), &["diff"]),
        ("filter.x.process", "a filter=x", look("git_diff"), &["diff"]),
        ("filter.x.clean", "a filter=x", commit.clone(), by_commit),
        ("gpg.program", "", commit.clone(), &["commit", "--quiet", "-S", "-m", "x"]),
        ("core.editor", "", commit.clone(), &["commit", "--quiet"]),
        ("core.sshCommand", "", look("git_log"), &["ls-remote", "ssh://nowhere.invalid/x"]),
        ("alias.look", "", look("git_log"), &["look"]),
    ];
    for (key, attributes, (tool, input), control) in cases {
        let project = Project::new();
        let at = project.path("");
        repository(&at);
        let (program, mark) = trap(&project);
        std::fs::create_dir_all(at.join(".git/info")).unwrap();
        std::fs::write(at.join(".git/info/attributes"), attributes).unwrap();
        std::fs::write(at.join("b"), "staged\n").unwrap();
        by_hand(&at, &["add", "b"]);
        // Its length is the same: git must read it to know.
        std::fs::write(at.join("a"), "uno\n").unwrap();
        for (key, value) in [("user.name", "A"), ("user.email", "a@example.org")] {
            by_hand(&at, &["config", key, value]);
        }
        let shell = if key.starts_with("alias") { "!" } else { "" };
        by_hand(&at, &["config", key, &format!("{shell}{program}")]);
        let result = project.run(tool, input).result;
        assert_eq!(result.outcome, Outcome::Exited { code: 0 }, "{key}: {}", result.text);
        assert!(!mark.exists(), "{key} was run by {tool}");
        if tool == "git_commit" {
            std::fs::write(at.join("c"), "more\n").unwrap();
            by_hand(&at, &["add", "c"]);
        }
        // It may fail: the trap speaks no protocol.
        plain(&at, control);
        assert!(mark.exists(), "{key}: the trap works with git {control:?}");
    }
    for hook in ["pre-commit", "post-commit", "post-index-change", "reference-transaction"] {
        let project = Project::new();
        let at = project.path("");
        repository(&at);
        let (program, mark) = trap(&project);
        std::fs::write(at.join("b"), "staged\n").unwrap();
        by_hand(&at, &["add", "b"]);
        let hooks = at.join(".git/hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        std::os::unix::fs::symlink(&program, hooks.join(hook)).unwrap();
        for (key, value) in [("user.name", "A"), ("user.email", "a@example.org")] {
            by_hand(&at, &["config", key, value]);
        }
        for (tool, input) in LOOKS {
            project.run(tool, serde_json::from_str(input).unwrap());
        }
        let result = project.run("git_commit", json!({"subject": "x"})).result;
        assert_eq!(result.outcome, Outcome::Exited { code: 0 }, "{hook}: {}", result.text);
        assert!(!mark.exists(), "{hook} was run");
        std::fs::write(at.join("c"), "more\n").unwrap();
        plain(&at, &["add", "c"]);
        plain(&at, by_commit);
        assert!(mark.exists(), "{hook}: the trap works");
    }
}

/// A command may run the program that it built; a read-only call without approval may not.
fn git_of_the_project_is_not_the_git_that_looks() {
    let project = Project::new();
    let at = project.path("");
    repository(&at);
    let (program, mark) = trap(&project);
    std::fs::create_dir(at.join("bin")).unwrap();
    std::fs::copy(program, at.join("bin/git")).unwrap();
    let bin = at.join("bin").to_str().unwrap().to_owned();
    let with_path = |tool: &str, input: &str| {
        let spec = tool_specs::specs().iter().find(|spec| spec.name == tool).unwrap();
        let mut runner = Runner::caged(&project.confinement(spec.profile));
        let mut job = run(tool, input);
        if let RunnerJob::Run { env, .. } = &mut job {
            for (_, path) in env.iter_mut().filter(|(name, _)| name == "PATH") {
                *path = format!("{bin}:{path}");
            }
        }
        runner.say(&ToTool::Go(job));
        runner.done().result
    };
    let result = with_path("git_log", "{}");
    assert!(result.text.contains("The first") && !mark.exists(), "{}", result.text);
    with_path("bash", r#"{"command":"git log"}"#);
    assert!(mark.exists(), "the control");
}

fn git_says_which_filter_was_not_run() {
    let project = Project::new();
    let at = project.path("");
    repository(&at);
    let home = project.base.join("home");
    std::fs::create_dir(&home).unwrap();
    let settings = "[filter \"large\"]\n\tclean = no-such-program\n\trequired = true\n";
    std::fs::write(at.join("a"), "uno\n").unwrap();
    let look = || {
        let spec = tool_specs::specs().iter().find(|spec| spec.name == "git_diff").unwrap();
        let mut confinement = project.confinement(spec.profile);
        confinement.tool_homes = vec![("AGENTD_SETTINGS".to_owned(), (&home).into())];
        let mut runner = Runner::caged(&confinement);
        let mut job = run("git_diff", "{}");
        if let RunnerJob::Run { env, .. } = &mut job {
            let settings = home.join("settings").display().to_string();
            env.push(("GIT_CONFIG_GLOBAL".to_owned(), settings));
        }
        runner.say(&ToTool::Go(job));
        runner.done().result
    };
    let without = look();
    assert!(without.text.contains("+uno") && !without.text.contains("filter"), "{}", without.text);
    std::fs::write(home.join("settings"), settings).unwrap();
    let with = look();
    assert_eq!(with.outcome, Outcome::Exited { code: 0 }, "{}", with.text);
    assert!(with.text.contains("+uno") && with.text.contains("not run (large)"), "{}", with.text);

    let text = "[include]\n\tpath = %(prefix)/x\n";
    std::fs::write(at.join(".git/config"), text).unwrap();
    let result = project.run("git_status", json!({})).result;
    assert!(result.is_error && result.text.contains("Use git in bash"), "{}", result.text);
}
