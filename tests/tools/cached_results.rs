//! Answers that are given again: only while all they were made from is as it was, as judged and as
//! recorded as any, and without a process.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, needs, run, write_program};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

const AUTO: [&str; 4] = ["--permission-mode", "auto", "--max-turns", "100"];

type Calls = Vec<(&'static str, Value)>;

/// Runs these calls, one an answer, and returns their results.
fn calls(desk: &Desk, flags: &[&str], calls: &Calls) -> Vec<String> {
    let answers = calls.iter().zip(1..).map(|((tool, input), number)| {
        Answer::says([call(&format!("toolu_{number}"), tool, &input.to_string())])
    });
    let server = Server::scripted(answers.chain([Answer::text("Done.")]));
    let mut command = desk.with_server(&server, &[&["-p", "Go."], flags].concat());
    let usual = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{usual}", desk.project().join("bin").display()));
    let ran = run(command);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    let requests = server.requests();
    let results = requests[requests.len() - calls.len()..].iter().map(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"][0]["content"].to_string()
    });
    results.collect()
}

/// The calls of the newest session in the audit log that got a cached result.
fn recalled(desk: &Desk) -> Vec<u64> {
    let records = desk.audit();
    let session = records.last().unwrap()["session"].clone();
    let ended = records.iter().filter(|record| {
        record["session"] == session && record["event"] == "ended" && !record["recalled"].is_null()
    });
    ended.map(|record| record["call"].as_u64().unwrap()).collect()
}

/// A project with one file of each kind of name, long enough there to be known; with a repository whose
/// filter changes another file than the one it is asked about, and a stub of PowerShell.
fn desk() -> Desk {
    needs("git");
    let desk = Desk::new();
    desk.write("a.rs", "fn one() { go(1) }\n");
    symlink("a.rs", desk.project().join("link.rs")).unwrap();
    let git = |words: &[&str]| {
        let git = Command::new("git").args(words).current_dir(desk.project()).output().unwrap();
        assert!(git.status.success(), "{git:?}");
    };
    git(&["init", "-q"]);
    git(&["config", "filter.other.clean", "sed -i s/one/two/ a.rs; cat"]);
    desk.write(".gitattributes", "filtered.txt filter=other\n");
    desk.write("filtered.txt", "text\n");
    let stub = desk.write("bin/pwsh", "");
    fs::remove_file(&stub).unwrap();
    write_program(&stub, "exec sh -c \"$4\"");
    desk
}

fn queries(desk: &Desk) -> Calls {
    let whole = desk.project().join("a.rs");
    vec![
        ("read", json!({"path": "a.rs"})),
        ("read", json!({"path": "./a.rs"})),
        ("read", json!({"path": whole})),
        ("read", json!({"path": "link.rs"})),
        ("ls", json!({})),
        ("glob", json!({"pattern": "*.rs"})),
        ("grep", json!({"pattern": "go"})),
        ("summary", json!({"path": "a.rs"})),
        ("scan", json!({"patterns": ["go($A)"]})),
    ]
}

#[test]
fn what_was_asked_before_is_answered_again_without_a_process_and_on_record() {
    let desk = desk();
    let all = [queries(&desk), queries(&desk)].concat();
    let said = calls(&desk, &AUTO, &all);
    let (first, again) = said.split_at(9);
    assert_eq!(first, again);
    assert!(first[0].contains("1\\tfn one()") && first[4].contains("a.rs"), "{first:?}");
    // Three of the first nine are the first in other words.
    assert_eq!(recalled(&desk), [2, 3, 4, 10, 11, 12, 13, 14, 15, 16, 17, 18]);
    let record = desk.ended(12);
    assert_eq!(record["recalled"], 1, "{record}");
    assert!(record["runner_pid"].is_null() && record["enforced"].is_null(), "{record}");
    assert_eq!(record["outcome"]["how"], "done", "{record}");
    let session = record["session"].as_str().unwrap();
    let shown = run(desk.agentd(&["show", session, "--calls"])).out;
    assert!(
        shown.contains("12 ✓ done: a.rs: 1 lines (cached from call 1; its files are unchanged)"),
        "{shown}"
    );
    assert_eq!(shown.matches("its files are unchanged").count(), 12, "{shown}");
    let shown = run(desk.agentd(&["audit", "show", &format!("{session}.12")])).out;
    assert!(shown.contains("cached from call 1 of the session"), "{shown}");
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(verified.code, 0, "{}", verified.err);
}

