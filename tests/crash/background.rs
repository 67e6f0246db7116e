//! Deaths around a command in the background: of the conversation, of the supervisor, of the runner.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, child_of, processes, runs, send, until};
use nix::sys::signal::Signal;
use protocol::client::{ClientEvent, SessionStart};
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;
use protocol::session::OpenTurn;
use serde_json::{Value, json};

fn journal(desk: &Desk, session: &SessionId) -> Vec<Value> {
    let place = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
    let text = std::fs::read_to_string(place).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn count(desk: &Desk, session: &SessionId, kind: &str) -> usize {
    let records = journal(desk, session);
    records.iter().filter(|record| record["kind"] == kind && record["call"] == 1).count()
}

/// A session with this command in the background, and what the model says then.
fn serving(desk: &Desk, server: &Server) -> (Wire, SessionId) {
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(server);
    opening.mode = Some(PermissionMode::Auto);
    let session = wire.open(&opening);
    wire.prompt(&session, "serve");
    wire.turn_ends();
    (wire, session)
}

fn script(command: &str, then: impl IntoIterator<Item = Answer>) -> Server {
    let input = json!({"command": command, "background": true}).to_string();
    let first = [Answer::says([call("toolu_1", "bash", &input)]), Answer::text("It runs.")];
    Server::scripted(first.into_iter().chain(then))
}

#[test]
fn it_outlives_the_conversations_process_which_knows_it_still() {
    let desk = Desk::new();
    let read = json!({"call": 1}).to_string();
    let then = [Answer::says([call("toolu_2", "bash_output", &read)]), Answer::text("Still up.")];
    let server = script("echo up; sleep 7201", then);
    let daemon = desk.daemon();
    let (mut wire, session) = serving(&desk, &server);
    let conversation = child_of(daemon.pid, "agentd-session").unwrap();
    send(conversation, Signal::SIGKILL);
    until("another conversation", || {
        child_of(daemon.pid, "agentd-session").is_some_and(|pid| pid != conversation)
    });
    wire.prompt(&session, "still?");
    wire.turn_ends();
    assert!(runs("sleep 7201"));
    let last = server.requests().last().unwrap().body["messages"].to_string();
    assert!(last.contains("[call 1 runs in the background"), "{last}");
    assert!(last.contains("[call 1 runs, since"), "{last}");
    assert_eq!(count(&desk, &session, "START"), 1);
}

#[test]
fn with_the_supervisor_it_is_gone_and_may_have_run() {
    let desk = Desk::new();
    let server = script("echo up; sleep 7202", [Answer::text("I see.")]);
    let daemon = desk.daemon();
    let (wire, session) = serving(&desk, &server);
    assert!(runs("sleep 7202"), "the control: it runs");
    send(daemon.pid, Signal::SIGKILL);
    until("it ends with the supervisor", || !runs("sleep 7202"));
    drop((wire, daemon));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&server);
    opening.start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    let session = wire.open(&opening);
    wire.prompt(&session, "what became of it?");
    wire.turn_ends();
    assert!(!runs("sleep 7202"), "nothing is run twice");
    let last = server.requests().last().unwrap().body["messages"].to_string();
    assert_eq!(last.matches("which ran in the background, has ended").count(), 1, "{last}");
    assert!(last.contains("may have run"), "{last}");
    assert!(last.contains("It does not run any more, and servers of it are gone."), "{last}");
    assert_eq!((count(&desk, &session, "START"), count(&desk, &session, "INTERRUPTED")), (1, 1));
}

#[test]
fn with_its_runner_it_is_gone_and_the_session_goes_on() {
    let desk = Desk::new();
    let server = script("echo up; sleep 7203", [Answer::text("I see.")]);
    let daemon = desk.daemon();
    let (mut wire, session) = serving(&desk, &server);
    // Of the two runners one is the session's reserve; each may die.
    for runner in processes().iter().filter(|it| it.parent == daemon.pid) {
        if runner.name.starts_with("agentd-tool") {
            send(runner.pid, Signal::SIGKILL);
        }
    }
    let ended = wire.event("its end", |event| match event {
        ClientEvent::CallEnded { call, result, .. } if call.number == 1 => Some(result.clone()),
        _ => None,
    });
    assert!(ended.text.contains("may have run"), "{}", ended.text);
    assert!(!runs("sleep 7203"), "nothing of it is left");
    wire.prompt(&session, "and now?");
    wire.turn_ends();
    let last = server.requests().last().unwrap().body["messages"].to_string();
    assert_eq!(last.matches("which ran in the background, has ended").count(), 1, "{last}");
}
