//! Each way to end a supervisor in order, also while its processes are killed. It ends within its
//! time limit, notifies its clients, leaves no process, and the session can be resumed.
#![allow(clippy::unwrap_used)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::wire::{Supervisor, Terminal};
use crate::support::{Desk, child_of, run, send, until};
use nix::sys::signal::Signal;
use protocol::client::{ClientEvent, FromClient, OnUnfinished, SessionStart, ToClient};
use protocol::ids::SessionId;
use protocol::session::{OpenTurn, TurnEnd};
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

/// A supervisor in the middle of a command that heeds no TERM.
struct Busy {
    desk: Desk,
    server: Server,
    supervisor: Supervisor,
    terminal: Terminal,
    session: SessionId,
}

fn busy() -> Busy {
    let desk = Desk::new();
    let script = "trap '' TERM; touch begun; while :; do sleep 0.1; done";
    let server = Server::answering(move |n, _| match n {
        1 => Answer::says([call("toolu_1", "bash", &json!({ "command": script }).to_string())]),
        _ => Answer::text("on"),
    });
    let supervisor = Supervisor::start(&desk);
    let mut terminal = supervisor.terminal();
    let session = terminal.open(&desk, &server, SessionStart::New);
    terminal.prompt(&session, "do it");
    until("the command runs", || desk.project().join("begun").exists());
    Busy { desk, server, supervisor, terminal, session }
}

/// Checks the state after any end in order.
fn ended_in_order(busy: Busy, began: Instant) {
    let Busy { desk, server, supervisor, mut terminal, session } = busy;
    let mut told = false;
    while let Some(word) = terminal.hear_if_any() {
        told |= matches!(word, ToClient::Failed { .. });
    }
    assert!(told, "its client got no message");
    assert!(supervisor.ended().success());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(fs::read_dir(desk.run_dir().join("agentd")).unwrap().count(), 0, "its door");
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
    // The next client can resume the session, and the model gets the outcome of the call.
    let ran = desk.ask(&server, &["--resume", &session.0]);
    assert_eq!((ran.code, ran.result().as_str()), (0, "on"), "{ran:?}");
    let body = server.requests().last().unwrap().body["messages"].to_string();
    assert_eq!(body.matches("tool_result").count(), 1, "{body}");
    assert!(body.contains("cancelled") || body.contains("interrupted"), "{body}");
    assert_eq!(run(desk.agentd(&["audit", "verify"])).code, 0);
}

#[test]
fn each_signal_ends_it_in_order() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let busy = busy();
        let began = Instant::now();
        send(busy.supervisor.pid(), signal);
        ended_in_order(busy, began);
    }
}

#[test]
fn a_client_s_word_ends_it_in_order() {
    let busy = busy();
    let began = Instant::now();
    // The client that asked for the end needs no message; the other client gets one.
    let asker = busy.supervisor.terminal();
    asker.say(&FromClient::Shutdown { unfinished: OnUnfinished::Interrupt });
    ended_in_order(busy, began);
}

#[test]
fn a_second_signal_changes_nothing() {
    let busy = busy();
    let began = Instant::now();
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT] {
        send(busy.supervisor.pid(), signal);
        std::thread::sleep(Duration::from_millis(20));
    }
    ended_in_order(busy, began);
}

#[test]
fn a_process_killed_or_stopped_while_it_ends_does_not_hold_it_up() {
    let workers =
        ["agentd-session", "agentd-provider", "agentd-broker", "agentd-store", "agentd-tool"];
    for worker in workers {
        for signal in [Signal::SIGKILL, Signal::SIGSTOP] {
            let busy = busy();
            let victim = child_of(busy.supervisor.pid(), worker).unwrap();
            let began = Instant::now();
            send(busy.supervisor.pid(), Signal::SIGTERM);
            // It may have ended by itself meanwhile.
            let pid = nix::unistd::Pid::from_raw(i32::try_from(victim).unwrap());
            let _ = nix::sys::signal::kill(pid, signal);
            ended_in_order(busy, began);
        }
    }
}

#[test]
fn killed_while_it_ends_it_loses_nothing() {
    let Busy { desk, server, supervisor, terminal, session } = busy();
    send(supervisor.pid(), Signal::SIGTERM);
    send(supervisor.pid(), Signal::SIGKILL);
    assert!(!supervisor.ended().success());
    drop(terminal);
    let next = Supervisor::start(&desk);
    let mut terminal = next.terminal();
    let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    assert_eq!(terminal.open(&desk, &server, start), session);
    terminal.prompt(&session, "go on");
    let done = ClientEvent::TurnEnded { end: TurnEnd::Done };
    while terminal.turn_ends() != done {}
    assert!(next.end().success());
    let bodies = server.requests();
    let body = bodies.last().unwrap().body["messages"].to_string();
    assert_eq!(body.matches("tool_result").count(), 1, "{body}");
}
