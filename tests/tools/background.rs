//! Commands in the background: started, read, written to, ended, and told of.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::support::anthropic::{Answer, Say, Server, call};
use crate::support::daemon::Wire;
use crate::support::{Desk, run, runs, until};
use protocol::client::{
    ClientEvent, FromClient, SessionEnding, SessionStatus, SessionWish, ToClient,
};
use protocol::confinement::Network;
use protocol::ids::SessionId;
use protocol::judgement::PermissionMode;
use serde_json::{Value, json};
use std::net::TcpStream;

fn bash(id: &str, command: &str) -> Say {
    call(id, "bash", &json!({ "command": command, "background": true }).to_string())
}

fn about(id: &str, tool: &str, input: Value) -> Say {
    call(id, tool, &input.to_string())
}

/// The text of the result with this id, in the newest request that has it.
fn result(server: &Server, id: &str) -> String {
    let requests = server.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let found = blocks.into_iter().find(|block| block["tool_use_id"] == id).unwrap_or_else(|| {
        panic!("no result {id} in {}", serde_json::to_string_pretty(&messages).unwrap())
    });
    match &found["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    }
}

/// A session whose mode lets commands run.
fn session(desk: &Desk, server: &Server) -> (Wire, SessionId) {
    let mut wire = Wire::to(&desk.door());
    let mut opening = desk.opening(server);
    opening.mode = Some(PermissionMode::Auto);
    let session = wire.open(&opening);
    (wire, session)
}

fn journal(desk: &Desk, session: &SessionId) -> Vec<Value> {
    let place = desk.state().join("sessions").join(&session.0).join("journal.jsonl");
    let text = std::fs::read_to_string(place).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn count(records: &[Value], kind: &str, call: u32) -> usize {
    records.iter().filter(|record| record["kind"] == kind && record["call"] == call).count()
}

#[test]
fn a_server_in_the_background_is_read_written_to_and_ended_and_keeps_its_one_result() {
    let desk = Desk::new();
    let echo = "echo up; while read line; do echo \"got $line\"; done; echo bye";
    let server = Server::scripted([
        Answer::says([bash("toolu_1", echo)]),
        Answer::says([about("toolu_2", "bash_input", json!({"call": 1, "text": "one\n"}))]),
        Answer::says([about(
            "toolu_3",
            "bash_output",
            json!({"call": 1, "wait_ms": 20_000, "pattern": "got one"}),
        )]),
        Answer::says([about("toolu_4", "bash_output", json!({"call": 1}))]),
        Answer::text("It runs."),
        Answer::says([about(
            "toolu_5",
            "bash_input",
            json!({"call": 1, "text": "two\n", "close": true}),
        )]),
        Answer::text("Closed."),
        Answer::text("I see."),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, session) = session(&desk, &server);
    wire.prompt(&session, "serve");
    wire.event("the word that it goes on", |event| {
        matches!(event, ClientEvent::InBackground { call, .. } if call.number == 1).then_some(())
    });
    wire.turn_ends();
    let told = result(&server, "toolu_1");
    assert!(told.starts_with("up\n--- agentd ---\n[call 1 runs in the background;"), "{told}");
    assert_eq!(result(&server, "toolu_2"), "[call 1 was given the text]");
    let read = result(&server, "toolu_3");
    assert!(read.starts_with("got one\n--- agentd ---\n[call 1 runs, since "), "{read}");
    let read = result(&server, "toolu_4");
    assert!(read.starts_with("--- agentd ---\n[call 1 runs"), "it was read already: {read}");
    // No turn runs, and the command does: a list says so.
    wire.say(FromClient::List);
    let state = wire.until("the list", |word| match word {
        ToClient::Sessions(rows) => rows.first().map(|row| row.state.clone()),
        _ => None,
    });
    assert_eq!(state, SessionStatus::Background(1));
    wire.prompt(&session, "close it");
    // The command and the turn end in any order.
    let (mut ended, mut over) = (None, false);
    let ended = wire.event("both ends", |event| {
        match event {
            ClientEvent::CallEnded { call, result, .. } if call.number == 1 => {
                ended = Some(result.clone());
            }
            ClientEvent::TurnEnded { .. } => over = true,
            _ => {}
        }
        ended.clone().filter(|_| over)
    });
    assert!(ended.text.starts_with("up\ngot one\ngot two\nbye\n"), "{}", ended.text);
    wire.prompt(&session, "and?");
    wire.turn_ends();
    // The model is told once, before the words of the person.
    let last = server.requests().last().unwrap().body["messages"].to_string();
    assert_eq!(last.matches("Call 1 (bash), which ran in the background, has ended").count(), 1);
    assert!(last.contains("exit code: 0"), "{last}");
    let records = journal(&desk, &session);
    let counts = ["START", "BACKGROUND", "RESULT"].map(|kind| count(&records, kind, 1));
    assert_eq!(counts, [1, 1, 1]);
    assert_eq!(desk.ended(1)["outcome"]["code"], 0, "{:?}", desk.ended(1));
}

#[test]
fn of_a_server_it_is_said_whether_a_browser_reaches_it() {
    let serve = "python3 -u -c \"import socket, time; s = socket.create_server(('127.0.0.1', 0)); \
                 print('port', s.getsockname()[1]); time.sleep(600)\"";
    for network in [Network::Off, Network::On] {
        let desk = Desk::new();
        let read = json!({"call": 1, "wait_ms": 20_000, "pattern": "port [0-9]+"});
        let server = Server::scripted([
            Answer::says([bash("toolu_1", serve)]),
            Answer::says([about("toolu_2", "bash_output", read)]),
            Answer::text("It runs."),
        ]);
        let _daemon = desk.daemon();
        let mut wire = Wire::to(&desk.door());
        let mut opening = desk.opening(&server);
        (opening.mode, opening.network) = (Some(PermissionMode::Auto), Some(network));
        let session = wire.open(&opening);
        wire.prompt(&session, "serve");
        let mut said = String::new();
        wire.event("the end of the turn", |event| match event {
            ClientEvent::Notice { text } => {
                said.push_str(text);
                None
            }
            ClientEvent::TurnEnded { .. } => Some(()),
            _ => None,
        });
        let told = result(&server, "toolu_1") + &result(&server, "toolu_2");
        let port = told.split("port ").nth(1).unwrap().split_whitespace().next().unwrap();
        let is_reached = TcpStream::connect(("127.0.0.1", port.parse().unwrap())).is_ok();
        assert_eq!(is_reached, network == Network::On, "{told}");
        assert_eq!(said.contains("your browser does not"), !is_reached, "{said}");
        assert_eq!(told.contains("the user's browser does not"), !is_reached, "{told}");
    }
}

#[test]
fn a_command_that_fails_at_once_says_so_at_once() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([bash("toolu_1", "echo no port; exit 3")]),
        Answer::text("It failed."),
    ]);
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = result(&server, "toolu_1");
    assert!(told.starts_with("no port\n") && told.ends_with("exit code: 3"), "{told}");
}

