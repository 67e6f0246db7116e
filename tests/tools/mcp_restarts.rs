//! MCP servers that end again and again, and those that report changes without an end.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::mcp::{AUTO, asks, desk, results_of, rounds, server};
use crate::support::anthropic::{Answer, Server};
use crate::support::daemon::Wire;
use protocol::client::{ClientEvent, FromClient, SessionQuery, ToClient};
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;
use protocol::mcp::ServerState;
use serde_json::json;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Waits until the server of the tests is ready.
#[track_caller]
fn ready(wire: &mut Wire, session: &SessionId) {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < end, "the server starts again");
        wire.say(FromClient::Query { session: session.clone(), query: SessionQuery::Servers });
        let state = wire.until("the servers", |word| match word {
            ToClient::Servers { servers, .. } => Some(servers[0].state.clone()),
            _ => None,
        });
        if matches!(state, ServerState::Ready { .. }) {
            return;
        }
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn many_servers_of_a_terminal_all_start_though_two_by_two() {
    let tables: String =
        (0..5).map(|at| server("").replace("mcp.test", &format!("mcp.s{at}"))).collect();
    let desk = desk(&tables);
    let model = Server::scripted([Answer::text("One."), Answer::text("Two.")]);
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(&model));
    // The prompt comes before the last ones start.
    wire.prompt(&session, "go");
    wire.turn_ends();
    wire.servers_ready(&session);
    wire.prompt(&session, "go on");
    wire.turn_ends();
    let tools = model.requests()[1].body["tools"].to_string();
    for at in 0..5 {
        assert!(tools.contains(&format!("mcp__s{at}__echo")), "s{at}");
    }
}

/// Has the model call `die`. Returns the sentence about the end of the server, once the turn has ended too.
#[track_caller]
fn die(wire: &mut Wire, session: &SessionId) -> String {
    wire.prompt(session, "die");
    let (mut said, mut is_over) = (None, false);
    wire.event("the ends of the server and of the turn", |event| {
        match event {
            ClientEvent::Notice { text } if text.contains("server test has ended") => {
                said = Some(text.clone());
            }
            ClientEvent::TurnEnded { .. } => is_over = true,
            _ => {}
        }
        said.clone().filter(|_| is_over)
    })
}

#[test]
fn a_server_that_ends_in_each_call_fails_after_growing_pauses_and_restart_starts_it_anew() {
    let desk = desk(&server(""));
    // Each call is the only one of its turn.
    let model = Server::answering(move |number, body| {
        let messages = body["messages"].as_array().unwrap();
        let prompt = messages.iter().rev().find_map(|message| {
            message["content"][0]["text"].as_str().filter(|_| message["role"] == "user")
        });
        let has_result = messages.last().unwrap()["content"][0]["type"] == "tool_result";
        match prompt {
            _ if has_result => Answer::text("Done."),
            Some(text) if text.contains("die") => {
                Answer::says([asks(&format!("toolu_{number}"), "die", json!({}))])
            }
            _ => {
                let input = json!({"text": "hello"});
                Answer::says([asks(&format!("toolu_{number}"), "echo", input)])
            }
        }
    });
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&model);
    opening.mode = Some(PermissionMode::Auto);
    let session = wire.open(&opening);
    ready(&mut wire, &session);
    let said = die(&mut wire, &session);
    assert!(said.contains("starts again in 0.2 s"), "{said}");
    ready(&mut wire, &session);
    wire.prompt(&session, "echo");
    wire.turn_ends();
    assert!(results_of(&model).contains("hello"), "the control: an answer is progress");
    for pause in ["0.2", "1", "5", "30"] {
        let said = die(&mut wire, &session);
        assert!(said.contains(&format!("starts again in {pause} s")), "{said}");
        ready(&mut wire, &session);
    }
    let said = die(&mut wire, &session);
    let restart = format!("`agentd restart {session}`");
    assert!(said.contains("it has failed: it ended 5 times") && said.contains(&restart), "{said}");
    sleep(Duration::from_secs(1));
    wire.say(FromClient::Query { session: session.clone(), query: SessionQuery::Servers });
    let state = wire.until("the servers", |word| match word {
        ToClient::Servers { servers, .. } => Some(servers[0].state.clone()),
        _ => None,
    });
    assert!(matches!(state, ServerState::Ended(why) if why.contains("it has failed")));
    wire.prompt(&session, "echo");
    wire.turn_ends();
    assert!(
        results_of(&model).contains("no tool \\\"mcp__test__echo\\\""),
        "{}",
        results_of(&model)
    );
    wire.say(FromClient::Restart { session: session.clone() });
    ready(&mut wire, &session);
    let said = die(&mut wire, &session);
    assert!(said.contains("starts again in 0.2 s"), "{said}");
}

#[test]
fn a_server_that_reports_changes_without_an_end_is_listed_at_growing_pauses() {
    let desk = desk(&server(", \"relists\""));
    let calls = [("slow", json!({"seconds": 6})), ("listed", json!({}))];
    let (ran, results, model) = rounds(&desk, &AUTO, &calls);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(results[0], "waited", "a call goes on meanwhile");
    let listed: u32 = results[1].parse().expect(&results[1]);
    assert!((2..=7).contains(&listed), "listed {listed} times in six seconds");
    let tools: Vec<_> = model.requests().iter().map(|it| it.body["tools"].to_string()).collect();
    assert!(tools.windows(2).all(|two| two[0] == two[1]), "the lists are the same");
}
