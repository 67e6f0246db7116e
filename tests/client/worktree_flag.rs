//! `--worktree NAME`: a session in a git worktree on its own branch, where git works in the sandbox.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, Run, needs, run};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

#[track_caller]
fn git(directory: &Path, words: &[&str]) -> String {
    let out = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(words)
        .current_dir(directory)
        .env("HOME", directory)
        .output()
        .unwrap();
    assert!(out.status.success(), "this test drives git: {words:?}: {out:?}");
    String::from_utf8(out.stdout).unwrap()
}

/// A desk whose project is a repository with a package.
fn repository() -> Desk {
    needs("git");
    let desk = Desk::new();
    desk.write("x.txt", "old\n");
    desk.write("pkg/a/y.txt", "old\n");
    git(&desk.project(), &["init", "-q", "-b", "first"]);
    git(&desk.project(), &["add", "x.txt", "pkg"]);
    git(&desk.project(), &["commit", "-qm", "one"]);
    desk
}

/// Runs a script as the one call of a session with these flags, in this directory.
fn in_worktree(
    desk: &Desk,
    directory: &Path,
    tier: &str,
    flags: &[&str],
    script: &str,
) -> (Run, String) {
    let asked = call("toolu_1", "bash", &json!({ "command": script }).to_string());
    let server = Server::scripted([Answer::says([asked]), Answer::text("done")]);
    let arguments = [&["-p", "do it", "--permission-mode", "auto"], flags].concat();
    let mut agentd = desk.with_server(&server, &arguments);
    agentd.env("AGENTD_SANDBOX_TIER", tier).current_dir(directory);
    let ran = run(agentd);
    let requests = server.requests();
    let result = requests.get(1).map(|request| request.body["messages"].to_string());
    (ran, result.unwrap_or_default())
}

const WORK: &str = "git status --porcelain && echo clean; echo new > x.txt; git add x.txt; \
    git -c user.name=a -c user.email=a@example.org commit -qm two && echo committed; \
    echo '#!/bin/sh' > $(git rev-parse --git-common-dir)/hooks/pre-commit; pwd";

#[test]
fn git_works_in_the_worktree_and_the_project_stays_as_it_is() {
    for tier in ["A", "B"] {
        let desk = repository();
        let project = desk.project();
        let place = project.join(".worktrees/fix");
        let (ran, told) = in_worktree(&desk, &project, tier, &["--worktree", "fix"], WORK);
        assert_eq!(ran.code, 0, "{tier}: {}{told}", ran.err);
        assert!(
            ran.err.contains("on the new branch fix; `git worktree remove "),
            "{tier}: {}",
            ran.err
        );
        for part in ["clean", "committed", ".worktrees/fix"] {
            assert!(told.contains(part), "{tier}: {part}: {told}");
        }
        assert_eq!(git(&project, &["log", "--format=%s", "fix"]), "two\none\n", "{tier}");
        assert_eq!(git(&project, &["log", "--format=%s", "first"]), "one\n", "{tier}");
        assert_eq!(git(&project, &["status", "--porcelain"]), "", "git ignores the worktrees");
        assert_eq!(desk.read("x.txt"), "old\n", "{tier}");
        assert!(!project.join(".git/hooks/pre-commit").exists(), "{tier}: {told}");
        assert_eq!(git(&place, &["status", "--porcelain"]), "", "{tier}");

        // The next session with this name goes on there, and with the session of the worktree.
        let (again, told) =
            in_worktree(&desk, &project, tier, &["--worktree", "fix", "-c"], "cat x.txt");
        assert_eq!(again.code, 0, "{tier}: {}", again.err);
        assert!(again.err.contains("on the branch fix;") && told.contains("new"), "{tier}: {told}");
        assert!(told.contains("committed"), "it is the same conversation: {told}");
        let listed = run(desk.agentd(&["ls", "--json"]));
        assert_eq!(listed.out.lines().count(), 1, "{}", listed.out);
        assert!(listed.out.contains(".worktrees/fix"), "{}", listed.out);
    }
}

