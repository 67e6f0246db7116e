//! `agentd review`: changes against a base, findings with places, and nothing that changes anything.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, Run, run};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

fn git(directory: &Path, words: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]);
    let done = git.args(words).current_dir(directory).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A project with a commit on main and changes on a branch, one of them uncommitted and one a new file.
fn changed(desk: &Desk) {
    let project = desk.project();
    fs::create_dir_all(project.join("src")).unwrap();
    fs::write(project.join("src/a.rs"), "fn a() {}\n").unwrap();
    git(&project, &["init", "-q", "."]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "one"]);
    git(&project, &["checkout", "-qb", "work"]);
    fs::write(project.join("src/a.rs"), "fn a() {}\nfn committed() {}\n").unwrap();
    git(&project, &["commit", "-qam", "two"]);
    fs::write(project.join("src/a.rs"), "fn a() {}\nfn committed() {}\nfn uncommitted() {}\n")
        .unwrap();
    fs::write(project.join("new.rs"), "fn new() {}\n").unwrap();
}

fn found(severity: &str, file: &str, line: Value) -> Value {
    json!({"severity": severity, "file": file, "line": line, "title": "It is wrong.", "text": "Why."})
}

fn answer(findings: &[Value]) -> Answer {
    Answer::text(&json!({"summary": "Read.", "findings": findings}).to_string())
}

fn review(desk: &Desk, server: &Server, flags: &[&str]) -> Run {
    let words: Vec<&str> = ["review"].iter().chain(flags).copied().collect();
    run(desk.with_server(server, &words))
}

#[test]
fn findings_have_places_and_the_worst_decides_the_exit_code() {
    let desk = Desk::new();
    changed(&desk);
    let all = [
        found("warning", "src/a.rs", json!(2)),
        found("error", "src/a.rs", json!(3)),
        found("note", "src/a.rs", json!(400)),
        found("note", "README", json!(null)),
    ];
    let server = Server::answering(move |_, _| answer(&all));
    let ran = review(&desk, &server, &[]);
    assert_eq!(ran.code, 19, "{ran:?}");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], "src/a.rs:3: error: It is wrong.");
    assert_eq!(lines[2], "src/a.rs:2: warning: It is wrong.");
    assert!(ran.out.contains("(src/a.rs:400 is not in the changes): note"), "{ran:?}");
    assert!(ran.out.contains("4 findings: 1 error, 1 warning, 2 note"), "{ran:?}");
    assert!(ran.err.contains("against main ("), "the base is said: {ran:?}");
    let asked = server.requests()[0].body["messages"].to_string();
    for words in ["fn committed()", "fn uncommitted()", "- new.rs"] {
        assert!(asked.contains(words), "{words}: {asked}");
    }
    for (flags, code) in [(["--fail-on", "never"], 0), (["--fail-on", "note"], 19)] {
        assert_eq!(review(&desk, &server, &flags).code, code);
    }
    let ran = review(&desk, &server, &["HEAD", "--output-format", "json"]);
    let object: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&object["findings"][0]["line"], &object["findings"][0]["file"]),
        (&3.into(), &"src/a.rs".into())
    );
    assert!(object["base"].as_str().unwrap().starts_with("HEAD ("), "{object}");
    let asked = server.requests().last().unwrap().body["messages"].to_string();
    assert!(
        !asked.contains("+fn committed()"),
        "what is committed is no change against HEAD: {asked}"
    );
}

#[test]
fn a_clean_review_and_one_without_changes_succeed() {
    let desk = Desk::new();
    changed(&desk);
    let server = Server::answering(|_, _| answer(&[]));
    let ran = review(&desk, &server, &[]);
    assert!(ran.code == 0 && ran.out.starts_with("no findings\n"), "{ran:?}");
    git(&desk.project(), &["stash", "-qu"]);
    let before = server.requests().len();
    let ran = review(&desk, &server, &["HEAD"]);
    assert!(ran.code == 0 && ran.out.starts_with("no findings\n"), "{ran:?}");
    assert_eq!(server.requests().len(), before, "the model is not asked about nothing");
}

