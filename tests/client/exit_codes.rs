//! Each exit code of the table, produced once by its cause.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::terminal::Tmux;
use crate::support::{Desk, run, until};
use nix::sys::signal::Signal;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

const SIZE: (u16, u16) = (90, 30);

/// The codes that `agentd help exit-codes` lists, with the tests below that produce them.
const TABLE: [i32; 18] = [0, 1, 2, 3, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 75, 124, 130, 143];

#[test]
fn the_table_in_the_help_is_the_one_tested_here() {
    let ran = run(Desk::new().agentd(&["help", "exit-codes"]));
    let codes: Vec<i32> =
        ran.out.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    assert_eq!(codes, TABLE);
}

#[track_caller]
fn ends_with(code: i32, command: Command) {
    let ran = run(command);
    assert_eq!(ran.code, code, "{ran:?}");
}

#[test]
fn done_failed_and_wrong_usage() {
    let desk = Desk::new();
    let refusal = Answer::status(400, "invalid_request_error", "too odd");
    let server = Server::scripted([Answer::text("fine"), refusal]);
    ends_with(0, desk.with_server(&server, &["-p", "x"]));
    ends_with(1, desk.with_server(&server, &["-p", "x"]));
    ends_with(2, desk.with_server(&server, &["-p", "x", "--net", "sometimes"]));
    ends_with(2, desk.agentd(&[]));
    ends_with(2, desk.agentd(&["attach", "000000000000"]));
}

#[test]
fn an_answer_that_does_not_fit_its_schema() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("1"), Answer::text("2")]);
    let flags = ["-p", "x", "--json-schema", r#"{"type":"string"}"#];
    ends_with(18, desk.with_server(&server, &flags));
}

#[test]
fn a_review_with_a_finding_that_fails() {
    let desk = Desk::new();
    let git = std::process::Command::new("git").args(["init", "-q"]).arg(desk.project()).status();
    assert!(git.unwrap().success());
    desk.write("a", "x\n");
    let found = r#"{"summary":"","findings":[{"severity":"error","file":"a","line":1,"title":"t","text":""}]}"#;
    let server = Server::answering(move |_, _| Answer::text(found));
    ends_with(19, desk.with_server(&server, &["review"]));
    ends_with(0, desk.with_server(&server, &["review", "--fail-on", "never"]));
}

#[test]
fn detached_while_the_session_goes_on() {
    let desk = Desk::new();
    let answer = Answer::text("slow and whole").stalled_after(10, Duration::from_secs(5));
    let server = Server::scripted([answer]);
    let _daemon = desk.daemon();
    let tmux = Tmux::new(&desk);
    let one = tmux.run("one", &desk.with_server(&server, &["new", "talk"]), SIZE);
    one.shows("▌ talk");
    one.press(&["C-\\"]);
    one.shows("d detaches");
    one.press(&["d"]);
    assert_eq!(one.ends(), 3, "{}", one.screen());
    // The turn continues to its end without a terminal.
    until("the answer of the detached session", || {
        let sessions = run(desk.agentd(&["ls"])).out;
        let id = sessions.lines().nth(1).and_then(|row| row.split_whitespace().next());
        id.is_some_and(|id| run(desk.agentd(&["show", id])).out.contains("slow and whole"))
    });
}

#[test]
fn nobody_to_ask_and_the_budget_used_up() {
    let desk = Desk::new();
    let write = |id: &str| call(id, "write", r#"{"path":"a","content":"x"}"#);
    let server = Server::scripted([Answer::says([write("toolu_1")]), Answer::text("no")]);
    ends_with(10, desk.with_server(&server, &["-p", "x"]));
    let look = |id: &str| call(id, "ls", "{}");
    let server =
        Server::scripted([Answer::says([look("toolu_1")]), Answer::says([look("toolu_2")])]);
    ends_with(12, desk.with_server(&server, &["-p", "x", "--max-turns", "1"]));
    let config = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "[budget]\nsession_calls = 1\n").unwrap();
    let both = Answer::says([look("toolu_1"), look("toolu_2")]);
    let server = Server::scripted([both, Answer::text("as far as it went")]);
    ends_with(12, desk.with_server(&server, &["-p", "x"]));
}

#[test]
fn no_cage_no_key_no_provider() {
    let desk = Desk::new();
    // Without its runner no call has a cage.
    let place = crate::support::place(&desk);
    let runner = place.join("agentd-tool");
    let server = Server::answering(move |n, _| match n {
        1 => {
            fs::remove_file(&runner).unwrap();
            Answer::says([call("toolu_1", "ls", "{}")])
        }
        _ => Answer::text("no"),
    });
    let like = desk.with_server(&server, &[]);
    let mut uncaged = Command::new("setsid");
    uncaged.arg(place.join("agentd")).args(["-p", "x"]).current_dir(desk.project()).env_clear();
    uncaged.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    uncaged.stdin(Stdio::null());
    ends_with(11, uncaged);
    ends_with(13, desk.agentd(&["-p", "x"]));
    let config = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "[provider]\ntries = 1\n").unwrap();
    let mut unreachable = desk.agentd(&["-p", "x"]);
    unreachable.env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9").env("ANTHROPIC_API_KEY", "k");
    ends_with(14, unreachable);
    fs::write(&config, "[provider]\ntris = 1\n").unwrap();
    ends_with(16, desk.agentd(&["-p", "x"]));
}

#[test]
fn a_process_that_dies_at_the_same_place_each_time() {
    let desk = Desk::new();
    let (started, pid) = std::sync::mpsc::channel();
    let mut agentd = None;
    let server = Server::answering(move |_, _| {
        let agentd = *agentd.get_or_insert_with(|| pid.recv().unwrap());
        let supervisor = crate::support::child_of(agentd, "agentd-supervisor").unwrap();
        let session = crate::support::child_of(supervisor, "agentd-session").unwrap();
        crate::support::send(session, Signal::SIGKILL);
        Answer::text("never heard").stalled_after(1, Duration::from_secs(30))
    });
    let mut command = desk.with_server(&server, &["-p", "x"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    started.send(child.id()).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(17));
}

#[test]
fn no_daemon() {
    ends_with(15, Desk::new().agentd(&["daemon", "status"]));
}

#[test]
fn a_session_that_another_process_holds() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("hi")]);
    let id = desk.ask(&server, &[]).json()["session_id"].as_str().unwrap().to_owned();
    let journal = desk.state().join("sessions").join(&id).join("journal.jsonl");
    let held = fs::File::open(&journal).unwrap();
    held.lock().unwrap();
    ends_with(75, desk.with_server(&server, &["-p", "x", "--resume", &id]));
}

#[test]
fn time_limit_and_signals() {
    let desk = Desk::new();
    let slow = || Answer::text("slow").stalled_after(10, Duration::from_secs(30));
    let server = Server::scripted([slow()]);
    ends_with(124, desk.with_server(&server, &["-p", "x", "--timeout", "1"]));
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let (asked, seen) = std::sync::mpsc::channel();
        let server = Server::answering(move |_, _| {
            asked.send(()).unwrap();
            Answer::text("slow").stalled_after(10, Duration::from_secs(30))
        });
        let mut command = desk.with_server(&server, &["-p", "x"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        seen.recv_timeout(Duration::from_secs(20)).unwrap();
        crate::support::send(child.id(), signal);
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(code));
    }
}
