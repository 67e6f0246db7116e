//! A project on a file system that another process serves, as those over a network are: it works as any
//! other, it refuses, it hangs, it dies. `bindfs` stands for `sshfs` and its like; it takes root.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, needs, run, send, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The desk's project, served by a process of its own.
struct Served {
    at: PathBuf,
    server: Child,
}

impl Served {
    fn project(desk: &Desk, flags: &[&str]) -> Self {
        assert!(crate::support::is_root(), "this test mounts a file system; run it as root");
        needs("bindfs");
        let at = desk.project();
        let source = desk.outside().join("elsewhere");
        fs::create_dir_all(&source).unwrap();
        fs::write(source.join("a"), "one\n").unwrap();
        let mut command = Command::new("bindfs");
        command.arg("-f").args(flags).arg(&source).arg(&at).stdin(Stdio::null());
        let served = Self { server: command.spawn().unwrap(), at };
        until("the file system is served", || served.at.join("a").exists());
        served
    }

    fn stop(&self) {
        send(self.server.id(), Signal::SIGSTOP);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = Command::new("umount").arg("--lazy").arg(&self.at).status();
    }
}

/// The results of these calls that the model got, one a round.
fn told(server: &Server) -> Vec<String> {
    let requests = server.requests();
    let results = requests[1..].iter().map(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"][0]["content"].to_string()
    });
    results.collect()
}

fn says(n: usize, (tool, input): &(&str, Value)) -> Answer {
    Answer::says([call(&format!("toolu_{n}"), tool, &input.to_string())])
}

#[test]
#[ignore = "needs bindfs and /dev/fuse: .ci/nightly machine"]
fn it_works_as_any_other() {
    for tier in ["A", "B"] {
        let desk = Desk::new();
        let _served = Served::project(&desk, &["--no-allow-other"]);
        let calls = [
            ("read", json!({"path": "a"})),
            ("write", json!({"path": "new/b", "content": "two\n"})),
            ("edit", json!({"path": "a", "old_string": "one", "new_string": "1"})),
            ("grep", json!({"pattern": "1|two"})),
            ("glob", json!({"pattern": "*"})),
            ("bash", json!({"command": "cat a new/b > c && git init -q && git status --short"})),
            ("delete", json!({"paths": ["new/b"]})),
            ("undo_restore", json!({"id": 7})),
        ];
        let answers = calls.iter().zip(1..).map(|(row, n)| says(n, row)).collect::<Vec<_>>();
        let server = Server::scripted(answers.into_iter().chain([Answer::text("done")]));
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        command.env("AGENTD_SANDBOX_TIER", tier);
        let ran = run(command);
        assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{tier}: {ran:?}");
        for (told, (tool, _)) in told(&server).iter().zip(&calls) {
            assert!(
                !told.contains("Error [") && !told.contains("Not run"),
                "{tier} {tool}: {told}"
            );
        }
        assert_eq!(desk.read("c"), "1\ntwo\n", "{tier}");
        assert_eq!(desk.read("new/b"), "two\n", "{tier}");
    }
}

/// A call that waits for the disk before it starts is not run. A call that has started ends at its
/// time limit. Then the turn continues.
#[test]
#[ignore = "needs bindfs and /dev/fuse: .ci/nightly machine"]
fn a_server_that_answers_no_more_holds_up_its_call_and_nothing_else() {
    let before = ("before it began", "read", json!({"path": "a"}));
    let script = "echo x > begun; sleep 2; cat a; echo read";
    let amid = |script| ("may have run", "bash", json!({"command": script, "timeout_ms": 4000}));
    // It may stop while it handles a request of the command or of an observer: then these cannot even
    // be killed.
    let busy = "while :; do echo x >> begun; cat a > b; done";
    let rows = [
        ("A", before),
        ("A", amid(script)),
        ("B", amid(script)),
        ("A", amid(busy)),
        ("B", amid(busy)),
    ];
    for (tier, (words, tool, input)) in rows {
        let desk = Desk::new().with_ping_ms(1000);
        let served = Served::project(&desk, &["--no-allow-other"]);
        let (pid, begun) = (served.server.id(), desk.outside().join("elsewhere/begun"));
        let row = (tool, input);
        let server = Server::answering(move |n, _| match n {
            1 if words == "before it began" => {
                send(pid, Signal::SIGSTOP);
                says(n, &row)
            }
            1 => {
                let begun = begun.clone();
                std::thread::spawn(move || {
                    until("the command runs", || begun.exists());
                    send(pid, Signal::SIGSTOP);
                });
                says(n, &row)
            }
            2 => {
                // The control: as soon as it answers, so do calls.
                send(pid, Signal::SIGCONT);
                says(n, &("read", json!({"path": "a", "limit": 1})))
            }
            _ => Answer::text("done"),
        });
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        command.env("AGENTD_SANDBOX_TIER", tier);
        let ran = run(command);
        assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{tier} {tool}: {ran:?}");
        let told = told(&server);
        assert!(told[0].contains(words), "{tier} {tool}: {told:?}");
        assert!(told[1].contains("one"), "{tier} {tool}: {told:?}");
        assert!(ran.took < Duration::from_secs(45), "{tier} {tool}: {:?}", ran.took);
    }
}

