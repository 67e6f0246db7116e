//! Faults of workers, disk and clients in the real executables: nothing is lost, nothing is done
//! twice, nobody waits for ever, and nothing is left.
#![allow(clippy::unwrap_used)]

mod support;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::anthropic::{Answer, Server, call, text};
use support::{Desk, child_of, run};

const EXECUTABLES: [&str; 6] = [
    "agentd",
    "agentd-supervisor",
    "agentd-session",
    "agentd-provider",
    "agentd-broker",
    "agentd-tool",
];

/// The executables in a place of their own, where one may be replaced.
fn place(desk: &Desk) -> PathBuf {
    let place = desk.outside().join("bin");
    fs::create_dir(&place).unwrap();
    let own = Path::new(env!("CARGO_BIN_EXE_agentd"));
    for name in EXECUTABLES {
        fs::copy(own.with_file_name(name), place.join(name)).unwrap();
    }
    place
}

/// Puts a shell script in an executable's stead.
fn replace(place: &Path, name: &str, script: &str) {
    let path = place.join(name);
    fs::remove_file(&path).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// `agentd` of that place, as the desk would run it.
fn agentd(place: &Path, desk: &Desk, server: &Server, arguments: &[&str]) -> Command {
    let like = desk.with_server(server, &[]);
    let mut command = Command::new("setsid");
    command.arg(place.join("agentd")).args(arguments).current_dir(desk.project()).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null());
    command
}

fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
}

/// Waits for a condition; 20 s are a machine in trouble.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn bash(id: &str, command: &str) -> support::anthropic::Say {
    call(id, "bash", &json!({ "command": command }).to_string())
}

/// Waits until no process of that run is left.
#[track_caller]
fn nothing_left(child: &Child) {
    let session = child.id();
    until("nothing is left running", || {
        !support::processes().iter().any(|process| process.session == session)
    });
}

fn only_session(desk: &Desk) -> String {
    let sessions: Vec<_> = fs::read_dir(desk.state().join("sessions")).unwrap().collect();
    assert_eq!(sessions.len(), 1);
    sessions[0].as_ref().unwrap().file_name().into_string().unwrap()
}

