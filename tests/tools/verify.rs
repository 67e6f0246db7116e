//! The person's verifiers, which run once after the edits of a round, as a call in its own cage.
//! The edit's result reports them, and a failing check does not fail the edit.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, child_of, run, send, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;

const FLAGS: [&str; 5] = ["-p", "Go.", "--permission-mode", "accept-edits", "--trust-project"];

/// A project in which this is run behind edits of text files.
fn desk(command: &str) -> Desk {
    let desk = Desk::new();
    let commands = format!("[verify]\ncommands = [{:?}]\n", format!("*.txt: {command}"));
    desk.write(".agentd/config.toml", &commands);
    desk.write("a.txt", "one\n");
    desk.write("b.txt", "one\n");
    desk
}

fn edit(id: &str, path: &str) -> crate::support::anthropic::Say {
    let input = json!({"path": path, "old_string": "one", "new_string": "two"});
    call(id, "edit", &input.to_string())
}

/// One round of these calls; the results that the model got.
fn round(desk: &Desk, flags: &[&str], calls: Vec<crate::support::anthropic::Say>) -> Vec<Value> {
    let server = Server::scripted([Answer::says(calls), Answer::text("Done.")]);
    let ran = run(desk.with_server(&server, flags));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    told(&server)
}

/// The results in the second request.
fn told(server: &Server) -> Vec<Value> {
    let requests = server.requests();
    let messages = requests[1].body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_array().unwrap().clone()
}

fn verified(desk: &Desk) -> Vec<Value> {
    let calls = desk.audit().into_iter();
    calls.filter(|record| record["event"] == "ended" && record["tool"] == "verify").collect()
}

