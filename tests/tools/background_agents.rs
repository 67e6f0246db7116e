//! Sub-agents in the background: the model goes on, is told the answer once, waits for one and ends one.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::agents::{AUTO, journal, of_kind, result, rows, server, session, tool};
use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::{Desk, runs, until};
use protocol::client::{ClientEvent, FromClient, SessionStatus, SessionWish};
use protocol::ids::SessionId;
use serde_json::json;

const FILE: &str =
    "---\nname: slow\ndescription: Takes long.\nbackground: true\n---\nTake your time.\n";
const NEWS: &str = "[Call 1 (task), which ran in the background, has ended";

/// A call of a sub-agent, and a word of another agent for it.
fn task(agent: &str, word: &str) -> Say {
    let mut input = json!({"description": "a part", "prompt": "PART", "subagent_type": agent});
    if !word.is_empty() {
        input[word] = json!(true);
    }
    call("toolu_1", "Task", &input.to_string())
}

/// All that the model of the parent was sent with its last request.
fn told(server: &Server) -> String {
    let requests = server.requests();
    let of_parent =
        |body: &serde_json::Value| body["messages"][0]["content"].to_string().contains("begin");
    requests.iter().rev().find(|seen| of_parent(&seen.body)).unwrap().body["messages"].to_string()
}

#[test]
fn the_model_goes_on_and_is_told_the_answer_once() {
    for (agent, word) in [("general", "run_in_background"), ("general", "background"), ("slow", "")]
    {
        let desk = Desk::new();
        desk.write(".claude/agents/slow.md", FILE);
        let waits = json!({"command": "until [ -e go ]; do sleep 0.1; done; echo seen"});
        let server = server([
            (
                "begin",
                vec![
                    Answer::says([task(agent, word)]),
                    Answer::text("I go on."),
                    Answer::text("Heard."),
                    Answer::text("Once."),
                ],
            ),
            ("PART", vec![tool("toolu_2", "bash", waits), Answer::text("The part is done.")]),
        ]);
        let _daemon = desk.daemon();
        let (mut wire, parent) = session(&desk, &server);
        wire.prompt(&parent, "begin");
        wire.turn_ends();
        let child = format!("{parent}-1");
        let first = result(&server, "toolu_1");
        assert!(first.contains("[call 1 runs in the background"), "{first}");
        assert!(first.contains(&child), "{first}");
        let status = |session: &str| {
            let rows = rows(&mut crate::support::daemon::Wire::to(&desk.door()));
            let row = rows.into_iter().find(|row| row.session.0 == session);
            row.map(|row| row.state)
        };
        assert_eq!(status(&parent.0), Some(SessionStatus::Background(1)));
        until("its sub-agent works", || status(&child) == Some(SessionStatus::Working));
        desk.write("go", "");
        wire.event("its end", |event| match event {
            ClientEvent::CallEnded { call, .. } if call.number == 1 => Some(()),
            _ => None,
        });
        for _ in 0..2 {
            wire.prompt(&parent, "and now?");
            wire.turn_ends();
            let told = told(&server);
            assert_eq!(told.matches(NEWS).count(), 1, "{told}");
            assert_eq!(told.matches("The part is done.").count(), 1, "{told}");
        }
        let records = journal(&desk, &parent.0);
        for kind in ["BACKGROUND", "RESULT", "SPENT"] {
            assert_eq!(of_kind(&records, kind).len(), 1, "{kind}");
        }
        until("its session ends", || status(&child).is_none_or(|state| state.is_of_disk()));
    }
}

