//! Deaths around a sub-agent: of its conversation, of its parent's, of the supervisor, by a person.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Daemon, Desk, runs, send, until, wrote};
use nix::sys::signal::Signal;
use protocol::client::{
    BacklogFrom, ClientEvent, ClientRights, FromClient, SessionEnding, SessionStart, ToClient,
};
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;
use protocol::session::OpenTurn;
use serde_json::{Value, json};
use std::fs::File;

fn journal(desk: &Desk, session: &SessionId) -> Vec<Value> {
    let place = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
    let text = std::fs::read_to_string(place).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn count(desk: &Desk, session: &SessionId, kind: &str) -> usize {
    journal(desk, session).iter().filter(|record| record["kind"] == kind).count()
}

fn child(session: &SessionId) -> SessionId {
    SessionId(format!("{session}-1"))
}

/// A parent whose only call is a sub-agent, which runs this command and then answers.
fn server(command: &str) -> Server {
    server_of("general", command)
}

/// The same with a sub-agent of this kind.
fn server_of(agent: &str, command: &str) -> Server {
    let task = json!({"description": "a part", "prompt": "THE PART", "subagent_type": agent});
    let task = task.to_string();
    let command = json!({ "command": command }).to_string();
    Server::answering(move |_, body| {
        let of_child = body["messages"][0]["content"].to_string().contains("THE PART");
        let messages = body["messages"].as_array().unwrap();
        let place = messages.iter().filter(|message| message["role"] == "assistant").count();
        match (of_child, place) {
            (false, 0) => Answer::says([call("toolu_1", "task", &task)]),
            (true, 0) => Answer::says([call("toolu_2", "bash", &command)]),
            (true, 1) => Answer::text("The part is done."),
            (false, _) | (true, _) => Answer::text("All is done."),
        }
    })
}

fn opened(desk: &Desk, server: &Server) -> (Wire, SessionId) {
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(server);
    opening.mode = Some(PermissionMode::Auto);
    let session = wire.open(&opening);
    wire.prompt(&session, "begin");
    (wire, session)
}

/// The result of the parent's call, as its model was given it.
fn told(server: &Server) -> String {
    let requests = server.requests();
    let last = requests.iter().rev().find(|seen| {
        let text = seen.body["messages"].to_string();
        text.contains("begin") && text.contains("tool_result")
    });
    last.unwrap().body["messages"].to_string()
}

/// The process of a worker of this session.
fn worker(desk: &Desk, session: &SessionId, name: &str) -> Option<u32> {
    let mut wire = Wire::to(&desk.door());
    wire.say(FromClient::Ps);
    let rows = wire.until("the processes", |word| match word {
        ToClient::Processes(rows) => Some(rows.clone()),
        _ => None,
    });
    let own = rows.iter().find(|row| row.session.as_ref() == Some(session) && row.worker == name);
    own.map(|row| row.pid).filter(|pid| *pid > 0)
}

#[test]
fn the_death_of_either_conversation_loses_nothing() {
    let desk = Desk::new();
    let server = server("until [ -e go ]; do sleep 0.1; done; echo 7301");
    let _daemon = desk.daemon();
    let (mut wire, session) = opened(&desk, &server);
    let child = child(&session);
    until("the command of the sub-agent", || count(&desk, &child, "START") == 1);
    for of in [&session, &child] {
        let conversation = worker(&desk, of, "agentd-session").unwrap();
        send(conversation, Signal::SIGKILL);
        until("another conversation", || {
            worker(&desk, of, "agentd-session").is_some_and(|pid| pid != conversation)
        });
    }
    desk.write("go", "");
    wire.turn_ends();
    assert!(told(&server).contains("The part is done."), "{}", told(&server));
    let counts = ["RESULT", "SPENT"].map(|kind| count(&desk, &session, kind));
    assert_eq!(counts, [1, 1]);
    let counts = ["PROMPT", "START", "RESULT"].map(|kind| count(&desk, &child, kind));
    assert_eq!(counts, [1, 1, 1], "its command ran once");
}

#[test]
fn after_the_death_of_the_supervisor_the_call_finds_its_sub_agent() {
    let desk = Desk::new();
    let server = server("echo x >> ran; sleep 7302");
    let daemon = desk.daemon();
    let (wire, session) = opened(&desk, &server);
    let child = child(&session);
    until("the command of the sub-agent", || wrote(&desk.project().join("ran")));
    send(daemon.pid, Signal::SIGKILL);
    until("it ends with the supervisor", || !runs("sleep 7302"));
    drop((wire, daemon));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&server);
    opening.mode = Some(PermissionMode::Auto);
    opening.start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::GoesOn };
    let session = wire.open(&opening);
    wire.turn_ends();
    let told = told(&server);
    assert!(told.contains("The part is done."), "{told}");
    assert_eq!(told.matches("The part is done.").count(), 1, "{told}");
    assert_eq!(desk.read("ran"), "x\n", "a command that may have run is not run again");
    let of_child = journal(&desk, &child);
    let interrupted = of_child.iter().filter(|record| record["kind"] == "INTERRUPTED").count();
    assert_eq!((interrupted, count(&desk, &child, "PROMPT")), (1, 1), "its own call says it");
    assert_eq!((count(&desk, &session, "RESULT"), count(&desk, &session, "SPENT")), (1, 1));
    let sessions = std::fs::read_dir(desk.state().join("sessions")).unwrap().count();
    assert_eq!(sessions, 2, "no sub-agent is started twice");
}