#[test]
fn a_session_of_thousands_of_records_goes_on() {
    let desk = Desk::new();
    let filler = "x".repeat(3000);
    let server = Server::answering(move |n, _| match n % 2 {
        1 => Answer::says((0..300).map(|k| {
            call(&format!("toolu_{n}_{k}"), "nonsense", &json!({ "x": filler }).to_string())
        })),
        _ => Answer::text("done"),
    });
    let ran = desk.ask(&server, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let id = only_session(&desk);
    for _ in 0..4 {
        let ran = desk.ask(&server, &["--resume", &id, "--timeout", "40"]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
}

#[test]
fn a_broker_that_cannot_run_denies_calls_that_come_after_it_failed_too() {
    let desk = Desk::new();
    let place = place(&desk);
    replace(&place, "agentd-broker", "exit 3");
    let slow =
        Answer::says([bash("toolu_1", "touch ran")]).stalled_after(10, Duration::from_secs(4));
    let server = Server::scripted([slow, Answer::text("denied, then")]);
    let arguments = ["-p", "x", "--permission-mode", "auto", "--timeout", "15"];
    let ran = run(agentd(&place, &desk, &server, &arguments));
    assert_ne!(ran.code, 124, "{}", ran.err);
    assert!(!desk.project().join("ran").exists());
    assert!(server.requests()[1].body.to_string().contains("nothing can judge it"));
}

#[test]
fn a_call_that_is_too_large_for_a_wire_is_a_result_and_no_silence() {
    for megabytes in [9, 17] {
        let desk = Desk::new();
        let content = "x".repeat(megabytes << 20);
        let input = json!({ "path": "big", "content": content }).to_string();
        let server = Server::scripted([
            Answer::says([call("toolu_1", "write", &input)]),
            Answer::text("smaller, then"),
        ]);
        let ran = desk.ask(&server, &["--permission-mode", "auto", "--timeout", "30"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
}

#[test]
fn no_further_call_begins_when_a_run_is_being_ended() {
    for victim in ["agentd", "agentd-supervisor"] {
        let desk = Desk::new();
        let server = Server::scripted([Answer::says([
            bash("toolu_1", "echo x >> first; sleep 50"),
            bash("toolu_2", "echo x >> second"),
            bash("toolu_3", "echo x >> second"),
        ])]);
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        let mut child = command.spawn().unwrap();
        until("the first call runs", || desk.project().join("first").exists());
        let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
        match victim {
            "agentd" => send(child.id(), Signal::SIGKILL),
            _ => send(supervisor, Signal::SIGTERM),
        }
        child.wait().unwrap();
        nothing_left(&child);
        assert!(!desk.project().join("second").exists(), "{victim}");
        let left: Vec<_> = fs::read_dir(desk.run_dir().join("agentd"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn what_a_call_does_to_its_temporary_directory_does_not_lock_its_session() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([bash(
            "toolu_1",
            "mkdir -p $TMPDIR/a/b; chmod 000 $TMPDIR/a; chmod 755 $TMPDIR; touch begun; sleep 50",
        )]),
        Answer::text("on"),
    ]);
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    let mut child = command.spawn().unwrap();
    until("the call runs", || desk.project().join("begun").exists());
    send(child_of(child.id(), "agentd-supervisor").unwrap(), Signal::SIGKILL);
    child.wait().unwrap();
    let id = only_session(&desk);
    let ran = desk.ask(&server, &["--resume", &id]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!Path::new("/tmp").join(format!("agentd-{id}")).exists());
}

#[test]
fn a_runner_that_is_stopped_does_not_outlive_an_interrupted_run() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::says([bash("toolu_1", "touch begun; sleep 50")])]);
    let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
    let mut child = command.spawn().unwrap();
    until("the call runs", || desk.project().join("begun").exists());
    let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
    send(child_of(supervisor, "agentd-tool").unwrap(), Signal::SIGSTOP);
    send(child.id(), Signal::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    nothing_left(&child);
    // It was killed for it, in time for its end to be written down.
    assert_eq!(desk.ended(1)["outcome"]["how"], "interrupted");
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
}

#[test]
fn a_reader_that_is_slow_loses_nothing() {
    use std::io::Read;
    let desk = Desk::new();
    let words = "y".repeat(200_000);
    let many: Vec<_> = (0..9000).map(|_| text("z")).collect();
    let server = Server::scripted([
        Answer::says([text(&words), call("toolu_1", "ls", "{}")]),
        Answer::says(many),
    ]);
    let arguments = ["-p", "x", "--output-format", "stream-json"];
    let mut command = desk.with_server(&server, &arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(6));
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{err}");
    assert!(out.lines().last().unwrap().contains("\"success\""));
}

#[test]
fn a_conversation_killed_in_mid_stream_or_mid_call_ends_its_turn_visibly() {
    for mid in ["stream", "call"] {
        let desk = Desk::new();
        let stalled = Answer::text("half of it").stalled_after(300, Duration::from_secs(8));
        let first = match mid {
            "stream" => stalled,
            _ => Answer::says([bash("toolu_1", "touch begun; sleep 2; echo x >> done")]),
        };
        let server = Server::scripted([first, Answer::text("second")]);
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        match mid {
            "stream" => until("asked", || server.requests().len() == 1),
            _ => until("begun", || desk.project().join("begun").exists()),
        }
        let supervisor = child_of(child.id(), "agentd-supervisor").unwrap();
        send(child_of(supervisor, "agentd-session").unwrap(), Signal::SIGKILL);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(err.contains("the turn was interrupted"), "{err}");
        let id = only_session(&desk);
        let ran = desk.ask(&server, &["--resume", &id]);
        assert_eq!(ran.code, 0, "{ran:?}");
        if mid == "call" {
            assert_eq!(desk.read("done"), "x\n");
        }
    }
}

#[test]
fn a_command_can_be_ended_by_what_a_script_ends_it_with() {
    let desk = Desk::new();
    let script = "timeout 1 sleep 30; echo timeout: $?; sleep 30 & kill $!; wait $!; echo kill: $?";
    let server = Server::scripted([Answer::says([bash("toolu_1", script)]), Answer::text("done")]);
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    let body = server.requests()[1].body.to_string();
    assert!(body.contains("timeout: 124") && body.contains("kill: 143"), "{body}");
    assert!(ran.took < Duration::from_secs(20), "{ran:?}");
}
