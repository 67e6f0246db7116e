//! Undo of commands: their changes are found by comparing the project with its state before.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, child_of, run, send, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::{Arc, Mutex};

const AUTO: [&str; 2] = ["--permission-mode", "auto"];

/// Runs these calls, one an answer, and returns their results.
fn calls(desk: &Desk, flags: &[&str], calls: &[(&str, Value)]) -> Vec<String> {
    let answers = calls.iter().zip(1..).map(|((tool, input), number)| {
        Answer::says([call(&format!("toolu_{number}"), tool, &input.to_string())])
    });
    let server = Server::scripted(answers.chain([Answer::text("Done.")]));
    let ran = run(desk.with_server(&server, &[&["-p", "Go."], flags].concat()));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    server.requests()[1..].iter().map(|request| result(&request.body)).collect()
}

/// The last result that a request carries.
fn result(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"][0]["content"].to_string()
}

fn resumed() -> Vec<&'static str> {
    [&AUTO[..], &["-c"]].concat()
}

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({ "command": command }))
}

fn undo(id: u32) -> (&'static str, Value) {
    ("undo_restore", json!({ "id": id }))
}

fn list() -> (&'static str, Value) {
    ("undo_list", json!({}))
}

/// Runs git in the project, as the person would.
fn git(desk: &Desk, arguments: &[&str]) {
    crate::support::needs("git");
    let mut git = Command::new("git");
    git.args(["-c", "user.name=x", "-c", "user.email=x@y", "-c", "init.defaultBranch=main"]);
    let out = git.args(arguments).current_dir(desk.project()).output().unwrap();
    assert!(out.status.success(), "{out:?}");
}