/// What the model does in a review changes nothing, whatever the person's rules allow elsewhere.
#[test]
fn a_review_reads_and_nothing_else() {
    let desk = Desk::new();
    changed(&desk);
    let project = desk.project();
    let config = desk.home().join(".config/agentd");
    fs::create_dir_all(&config).unwrap();
    let rules = "[permissions]\nallow = [\"bash:touch *\", \"write\"]\n";
    fs::write(config.join("config.toml"), rules).unwrap();
    let acts = || {
        [
            Answer::says([
                call("toolu_1", "bash", r#"{"command":"touch made"}"#),
                call("toolu_2", "write", r#"{"path":"written","content":"x"}"#),
                call("toolu_3", "read", r#"{"path":"src/a.rs"}"#),
            ]),
            answer(&[]),
        ]
    };
    let server = Server::scripted(acts());
    let ran = review(&desk, &server, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = server.requests()[1].body["messages"].to_string();
    assert!(told.contains("fn uncommitted()"), "it may read: {told}");
    assert!(!project.join("made").exists() && !project.join("written").exists());
    // The control: outside of a review the same calls run.
    let server = Server::scripted(acts());
    let ran = run(desk.with_server(&server, &["-p", "go"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(project.join("made").exists() && project.join("written").exists());
}

/// A repository's settings name programs; none of them runs outside of a sandbox.
#[test]
fn the_diff_runs_no_program_of_the_repository() {
    let desk = Desk::new();
    changed(&desk);
    let project = desk.project();
    let ran = desk.outside().join("ran");
    let program = desk.outside().join("program");
    fs::write(
        &program,
        format!("#!/bin/sh\necho x >>'{}'\ncat \"$@\" 2>/dev/null; true\n", ran.display()),
    )
    .unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    fs::write(project.join(".git/info/attributes"), "*.rs diff=evil filter=evil\n").unwrap();
    for (key, value) in [
        ("diff.external", program),
        ("diff.evil.command", program),
        ("diff.evil.textconv", program),
        ("filter.evil.clean", program),
        ("core.fsmonitor", program),
        ("core.pager", program),
    ] {
        git(&project, &["config", key, value]);
    }
    let server = Server::answering(|_, _| answer(&[]));
    let reviewed = review(&desk, &server, &[]);
    assert_eq!(reviewed.code, 0, "{reviewed:?}");
    assert!(!ran.exists(), "{:?}", fs::read_to_string(&ran));
    assert!(server.requests()[0].body["messages"].to_string().contains("fn uncommitted()"));
    // The control: git by itself runs them.
    let _ = Command::new("git").arg("diff").current_dir(&project).output().unwrap();
    assert!(ran.exists());
}

#[test]
fn a_project_that_lies_elsewhere_is_reviewed_or_said_to_be_none() {
    let desk = Desk::new();
    let server = Server::answering(|_, _| answer(&[found("error", "src/a.rs", json!(3))]));
    let ran = review(&desk, &server, &[]);
    assert!(ran.code == 2 && ran.err.contains("no git repository"), "{ran:?}");
    changed(&desk);
    // Below the top of the repository, and behind a link.
    let below = desk.project().join("src");
    let link = desk.outside().join("link");
    std::os::unix::fs::symlink(&below, &link).unwrap();
    for place in [&below, &link] {
        let ran = review(&desk, &server, &["-C", place.to_str().unwrap()]);
        assert!(ran.code == 19 && ran.out.starts_with("src/a.rs:3: error"), "{ran:?}");
    }
    let ran = review(&desk, &server, &["nowhere"]);
    assert!(ran.code == 2 && ran.err.contains("no commit, branch or tag"), "{ran:?}");
    let ran = review(&desk, &server, &["--", "--output=x"]);
    assert!(ran.code == 2 && ran.err.contains("no commit"), "{ran:?}");
    // A worktree of it.
    let other = desk.outside().join("other");
    git(&desk.project(), &["worktree", "add", "-q", other.to_str().unwrap(), "main"]);
    fs::write(other.join("src/a.rs"), "fn other() {}\n").unwrap();
    let ran = review(&desk, &server, &["-C", other.to_str().unwrap()]);
    assert!(ran.code == 19 && ran.err.contains("not committed"), "{ran:?}");
    // No commit yet.
    let fresh = desk.outside().join("fresh");
    fs::create_dir(&fresh).unwrap();
    git(&fresh, &["init", "-q", "."]);
    fs::write(fresh.join("x"), "x\n").unwrap();
    let ran = review(&desk, &server, &["-C", fresh.to_str().unwrap()]);
    assert!(ran.err.contains("no commit yet"), "{ran:?}");
    assert!(server.requests().last().unwrap().body["messages"].to_string().contains("- x"));
}

#[test]
fn odd_changes_are_data() {
    let desk = Desk::new();
    changed(&desk);
    let project = desk.project();
    let long = "let x = 1; // ".to_owned() + &"y".repeat(300 << 10) + "\n";
    fs::write(project.join("src/a.rs"), long).unwrap();
    fs::write(project.join("bytes"), [0xff, 0, 0x1b, b'[', b'2', b'J', b'\n']).unwrap();
    git(&project, &["add", "bytes"]);
    let server = Server::answering(|_, _| answer(&[found("note", "bytes\u{1b}[2J", json!(1))]));
    let ran = review(&desk, &server, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("src/a.rs are too long"), "{ran:?}");
    assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "{ran:?}");
    let asked = server.requests()[0].body["messages"].to_string();
    assert!(asked.len() < 250 << 10 && asked.contains("- src/a.rs"), "{}", asked.len());
}

/// The lines that `agentd help scripts` shows, as a person copies them.
#[test]
fn the_recipes_of_the_help_work_as_they_stand() {
    let desk = Desk::new();
    changed(&desk);
    let project = desk.project();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/workers/agentd/help/scripts.md");
    let page = fs::read_to_string(page).unwrap();
    let section = page.split("\n## ").find(|part| part.starts_with("Reviews")).unwrap();
    let code: Vec<&str> = section.split("```sh\n").skip(1).collect();
    let code: Vec<&str> = code.iter().map(|part| part.split("```").next().unwrap()).collect();
    let [step, hook] = &code[..] else { panic!("{section}") };
    let home = fs::canonicalize(env!("CARGO_BIN_EXE_agentd")).unwrap();
    let path = format!("{}:{}", home.parent().unwrap().display(), std::env::var("PATH").unwrap());

    git(&project, &["update-ref", "refs/remotes/origin/main", "main"]);
    let server = Server::answering(|_, _| answer(&[found("error", "src/a.rs", json!(3))]));
    let shell = |server: &Server, words: &str| {
        let ours = desk.with_server(server, &[]);
        let mut shell = Command::new("sh");
        shell.args(["-c", words]).current_dir(&project).env_clear();
        shell.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.env("PATH", &path).stdin(std::process::Stdio::null());
        run(shell)
    };
    let ran = shell(&server, step);
    assert_eq!(ran.code, 19, "{ran:?}");
    let object: Value =
        serde_json::from_str(&fs::read_to_string(project.join("review.json")).unwrap()).unwrap();
    assert_eq!(object["findings"][0]["severity"], "error");

    let file = project.join(".git/hooks/pre-commit");
    fs::write(&file, hook).unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let commit = "git -c user.name=a -c user.email=a@b commit -qam three";
    let ran = shell(&server, commit);
    assert!(
        ran.code != 0 && ran.err.contains("src/a.rs:3: error"),
        "the commit is refused: {ran:?}"
    );
    let server = Server::answering(|_, _| answer(&[found("warning", "src/a.rs", json!(3))]));
    let ran = shell(&server, commit);
    assert_eq!(ran.code, 0, "{ran:?}");
}