#[test]
fn a_turn_that_does_not_go_on_has_the_work_so_far() {
    let desk = Desk::new();
    let server = server("sleep 7303");
    let daemon = desk.daemon();
    let (wire, session) = opened(&desk, &server);
    until("the command of the sub-agent", || runs("sleep 7303"));
    send(daemon.pid, Signal::SIGKILL);
    until("it ends with the supervisor", || !runs("sleep 7303"));
    drop((wire, daemon));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&server);
    opening.start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    let session = wire.open(&opening);
    wire.prompt(&session, "and now?");
    wire.turn_ends();
    assert!(told(&server).contains("The sub-agent did not finish"), "{}", told(&server));
    assert!(told(&server).contains(&child(&session).0));
    assert_eq!((count(&desk, &session, "RESULT"), count(&desk, &session, "SPENT")), (1, 1));
}

#[test]
fn work_that_ended_while_its_parent_was_away_is_the_result_though_its_file_is_gone() {
    let desk = Desk::new();
    let file = desk.write(".claude/agents/helper.md", "---\ndescription: Helps.\n---\nHelp.\n");
    let server = server_of("helper", "echo x >> ran; sleep 7308");
    let daemon = desk.daemon();
    let (wire, session) = opened(&desk, &server);
    let child = child(&session);
    until("the command of the sub-agent", || wrote(&desk.project().join("ran")));
    send(daemon.pid, Signal::SIGKILL);
    until("it ends with the supervisor", || !runs("sleep 7308"));
    drop((wire, daemon));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&server);
    opening.mode = Some(PermissionMode::Auto);
    opening.start = SessionStart::Resume { session: child.clone(), open_turn: OpenTurn::GoesOn };
    let alone = wire.open(&opening);
    wire.turn_ends();
    wire.say(FromClient::End { session: alone, ending: SessionEnding::Stop });
    wire.until("its end", |word| matches!(word, ToClient::Done).then_some(()));
    std::fs::remove_file(file).unwrap();
    opening.start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::GoesOn };
    let session = wire.open(&opening);
    wire.turn_ends();
    let told = told(&server);
    assert_eq!(told.matches("The part is done.").count(), 1, "{told}");
    assert_eq!(desk.read("ran"), "x\n", "its work is not done again");
    assert_eq!((count(&desk, &session, "RESULT"), count(&desk, &session, "SPENT")), (1, 1));
}

#[test]
fn a_person_stops_the_sub_agent_alone_or_with_its_parents_turn() {
    let desk = Desk::new();
    let server = server("sleep 7304");
    let _daemon = desk.daemon();
    let (mut wire, session) = opened(&desk, &server);
    until("the command of the sub-agent", || runs("sleep 7304"));
    let end = FromClient::End { session: child(&session), ending: SessionEnding::Stop };
    Wire::to(&desk.door()).say(end);
    wire.turn_ends();
    let first = told(&server);
    assert!(first.contains("The sub-agent did not finish: its session was ended"), "{first}");
    assert!(!runs("sleep 7304"));
    // With the parent's turn.
    let desk = Desk::new();
    let server = self::server("sleep 7305");
    let _daemon = desk.daemon();
    let (mut wire, session) = opened(&desk, &server);
    until("the command of the sub-agent", || runs("sleep 7305"));
    wire.say(FromClient::Interrupt { session: session.clone() });
    wire.turn_ends();
    assert!(!runs("sleep 7305"));
    let records = journal(&desk, &session);
    let result = records.iter().find(|record| record["kind"] == "RESULT").unwrap();
    assert!(result["text"].as_str().unwrap().contains("a person stopped it"), "{result}");
    let ends = journal(&desk, &child(&session));
    let end = ends.iter().find(|record| record["kind"] == "TURN_ENDED").unwrap();
    assert!(end["end"].to_string().contains("interrupted"), "{end}");
}

