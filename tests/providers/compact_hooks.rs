//! Hooks of `PreCompact` through the real processes: one blocks a compaction that a person wants, and
//! a death in the middle of one runs it once.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server};
use crate::support::daemon::Wire;
use crate::support::{Desk, child_of, send, until};
use nix::sys::signal::Signal;
use protocol::client::{ClientEvent, FromClient, SessionStart, SessionWish};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use serde_json::Value;
use std::fs;

fn desk(command: &str) -> Desk {
    let desk = Desk::new();
    let config = desk.home().join(".config/agentd/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let hook = format!("[[hooks.PreCompact]]\nhooks = [{{ command = '''{command}''' }}]\n");
    fs::write(config, format!("[context]\ncompaction = 'cut'\n{hook}")).unwrap();
    desk
}

fn compact(wire: &Wire, session: &SessionId, focus: &str) {
    let wish = SessionWish::Compact { focus: focus.to_owned() };
    wire.say(FromClient::Wish { session: session.clone(), wish });
}

fn ended(desk: &Desk) -> Vec<Value> {
    let all = desk.audit().into_iter();
    all.filter(|record| record["event"] == "ended" && record["tool"] == "guard_hook").collect()
}

#[test]
fn a_hook_before_a_compaction_learns_of_it_and_blocks_it() {
    let desk = desk(
        "grep -q '\"custom_instructions\":\"the parser\"' && exit 0; echo only the parser >&2; exit 2",
    );
    let server = Server::scripted(["first", "second"].map(Answer::text));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    for prompt in ["one", "two"] {
        wire.prompt(&session, prompt);
        wire.turn_ends();
    }
    compact(&wire, &session, "the lexer");
    let why = wire.event("a refusal", |event| match event {
        ClientEvent::Notice { text } => Some(text.clone()),
        _ => None,
    });
    assert!(why.contains("blocks it: only the parser"), "{why}");
    compact(&wire, &session, "the parser");
    wire.event("a cut", |event| matches!(event, ClientEvent::Compacted(_)).then_some(()));
    let ended = ended(&desk);
    assert_eq!(ended.len(), 2, "{ended:#?}");
    assert!(ended[0].to_string().contains(r#""profile":"guard-hook""#), "{ended:#?}");
}

#[test]
fn a_death_in_a_hook_before_a_compaction_runs_it_once_and_the_compaction_comes() {
    let desk = desk("sleep 4.7311");
    let server = Server::scripted(["first", "second", "third"].map(Answer::text));
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    for prompt in ["one", "two"] {
        wire.prompt(&session, prompt);
        wire.turn_ends();
    }
    compact(&wire, &session, "");
    until("the hook runs", || crate::support::runs("sleep 4.7311"));
    send(child_of(daemon.pid, "agentd-session").unwrap(), Signal::SIGKILL);
    // The hook goes on and its result is kept; the new process does not run another.
    wire.event("a cut", |event| matches!(event, ClientEvent::Compacted(_)).then_some(()));
    wire.prompt(&session, "three");
    wire.turn_ends();
    assert_eq!(ended(&desk).len(), 1);
    assert!(server.requests().iter().all(|seen| seen.refused.is_none()));
}

#[test]
fn a_death_of_the_supervisor_in_such_a_hook_loses_no_compaction() {
    let desk = desk("sleep 4.7322");
    let server = Server::scripted(["first", "second", "third"].map(Answer::text));
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    for prompt in ["one", "two"] {
        wire.prompt(&session, prompt);
        wire.turn_ends();
    }
    compact(&wire, &session, "");
    until("the hook runs", || crate::support::runs("sleep 4.7322"));
    send(daemon.pid, Signal::SIGKILL);
    until("it ends with the supervisor", || !crate::support::runs("sleep 4.7322"));
    drop((wire, daemon));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&server);
    opening.start = SessionStart::Resume { session, open_turn: OpenTurn::GoesOn };
    let session = wire.open(&opening);
    wire.prompt(&session, "three");
    wire.turn_ends();
    let requests = server.requests();
    let last = requests.last().unwrap().body["messages"].to_string();
    assert!(last.contains("three") && last.contains("is left out to make room"), "{last}");
    assert_eq!(ended(&desk).len(), 1, "the hook does not run again");
}