#[test]
fn a_person_sends_running_sub_agents_to_the_background() {
    let desk = Desk::new();
    let part = |id: &str| {
        call(id, "Task", &json!({"description": "a part", "prompt": "PART"}).to_string())
    };
    let waits = json!({"command": "echo x >> begun; until [ -e go ]; do sleep 0.1; done"});
    let server = server([
        (
            "begin",
            vec![
                Answer::says([part("toolu_1"), part("toolu_3")]),
                Answer::text("I go on."),
                Answer::text("Heard."),
            ],
        ),
        ("PART", vec![tool("toolu_2", "bash", waits), Answer::text("The part is done.")]),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, parent) = session(&desk, &server);
    wire.prompt(&parent, "begin");
    let begun = || std::fs::read_to_string(desk.project().join("begun")).unwrap_or_default();
    until("both work", || begun() == "x\nx\n");
    wire.say(FromClient::Wish { session: parent.clone(), wish: SessionWish::Background });
    wire.turn_ends();
    for id in ["toolu_1", "toolu_3"] {
        let first = result(&server, id);
        assert!(first.contains("runs in the background: its sub-agent works"), "{first}");
    }
    desk.write("go", "");
    let ends = || of_kind(&journal(&desk, &parent.0), "SPENT").len();
    until("both end", || ends() == 2);
    wire.prompt(&parent, "and now?");
    wire.turn_ends();
    let told = told(&server);
    assert_eq!(told.matches("The part is done.").count(), 2, "{told}");
    assert_eq!(told.matches("which ran in the background, has ended").count(), 2, "{told}");
}

#[test]
fn it_outlives_an_interrupted_turn_is_waited_for_and_is_ended() {
    let desk = Desk::new();
    let server = server([
        (
            "begin",
            vec![
                Answer::says([task("general", "background")]),
                Answer::text("I go on."),
                tool("toolu_3", "bash", json!({"command": "sleep 7322"})),
                tool("toolu_4", "bash_output", json!({"call": 1, "wait_ms": 300})),
                tool("toolu_5", "bash_input", json!({"call": 1, "text": "x"})),
                tool("toolu_6", "bash_stop", json!({"call": 1})),
                tool("toolu_7", "bash_output", json!({"call": 1})),
                Answer::text("Ended."),
            ],
        ),
        ("PART", vec![tool("toolu_2", "bash", json!({"command": "sleep 7321"}))]),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, parent) = session(&desk, &server);
    wire.prompt(&parent, "begin");
    wire.turn_ends();
    until("the command of the sub-agent", || runs("sleep 7321"));
    wire.prompt(&parent, "work");
    until("the command of the parent", || runs("sleep 7322"));
    wire.say(FromClient::Interrupt { session: parent.clone() });
    wire.turn_ends();
    assert!(runs("sleep 7321") && !runs("sleep 7322"));
    wire.prompt(&parent, "end it");
    wire.turn_ends();
    let results = ["toolu_4", "toolu_5", "toolu_6", "toolu_7"].map(|id| result(&server, id));
    let [waited, fed, stopped, after] = &results;
    assert!(waited.contains("[call 1 runs, since"), "{waited}");
    assert!(fed.contains("a sub-agent takes no input"), "{fed}");
    assert!(stopped.contains("[call 1 has ended") && after.contains("[call 1 has ended"));
    assert!(stopped.contains("a person stopped it"), "{stopped}");
    assert!(!runs("sleep 7321"), "nothing of it is left");
    let told = told(&server);
    assert_eq!(told.matches(NEWS).count(), 1, "{told}");
}

#[test]
fn it_ends_with_its_parents_session_and_with_a_run() {
    let desk = Desk::new();
    let scripts = || {
        let goes_on = [Answer::says([task("general", "background")]), Answer::text("I go on.")];
        let sleeps = tool("toolu_2", "bash", json!({"command": "sleep 7323"}));
        [("do it", goes_on.to_vec()), ("PART", vec![sleeps])]
    };
    let server = server(scripts());
    let daemon = desk.daemon();
    let (mut wire, parent) = session(&desk, &server);
    wire.prompt(&parent, "do it");
    wire.turn_ends();
    until("the command of the sub-agent", || runs("sleep 7323"));
    let ending = protocol::client::SessionEnding::Stop;
    wire.say(FromClient::End { session: parent.clone(), ending });
    until("it ends with its parent", || !runs("sleep 7323"));
    let ended = |session: &SessionId| of_kind(&journal(&desk, &session.0), "RESULT").len();
    until("the result of its call", || ended(&parent) == 1);
    drop((wire, daemon));
    // A run ends with its last answer.
    let other = self::server(scripts());
    assert_eq!(desk.ask(&other, &AUTO).code, 0);
    assert!(!runs("sleep 7323"), "nothing of it is left");
}

#[test]
fn eight_calls_of_both_kinds_run_in_the_background_and_no_more() {
    let desk = Desk::new();
    let serve = |id: &str| {
        call(id, "bash", &json!({"command": "sleep 7324", "background": true}).to_string())
    };
    let mut all: Vec<_> = (1..=8).map(|number| serve(&format!("toolu_b{number}"))).collect();
    all.push(task("general", "background"));
    let server = server([("begin", vec![Answer::says(all), Answer::text("Done.")])]);
    let _daemon = desk.daemon();
    let (mut wire, parent) = session(&desk, &server);
    wire.prompt(&parent, "begin");
    wire.turn_ends();
    let refused = result(&server, "toolu_1");
    assert!(refused.contains("8 calls run in the background, which is the most"), "{refused}");
    assert!(!journal(&desk, &parent.0).iter().any(|record| record["kind"] == "SPENT"));
}