/// No signal ends a process that waits for the rest of an answer which the server has begun.
#[test]
#[ignore = "needs bindfs and /dev/fuse: .ci/nightly machine"]
fn what_cannot_be_killed_holds_up_its_call_and_nothing_else() {
    for tier in ["A", "B"] {
        let desk = Desk::new().with_ping_ms(1000);
        let slow = slow(&desk);
        let calls = [
            ("bash", json!({"command": "head -c 4000 /dev/zero > large", "timeout_ms": 1000})),
            ("memory_add", json!({"text": "one"})),
            ("memory_search", json!({"query": "one"})),
        ];
        let answers = calls.iter().zip(1..).map(|(row, n)| says(n, row)).collect::<Vec<_>>();
        let server = Server::scripted(answers.into_iter().chain([Answer::text("done")]));
        let mut command = desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]);
        command.env("AGENTD_SANDBOX_TIER", tier);
        let ran = run(command);
        assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{tier}: {ran:?}");
        assert!(ran.took < Duration::from_secs(45), "{tier}: {:?}", ran.took);
        let told = told(&server);
        assert!(told[0].contains("may have run"), "{tier}: {told:?}");
        assert!(told[2].contains("one"), "the control, {tier}: {told:?}");
        drop(slow);
    }
}

/// The same in a runner that writes by itself: a person's stop is a stop.
#[test]
#[ignore = "needs bindfs and /dev/fuse: .ci/nightly machine"]
fn a_write_that_cannot_be_killed_is_over_when_a_person_stops_it() {
    let desk = Desk::new().with_ping_ms(1000);
    let daemon = desk.daemon();
    let slow = slow(&desk);
    let row = ("write", json!({"path": "large", "content": "x".repeat(4000)}));
    let server = Server::answering(move |n, _| match n {
        1 => says(n, &row),
        _ => Answer::text("done"),
    });
    let pid = daemon.pid;
    let held = || {
        let tool = |it: &crate::support::Process| it.parent == pid && it.name == "agentd-tool";
        crate::support::processes().into_iter().filter(tool).any(|it| waits_in_the_kernel(it.pid))
    };
    let mut script = desk.with_server(&server, &["-p", "go", "--permission-mode", "auto"]);
    let mut script = script.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Each of its questions waits there for a moment; only that for the bytes waits longer.
    let mut waited = 0;
    until("the runner waits in the kernel", || {
        waited = if held() { waited + 1 } else { 0 };
        waited > 100
    });
    send(script.id(), Signal::SIGINT);
    until("the script has ended", || script.try_wait().unwrap().is_some());
    let audit = || {
        // Not from within the project, whose disk does not answer.
        let mut command = desk.agentd(&["audit", "export"]);
        command.current_dir(desk.home());
        crate::support::run_within(command, Duration::from_secs(20)).out
    };
    until("the call has an end", || audit().contains(r#""how":"interrupted""#));
    assert!(held(), "the control: it waits still");
    drop(slow);
    until("the runner is waited for", || !held());
    drop(daemon);
}

fn waits_in_the_kernel(pid: u32) -> bool {
    let place = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    place == "request_wait_answer"
}

/// A project on a disk that takes an hour for a call's write; other calls wait.
fn slow(desk: &Desk) -> Served {
    Served::project(desk, &["--no-allow-other", "--write-rate=1"])
}

#[test]
#[ignore = "needs bindfs and /dev/fuse: .ci/nightly machine"]
fn while_it_hangs_the_daemon_answers_and_other_sessions_work() {
    let desk = Desk::new();
    let served = Served::project(&desk, &["--no-allow-other"]);
    let script = "echo x > begun; sleep 2; cat a";
    let row = ("bash", json!({"command": script, "timeout_ms": 600_000}));
    let server = Server::answering(move |n, _| match n {
        1 => says(n, &row),
        _ => Answer::text("done"),
    });
    let daemon = desk.daemon();
    let mut script = desk.with_server(&server, &["-p", "go", "--permission-mode", "auto"]);
    let mut script = script.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the command runs", || desk.outside().join("elsewhere/begun").exists());
    let beside = |words: &[&str], server: Option<&Server>| {
        let mut command = match server {
            Some(server) => desk.with_server(server, words),
            None => desk.agentd(words),
        };
        command.current_dir(desk.home());
        crate::support::run_within(command, Duration::from_secs(20))
    };
    let id = {
        let ls = beside(&["ls", "--json"], None);
        let row: Value = serde_json::from_str(ls.out.lines().next().unwrap()).unwrap();
        row["session_id"].as_str().unwrap().to_owned()
    };
    served.stop();
    std::thread::sleep(Duration::from_secs(3));
    let ls = beside(&["ls"], None);
    assert!(ls.code == 0 && ls.out.contains(&id), "{ls:?}");
    let ps = beside(&["ps"], None);
    assert!(ps.code == 0 && ps.out.contains(&id), "{ps:?}");
    let other = beside(&["-p", "x"], Some(&Server::scripted([Answer::text("here")])));
    assert_eq!((other.code, other.out.as_str()), (0, "here\n"), "{other:?}");
    let killed = beside(&["kill", &id], None);
    assert_eq!(killed.code, 0, "{killed:?}");
    let pid = daemon.pid;
    let left = || {
        crate::support::processes().into_iter().filter(|it| it.parent == pid).collect::<Vec<_>>()
    };
    until("nothing of the call is left", || !left().iter().any(|it| it.name == "agentd-tool"));
    let _ = script.wait();
    // Its end is asked for from within the project.
    send(served.server.id(), Signal::SIGCONT);
    drop(daemon);
}

#[test]
#[ignore = "needs bindfs and /dev/fuse: .ci/nightly machine"]
fn a_server_that_is_gone_is_told() {
    let desk = Desk::new();
    let served = Served::project(&desk, &["--no-allow-other"]);
    let pid = served.server.id();
    let calls = [
        ("read", json!({"path": "a"})),
        ("bash", json!({"command": "cat a"})),
        ("write", json!({"path": "a", "content": "two\n"})),
        ("ls", json!({})),
        ("grep", json!({"pattern": "x"})),
        ("memory_add", json!({"text": "what needs no file"})),
    ];
    let server = Server::answering(move |n, _| {
        if n == 2 {
            send(pid, Signal::SIGKILL);
        }
        calls.get(n - 1).map_or(Answer::text("done"), |row| says(n, row))
    });
    let ran = run(desk.with_server(&server, &["-p", "x", "--permission-mode", "auto"]));
    assert_eq!(ran.out, "done\n", "{ran:?}");
    let told = told(&server);
    assert!(told[0].contains("one"), "the control: {told:?}");
    // By the tool itself, or before it where not even a cage can be made for it.
    for told in &told[1..5] {
        assert!(told.contains("Transport endpoint is not connected"), "{told}");
        assert!(
            told.contains("Error [io]")
                || told.contains("exit code: 1")
                || told.contains("was not run"),
            "{told}"
        );
    }
    assert!(told[5].contains("remembered"), "{told:?}");
    assert_eq!(fs::read_to_string(desk.outside().join("elsewhere/a")).unwrap(), "one\n");
    // No process can enter it any more; a call that names it gets an error.
    let project = desk.project().display().to_string();
    let mut again = desk.with_server(&server, &["-p", "x", "--project-dir", &project]);
    again.current_dir(desk.home());
    let again = run(again);
    assert!(again.code != 0 && again.err.contains("Transport endpoint"), "{again:?}");
    assert!(again.err.contains(&project), "{again:?}");
    let mut ls = desk.agentd(&["ls"]);
    ls.current_dir(desk.home());
    let ls = run(ls);
    assert!(ls.code == 0 && ls.out.contains("project"), "{ls:?}");
}

/// Who mounts such a file system may keep every other user out, root included.
#[test]
#[ignore = "needs bindfs and /dev/fuse: .ci/nightly machine"]
fn a_server_that_refuses_this_user_is_told() {
    needs("setpriv");
    let desk = Desk::new();
    let _served = Served::project(&desk, &["--no-allow-other"]);
    for place in [desk.outside(), desk.home(), desk.run_dir(), desk.outside().join("state")] {
        std::os::unix::fs::chown(&place, Some(65534), Some(65534)).unwrap();
    }
    let server = Server::scripted([Answer::text("never")]);
    let command = desk.with_server(&server, &["-p", "x"]);
    let mut other = Command::new("setpriv");
    other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    other.arg(command.get_program()).args(command.get_args()).current_dir(desk.project());
    other.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = run(other);
    assert_eq!(ran.code, 2, "{ran:?}");
    let said = "the project directory . cannot be used: Permission denied";
    assert!(ran.err.contains(said), "{ran:?}");
    assert!(server.requests().is_empty(), "{ran:?}");
}