#[test]
fn a_project_below_the_root_is_the_same_directory_of_the_worktree() {
    let desk = repository();
    let below = desk.project().join("pkg/a");
    let (ran, told) =
        in_worktree(&desk, &below, "A", &["--worktree", "fix"], "pwd; cat y.txt; git status");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(told.contains(".worktrees/fix/pkg/a") && told.contains("On branch fix"), "{told}");
    // From the worktree itself another one stands beside it.
    let first = desk.project().join(".worktrees/fix/pkg/a");
    let (ran, told) = in_worktree(&desk, &first, "A", &["--worktree", "more"], "pwd");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let place = desk.project().canonicalize().unwrap().join(".worktrees/more/pkg/a");
    assert!(told.contains(place.to_str().unwrap()), "{told}");
    // A branch without that directory.
    git(&desk.project(), &["checkout", "-q", "-b", "bare", "first"]);
    git(&desk.project(), &["rm", "-rq", "pkg"]);
    git(&desk.project(), &["commit", "-qm", "less"]);
    git(&desk.project(), &["checkout", "-q", "first"]);
    let (ran, _) = in_worktree(&desk, &below, "A", &["--worktree", "bare"], "pwd");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("the branch bare has no directory pkg/a"), "{}", ran.err);
}

#[test]
fn what_can_be_no_worktree_is_an_error_and_the_next_name_works() {
    let desk = repository();
    let project = desk.project();
    git(&project, &["worktree", "add", "-q", "-b", "away", "../away"]);
    let place = |name: &str| project.join(".worktrees").join(name);
    let control = |name: &str| {
        let (ran, _) = in_worktree(&desk, &project, "A", &["--worktree", name], "true");
        assert_eq!(ran.code, 0, "the control {name}: {}", ran.err);
    };
    control("good");
    fs::create_dir(place("taken")).unwrap();
    symlink(desk.home(), place("link")).unwrap();
    git(&place("good"), &["checkout", "-q", "-b", "other"]);
    let refused = |directory: &Path, flags: &[&str], words: &str| {
        let (ran, _) = in_worktree(&desk, directory, "A", flags, "true");
        assert_eq!(ran.code, 2, "{flags:?}: {}", ran.err);
        assert!(ran.err.contains(words), "{flags:?}: {words}: {}", ran.err);
    };
    let names = "cannot name a worktree";
    for name in ["../x", "a/b", ".x", "x.lock", ""] {
        refused(&project, &["--worktree", name], names);
    }
    refused(&project, &["--worktree=-x"], names);
    refused(&project, &["--worktree", "away"], "the branch away is checked out in");
    refused(&project, &["--worktree", "first"], "the branch first is checked out in");
    refused(&project, &["--worktree", "taken"], "is no worktree of this repository");
    refused(&project, &["--worktree", "link"], "is no worktree of this repository");
    refused(&project, &["--worktree", "good"], "is on the branch other");
    let plain: PathBuf = desk.outside().join("plain");
    fs::create_dir_all(&plain).unwrap();
    refused(&plain, &["--worktree", "x"], "needs a git repository");
    git(&plain, &["init", "-q"]);
    refused(&plain, &["--worktree", "x"], "HEAD");
    let bare = desk.outside().join("bare.git");
    git(&project, &["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    refused(&bare, &["--worktree", "x"], "no main working tree");
    refused(&project, &["--worktree", "x", "--resume", "0"], "cannot be used with");
    let attach = run(desk.agentd(&["attach", "--worktree", "x"]));
    assert_eq!(attach.code, 2, "{}", attach.err);
    assert!(!place("x").exists() && !project.join("../x").exists());
    // One that was deleted without git, and a branch that is there.
    fs::remove_dir_all(place("good")).unwrap();
    git(&project, &["branch", "-q", "waiting"]);
    control("good");
    control("waiting");
    assert_eq!(git(&place("waiting"), &["branch", "--show-current"]), "waiting\n");
}