#[test]
fn what_a_command_did_to_files_is_taken_back_and_so_is_that() {
    let desk = Desk::new();
    let script = desk.write("run.sh", "#!/bin/sh\n");
    for name in ["changed", "deleted", "d/moved"] {
        desk.write(name, name);
    }
    let all = "echo other > changed; rm deleted; chmod +x run.sh; mv d e; mkdir new; echo made > new/made; \
               ln -s changed link; exit 3";
    let said =
        calls(&desk, &AUTO, &[bash(all), bash("true"), ("run", json!({"argv": ["ls"]})), list()]);
    let shown = &said[3];
    for line in [
        "1 bash `echo other > changed; rm deleted;",
        "7 files: ",
        "changed (changed)",
        "d/moved (removed)",
        "deleted (removed)",
        "e/moved (made)",
        "link (made)",
        "new/made (made)",
        "run.sh (permissions changed)",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(!shown.contains("2 bash") && !shown.contains("3 run"), "they changed nothing: {shown}");
    // The turn's other commands changed nothing and are not mentioned.
    let server = Server::scripted([]);
    let ran = run(desk.with_server(&server, &[&["-p", ":undo"], &resumed()[..]].concat()));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Taken back: bash (call 1).\n"), "{ran:?}");
    for name in ["changed", "deleted", "d/moved"] {
        assert_eq!(desk.read(name), name);
    }
    assert_eq!(script.metadata().unwrap().permissions().mode() & 0o777, 0o644);
    for gone in ["e/moved", "new/made", "link"] {
        assert!(desk.project().join(gone).symlink_metadata().is_err(), "{gone}");
    }
    // The undo can be undone, as any change.
    let shown = &calls(&desk, &resumed(), &[list()])[0];
    let last: String =
        shown.trim_start_matches('"').chars().take_while(char::is_ascii_digit).collect();
    calls(&desk, &resumed(), &[undo(last.parse().unwrap())]);
    assert_eq!((desk.read("changed"), desk.read("e/moved")), ("other\n".into(), "d/moved".into()));
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
}

#[test]
fn a_checkout_of_many_files_is_taken_back_whole() {
    let desk = Desk::new();
    let name = |number: usize| format!("src/f{:02}/file{number}", number % 20);
    let all = |text: &str| {
        for number in 0..400 {
            desk.write(&name(number), &format!("{text} {number}\n"));
        }
    };
    git(&desk, &["init", "-q"]);
    all("one");
    git(&desk, &["add", "."]);
    git(&desk, &["commit", "-qm", "one"]);
    git(&desk, &["checkout", "-qb", "other"]);
    all("two");
    fs::remove_file(desk.project().join(name(7))).unwrap();
    desk.write("src/only-there", "x");
    git(&desk, &["add", "-A"]);
    git(&desk, &["commit", "-qm", "two"]);
    git(&desk, &["checkout", "-q", "main"]);
    let said = calls(&desk, &AUTO, &[bash("git checkout -q other"), list()]);
    assert_eq!(desk.read(&name(8)), "two 8\n", "{said:?}");
    assert!(said[1].contains("401 files: "), "{said:?}");
    let said = calls(&desk, &resumed(), &[undo(1)]);
    assert!(!said[0].contains("Error"), "{said:?}");
    for number in 0..400 {
        assert_eq!(desk.read(&name(number)), format!("one {number}\n"));
    }
    assert!(!desk.project().join("src/only-there").exists());
}

#[test]
fn what_is_not_covered_is_on_the_list_and_stays_as_it_is() {
    let desk = Desk::new();
    desk.write(".gitignore", "built\n");
    for name in ["built", "plain", "large"] {
        desk.write(name, "before");
    }
    desk.write("large", &"x".repeat(300 << 10));
    let said = calls(
        &desk,
        &AUTO,
        &[bash("for f in built plain large; do echo after > $f; done"), list(), undo(1)],
    );
    assert!(
        said[1].contains("large (not covered: larger than 256 KiB), plain (changed)"),
        "{said:?}"
    );
    assert!(said[1].contains("ignored files") && !said[1].contains("built ("), "{said:?}");
    assert!(said[2].contains("not restored: large: larger than 256 KiB"), "{said:?}");
    assert_eq!((desk.read("plain"), desk.read("large")), ("before".into(), "after\n".into()));
    assert_eq!(desk.read("built"), "after\n");
}

#[test]
fn what_was_changed_since_is_a_conflict_and_nothing_is_put_back() {
    let desk = Desk::new();
    desk.write("a", "before");
    desk.write("b", "before");
    calls(&desk, &AUTO, &[bash("echo x > a; echo x > b; echo x > c")]);
    desk.write("b", "a person's");
    let said = calls(&desk, &resumed(), &[undo(1)]);
    assert!(
        said[0].contains("Error [stale]")
            && said[0].contains("nothing was restored, because these files have changed since: b"),
        "{said:?}"
    );
    assert_eq!((desk.read("a"), desk.read("b")), ("x\n".into(), "a person's".into()));
    assert!(desk.project().join("c").exists());
    desk.write("b", "x\n");
    calls(&desk, &resumed(), &[undo(1)]);
    assert_eq!((desk.read("a"), desk.read("b")), ("before".into(), "before".into()));
    assert!(!desk.project().join("c").exists());
}

#[test]
fn a_command_whose_time_is_over_is_taken_back() {
    let desk = Desk::new();
    desk.write("a", "before");
    let slow = ("bash", json!({"command": "echo x > a; sleep 60", "timeout_ms": 300}));
    let said = calls(&desk, &AUTO, &[slow, undo(1)]);
    assert!(!said[1].contains("Error"), "{said:?}");
    assert_eq!(desk.read("a"), "before");
}

#[test]
fn what_a_person_did_between_two_commands_is_not_the_second_one_s() {
    let desk = Desk::new();
    desk.write("a", "one");
    let person = desk.project().join("a");
    let says = |tool: &str, input: Value| Answer::says([call("toolu_1", tool, &input.to_string())]);
    let server = Server::answering(move |number, _| match number {
        1 => says("bash", json!({"command": "true"})),
        2 => {
            fs::write(&person, "two").unwrap();
            says("bash", json!({"command": "echo three > a"}))
        }
        3 => says("undo_restore", json!({"id": 2})),
        _ => Answer::text("Done."),
    });
    let ran = run(desk.with_server(&server, &[&["-p", "Go."], &AUTO[..]].concat()));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(desk.read("a"), "two");
}

/// The store of a run of `agentd`, once there is one.
fn store_of(agentd: u32) -> u32 {
    let supervisor = child_of(agentd, "agentd-supervisor").unwrap();
    until("its store", || child_of(supervisor, "agentd-store").is_some());
    child_of(supervisor, "agentd-store").unwrap()
}

#[test]
fn a_store_that_dies_while_a_command_runs_takes_nothing_with_it() {
    let desk = Desk::new();
    desk.write("a", "before");
    let wait = "echo x > a; while [ ! -e go ]; do sleep 0.05; done; echo y > b";
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", &json!({ "command": wait }).to_string())]),
        Answer::says([call("toolu_2", "undo_list", "{}")]),
        Answer::says([call("toolu_3", "undo_restore", "{\"id\":1}")]),
        Answer::text("Done."),
    ]);
    let mut child =
        desk.with_server(&server, &[&["-p", "Go."], &AUTO[..]].concat()).spawn().unwrap();
    until("the command runs", || desk.read("a") == "x\n");
    let store = store_of(child.id());
    send(store, Signal::SIGKILL);
    until("another store", || store_of(child.id()) != store);
    desk.write("go", "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let shown = result(&server.requests()[2].body);
    assert!(shown.contains("a (changed), b (made)"), "{shown}");
    assert_eq!(desk.read("a"), "before");
    assert!(!desk.project().join("b").exists());
}

