//! Calls of a host that does not reach the database stand still in time, and none begins after the lease.
#![allow(clippy::unwrap_used)]

use crate::host::{Host, repository, runs_its_prompt};
use crate::losses::{RULE, running};
use crate::postgres::Postgres;
use crate::support::anthropic::{Answer, Server, call};
use crate::support::{send, until};
use nix::sys::signal::Signal;
use std::fs;
use std::time::Duration;

/// Without its database a host stops its calls after two thirds of the lease, and lets them go on in time.
#[test]
fn calls_stand_still_while_the_database_is_away() {
    let postgres = Postgres::with_fleet(9);
    let command = "for i in $(seq 200); do echo $i >> ticks; sleep 0.1; done";
    let (first, _second, worker) = running(&postgres, command, &[]);
    let session = first.task(1)["session"].as_str().unwrap().to_owned();
    let ticks = first.workspace(&session).join("ticks");
    let count = || fs::read_to_string(&ticks).unwrap_or_default().lines().count();
    until("it ticks", || count() > 3);
    postgres.stop_in_order();
    let pause = Duration::from_millis(700);
    until("it stands still", || {
        let before = count();
        std::thread::sleep(pause);
        count() == before
    });
    let stood = count();
    assert!(stood < 199, "it ended by itself");
    postgres.go();
    until("it goes on", || count() > stood);
    until("it is done", || first.task(1)["state"] == "done");
    assert_eq!(first.task(1)["epoch"], 1);
    assert_eq!(first.ended_calls().len(), 1);
    first.end(worker);
}

/// Also while the session waits for the database: for the START of a call, and for the end of a turn. And those
/// of a sub-agent.
#[test]
fn calls_stand_still_while_their_session_waits_for_the_database() {
    for goes_on_with in ["a call", "an answer", "a sub-agent"] {
        let postgres = Postgres::with_fleet(9);
        let host = Host::new(&postgres);
        let repo = repository(&host.desk);
        let (away, is_away) = std::sync::mpsc::channel();
        let is_away = std::sync::Mutex::new(is_away);
        let model = Server::answering(move |round, request| {
            let of_child = request["messages"][0]["content"].to_string().contains("THE PART");
            let ticks = "for i in $(seq 200); do echo $i >> ticks; sleep 0.1; done";
            let input = |command, background| {
                serde_json::json!({"command": command, "background": background}).to_string()
            };
            if goes_on_with == "a sub-agent" {
                let task = r#"{"description": "a part", "prompt": "THE PART", "subagent_type": "general"}"#;
                return match round {
                    1 => Answer::says([call("toolu_1", "task", task)]),
                    2 if of_child => Answer::says([call("toolu_2", "bash", &input(ticks, false))]),
                    _ => Answer::text("done"),
                };
            }
            if round == 1 {
                return Answer::says([call("toolu_1", "bash", &input(ticks, true))]);
            }
            // The second time until it goes on: with its answer the task is over, and so is what runs in the background.
            if round == 2 || (round, goes_on_with) == (3, "a call") {
                let _ = is_away.lock().unwrap().recv();
            }
            match (round, goes_on_with) {
                (2, "a call") => {
                    Answer::says([call("toolu_2", "bash", &input("echo x > made", false))])
                }
                _ => Answer::text("done"),
            }
        });
        host.ok(&["submit", "--repo", &repo, "--prompt", "tick", RULE]);
        let worker = host.start(&model, &[]);
        until("it runs", || host.ok(&["tasks", "logs", "1"]).contains("START"));
        let workspace = host.workspace(host.task(1)["session"].as_str().unwrap());
        let count =
            || fs::read_to_string(workspace.join("ticks")).unwrap_or_default().lines().count();
        until("it ticks", || count() > 3);
        postgres.stop_in_order();
        let _ = away.send(());
        until("it stands still", || {
            let before = count();
            std::thread::sleep(Duration::from_millis(700));
            count() == before
        });
        let stood = count();
        assert!(stood < 199, "it ended by itself");
        assert!(!workspace.join("made").exists(), "{goes_on_with}: a call began without its START");
        postgres.go();
        until("it goes on", || count() > stood || goes_on_with == "an answer");
        let _ = away.send(());
        until("it is done", || host.task(1)["state"] == "done");
        assert_eq!(host.task(1)["epoch"], 1, "the lease was not lost");
        let made = host.ok(&["tasks", "diff", "1"]).contains("b/made");
        assert_eq!(made, goes_on_with == "a call");
        host.end(worker);
    }
}

/// The START of a call is in the database, and the host stands still before it lets the call go.
#[test]
fn no_call_is_let_go_by_a_host_that_stood_still_beyond_its_lease() {
    let postgres = Postgres::with_fleet(2);
    let (first, second) = (Host::new(&postgres), Host::new(&postgres));
    let repo = repository(&first.desk);
    let (asked, is_asked) = std::sync::mpsc::channel();
    let (stopped, is_stopped) = std::sync::mpsc::channel();
    let is_stopped = std::sync::Mutex::new(is_stopped);
    let model = Server::answering(move |round, _| {
        if round > 1 {
            return Answer::text("done");
        }
        let _ = asked.send(());
        let _ = is_stopped.lock().unwrap().recv();
        Answer::says([call("toolu_1", "bash", r#"{"command": "echo x > made"}"#)])
    });
    first.ok(&["submit", "--repo", &repo, "--prompt", "begin", RULE]);
    let worker = first.start(&model, &[]);
    is_asked.recv_timeout(Duration::from_secs(30)).unwrap();
    let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let processes = first.all_processes();
    let store = processes.iter().find(|pid| name(pid).trim() == "agentd-store");
    // `Go` waits for the copy of the project for up to 2 s.
    send(*store.unwrap(), Signal::SIGSTOP);
    stopped.send(()).unwrap();
    until("START is in the database", || {
        postgres.sql("select count(*) from agentd.journal where line like '%\"START\"%'") == "1"
    });
    first.signal(Signal::SIGSTOP);
    second.work(&runs_its_prompt(), &[]);
    assert_eq!(second.task(1)["state"], "done");
    let not_here = "select count(*) from agentd.journal where line like '%did not happen here%'";
    assert_eq!(postgres.sql(not_here), "1");
    first.signal(Signal::SIGCONT);
    until("it gives up", || {
        ["not this host's any more", "is given back"].iter().any(|end| first.log().contains(end))
    });
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(first.started_calls(), [], "it let the call go");
    first.end(worker);
}
