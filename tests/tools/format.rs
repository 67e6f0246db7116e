//! The person's formatters: filters that get each edited file after the round's edits and cannot
//! change files themselves. Their output is written as an edit, reported to the model, and can be
//! undone.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::{Desk, child_of, run, send, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

const FLAGS: [&str; 5] = ["-p", "Go.", "--permission-mode", "accept-edits", "--trust-project"];

/// A project in which text files go through this filter.
fn desk(command: &str) -> Desk {
    let desk = Desk::new();
    configured(&desk, command, "");
    desk.write("a.txt", "one\n");
    desk.write("b.txt", "one\n");
    desk
}

fn configured(desk: &Desk, command: &str, more: &str) {
    let commands = format!("[format]\ncommands = [{:?}]\n{more}", format!("*.txt: {command}"));
    desk.write(".agentd/config.toml", &commands);
}

fn edit(id: &str, path: &str, old: &str, new: &str) -> Say {
    call(id, "edit", &json!({"path": path, "old_string": old, "new_string": new}).to_string())
}

/// One round of these calls; the results that the model got.
fn round(desk: &Desk, flags: &[&str], calls: Vec<Say>) -> Vec<Value> {
    let server = Server::scripted([Answer::says(calls), Answer::text("Done.")]);
    let ran = run(desk.with_server(&server, flags));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    told(&server, 1)
}

/// The results in this request.
fn told(server: &Server, request: usize) -> Vec<Value> {
    let requests = server.requests();
    let messages = requests[request].body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_array().unwrap().clone()
}

/// The ends of this tool's calls.
fn ended(desk: &Desk, tool: &str) -> Vec<Value> {
    let calls = desk.audit().into_iter();
    calls.filter(|record| record["event"] == "ended" && record["tool"] == tool).collect()
}

