//! Hooks of a session's own events: a question, a notification, its end, the end of a sub-agent. A hook
//! may deny a call before a person is asked, and never answers for the person otherwise.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, child_of, run, send, until};
use nix::sys::signal::Signal;
use protocol::client::{ClientEvent, FromClient};
use protocol::ids::SessionId;
use protocol::judgement::{PersonAnswer, Question};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A desk whose user has this hook.
fn hooked(event: &str, command: &str, more: &str) -> Desk {
    let desk = Desk::new();
    let file = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let command = Value::from(command);
    let text = format!("[hooks]\n{more}\n[[hooks.{event}]]\nhooks = [{{ command = {command} }}]\n");
    std::fs::write(&file, text).unwrap();
    desk
}

fn bash(id: &str, command: &str) -> Say {
    call(id, "bash", &json!({"command": command}).to_string())
}

fn answers(wire: &Wire, question: &Question) {
    let (call, digest) = (question.call.clone(), question.digest.clone());
    wire.say(FromClient::Answer { call, digest, answer: PersonAnswer::Once });
}

fn notice(wire: &mut Wire, words: &str) -> String {
    wire.event(words, |event| match event {
        ClientEvent::Notice { text } if text.contains(words) => Some(text.clone()),
        _ => None,
    })
}

fn ended(desk: &Desk, tool: &str) -> Vec<Value> {
    let all = desk.audit().into_iter();
    all.filter(|record| record["event"] == "ended" && record["tool"] == tool).collect()
}

fn open(desk: &Desk, server: &Server) -> (Wire, SessionId) {
    let mut wire = Wire::to(&desk.door());
    let session = wire.open(&desk.opening(server));
    (wire, session)
}