#[test]
fn what_it_finds_stands_in_the_result_of_the_last_edit_of_the_round() {
    let desk = desk("echo looked; echo a.txt:1: two is no number >&2; exit 3");
    let read = call("toolu_3", "read", &json!({"path": "a.txt"}).to_string());
    let calls = vec![edit("toolu_1", "a.txt"), edit("toolu_2", "b.txt"), read];
    let said = round(&desk, &FLAGS, calls);
    let text = |at: usize| said[at]["content"].to_string();
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(!text(0).contains("verifier") && !text(2).contains("verifier"), "{said:#?}");
    assert!(text(1).contains("exit code 3"), "{said:#?}");
    assert!(text(1).contains("looked\\na.txt:1: two is no number"), "{said:#?}");
    // Never a reason for the edit to fail.
    assert!(said[1]["is_error"] != true && text(1).contains("b.txt"), "{said:#?}");
    assert_eq!((desk.read("a.txt").as_str(), desk.read("b.txt").as_str()), ("two\n", "two\n"));
    let records = verified(&desk);
    assert_eq!(records.len(), 1, "once a round: {records:#?}");
    assert_eq!(records[0]["outcome"]["how"], "exited", "{records:#?}");
    let record = records[0].to_string();
    assert!(record.contains(r#""profile":"verify""#), "its own cage: {record}");
    let allowed = desk.audit().into_iter();
    let mut allowed = allowed.filter(|it| it["event"] == "decided" && it["tool"] == "verify");
    let by = allowed.next().unwrap().to_string();
    assert!(by.contains("verify.commands") && !by.contains(r#""by":"query""#), "{by}");
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(verified.code, 0, "{}", verified.err);
}

#[test]
fn what_finds_nothing_says_so_and_other_files_are_not_its_business() {
    let desk = desk("grep -c two a.txt b.txt");
    let said = round(&desk, &FLAGS, vec![edit("toolu_1", "a.txt"), edit("toolu_2", "b.txt")]);
    assert!(said[1]["content"].to_string().contains("no errors"), "{said:#?}");
    let other = json!({"path": "c.md", "content": "two\n"}).to_string();
    let said = round(&desk, &FLAGS, vec![call("toolu_1", "write", &other)]);
    assert!(!said[0]["content"].to_string().contains("verifier"), "{said:#?}");
    // A failed edit changed nothing that could be checked.
    let said = round(&desk, &FLAGS, vec![edit("toolu_1", "a.txt")]);
    assert_eq!(said[0]["is_error"], true, "{said:#?}");
    assert_eq!(verified(&desk).len(), 1);
}

#[test]
fn the_project_is_read_only_to_it_and_there_is_no_network() {
    let connect = "import socket\ntry: socket.create_connection(('192.0.2.1', 9), 1)\nexcept OSError as no: print('no network:', no.errno)";
    crate::support::needs("python3");
    let desk = desk("sh look.sh; exit 1");
    desk.write("look.py", connect);
    desk.write(
        "look.sh",
        "touch made 2>&1; echo more >> a.txt; touch $TMPDIR/mine && echo temp is mine; python3 look.py",
    );
    let flags = [&FLAGS[..], &["--net", "on"]].concat();
    let said = round(&desk, &flags, vec![edit("toolu_1", "a.txt")]);
    let text = said[0]["content"].to_string();
    assert!(text.contains("temp is mine") && text.contains("no network"), "{text}");
    assert!(!desk.project().join("made").exists(), "{text}");
    assert_eq!(desk.read("a.txt"), "two\n", "{text}");
    // The same writes where a command may make them.
    let script = json!({"command": "sh look.sh"}).to_string();
    let auto = ["-p", "Go.", "--permission-mode", "auto"];
    round(&desk, &auto, vec![call("toolu_1", "bash", &script)]);
    assert!(desk.project().join("made").exists());
}

#[test]
fn nothing_is_run_where_the_project_is_not_trusted_or_it_is_switched_off() {
    let desk = desk("true");
    let untrusted = &FLAGS[..4];
    let said = round(&desk, untrusted, vec![edit("toolu_1", "a.txt")]);
    assert!(!said[0]["content"].to_string().contains("verifier"), "{said:#?}");
    desk.write("a.txt", "one\n");
    let config = desk.read(".agentd/config.toml");
    desk.write(".agentd/config.toml", &format!("{config}mode = \"off\"\n"));
    round(&desk, &FLAGS, vec![edit("toolu_1", "a.txt")]);
    assert_eq!(verified(&desk).len(), 0);
    // The same edit with both said.
    desk.write("a.txt", "one\n");
    desk.write(".agentd/config.toml", &config);
    round(&desk, &FLAGS, vec![edit("toolu_1", "a.txt")]);
    assert_eq!(verified(&desk).len(), 1);
}

#[test]
fn one_that_does_not_run_for_want_of_trust_is_named_once_with_the_way_to_trust() {
    let desk = Desk::new();
    let config = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, "[verify]\ncommands = [\"*.txt: true\"]\n").unwrap();
    let ask = |flags: &[&str], paths: [&str; 2]| {
        let [one, two] = paths;
        desk.write(one, "one\n");
        desk.write(two, "one\n");
        let server = Server::scripted([
            Answer::says([edit("toolu_1", one)]),
            Answer::says([edit("toolu_2", two)]),
            Answer::text("Done."),
        ]);
        let ran = run(desk.with_server(&server, flags));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let named = ran.err.matches("does not run after edits").count();
        let way = ran.err.contains("`agentd init`") && ran.err.contains("--trust-project");
        (named, way)
    };
    let untrusted = &FLAGS[..4];
    assert_eq!(ask(untrusted, ["a.txt", "b.txt"]), (1, true), "two edits, one sentence");
    assert_eq!(ask(untrusted, ["a.rs", "b.txt"]), (1, true), "one of them");
    assert_eq!(ask(untrusted, ["a.md", "b.md"]), (0, false), "no such file was edited");
    assert_eq!(ask(&FLAGS, ["a.txt", "b.txt"]), (0, false), "trusted: the control");
}

#[test]
fn one_that_cannot_be_had_is_said_to_be_unavailable_and_the_edit_stands() {
    for (command, rules, why) in [
        ("no-such-program --check", "", "not found"),
        ("sleep 60", "\n[permissions]\ndeny = [\"bash:sleep *\"]\n", "sleep"),
        ("echo ran; exit 1", "\n[permissions]\nask = [\"bash:echo *\"]\n", "non-interactive"),
        ("echo ran; exit 1", "\n[permissions]\nask = [\"verify:echo *\"]\n", "verify:echo"),
    ] {
        let desk = desk(command);
        let config = desk.read(".agentd/config.toml");
        desk.write(".agentd/config.toml", &format!("{config}{rules}"));
        let said = round(&desk, &FLAGS, vec![edit("toolu_1", "a.txt")]);
        let text = said[0]["content"].to_string();
        assert!(text.contains("verifier: unavailable (") && text.contains(why), "{text}");
        assert!(!text.contains("exit code"), "{text}");
        assert!(said[0]["is_error"] != true, "{said:#?}");
        assert_eq!(desk.read("a.txt"), "two\n");
    }
}

#[test]
fn one_that_takes_too_long_is_ended() {
    let desk = desk("sleep 600");
    let config = desk.read(".agentd/config.toml");
    desk.write(".agentd/config.toml", &format!("{config}timeout_ms = 300\n"));
    let said = round(&desk, &FLAGS, vec![edit("toolu_1", "a.txt")]);
    let text = said[0]["content"].to_string();
    assert!(text.contains("verifier: unavailable (") && text.contains("300 ms"), "{text}");
}

/// A run in which this process is killed while the verifier runs.
fn killed(path: &[&str], timeout_ms: u32) -> (Desk, Vec<Value>, String) {
    let desk = desk("touch $TMPDIR/at-work; sleep 600");
    let config = desk.read(".agentd/config.toml");
    let answers = [Answer::says([edit("toolu_1", "a.txt")]), Answer::text("Done.")];
    desk.write(".agentd/config.toml", &format!("{config}timeout_ms = {timeout_ms}\n"));
    let server = Server::scripted(answers);
    let mut command = desk.with_server(&server, &[&FLAGS[..], &["--timeout", "60"]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let agentd = child.id();
    // START alone does not prove it: a runner that dies before `Go` has done nothing, and is
    // replaced.
    let session = || {
        let mut sessions = std::fs::read_dir(desk.state().join("sessions")).ok()?.flatten();
        sessions.next()?.file_name().into_string().ok()
    };
    until("the verifier at work", || {
        session().is_some_and(|id| Path::new(&format!("/tmp/agentd-{id}/tmp/at-work")).exists())
    });
    let mut pid = agentd;
    for name in path {
        until(name, || child_of(pid, name).is_some());
        pid = child_of(pid, name).unwrap();
    }
    send(pid, Signal::SIGKILL);
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Done.\n", "{err}");
    (desk, told(&server), err)
}

/// The journals of all sessions.
fn glob(desk: &Desk) -> impl Iterator<Item = String> + use<> {
    let sessions = std::fs::read_dir(desk.state().join("sessions")).into_iter().flatten().flatten();
    sessions.filter_map(|dir| std::fs::read_to_string(dir.path().join("journal.jsonl")).ok())
}

#[test]
fn one_that_dies_or_whose_supervisor_dies_is_not_run_again() {
    for path in [&["agentd-supervisor", "agentd-tool"][..], &["agentd-supervisor"][..]] {
        let (desk, said, err) = killed(path, 40_000);
        let text = said[0]["content"].to_string();
        assert!(text.contains("verifier: unavailable (interrupted"), "{path:?} {text} {err}");
        assert!(said[0]["is_error"] != true, "{said:#?}");
        assert_eq!(desk.read("a.txt"), "two\n");
        let starts: usize = glob(&desk)
            .map(|text| text.lines().filter(|line| line.contains(r#""kind":"START""#)).count())
            .sum();
        assert_eq!(starts, 2, "the edit and the verifier, once each: {path:?}");
    }
}

#[test]
fn the_conversation_dies_meanwhile_and_what_was_found_is_told_all_the_same() {
    let (desk, said, err) = killed(&["agentd-supervisor", "agentd-session"], 4_000);
    let text = said[0]["content"].to_string();
    assert!(text.contains("verifier: unavailable (") && text.contains("4000 ms"), "{text} {err}");
    assert_eq!(verified(&desk).len(), 1);
}