#[test]
fn what_a_person_did_after_the_daemon_was_killed_is_never_taken_back() {
    let desk = Desk::new();
    desk.write("a", "before");
    let wait = "echo x > a; echo x > b; sleep 60";
    let server = Server::scripted([Answer::says([call(
        "toolu_1",
        "bash",
        &json!({ "command": wait }).to_string(),
    )])]);
    let mut child =
        desk.with_server(&server, &[&["-p", "Go."], &AUTO[..]].concat()).spawn().unwrap();
    until("the command runs", || desk.project().join("b").exists());
    let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    send(supervisor, Signal::SIGKILL);
    until("it is gone", || {
        !crate::support::processes().iter().any(|process| process.pid == supervisor)
    });
    desk.write("a", "a person's");
    desk.write("mine", "a person's");
    let server = Server::scripted([]);
    let ran = run(desk.with_server(&server, &[&["-p", ":undo"], &resumed()[..]].concat()));
    let why = "agentd was killed while this command ran: what was changed since may be yours";
    assert!(ran.code != 0 && ran.out.contains(why), "{ran:?}");
    let said = calls(&desk, &resumed(), &[list(), undo(1)]);
    assert!(said[0].contains(why) && said[0].contains("a (changed)"), "{said:?}");
    assert!(said[1].contains("[not_covered]") && said[1].contains(why), "{said:?}");
    for name in ["a", "mine"] {
        assert_eq!(desk.read(name), "a person's", "{said:?}");
    }
}

#[test]
fn a_look_that_comes_too_late_puts_nothing_back_and_that_is_said() {
    let desk = Desk::new();
    desk.write("a", "before");
    let agentd = Arc::new(Mutex::new(None::<u32>));
    let leader = Arc::clone(&agentd);
    let store = move || {
        until("the run is known", || leader.lock().unwrap().is_some());
        store_of(leader.lock().unwrap().unwrap())
    };
    let says = |tool: &str, input: Value| Answer::says([call("toolu_1", tool, &input.to_string())]);
    let server = Server::answering(move |number, _| match number {
        1 => {
            send(store(), Signal::SIGSTOP);
            says("bash", json!({"command": "echo x > a"}))
        }
        2 => {
            send(store(), Signal::SIGCONT);
            says("undo_list", json!({}))
        }
        3 => says("undo_restore", json!({"id": 1})),
        _ => Answer::text("Done."),
    });
    let mut child =
        desk.with_server(&server, &[&["-p", "Go."], &AUTO[..]].concat()).spawn().unwrap();
    *agentd.lock().unwrap() = Some(child.id());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let said: Vec<String> =
        server.requests()[1..].iter().map(|request| result(&request.body)).collect();
    assert!(said[1].contains("1 bash `echo x > a`") && said[1].contains("not covered"), "{said:?}");
    assert!(said[2].contains("[not_covered]"), "{said:?}");
    assert_eq!(desk.read("a"), "x\n");
}

#[test]
fn a_directory_that_became_a_link_keeps_its_files() {
    let desk = Desk::new();
    desk.write("d/x", "precious");
    let said = calls(&desk, &AUTO, &[bash("mv d e && ln -s e d"), list(), undo(1)]);
    assert!(said[1].contains("d/x (removed)") && said[1].contains("e/x (made)"), "{said:?}");
    assert!(said[2].contains("now resolves to another path"), "{said:?}");
    assert_eq!((desk.read("e/x"), desk.read("d/x")), ("precious".into(), "precious".into()));
}

#[test]
fn a_script_takes_back_without_a_key() {
    let desk = Desk::new();
    desk.write("a", "before");
    calls(&desk, &AUTO, &[bash("echo x > a")]);
    // Any other prompt needs one.
    let ran = run(desk.agentd(&[&["-p", "x"], &resumed()[..]].concat()));
    assert_eq!(ran.code, 13, "{ran:?}");
    let ran = run(desk.agentd(&[&["-p", ":undo"], &resumed()[..]].concat()));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Taken back: bash (call 1).\n"), "{ran:?}");
    assert_eq!(desk.read("a"), "before");
}

#[test]
fn going_back_to_an_older_turn_is_said_first() {
    let desk = Desk::new();
    desk.write(".gitignore", "db\n");
    desk.write("db", "x");
    desk.write("a", "before");
    calls(&desk, &AUTO, &[bash("echo x > a")]);
    calls(&desk, &resumed(), &[bash("rm db")]);
    let server = Server::scripted([]);
    let ran = run(desk.with_server(&server, &[&["-p", ":undo"], &resumed()[..]].concat()));
    assert_eq!(
        ran.out,
        "This went back to an older turn, since nothing that is covered is left to take back of bash (call 2).\n\
         Taken back: bash (call 1).\n",
        "{ran:?}"
    );
    assert_eq!(desk.read("a"), "before");
    // It is unknown if this command changed anything.
    let said = calls(&desk, &resumed(), &[undo(99)]);
    assert!(said[0].contains("[not_covered]"), "{said:?}");
}