/// Calls that change `a.rs`, or might have, with the calls before them.
fn writers() -> Vec<(&'static str, Calls, Calls)> {
    let edit = || json!({"path": "a.rs", "old_string": "one", "new_string": "two"});
    let sh = |command: &str| ("bash", json!({"command": command, "timeout_ms": 500}));
    let replace = json!([{"replace": {"pattern": "one", "replacement": "two"}}]);
    let alone = |what, tool, input| (what, vec![], vec![(tool, input)]);
    let shell = |what, command| (what, vec![], vec![sh(command)]);
    let commit = "git add a.rs && git -c user.name=x -c user.email=x@x commit -qm x";
    vec![
        alone("write", "write", json!({"path": "a.rs", "content": "fn two() { go(2) }\n"})),
        alone("edit", "edit", edit()),
        alone(
            "an edit through a link",
            "edit",
            json!({"path": "link.rs", "old_string": "1", "new_string": "2"}),
        ),
        alone(
            "multi_edit",
            "multi_edit",
            json!({"path": "a.rs", "edits": [{"find": "one", "replace": "two"}]}),
        ),
        alone("rewrite", "rewrite", json!({"path": "a.rs", "edits": replace})),
        alone("delete", "delete", json!({"paths": ["a.rs"]})),
        ("undo_restore", vec![("edit", edit())], vec![("undo_restore", json!({"id": 1}))]),
        alone("run", "run", json!({"argv": ["sed", "-i", "s/one/two/", "a.rs"]})),
        alone(
            "a new file beside it",
            "write",
            json!({"path": "b.rs", "content": "fn b() { go(3) }\n"}),
        ),
        shell("bash", "sed -i s/one/two/ a.rs"),
        // Git itself changes no file by it; a program that it runs may.
        alone("git_add", "git_add", json!({"paths": ["filtered.txt"]})),
        alone("powershell", "powershell", json!({"script": "sed -i s/one/two/ a.rs"})),
        shell("what is ignored", "echo a.rs > .gitignore"),
        shell("bash that fails", "sed -i s/one/two/ a.rs; exit 3"),
        shell("bash that takes too long", "sed -i s/one/two/ a.rs; sleep 20"),
        (
            "git checkout",
            vec![sh(commit), sh("echo 'fn two() {}' > a.rs")],
            vec![sh("git checkout -q -- a.rs")],
        ),
    ]
}

#[test]
fn every_writer_is_seen_by_every_name_and_every_query() {
    for (what, before, writes) in writers() {
        let desk = desk();
        let asked = queries(&desk);
        let all = [before.clone(), asked.clone(), writes, asked.clone()].concat();
        let said = calls(&desk, &AUTO, &all);
        let (first, after) =
            (&said[before.len()..][..asked.len()], &said[all.len() - asked.len()..]);
        // Another session has nothing that it could know.
        let truth = calls(&desk, &AUTO, &asked);
        assert_eq!(after, truth, "{what}");
        assert_ne!(first, truth, "{what}: it changes something, or proves nothing");
    }
}

/// A call that executes code invalidates all cached results, though it changed nothing.
#[test]
fn what_executes_code_outdates_everything() {
    let commit = "git add -A && git config user.name x && git config user.email x@x";
    for (what, input, known) in [
        ("git_add", json!({"paths": ["a.rs"]}), false),
        ("git_commit", json!({"subject": "x"}), false),
        ("powershell", json!({"script": "true"}), false),
        ("bash", json!({"command": "true"}), false),
        ("run", json!({"argv": ["true"]}), false),
        // The control: it runs git, which reads the file.
        ("git_status", json!({}), true),
    ] {
        let desk = desk();
        let git = Command::new("sh").args(["-c", commit]).current_dir(desk.project()).output();
        assert!(git.unwrap().status.success());
        let read = || ("read", json!({"path": "a.rs"}));
        let said = calls(&desk, &AUTO, &vec![read(), (what, input), read()]);
        assert_eq!(said[0], said[2], "{what}");
        assert!(!said[1].contains("Error ["), "{what}: {said:?}");
        let expected: &[u64] = if known { &[3] } else { &[] };
        assert_eq!(recalled(&desk), expected, "{what}");
    }
}