#[test]
fn a_hook_denies_a_call_before_a_person_is_asked_and_allows_none() {
    let allow = r#"{"hookSpecificOutput":{"decision":{"behavior":"allow"}}}"#;
    let words = format!(
        "grep -q '\"command\":\"touch made' && {{ echo no touching >&2; exit 2; }}; echo '{allow}'"
    );
    let desk = hooked("PermissionRequest", &words, "");
    let server = Server::scripted([
        Answer::says([bash("toolu_1", "touch made")]),
        Answer::says([bash("toolu_2", "touch other")]),
        Answer::text("Done."),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, session) = open(&desk, &server);
    wire.prompt(&session, "go");
    let basis = wire.event("the denial, and no question", |event| match event {
        ClientEvent::Decided { basis, allowed: false, .. } => Some(basis.clone()),
        ClientEvent::Asked { question } => panic!("asked: {question:?}"),
        _ => None,
    });
    assert!(basis.contains("hooks.PermissionRequest") && basis.contains("config.toml:"), "{basis}");
    // The other command is asked about, whatever the hook says.
    notice(&mut wire, "agentd asks you");
    let question = wire.question();
    assert!(question.input.contains("touch other"), "{question:?}");
    answers(&wire, &question);
    wire.turn_ends();
    assert!(!desk.project().join("made").exists() && desk.project().join("other").exists());
    let told = server.requests()[1].body["messages"].to_string();
    assert!(told.contains("denied it: no touching"), "{told}");
    assert_eq!(ended(&desk, "guard_hook").len(), 2);
}

#[test]
fn a_person_is_asked_where_the_hook_or_the_conversation_fails() {
    let desk = hooked("PermissionRequest", "no-such-program", "");
    let server =
        Server::scripted([Answer::says([bash("toolu_1", "touch made")]), Answer::text("Done.")]);
    let daemon = desk.daemon();
    let (mut wire, session) = open(&desk, &server);
    wire.prompt(&session, "go");
    assert!(notice(&mut wire, "PermissionRequest hook").contains("could not be started"));
    let question = wire.question();
    answers(&wire, &question);
    wire.turn_ends();
    assert!(desk.project().join("made").exists());
    drop(daemon);

    let desk = hooked("PermissionRequest", "touch $TMPDIR/at-work; sleep 15; exit 2", "");
    let server =
        Server::scripted([Answer::says([bash("toolu_1", "touch made")]), Answer::text("Done.")]);
    let daemon = desk.daemon();
    let (mut wire, session) = open(&desk, &server);
    wire.prompt(&session, "go");
    let at_work = format!("/tmp/agentd-{}/tmp/at-work", session.0);
    until("the hook at work", || std::path::Path::new(&at_work).exists());
    send(child_of(daemon.pid, "agentd-session").unwrap(), Signal::SIGKILL);
    let question = wire.question();
    answers(&wire, &question);
    wire.turn_ends();
    assert!(desk.project().join("made").exists());
    let starts = ended(&desk, "guard_hook").len();
    assert_eq!(starts, 1, "the hook ran once");
}

#[test]
fn a_question_about_a_hook_has_no_hooks_run() {
    for (event, first) in [("PermissionRequest", "guard_hook"), ("Notification", "bash")] {
        let more = "[permissions]\nask = [\"bash:echo *\"]\n";
        let desk = hooked(event, "echo at work", more);
        let server = Server::scripted([
            Answer::says([bash("toolu_1", "touch made")]),
            Answer::text("Done."),
        ]);
        let daemon = desk.daemon();
        let (mut wire, session) = open(&desk, &server);
        wire.prompt(&session, "go");
        let mut asked = vec![wire.question()];
        answers(&wire, &asked[0]);
        asked.push(wire.question());
        answers(&wire, &asked[1]);
        wire.turn_ends();
        let tools: std::collections::HashSet<_> = asked.iter().map(|one| &*one.tool).collect();
        assert_eq!(tools, ["bash", "guard_hook"].into(), "{event}");
        assert!(first == "bash" || asked[0].tool == first, "{event}");
        assert!(desk.project().join("made").exists(), "{event}");
        // A notification is not waited for.
        until("the hook's end", || !ended(&desk, "guard_hook").is_empty());
        drop(daemon);
        assert_eq!(ended(&desk, "guard_hook").len(), 1, "{event}");
    }
}

#[test]
fn a_question_that_is_put_again_after_a_death_notifies_no_one_again() {
    let desk = hooked("Notification", "true", "");
    let server =
        Server::scripted([Answer::says([bash("toolu_1", "touch made")]), Answer::text("Done.")]);
    let daemon = desk.daemon();
    let (mut wire, session) = open(&desk, &server);
    wire.prompt(&session, "go");
    wire.question();
    until("the hook's end", || ended(&desk, "guard_hook").len() == 1);
    send(child_of(daemon.pid, "agentd-broker").unwrap(), Signal::SIGKILL);
    let question = wire.question();
    answers(&wire, &question);
    wire.turn_ends();
    assert!(desk.project().join("made").exists());
    assert_eq!(ended(&desk, "guard_hook").len(), 1);
}

#[test]
fn hooks_learn_of_a_question_and_of_a_session_that_waits() {
    let desk = hooked("Notification", "cat >&2; touch made; exit 2", "idle_after = \"300ms\"");
    let server =
        Server::scripted([Answer::says([bash("toolu_1", "touch other")]), Answer::text("Done.")]);
    let _daemon = desk.daemon();
    let (mut wire, session) = open(&desk, &server);
    wire.prompt(&session, "go");
    let question = wire.question();
    let told = notice(&mut wire, "Notification hook");
    let (kind, words) = ("\"permission_prompt\"", "your permission to use bash");
    assert!(told.contains(kind) && told.contains(words), "{told}");
    answers(&wire, &question);
    wire.turn_ends();
    let told = notice(&mut wire, "Notification hook");
    assert!(told.contains("\"idle_prompt\"") && told.contains("waits for your prompt"), "{told}");
    assert!(!desk.project().join("made").exists(), "the project is read-only for it");
    assert_eq!(server.requests().len(), 2, "the model learns nothing of it");
}

#[test]
fn hooks_of_the_end_run_once_and_hold_nothing_up() {
    let desk = hooked("SessionEnd", "cat > ended", "");
    let server = Server::scripted([Answer::text("Done.")]);
    let ran = run(desk.with_server(&server, &["-p", "Go."]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told: Value = serde_json::from_str(&desk.read("ended")).unwrap();
    assert_eq!(
        (&told["hook_event_name"], &told["reason"]),
        (&json!("SessionEnd"), &json!("other"))
    );
    assert_eq!(ended(&desk, "hook").len(), 1);
    // A hook that does not end is ended with the session.
    let desk = hooked("SessionEnd", "touch began; sleep 100", "");
    let server = Server::scripted([Answer::text("Done.")]);
    let began = Instant::now();
    let ran = run(desk.with_server(&server, &["-p", "Go."]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(desk.project().join("began").exists());
}

#[test]
fn a_hook_makes_a_sub_agent_go_on_once_and_not_its_parent() {
    let words = "grep 'agent_type\":\"general' | grep -q 'stop_hook_active\":true' || \
                 { echo look again >&2; exit 2; }";
    let desk = hooked("SubagentStop", words, "");
    let input = json!({"description": "a part", "prompt": "LOOK", "subagent_type": "general"});
    let task = call("toolu_1", "Task", &input.to_string());
    let server = Server::answering(move |_, body| {
        let messages = body["messages"].as_array().unwrap();
        let is_child = messages[0]["content"].to_string().contains("LOOK");
        match (is_child, messages.len()) {
            (true, 1) => Answer::text("First."),
            (true, _) => Answer::text("Second."),
            (false, 1) => Answer::says([task.clone()]),
            (false, _) => Answer::text("Done."),
        }
    });
    let ran = desk.ask(&server, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    assert_eq!(requests.len(), 4, "{}", ran.err);
    let told = requests[2].body["messages"].to_string();
    assert!(told.contains("look again") && told.contains("First."), "{told}");
    let result = requests[3].body["messages"].to_string();
    assert!(result.contains("Second."), "{result}");
    assert_eq!(ended(&desk, "hook").len(), 2);
}
