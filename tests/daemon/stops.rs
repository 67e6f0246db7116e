//! The end of a call on each surface that tells of it: stopped at its question in each way, and seen later.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, run, until};
use protocol::call::Outcome;
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, SessionStart, ToClient,
};
use protocol::ids::SessionId;
use protocol::judgement::{PersonAnswer as Said, Question};
use protocol::session::OpenTurn;
use serde_json::json;

/// A session whose call waits for an answer.
fn asked(desk: &Desk) -> (Server, Wire, SessionId, Question) {
    let input = json!({"command": "echo ran >> effects"}).to_string();
    let server = Server::scripted([Answer::says([call("toolu_1", "bash", &input)])]);
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    let question = wire.question();
    (server, wire, session, question)
}

fn end(event: &ClientEvent) -> Option<Outcome> {
    match event {
        ClientEvent::CallEnded { result, .. } => Some(result.outcome.clone()),
        _ => None,
    }
}

/// The person's words for the end of the session's only call, on each surface.
fn surfaces(desk: &Desk, session: &SessionId) -> Vec<(String, String)> {
    let session = session.0.as_str();
    let call = format!("{session}.1");
    let all: [&[&str]; 8] = [
        &["show", session],
        &["show", session, "--calls"],
        &["show", session, "--json"],
        &["export", session],
        &["export", session, "--format", "html"],
        &["audit", "ls"],
        &["audit", "show", &call],
        &["audit", "show", &call, "--json"],
    ];
    let told = |arguments: &&[&str]| (arguments.join(" "), run(desk.agentd(arguments)).out);
    all.iter().map(told).collect()
}

/// Each surface says that the call never started, and none that it may have run.
fn says_never_started(desk: &Desk, session: &SessionId, how: &str) {
    for (surface, text) in surfaces(desk, session) {
        let text = text.to_lowercase().replace('_', " ");
        assert!(text.contains("never started"), "{how}, {surface}: {text}");
        assert!(!text.contains("may have run"), "{how}, {surface}: {text}");
    }
    assert!(!desk.project().join("effects").exists(), "{how}");
}

#[test]
fn each_way_to_stop_at_a_question_says_on_each_surface_that_the_call_never_started() {
    for how in ["the answer x", "Esc, Ctrl-C or :stop", "another terminal"] {
        let desk = Desk::new();
        let _daemon = desk.daemon();
        let (server, mut wire, session, question) = asked(&desk);
        let stop = FromClient::Interrupt { session: session.clone() };
        let mut other = Wire::to(&desk.door());
        other.attach(&session, BacklogFrom::Seq(1), ClientRights::Full);
        match how {
            "the answer x" => {
                let (call, digest) = (question.call, question.digest);
                wire.say(FromClient::Answer { call, digest, answer: Said::Stop });
            }
            "another terminal" => other.say(stop),
            _ => wire.say(stop),
        }
        assert_eq!(wire.event("the end", end), Outcome::NeverStarted, "{how}");
        wire.turn_ends();
        // Who comes later is told the same.
        let backlog =
            Wire::to(&desk.door()).attach(&session, BacklogFrom::Seq(1), ClientRights::Full);
        let ends: Vec<_> = backlog
            .iter()
            .filter_map(|word| match word {
                ToClient::Event { event, .. } => end(event),
                _ => None,
            })
            .collect();
        assert_eq!(ends, [Outcome::NeverStarted], "{how}");
        assert_eq!(server.requests().len(), 1, "{how}: the model is not asked again");
        says_never_started(&desk, &session, how);
    }
}

#[test]
fn the_whole_calls_of_a_session_say_who_allowed_or_denied_them() {
    for (answer, said) in [(Said::Once, "1 allowed"), (Said::Deny("no".into()), "1 denied")] {
        let desk = Desk::new();
        let _daemon = desk.daemon();
        let (_server, mut wire, session, question) = asked(&desk);
        let (call, digest) = (question.call, question.digest);
        wire.say(FromClient::Answer { call, digest, answer });
        wire.event("the end", end);
        let shown = run(desk.agentd(&["show", &session.0, "--calls"])).out;
        assert!(shown.contains(&format!("{said} by a person at ")), "{shown}");
    }
}

#[test]
fn who_attaches_later_sees_the_refusals_of_each_call_as_they_were_shown() {
    let desk = Desk::new();
    let _daemon = desk.daemon();
    let input = json!({"command": "echo x > /etc/agentd-canary"}).to_string();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", &input)]),
        Answer::text("It was refused."),
    ]);
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&server));
    wire.prompt(&session, "go");
    let question = wire.question();
    let (call, digest) = (question.call, question.digest);
    wire.say(FromClient::Answer { call, digest, answer: Said::Once });
    let refusals = |event: &ClientEvent| match event {
        ClientEvent::CallEnded { refused, .. } => Some(refused.clone()),
        _ => None,
    };
    let live = wire.event("the end", refusals);
    assert!(live.iter().any(|line| line.contains("agentd-canary")), "{live:?}");
    wire.turn_ends();
    let backlog = Wire::to(&desk.door()).attach(&session, BacklogFrom::Seq(1), ClientRights::Full);
    let later: Vec<_> = backlog
        .iter()
        .filter_map(|word| match word {
            ToClient::Event { event, .. } => refusals(event),
            _ => None,
        })
        .collect();
    assert_eq!(later, [live]);
}

#[test]
fn a_session_that_is_ended_at_a_question_never_started_its_call() {
    for end in ["stop", "kill"] {
        let desk = Desk::new();
        let _daemon = desk.daemon();
        let (_server, wire, session, _) = asked(&desk);
        drop(wire);
        let ended = run(desk.agentd(&[end, &session.0]));
        assert_eq!(ended.code, 0, "{ended:?}");
        let shown = || run(desk.agentd(&["show", &session.0])).out;
        until("the call is told of", || shown().contains("never started"));
        assert!(!shown().contains("may have run"), "{end}: {}", shown());
        // Where the open turn is given up, its end is on record.
        let mut wire = Wire::to(&desk.door());
        let server = Server::scripted([]);
        let start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
        wire.open(&protocol::client::SessionRequest { start, ..desk.opening(&server) });
        says_never_started(&desk, &session, end);
    }
}