#[test]
fn bash_stop_ends_all_processes_and_a_number_that_runs_nothing_is_named() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([bash("toolu_1", "echo up; sleep 7123 & sleep 7124")]),
        Answer::says([
            about("toolu_2", "bash_output", json!({"call": 9})),
            about("toolu_3", "bash_output", json!({"call": 1, "pattern": "("})),
        ]),
        Answer::says([about("toolu_4", "bash_stop", json!({"call": 1}))]),
        Answer::says([
            about("toolu_5", "bash_stop", json!({"call": 1})),
            about("toolu_6", "bash_output", json!({"call": 1})),
        ]),
        Answer::text("Ended."),
    ]);
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let unknown = result(&server, "toolu_2");
    assert!(unknown.contains("call 9 does not run in the background"), "{unknown}");
    assert!(unknown.contains("These do: 1."), "{unknown}");
    let invalid = result(&server, "toolu_3");
    assert!(invalid.contains("`pattern` is no regular expression"), "{invalid}");
    let stopped = result(&server, "toolu_4");
    assert!(stopped.contains("[call 1 has ended: "), "{stopped}");
    for again in ["toolu_5", "toolu_6"] {
        let text = result(&server, again);
        assert!(text.contains("[call 1 has ended: "), "{text}");
    }
    until("no process of it is left", || !runs("sleep 7123") && !runs("sleep 7124"));
}