/// A parent that was opened again after a death, while this process uses the session of its sub-agent.
fn waits_for_a_held_sub_agent<'a>(
    desk: &'a Desk,
    command: &str,
) -> (Server, Daemon<'a>, Wire, SessionId, File) {
    let server = server(command);
    let daemon = desk.daemon();
    let (wire, session) = opened(desk, &server);
    let child = child(&session);
    until("the command of the sub-agent", || count(desk, &child, "START") == 1);
    send(daemon.pid, Signal::SIGKILL);
    until("it ends with the supervisor", || !runs(command));
    drop((wire, daemon));
    let place = desk.state().join("sessions").join(&child.0).join("journal.jsonl");
    let held = File::options().append(true).open(place).unwrap();
    held.lock().unwrap();
    let daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&server);
    opening.mode = Some(PermissionMode::Auto);
    opening.start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::GoesOn };
    let session = wire.open(&opening);
    wire.event("that it waits", |event| match event {
        ClientEvent::Output { text, .. } => {
            text.contains(&format!("another process uses session {child}")).then_some(())
        }
        _ => None,
    });
    (server, daemon, wire, session, held)
}

#[test]
fn a_sub_agent_that_another_process_uses_is_waited_for() {
    let desk = Desk::new();
    let (server, _daemon, mut wire, session, held) =
        waits_for_a_held_sub_agent(&desk, "sleep 7306");
    drop(held);
    wire.turn_ends();
    assert!(told(&server).contains("The part is done."), "{}", told(&server));
    assert_eq!((count(&desk, &session, "RESULT"), count(&desk, &session, "SPENT")), (1, 1));
}

#[test]
fn a_call_that_is_stopped_while_it_waits_begins_no_sub_agent() {
    let desk = Desk::new();
    let (server, _daemon, mut wire, session, held) =
        waits_for_a_held_sub_agent(&desk, "sleep 7307");
    let child = child(&session);
    let before = journal(&desk, &child).len();
    wire.say(FromClient::Interrupt { session: session.clone() });
    wire.turn_ends();
    let result = journal(&desk, &session);
    let result = result.iter().find(|record| record["kind"] == "RESULT").unwrap();
    let text = result["text"].as_str().unwrap();
    assert!(text.contains("was stopped before it began"), "{result}");
    drop(held);
    // Longer than the time between two attempts to open it.
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(journal(&desk, &child).len(), before, "it does not go on alone");
    drop(server);
}

/// A parent whose sub-agent runs this command in the background. The parent runs another one then, if there is
/// one.
fn background_server(command: &str, own: Option<&str>) -> Server {
    let task = json!({"description": "a part", "prompt": "THE PART", "background": true});
    let task = task.to_string();
    let command = json!({ "command": command }).to_string();
    let own = own.map(|own| json!({ "command": own }).to_string());
    Server::answering(move |_, body| {
        let of_child = body["messages"][0]["content"].to_string().contains("THE PART");
        let messages = body["messages"].as_array().unwrap();
        let place = messages.iter().filter(|message| message["role"] == "assistant").count();
        match (of_child, place, &own) {
            (false, 0, _) => Answer::says([call("toolu_1", "task", &task)]),
            (false, 1, Some(own)) => Answer::says([call("toolu_3", "bash", own)]),
            (true, 0, _) => Answer::says([call("toolu_2", "bash", &command)]),
            (true, 1, _) => Answer::text("The part is done."),
            (false, _, _) | (true, _, _) => Answer::text("I go on."),
        }
    })
}

/// The news of the end, and the answer, which the model was told once each.
fn check_told_once(desk: &Desk, server: &Server, session: &SessionId) {
    let told = told(server);
    for words in ["which ran in the background, has ended", "The part is done."] {
        assert_eq!(told.matches(words).count(), 1, "{words}: {told}");
    }
    let counts = ["BACKGROUND", "SPENT"].map(|kind| count(desk, session, kind));
    assert_eq!(counts, [1, 1]);
    let of_task = |record: &&Value| record["kind"] == "RESULT" && record["call"] == 1;
    assert_eq!(journal(desk, session).iter().filter(of_task).count(), 1);
    assert_eq!(count(desk, &child(session), "PROMPT"), 1);
}