#[test]
fn what_it_prints_takes_the_files_place_is_told_looked_at_and_no_edit_misses_because_of_it() {
    let desk = desk("tr a-z A-Z");
    let verify = "[verify]\ncommands = [\"*.txt: grep . a.txt b.txt; exit 3\"]\n";
    configured(&desk, "tr a-z A-Z", verify);
    let file = desk.project().join("a.txt");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o751)).unwrap();
    let both = [edit("toolu_1", "a.txt", "one", "two"), edit("toolu_2", "b.txt", "one", "two")];
    let server = Server::scripted([
        Answer::says(both),
        Answer::says([edit("toolu_3", "a.txt", "TWO", "three")]),
        Answer::text("Done."),
    ]);
    let ran = run(desk.with_server(&server, &FLAGS));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.err);
    let (first, second) = (told(&server, 1), told(&server, 2));
    for (said, path) in [(&first[0], "a.txt"), (&first[1], "b.txt")] {
        let text = said["content"].to_string();
        let wanted = format!("formatter `tr a-z A-Z` changed {path} after the edit, +1 -1 lines:");
        assert!(text.contains(&wanted) && text.contains(r"-two\n+TWO"), "{text}");
        assert!(said["is_error"] != true, "{said}");
    }
    // Verifiers run once, after all of that.
    assert!(first[1]["content"].to_string().contains("a.txt:TWO\\nb.txt:TWO"), "{first:#?}");
    assert_eq!(ended(&desk, "verify").len(), 2, "once a round");
    // The next edit matches the reported content, and is not refused as stale.
    assert!(second[0]["is_error"] != true, "{second:#?}");
    assert_eq!((desk.read("a.txt").as_str(), desk.read("b.txt").as_str()), ("THREE\n", "TWO\n"));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o751);
    let records = ended(&desk, "format");
    assert_eq!(records.len(), 3, "{records:#?}");
    let record = records[0].to_string();
    assert!(record.contains(r#""profile":"format""#), "its own cage: {record}");
    assert!(record.contains("The program cannot write in the project; the runner"), "{record}");
    let decided = desk.audit().into_iter();
    let mut decided = decided.filter(|it| it["event"] == "decided" && it["tool"] == "format");
    let by = decided.next().unwrap().to_string();
    assert!(by.contains("format.commands") && by.contains(".agentd/config.toml"), "{by}");
    let verified = run(desk.agentd(&["audit", "verify"]));
    assert_eq!(verified.code, 0, "{}", verified.err);
}

#[test]
fn one_undo_takes_back_the_edit_and_what_a_formatter_made_of_it() {
    for (command, after) in [("tr a-z A-Z", "TWO\n"), ("cat", "two\n")] {
        let desk = desk(command);
        let said = round(&desk, &FLAGS, vec![edit("toolu_1", "a.txt", "one", "two")]);
        assert_eq!(desk.read("a.txt"), after, "{said:#?}");
        assert_eq!(said[0]["content"].to_string().contains("nothing to change"), command == "cat");
        let server = Server::scripted([]);
        let undo = ["-c", "-p", ":undo", "--permission-mode", "accept-edits", "--trust-project"];
        let ran = run(desk.with_server(&server, &undo));
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_eq!(desk.read("a.txt"), "one\n", "{}", ran.out);
        assert_eq!(ran.out.contains("format (call"), command != "cat", "{}", ran.out);
        assert!(!ran.out.contains("Not undone"), "{}", ran.out);
    }
}

#[test]
fn whatever_it_comes_to_the_edit_stands_and_the_reason_is_told() {
    for (command, more, why) in [
        ("no-such-program -q", "", "not found"),
        ("true", "", "the formatter printed nothing"),
        ("head -c 2000000 /dev/zero", "", "files up to 1048576 bytes are formatted"),
        (r"printf '\377'", "", "is not UTF-8"),
        ("sleep 600", "timeout_ms = 300\n", "300 ms"),
        (
            "sh -c 'echo half; echo line 1 >&2; exit 3'",
            "",
            "exit code 3, the file was not formatted",
        ),
        ("sh -c 'kill -9 $$'", "", "killed by signal 9"),
        ("tr a-z A-Z", "[permissions]\ndeny = [\"bash:tr *\"]\n", "bash:tr"),
        ("tr a-z A-Z", "[permissions]\ndeny = [\"format\"]\n", "format"),
        ("tr a-z A-Z", "[permissions]\nask = [\"format:tr *\"]\n", "non-interactive"),
    ] {
        let desk = desk(command);
        configured(&desk, command, more);
        let said = round(&desk, &FLAGS, vec![edit("toolu_1", "a.txt", "one", "two")]);
        let text = said[0]["content"].to_string();
        assert!(text.contains("formatter `") && text.contains(why), "{command}: {text}");
        assert_eq!(text.contains("unavailable ("), !why.starts_with("exit code 3"), "{text}");
        assert!(said[0]["is_error"] != true, "{said:#?}");
        assert_eq!(desk.read("a.txt"), "two\n", "{command}");
        assert_eq!(std::fs::read_dir(desk.project()).unwrap().count(), 3, "{command}");
    }
}

#[test]
fn it_can_change_nothing_itself_and_reaches_no_network() {
    crate::support::needs("python3");
    let connect = "import socket\ntry: socket.create_connection(('192.0.2.1', 9), 1)\nexcept OSError as no: print('no network:', no.errno)";
    for tier in ["A", "B"] {
        let desk = desk("sh form.sh {path}");
        desk.write("look.py", connect);
        let script = "exec 2>&1; touch made; echo more >> \"$1\"; rm b.txt; python3 look.py; cat";
        desk.write("form.sh", script);
        let answers = |calls| Server::scripted([Answer::says([calls]), Answer::text("Done.")]);
        let server = answers(edit("toolu_1", "a.txt", "one", "two"));
        let mut command = desk.with_server(&server, &[&FLAGS[..], &["--net", "on"]].concat());
        command.env("AGENTD_SANDBOX_TIER", tier);
        let ran = run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        // Its output is in the file; its other attempts had no effect.
        let now = desk.read("a.txt");
        assert!(now.contains("no network") && now.ends_with("\ntwo\n"), "{tier} {now}");
        assert!(!now.contains("more\n") && !desk.project().join("made").exists(), "{now}");
        assert_eq!(desk.read("b.txt"), "one\n");
        let record = ended(&desk, "format")[0].to_string();
        assert!(record.contains(&format!("\"tier\":\"{tier}\"")), "{record}");
        assert!(record.contains("made"), "what was refused is on record: {record}");
        // The same script where a command may write.
        let bash = json!({"command": "sh form.sh a.txt </dev/null"}).to_string();
        let server = answers(call("toolu_1", "bash", &bash));
        let auto = ["-p", "Go.", "--permission-mode", "auto"];
        assert_eq!(run(desk.with_server(&server, &auto)).code, 0);
        assert!(desk.project().join("made").exists());
    }
}

#[test]
fn a_path_is_one_word_and_no_shell_reads_it() {
    let desk = desk("sh form.sh {path} end");
    desk.write("form.sh", "cat; printf '%s|' \"$#\" \"${1##*/}\" \"$2\" \"$PWD\"");
    let path = "-d/$(touch made) -x.txt";
    let write = json!({"path": path, "content": "two\n"}).to_string();
    round(&desk, &FLAGS, vec![call("toolu_1", "write", &write)]);
    // Programs search for their settings in its directory.
    let place = desk.project().canonicalize().unwrap().join("-d");
    let wanted = format!("two\n2|$(touch made) -x.txt|end|{}|", place.display());
    desk.write("-d/form.sh", &desk.read("form.sh"));
    round(&desk, &FLAGS, vec![call("toolu_1", "write", &write)]);
    assert_eq!(desk.read(path), wanted);
    assert!(!desk.project().join("made").exists() && !place.join("made").exists());
}

#[test]
fn nothing_is_put_in_form_that_is_not_trusted_not_meant_or_not_there() {
    let desk = desk("tr a-z A-Z");
    let md = json!({"path": "c.md", "content": "two\n"}).to_string();
    for (flags, calls) in [
        // The project is not trusted; another kind of file; an edit that failed; one deleted since.
        (&FLAGS[..4], vec![edit("toolu_1", "a.txt", "one", "two")]),
        (&FLAGS[..], vec![call("toolu_1", "write", &md)]),
        (&FLAGS[..], vec![edit("toolu_1", "a.txt", "no such words", "two")]),
        (
            &FLAGS[..],
            vec![
                edit("toolu_1", "b.txt", "one", "two"),
                call("toolu_2", "delete", &json!({"paths": ["b.txt"]}).to_string()),
            ],
        ),
    ] {
        let said = round(&desk, flags, calls);
        assert!(!format!("{said:?}").contains("formatter"), "{said:#?}");
    }
    assert_eq!(ended(&desk, "format").len(), 0);
    // Changes by another process meanwhile do not count as the edit's.
    let other = json!({"command": "echo other > a.txt"}).to_string();
    let auto = ["-p", "Go.", "--permission-mode", "auto", "--trust-project"];
    let calls = vec![edit("toolu_1", "a.txt", "two", "three"), call("toolu_2", "bash", &other)];
    let said = round(&desk, &auto, calls);
    assert!(said[0]["content"].to_string().contains("changed on disk since"), "{said:#?}");
    assert_eq!(desk.read("a.txt"), "other\n");
}

/// A run in which this process is killed while the filter runs.
fn killed(path: &[&str], timeout_ms: u32) -> (Desk, Vec<Value>, String) {
    let desk = desk("sh -c 'touch $TMPDIR/at-work; sleep 600'");
    let command = "sh -c 'touch $TMPDIR/at-work; sleep 600'";
    configured(&desk, command, &format!("timeout_ms = {timeout_ms}\n"));
    let edited = edit("toolu_1", "a.txt", "one", "two");
    let server = Server::scripted([Answer::says([edited]), Answer::text("Done.")]);
    let mut command = desk.with_server(&server, &[&FLAGS[..], &["--timeout", "60"]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // START alone does not prove it: a runner that dies before `Go` has done nothing, and is
    // replaced.
    let session = || {
        let mut sessions = std::fs::read_dir(desk.state().join("sessions")).ok()?.flatten();
        sessions.next()?.file_name().into_string().ok()
    };
    until("the formatter at work", || {
        session().is_some_and(|id| Path::new(&format!("/tmp/agentd-{id}/tmp/at-work")).exists())
    });
    let mut pid = child.id();
    for name in path {
        until(name, || child_of(pid, name).is_some());
        pid = child_of(pid, name).unwrap();
    }
    send(pid, Signal::SIGKILL);
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Done.\n", "{err}");
    (desk, told(&server, 1), err)
}

#[test]
fn one_that_dies_or_whose_supervisor_dies_is_not_run_again() {
    for path in [&["agentd-supervisor", "agentd-tool"][..], &["agentd-supervisor"][..]] {
        let (desk, said, err) = killed(path, 40_000);
        let text = said[0]["content"].to_string();
        assert!(text.contains("unavailable (interrupted: may have run"), "{path:?} {text} {err}");
        assert!(said[0]["is_error"] != true, "{said:#?}");
        assert_eq!(desk.read("a.txt"), "two\n");
        let sessions = std::fs::read_dir(desk.state().join("sessions")).unwrap().flatten();
        let starts = sessions.map(|dir| {
            let text =
                std::fs::read_to_string(dir.path().join("journal.jsonl")).unwrap_or_default();
            text.lines().filter(|line| line.contains(r#""kind":"START""#)).count()
        });
        assert_eq!(starts.sum::<usize>(), 2, "the edit and the formatter, once each: {path:?}");
    }
}

#[test]
fn the_conversation_dies_meanwhile_and_what_came_of_it_is_told_all_the_same() {
    let (desk, said, err) = killed(&["agentd-supervisor", "agentd-session"], 4_000);
    let text = said[0]["content"].to_string();
    assert!(text.contains("unavailable (") && text.contains("4000 ms"), "{text} {err}");
    assert_eq!(ended(&desk, "format").len(), 1);
}
