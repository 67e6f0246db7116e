//! What the model is sent of a conversation, through the real processes: room that a person makes,
//! what stays then, and what the journal keeps all the same.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod support;

use protocol::client::{Event, FromClient, Rights, Since, ToClient};
use protocol::ids::SessionId;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;
use support::Desk;
use support::anthropic::{Answer, Server, call};
use support::daemon::Wire;

/// The records of the only session.
fn records(desk: &Desk, session: &SessionId) -> Vec<Value> {
    let journal = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
    let text = fs::read_to_string(journal).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn compact(wire: &Wire, session: &SessionId) {
    wire.say(FromClient::Compact { session: session.clone() });
}

#[test]
fn a_person_makes_room_while_a_turn_runs_and_between_turns_and_the_journal_keeps_everything() {
    let desk = Desk::new();
    let say = |n: usize| json!({ "command": format!("echo call {n}; seq 1 2000") }).to_string();
    let list = json!({"group": "g", "title": "To do", "items": ["look", "mend"]}).to_string();
    let mut answers = vec![Answer::says([call("toolu_0", "checklist_create", &list)])];
    answers.extend((1..5).map(|n| Answer::says([call(&format!("toolu_{n}"), "bash", &say(n))])));
    let slow = Answer::text("half way");
    let words_are_over = slow.body().find("event: content_block_stop").unwrap();
    answers.push(slow.stalled_after(words_are_over, Duration::from_secs(2)));
    answers.extend(["second", "third"].map(Answer::text));
    let server = Server::scripted(answers);
    let _daemon = desk.daemon();
    let (mut wire, mut other) = (Wire::to(&desk.door()), Wire::to(&desk.door()));
    let mut opening = desk.opening(&server);
    opening.mode = Some(protocol::judgement::Mode::Auto);
    let session = wire.open(&opening);
    other.attach(&session, Since::Seq(1), Rights::ReadOnly);

    compact(&wire, &session);
    let reason = other.event("a word on it", |event| match event {
        Event::NotCompacted { reason } => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.contains("short"), "{reason}");

    // While the model speaks: the answer goes on, and the next request is shorter.
    wire.prompt(&session, "the first question, word for word");
    wire.event("the last answer's beginning", |event| {
        matches!(event, Event::TextDelta { .. }).then_some(())
    });
    compact(&wire, &session);
    let compacted = |event: &Event| match event {
        Event::Compacted { dropped } => Some(*dropped),
        Event::TurnEnded { .. } => Some(0),
        _ => None,
    };
    let dropped = other.event("room", compacted);
    assert!(dropped > 0, "before the turn's end");
    wire.turn_ends();
    wire.prompt(&session, "second?");
    wire.turn_ends();
    let seen = server.requests();
    assert!(seen.iter().all(|seen| seen.refused.is_none()), "each request is legal");
    let (before, after) = (&seen[seen.len() - 2].raw, &seen[seen.len() - 1].raw);
    assert!(before.contains("call 1\\n") && before.contains("call 4\\n"));
    assert!(after.contains("left out to make room") && !after.contains("call 1\\n"), "{after}");
    assert!(after.contains("the first question, word for word"), "{after}");
    assert!(after.contains("To do (g): 0 of 2 done"), "the checklist is open: {after}");

    // Between turns; then nothing is left to leave out.
    let before = after.len();
    compact(&wire, &session);
    other.event("room again", compacted);
    wire.prompt(&session, "third?");
    wire.turn_ends();
    let seen = server.requests();
    assert_eq!(seen.last().unwrap().refused, None);
    assert!(seen.last().unwrap().raw.len() < before);

    let kept = records(&desk, &session);
    let results = kept.iter().filter(|record| record["kind"] == "RESULT");
    assert_eq!(results.filter(|result| result["text"].to_string().contains("1999")).count(), 4);
    assert_eq!(kept.iter().filter(|record| record["kind"] == "COMPACTED").count(), 2);
}

/// Who only looks on may not make room.
#[test]
fn room_is_made_by_those_alone_who_may_type() {
    let desk = Desk::new();
    let server = Server::scripted([Answer::text("a")]);
    let _daemon = desk.daemon();
    let (mut wire, mut other) = (Wire::to(&desk.door()), Wire::to(&desk.door()));
    let session = wire.open(&desk.opening(&server));
    other.attach(&session, Since::Seq(1), Rights::ReadOnly);
    compact(&other, &session);
    other.until("a refusal", |word| matches!(word, ToClient::Failed { .. }).then_some(()));
    compact(&wire, &session);
    wire.event("an answer", |event| matches!(event, Event::NotCompacted { .. }).then_some(()));
}
