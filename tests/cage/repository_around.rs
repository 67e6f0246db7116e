//! A project below the root of a git repository: git works there, the rest of the repository is read and
//! never written, and the instructions of all levels are followed.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, Run, needs, run};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn git(desk: &Desk, words: &[&str]) -> String {
    let out = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(words)
        .current_dir(desk.project())
        .env("HOME", desk.home())
        .output()
        .unwrap();
    assert!(out.status.success(), "this test drives git: {words:?}: {out:?}");
    String::from_utf8(out.stdout).unwrap()
}

/// A desk whose project is a repository with two packages, and instructions at each level.
fn repository() -> Desk {
    needs("git");
    let desk = Desk::new();
    desk.write("AGENTS.md", "The root says one.");
    desk.write("pkg/AGENTS.md", "The folder says two.");
    desk.write("pkg/a/AGENTS.md", "The package says three.");
    desk.write("pkg/a/x.txt", "old\n");
    desk.write("pkg/b/y.txt", "neighbour\n");
    desk.write("secret/.ssh/id_ed25519", "KEY OF THE TREE");
    desk.write(".ssh/id_ed25519", "KEY OF THE ROOT");
    git(&desk, &["init", "-q", "-b", "first"]);
    git(&desk, &["add", "AGENTS.md", "pkg"]);
    git(&desk, &["commit", "-qm", "one"]);
    desk
}

/// Runs a script as the one call in this directory. Returns the run, the whole first request and the result.
fn in_dir(
    desk: &Desk,
    dir: &Path,
    tier: &str,
    home: Option<&Path>,
    script: &str,
) -> (Run, String, String) {
    let asked = call("toolu_1", "bash", &json!({ "command": script }).to_string());
    let server = Server::scripted([Answer::says([asked]), Answer::text("done")]);
    let mut agentd = desk.with_server(&server, &["-p", "do it", "--permission-mode", "auto"]);
    agentd.env("AGENTD_SANDBOX_TIER", tier).current_dir(dir);
    if let Some(home) = home {
        agentd.env("HOME", home);
    }
    let ran = run(agentd);
    let requests = server.requests();
    let told = requests[1].body["messages"].as_array().unwrap().last().unwrap().clone();
    let result: &Value = &told["content"][0]["content"];
    (ran, requests[0].body.to_string(), result.to_string())
}

const WORK: &str = "git status --porcelain; echo new > x.txt; git diff --stat; git add x.txt; \
    git -c user.name=a -c user.email=a@example.org commit -qm two && echo committed; cat ../b/y.txt; \
    echo changed > ../b/y.txt; echo '#!/bin/sh' > ../../.git/hooks/pre-commit; \
    cat ../../.ssh/id_ed25519 2>/dev/null; true";

#[test]
fn git_works_below_the_root_and_the_rest_is_only_read() {
    for tier in ["A", "B"] {
        let desk = repository();
        let dir: PathBuf = desk.project().join("pkg/a");
        let (ran, request, told) = in_dir(&desk, &dir, tier, None, WORK);
        assert_eq!(ran.code, 0, "{tier}: {}{told}", ran.err);
        for part in ["committed", "neighbour", "x.txt"] {
            assert!(told.contains(part), "{tier}: {part}: {told}");
        }
        assert!(!told.contains("not a git repository"), "{tier}: {told}");
        // Tier B can hide no part of a directory; the record lists the key then.
        assert_eq!(told.contains("KEY OF THE ROOT"), tier == "B", "{tier}: {told}");
        assert_eq!(git(&desk, &["log", "--format=%s"]), "two\none\n", "{tier}");
        assert_eq!(git(&desk, &["show", "HEAD:pkg/a/x.txt"]), "new\n", "{tier}");
        assert_eq!(desk.read("pkg/b/y.txt"), "neighbour\n", "{tier}");
        assert!(!desk.project().join(".git/hooks/pre-commit").exists(), "{tier}: {told}");
        // All levels, the root's first.
        let at =
            |text: &str| request.find(text).unwrap_or_else(|| panic!("{tier}: {text}: {request}"));
        assert!(at("The root says one.") < at("The folder says two."), "{tier}");
        assert!(at("The folder says two.") < at("The package says three."), "{tier}");
        let said =
            format!("this project is pkg/a of the git repository {}", desk.project().display());
        assert!(ran.err.contains(&said), "{tier}: {}", ran.err);
        let doctor = run(desk.agentd(&["doctor", "--project", dir.to_str().unwrap()])).out;
        assert!(doctor.contains("the repository that this project is a part of"), "{doctor}");
        assert_eq!(
            doctor.matches("the model's instructions before the project's").count(),
            2,
            "{doctor}"
        );
    }
}