#[test]
fn one_in_the_background_outlives_both_conversations_and_is_told_once() {
    let desk = Desk::new();
    let server = background_server("until [ -e go ]; do sleep 0.1; done; echo x >> ran", None);
    let _daemon = desk.daemon();
    let (mut wire, session) = opened(&desk, &server);
    wire.turn_ends();
    let child = child(&session);
    until("the command of the sub-agent", || count(&desk, &child, "START") == 1);
    for of in [&session, &child] {
        let conversation = worker(&desk, of, "agentd-session").unwrap();
        send(conversation, Signal::SIGKILL);
        until("another conversation", || {
            worker(&desk, of, "agentd-session").is_some_and(|pid| pid != conversation)
        });
    }
    desk.write("go", "");
    until("its end", || count(&desk, &session, "RESULT") == 1);
    wire.prompt(&session, "and now?");
    wire.turn_ends();
    check_told_once(&desk, &server, &session);
    assert_eq!(desk.read("ran"), "x\n");
}

#[test]
fn after_the_death_of_the_supervisor_one_in_the_background_is_waited_for_again() {
    // Between turns, and in the middle of one.
    for (command, own) in [("sleep 7331", None), ("sleep 7332", Some("sleep 7333"))] {
        let desk = Desk::new();
        // Its shell has the number alone, so that the words are seen behind the first step.
        let number = command.replace("sleep ", "n=");
        let server = background_server(&format!("echo x >> ran; {number}; sleep $n"), own);
        let daemon = desk.daemon();
        let (mut wire, session) = opened(&desk, &server);
        match own {
            None => wire.turn_ends(),
            Some(own) => until("the command of the parent", || runs(own)),
        }
        until("the command of the sub-agent", || runs(command));
        send(daemon.pid, Signal::SIGKILL);
        until("all ends with the supervisor", || {
            !runs(command) && own.is_none_or(|own| !runs(own))
        });
        drop((wire, daemon));
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let mut opening = desk.opening(&server);
        opening.mode = Some(PermissionMode::Auto);
        let open_turn = OpenTurn::GoesOn;
        opening.start = SessionStart::Resume { session: session.clone(), open_turn };
        let (session, next) = wire.opened(&opening);
        let before = wire.attach(&session, BacklogFrom::Seq(next), ClientRights::Full);
        // The turn may end before this client is attached.
        let ends = |word: &ToClient| {
            matches!(word, ToClient::Event { event: ClientEvent::TurnEnded { .. }, .. })
        };
        if own.is_some() && !before.iter().any(ends) {
            wire.turn_ends();
        }
        let of_task = |record: &Value| record["kind"] == "RESULT" && record["call"] == 1;
        until("its end", || journal(&desk, &session).iter().any(of_task));
        wire.prompt(&session, "and now?");
        wire.turn_ends();
        check_told_once(&desk, &server, &session);
        assert_eq!(desk.read("ran"), "x\n", "a command that may have run is not run again");
        let sessions = std::fs::read_dir(desk.state().join("sessions")).unwrap().count();
        assert_eq!(sessions, 2, "no sub-agent is started twice");
    }
}

#[test]
fn one_in_the_background_of_a_session_that_does_not_go_on_is_told_as_cut_short() {
    let desk = Desk::new();
    let server = background_server("sleep 7334", None);
    let daemon = desk.daemon();
    let (mut wire, session) = opened(&desk, &server);
    wire.turn_ends();
    until("the command of the sub-agent", || runs("sleep 7334"));
    send(daemon.pid, Signal::SIGKILL);
    until("it ends with the supervisor", || !runs("sleep 7334"));
    drop((wire, daemon));
    let _daemon = desk.daemon();
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(&server);
    opening.start = SessionStart::Resume { session: session.clone(), open_turn: OpenTurn::Waits };
    let session = wire.open(&opening);
    wire.prompt(&session, "and now?");
    wire.turn_ends();
    let told = told(&server);
    assert_eq!(told.matches("which ran in the background, has ended").count(), 1, "{told}");
    assert!(told.contains("The sub-agent did not finish"), "{told}");
    assert!(told.matches(&child(&session).0).count() >= 2, "its end names the session: {told}");
    assert!(!runs("sleep 7334"), "nothing is run twice");
    assert_eq!((count(&desk, &session, "RESULT"), count(&desk, &session, "SPENT")), (1, 1));
}