#[test]
fn a_person_stops_one_call_and_the_turn_and_the_others_go_on() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([bash("toolu_1", "echo up; sleep 7125"), bash("toolu_2", "sleep 7126")]),
        Answer::says([call("toolu_3", "bash", r#"{"command":"sleep 7127"}"#)]),
        Answer::text("It was stopped."),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, session) = session(&desk, &server);
    wire.prompt(&session, "serve");
    until("all three run", || {
        ["7125", "7126", "7127"].iter().all(|it| runs(&format!("sleep {it}")))
    });
    let stop = |call| {
        let wish = SessionWish::StopCall { call };
        FromClient::Wish { session: session.clone(), wish }
    };
    wire.say(stop(9));
    let why = wire.until("the refusal", |word| match word {
        ToClient::Failed { message, .. } => Some(message.clone()),
        _ => None,
    });
    assert_eq!(why, "call 9 does not run");
    wire.say(stop(1));
    wire.event("its end", |event| {
        matches!(event, ClientEvent::CallEnded { call, .. } if call.number == 1).then_some(())
    });
    assert!(!runs("sleep 7125"), "no process of it is left");
    assert!(runs("sleep 7126") && runs("sleep 7127"), "the control: the others run");
    // The call that the turn waits for: the model learns of it, and the turn goes on.
    wire.say(stop(3));
    wire.turn_ends();
    let told = result(&server, "toolu_3");
    assert!(told.contains("cancelled"), "{told}");
    assert!(runs("sleep 7126"), "the control");
    assert_eq!(count(&journal(&desk, &session), "RESULT", 1), 1);
}

#[test]
fn it_ends_with_a_run_and_with_its_session() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([bash("toolu_1", "echo up; sleep 7133")]),
        Answer::text("It runs."),
    ]);
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    until("it ended with the run", || !runs("sleep 7133"));

    let server = Server::scripted([
        Answer::says([bash("toolu_1", "echo up; sleep 7134")]),
        Answer::text("It runs."),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, session) = session(&desk, &server);
    wire.prompt(&session, "serve");
    wire.turn_ends();
    assert!(runs("sleep 7134"), "it goes on after the turn");
    wire.say(FromClient::End { session: session.clone(), ending: SessionEnding::Stop });
    wire.until("the end", |word| matches!(word, ToClient::Done).then_some(()));
    assert!(!runs("sleep 7134"), "nothing is left once the session has ended");
    assert_eq!(count(&journal(&desk, &session), "RESULT", 1), 1);
}

#[test]
fn a_person_sends_a_running_command_to_the_background_beyond_its_time_limit() {
    let desk = Desk::new();
    let slow = json!({"command": "echo begun; sleep 4; echo over", "timeout_ms": 3000}).to_string();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "bash", &slow)]),
        Answer::text("I go on."),
        Answer::text("It is over."),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, session) = session(&desk, &server);
    wire.prompt(&session, "work");
    wire.event("its output", |event| {
        matches!(event, ClientEvent::Output { text, .. } if text.contains("begun")).then_some(())
    });
    wire.say(FromClient::Wish { session: session.clone(), wish: SessionWish::Background });
    wire.turn_ends();
    let told = result(&server, "toolu_1");
    assert!(told.starts_with("begun\n--- agentd ---\n[call 1 runs in the background"), "{told}");
    let ended = wire.event("its end", |event| match event {
        ClientEvent::CallEnded { call, result, .. } if call.number == 1 => Some(result.clone()),
        _ => None,
    });
    assert!(ended.text.contains("over\n") && !ended.is_error, "{}", ended.text);
}

#[test]
fn a_slow_command_goes_to_the_background_by_itself_where_the_person_says_so() {
    let slow = json!({"command": "echo begun; sleep 3; echo over"}).to_string();
    let ask = |desk: &Desk| {
        let server = Server::scripted([
            Answer::says([call("toolu_1", "bash", &slow)]),
            Answer::text("I go on."),
        ]);
        desk.ask(&server, &["--permission-mode", "auto"]);
        result(&server, "toolu_1")
    };
    let desk = Desk::new();
    let waited = ask(&desk);
    assert!(waited.starts_with("begun\nover\n"), "the control, without the setting: {waited}");
    let config = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, "[tools]\nbackground_after_ms = 500\n").unwrap();
    let told = ask(&desk);
    assert!(told.starts_with("begun\n--- agentd ---\n[call 1 runs in the background"), "{told}");
}

#[test]
fn what_is_typed_into_a_shell_in_the_background_is_judged_like_a_command() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([bash("toolu_1", "bash")]),
        Answer::says([about("toolu_2", "bash_input", json!({"call": 1, "text": "touch a\n"}))]),
        Answer::says([about("toolu_3", "bash_input", json!({"call": 1, "text": "touch b\n"}))]),
        Answer::says([about("toolu_4", "bash_input", json!({"call": 1, "text": "echo done\n"}))]),
        Answer::says([about(
            "toolu_5",
            "bash_output",
            json!({"call": 1, "wait_ms": 20_000, "pattern": "done"}),
        )]),
        Answer::text("Typed."),
    ]);
    let config = desk.home().join(".config/agentd/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, "[permissions]\ndeny = [\"bash:touch b\"]\n").unwrap();
    desk.ask(&server, &["--permission-mode", "auto"]);
    assert!(result(&server, "toolu_5").contains("done"), "{}", result(&server, "toolu_5"));
    let refused = result(&server, "toolu_3");
    assert!(refused.contains("touch b"), "{refused}");
    assert!(desk.project().join("a").exists(), "the control: allowed input is run");
    assert!(!desk.project().join("b").exists());
}

