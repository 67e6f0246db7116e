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
    refused(&bare, &["--worktree", "x"], "no main working tree with a `.git`");
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

#[test]
fn a_link_of_the_branch_leads_no_session_out_of_its_worktree() {
    let desk = repository();
    let project = desk.project();
    let below = project.join("sub");
    desk.write("sub/z.txt", "old\n");
    git(&project, &["add", "sub"]);
    git(&project, &["commit", "-qm", "sub"]);
    let secret = desk.outside().join("secret");
    fs::create_dir_all(&secret).unwrap();
    git(&project, &["checkout", "-q", "-b", "evil"]);
    fs::remove_dir_all(&below).unwrap();
    symlink(&secret, &below).unwrap();
    git(&project, &["add", "-A", "sub"]);
    git(&project, &["commit", "-qm", "link"]);
    git(&project, &["checkout", "-q", "first"]);
    let enter = |name: &str| in_worktree(&desk, &below, "A", &["--worktree", name], "pwd");

    let (control, told) = enter("good");
    assert!(control.code == 0 && told.contains("good/sub"), "{}{told}", control.err);
    let (made, _) = enter("evil");
    assert_eq!(made.code, 2, "{}", made.err);
    assert!(made.err.contains("the branch evil has no directory sub\n"), "{}", made.err);
    assert!(!project.join(".worktrees/evil").exists(), "it is known before");
    // One that is there already.
    git(&project, &["worktree", "add", "-q", ".worktrees/evil", "evil"]);
    let (there, _) = enter("evil");
    assert_eq!(there.code, 2, "{}", there.err);
    assert!(there.err.contains("leads out of its place by a link"), "{}", there.err);
    assert!(!there.err.contains("the session works in"), "{}", there.err);
}

#[test]
fn filters_of_the_repository_do_not_run_and_those_of_the_person_see_no_key() {
    let desk = repository();
    let project = desk.project();
    fs::create_dir_all(desk.outside()).unwrap();
    let log = desk.outside().join("log");
    let logs = |name: &str| format!("echo {name} >> '{0}'; env >> '{0}'; cat", log.display());
    desk.write(
        ".gitattributes",
        "x.txt filter=evil\npkg/a/y.txt filter=own\nz.txt filter=hidden\n",
    );
    desk.write("z.txt", "old\n");
    git(&project, &["add", ".gitattributes", "z.txt"]);
    git(&project, &["commit", "-qm", "attributes"]);
    git(&project, &["config", "filter.evil.smudge", &logs("evil")]);
    git(&project, &["config", "filter.evil.required", "true"]);
    // Settings that count in the new worktree alone.
    let more = project.join(".git/more");
    let more = more.to_str().unwrap();
    git(&project, &["config", "-f", more, "filter.hidden.smudge", &logs("hidden")]);
    git(&project, &["config", "includeIf.onbranch:fix.path", more]);
    let own = desk.home().join(".gitconfig");
    git(&project, &["config", "-f", own.to_str().unwrap(), "filter.own.smudge", &logs("own")]);

    let server = Server::scripted([Answer::text("done")]);
    let mut agentd = desk.with_server(&server, &["-p", "go", "--worktree", "fix"]);
    agentd.env("OPENAI_API_KEY", "sk-of-the-person").current_dir(&project);
    let ran = run(agentd);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let logged = fs::read_to_string(&log).unwrap_or_default();
    assert!(logged.starts_with("own\n"), "the control: {logged}");
    assert!(!logged.contains("evil\n") && !logged.contains("hidden\n"), "{logged}");
    assert!(!logged.contains("sk-of-the-person"), "{logged}");
    assert_eq!(fs::read_to_string(project.join(".worktrees/fix/x.txt")).unwrap(), "old\n");
}

#[test]
fn a_half_made_worktree_is_refused_until_it_is_removed_and_two_at_once_make_one() {
    let desk = repository();
    let project = desk.project();
    let place = project.join(".worktrees/fix");
    let shown = place.to_str().unwrap();
    let add = ["worktree", "add", "-q", "--no-checkout", "--lock", "--reason", "initializing"];
    git(&project, &[&add[..], &["-b", "fix", shown, "HEAD"]].concat());
    let enter = || in_worktree(&desk, &project, "A", &["--worktree", "fix"], "cat x.txt").0;
    let refused = enter();
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("its making was interrupted"), "{}", refused.err);
    assert!(refused.err.contains("git worktree remove -f -f "), "{}", refused.err);
    git(&project, &["worktree", "remove", "-f", "-f", shown]);
    let made = enter();
    assert_eq!(made.code, 0, "{}", made.err);
    assert_eq!(fs::read_to_string(place.join("x.txt")).unwrap(), "old\n");
    // A lock of the person's own means nothing here.
    git(&project, &["worktree", "lock", "--reason", "on a stick", shown]);
    assert_eq!(enter().code, 0);

    let one = || in_worktree(&desk, &project, "A", &["--worktree", "both"], "cat x.txt").0;
    let both = std::thread::scope(|scope| {
        let runs = [(); 2].map(|()| scope.spawn(one));
        runs.map(|run| run.join().unwrap())
    });
    assert!(both.iter().all(|ran| ran.code == 0), "{} {}", both[0].err, both[1].err);
    let new = both.iter().filter(|ran| ran.err.contains("on the new branch both")).count();
    assert_eq!(new, 1, "{} {}", both[0].err, both[1].err);
}

#[test]
fn a_partial_clone_whose_files_are_missing_is_told_the_way_on() {
    let desk = repository();
    let project = desk.project();
    git(&project, &["config", "uploadpack.allowFilter", "true"]);
    git(&project, &["checkout", "-q", "-b", "fix"]);
    desk.write("x.txt", "of the branch\n");
    git(&project, &["commit", "-qam", "two"]);
    git(&project, &["checkout", "-q", "first"]);
    fs::create_dir_all(desk.outside()).unwrap();
    let clone = desk.outside().join("clone");
    let url = format!("file://{}", project.display());
    git(&desk.outside(), &["clone", "-q", "--filter=blob:none", &url, "clone"]);
    git(&clone, &["branch", "-q", "fix", "origin/fix"]);
    let (refused, _) = in_worktree(&desk, &clone, "A", &["--worktree", "fix"], "true");
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("reset --hard && git worktree unlock "), "{}", refused.err);
    let place = clone.join(".worktrees/fix");
    git(&place, &["reset", "-q", "--hard"]);
    git(&clone, &["worktree", "unlock", place.to_str().unwrap()]);
    let (control, told) = in_worktree(&desk, &clone, "A", &["--worktree", "fix"], "cat x.txt");
    assert!(control.code == 0 && told.contains("of the branch"), "{}{told}", control.err);
}