#[test]
fn what_a_person_changes_meanwhile_is_seen() {
    let desk = desk();
    let file = desk.project().join("a.rs");
    let server = Server::answering(move |number, _| match number {
        1..=3 => Answer::says([call(&format!("toolu_{number}"), "read", r#"{"path":"a.rs"}"#)]),
        4 => {
            // The same size, and the same time in seconds.
            let modified = file.metadata().unwrap().modified().unwrap();
            fs::write(&file, "fn two() { go(1) }\n").unwrap();
            fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
            Answer::says([call("toolu_4", "read", r#"{"path":"a.rs"}"#)])
        }
        _ => Answer::text("Done."),
    });
    let ran = run(desk.with_server(&server, &["-p", "Go."]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let messages = server.requests()[4].body["messages"].to_string();
    assert_eq!(messages.matches("fn one()").count(), 3, "{messages}");
    assert_eq!(messages.matches("fn two()").count(), 1, "{messages}");
    assert_eq!(recalled(&desk), [2, 3]);
}

#[test]
fn a_known_answer_outlives_the_daemon_and_is_still_judged() {
    let desk = desk();
    let asked: Calls = queries(&desk).into_iter().step_by(4).collect();
    calls(&desk, &AUTO, &asked);
    let session = desk.audit()[0]["session"].as_str().unwrap().to_owned();
    let resume = ["--resume", session.as_str()];
    // `read` and `scan` are kept in a file, `ls` is not.
    calls(&desk, &resume, &asked);
    assert_eq!(recalled(&desk), [4, 6]);
    // A call that is denied now is denied, with a cached result or without.
    desk.write(".agentd/config.toml", "[permissions]\ndeny = [\"read:a.rs\"]\n");
    let said = calls(&desk, &[&resume[..], &["--trust-project"]].concat(), &asked);
    assert!(said[0].contains("read:a.rs"), "{said:?}");
    assert!(!recalled(&desk).contains(&7), "{:?}", recalled(&desk));
    // The control: a call that no rule denies gets its cached result as before.
    fs::remove_file(desk.project().join(".agentd/config.toml")).unwrap();
    let read = calls(&desk, &resume, &vec![("read", json!({"path": "a.rs"}))]);
    assert!(read[0].contains("fn one()"), "{read:?}");
    assert!(recalled(&desk).contains(&10), "{:?}", recalled(&desk));
}

/// The files of answers of all sessions.
fn kept(desk: &Desk) -> Vec<PathBuf> {
    let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let stores = entries(desk.state().join("store"));
    let sessions = stores.flat_map(|store| entries(store.path().join("sessions")));
    sessions.map(|session| session.path().join("cache.db")).filter(|file| file.exists()).collect()
}

#[test]
fn a_session_that_is_stopped_killed_or_removed_keeps_no_answers() {
    for word in ["stop", "kill", "rm"] {
        let desk = desk();
        let asked: Calls = vec![("read", json!({"path": "a.rs"}))];
        // Another session's are its own.
        calls(&desk, &AUTO, &asked);
        let others = kept(&desk);
        assert_eq!(others.len(), 1, "{word}: the control");
        let server = Server::scripted([
            Answer::says([call("toolu_1", "read", r#"{"path":"a.rs"}"#)]),
            Answer::text("Done."),
        ]);
        let daemon = desk.daemon();
        let mut client = Wire::to(&desk.door());
        let session = client.open(&desk.opening(&server));
        client.prompt(&session, "Go.");
        client.turn_ends();
        if word == "rm" {
            // A live session is not removed; its cached results are on disk once its daemon ends.
            drop((client, daemon));
        }
        assert_eq!(kept(&desk).len(), 2, "{word}: the control");
        let ended = run(desk.agentd(&[word, &session.0]));
        assert_eq!(ended.code, 0, "{word}: {}", ended.err);
        assert_eq!(kept(&desk), others, "{word}");
    }
}

#[test]
fn a_pinned_file_is_always_read() {
    let desk = desk();
    let asked: Calls =
        vec![("read", json!({"path": "a.rs"})), ("bash", json!({"command": "true"}))];
    calls(&desk, &[&AUTO[..], &["--context", "a.rs"]].concat(), &asked);
    assert_eq!(recalled(&desk), [0u64; 0]);
}