#[test]
fn files_are_not_put_back_while_a_command_in_the_background_may_write_them() {
    let desk = Desk::new();
    let write = json!({"path": "a.txt", "content": "two\n"}).to_string();
    let server = Server::scripted([
        Answer::says([call("toolu_1", "write", &write)]),
        Answer::says([bash("toolu_2", "echo up; sleep 7155")]),
        Answer::text("It runs."),
        Answer::says([about("toolu_3", "bash_stop", json!({"call": 2}))]),
        Answer::text("Ended."),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, session) = session(&desk, &server);
    wire.prompt(&session, "work");
    wire.turn_ends();
    wire.prompt(&session, ":undo");
    let refused = wire.event("the refusal", |event| match event {
        ClientEvent::CallEnded { call, result, .. } if call.number == 3 => Some(result.clone()),
        _ => None,
    });
    assert!(refused.text.contains("calls run in the background: 2"), "{}", refused.text);
    wire.turn_ends();
    assert_eq!(desk.read("a.txt"), "two\n");
    wire.prompt(&session, "end it");
    wire.turn_ends();
    wire.prompt(&session, ":undo");
    wire.turn_ends();
    assert!(!desk.project().join("a.txt").exists(), "the control: it is put back afterwards");
}

#[test]
fn eight_run_at_once_and_no_more() {
    let desk = Desk::new();
    let mut answers: Vec<_> =
        (0..9).map(|n| Answer::says([bash(&format!("toolu_{n}"), "sleep 7145")])).collect();
    answers.push(Answer::text("That many."));
    let server = Server::scripted(answers);
    let ran = desk.ask(&server, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(result(&server, "toolu_7").contains("runs in the background"));
    let refused = result(&server, "toolu_8");
    assert!(refused.contains("8 calls run in the background"), "{refused}");
    until("all ended with the run", || !runs("sleep 7145"));
}

#[test]
fn a_script_gets_one_result_and_the_end_as_a_line_of_its_own() {
    let desk = Desk::new();
    let server = Server::scripted([
        Answer::says([bash("toolu_1", "sleep 1.5; echo late")]),
        Answer::says([about("toolu_2", "bash_stop", json!({"call": 1}))]),
        Answer::text("Ended."),
    ]);
    let flags = ["-p", "go", "--permission-mode", "auto", "--output-format", "stream-json"];
    let ran = run(desk.with_server(&server, &flags));
    let lines: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let results = |id: &str| {
        let of = |line: &&Value| line["message"]["content"][0]["tool_use_id"] == id;
        lines.iter().filter(of).count()
    };
    assert_eq!((results("toolu_1"), results("toolu_2")), (1, 1), "{}", ran.out);
    let ended = |line: &&Value| line["subtype"] == "background_ended";
    assert_eq!(lines.iter().filter(ended).count(), 1, "{}", ran.out);
}

#[test]
fn a_read_that_a_person_stopped_takes_no_output_from_the_next_one() {
    let desk = Desk::new();
    let wait = json!({"call": 1, "wait_ms": 60_000, "pattern": "never"});
    let command = "cat";
    let server = Server::scripted([
        Answer::says([bash("toolu_1", command)]),
        Answer::says([about("toolu_2", "bash_output", wait)]),
        Answer::says([about("toolu_3", "bash_input", json!({"call": 1, "text": "late\n"}))]),
        Answer::says([about("toolu_4", "bash_output", json!({"call": 1, "wait_ms": 20_000}))]),
        Answer::text("Read."),
    ]);
    let _daemon = desk.daemon();
    let (mut wire, session) = session(&desk, &server);
    wire.prompt(&session, "read");
    wire.event("the wait", |event| {
        matches!(event, ClientEvent::Decided { call, .. } if call.number == 2).then_some(())
    });
    wire.say(FromClient::Interrupt { session: session.clone() });
    wire.turn_ends();
    wire.prompt(&session, "again");
    wire.turn_ends();
    let stopped = result(&server, "toolu_2");
    assert!(stopped.contains("Stopped by a person"), "{stopped}");
    let read = result(&server, "toolu_4");
    assert!(read.starts_with("late\n--- agentd ---\n[call 1 runs"), "{read}");
}