#[test]
fn a_repository_around_the_home_is_left_out_and_said() {
    for tier in ["A", "B"] {
        let desk = repository();
        let dir = desk.project().join("pkg/a");
        fs::create_dir(desk.project().join("me")).unwrap();
        // Within the home, and around it.
        for home in [desk.project(), desk.project().join("me")] {
            let (ran, request, told) =
                in_dir(&desk, &dir, tier, Some(&home), "git status; cat ../b/y.txt");
            assert!(told.contains("not a git repository"), "{tier}: {told}");
            assert!(!told.contains("neighbour"), "{tier}: {told}");
            assert!(!request.contains("The root says one."), "{tier}");
            assert!(request.contains("The package says three."), "{tier}: the control");
            assert!(
                ran.err.contains("is left out, since your home lies in it"),
                "{tier}: {}",
                ran.err
            );
        }
    }
}

/// A project and the repository in whose git directory its hooks lie.
fn hooked(layout: &str) -> (Desk, PathBuf) {
    let desk = repository();
    let hook =
        desk.write(".git/hooks/pre-commit", "#!/bin/sh\nsh ./.husky/check && ./.husky/check\n");
    let check = desk.write(".husky/check", "#!/bin/sh\necho the hook ran\n");
    for program in [hook, check] {
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    git(&desk, &["add", ".husky"]);
    git(&desk, &["commit", "-qnm", "hooks"]);
    let dir = match layout {
        "root" => desk.project(),
        "below" => desk.project().join("pkg/a"),
        _ => {
            let place = desk.outside().join("linked");
            git(&desk, &["worktree", "add", "-q", place.to_str().unwrap()]);
            place
        }
    };
    (desk, dir)
}

#[test]
fn the_hooks_of_a_repository_run_wherever_the_project_lies_in_it() {
    for (tier, layout) in
        ["A", "B"].into_iter().flat_map(|tier| ["root", "below", "linked"].map(|it| (tier, it)))
    {
        let (desk, dir) = hooked(layout);
        let script = "echo x > new; git add new; \
            git -c user.name=a -c user.email=a@example.org commit -m two && echo committed";
        let (ran, _, told) = in_dir(&desk, &dir, tier, None, script);
        assert_eq!(ran.code, 0, "{tier} {layout}: {}", ran.err);
        assert_eq!(told.matches("the hook ran").count(), 2, "{tier} {layout}: {told}");
        assert!(told.contains("committed"), "{tier} {layout}: {told}");
    }
}

#[test]
fn a_project_in_a_git_directory_is_no_part_of_the_repository_around_that() {
    let desk = repository();
    git(&desk, &["init", "-q", "--bare", "pkg/bare.git"]);
    fs::create_dir(desk.project().join("pkg/bare.git/sub")).unwrap();
    for place in [".git/hooks", "pkg/bare.git", "pkg/bare.git/sub"] {
        let dir = desk.project().join(place);
        let (ran, _, told) =
            in_dir(&desk, &dir, "A", None, "cat ../../pkg/b/y.txt ../../b/y.txt; true");
        assert!(!ran.err.contains("of the git repository"), "{place}: {}", ran.err);
        assert!(!told.contains("neighbour"), "{place}: {told}");
    }
}

#[test]
fn git_data_that_calls_do_not_see_are_named_with_the_way_to_grant_them() {
    for (layout, needed) in
        [("link", "moved.git"), ("separate", "apart.git"), ("borrowed", "project")]
    {
        let desk = repository();
        let outside = desk.outside();
        let (dir, place) = (outside.join("opened"), outside.join(needed));
        match layout {
            "link" => {
                git(&desk, &["clone", "-q", ".", dir.to_str().unwrap()]);
                fs::rename(dir.join(".git"), &place).unwrap();
                std::os::unix::fs::symlink(&place, dir.join(".git")).unwrap();
            }
            "separate" => {
                let apart = place.to_str().unwrap();
                git(
                    &desk,
                    &["clone", "-q", "--separate-git-dir", apart, ".", dir.to_str().unwrap()],
                );
            }
            _ => drop(git(&desk, &["clone", "-q", "--shared", ".", dir.to_str().unwrap()])),
        }
        let place = if layout == "borrowed" { desk.project() } else { place };
        let (ran, _, told) = in_dir(&desk, &dir, "A", None, "git log --format=%s");
        assert!(!told.contains(r"one\n"), "{layout}: the note is true: {told}");
        let way_on = format!("--add-dir {}", place.display());
        assert!(ran.err.contains(&way_on), "{layout}: {}", ran.err);
        let doctor = run(desk.agentd(&["doctor", "--project", dir.to_str().unwrap()])).out;
        assert!(doctor.contains(&way_on), "{layout}: {doctor}");
        // The way on works.
        let asked =
            call("toolu_1", "bash", &json!({ "command": "git log --format=%s" }).to_string());
        let server = Server::scripted([Answer::says([asked]), Answer::text("done")]);
        let flags = ["-p", "x", "--permission-mode", "auto", "--add-dir", place.to_str().unwrap()];
        let mut agentd = desk.with_server(&server, &flags);
        agentd.current_dir(&dir);
        let ran = run(agentd);
        let told = server.requests()[1].body["messages"].to_string();
        assert!(told.contains(r"one\n"), "{layout}: {told}");
        assert!(!ran.err.contains("which calls do not see"), "{layout}: {}", ran.err);
    }
}
