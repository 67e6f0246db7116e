//! Editor, program and terminal on the same live session.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::acp::{Editor, beside};
use crate::sdk::Program;
use crate::support::anthropic::{Answer, Server, call};
use crate::support::{Desk, send};
use nix::sys::signal::Signal;
use protocol::client::{ClientEvent, FromClient, ToClient};
use protocol::judgement::PersonAnswer;
use serde_json::{Value, json};

/// A question that all three are asked, and nobody has answered.
struct Asked {
    editor: Editor,
    program: Program,
    wire: crate::support::daemon::Wire,
    at_editor: Value,
    at_program: Value,
    at_terminal: protocol::judgement::Question,
}

fn asked(desk: &Desk, server: &Server) -> Asked {
    let mut program = Program::asked(desk, server, &[]);
    program.prompt("go");
    let session = program.kind("system")["session_id"].as_str().unwrap().to_owned();
    let at_program = program.kind("control_request");
    let mut editor = Editor::ready(desk, server, &json!({}));
    let params = json!({"sessionId": session, "cwd": desk.project(), "mcpServers": []});
    let id = editor.request("session/resume", &params);
    editor.answer(id);
    let at_editor = editor.asked();
    let (wire, before) = beside(desk, server, &session);
    let question = before.into_iter().find_map(|word| match word {
        ToClient::Event { event: ClientEvent::Asked { question }, .. } => Some(question),
        _ => None,
    });
    let at_terminal = question.unwrap();
    Asked { editor, program, wire, at_editor, at_program, at_terminal }
}

fn server() -> Server {
    let input = r#"{"command":"echo x >>ran"}"#;
    Server::scripted([Answer::says([call("toolu_1", "bash", input)]), Answer::text("Done.")])
}

/// Whoever is first, the call runs as that one says, and once; the others hear that they need not answer.
#[test]
fn one_of_three_answers_wins_and_the_others_hear_it() {
    for first in ["editor", "program", "terminal"] {
        let desk = Desk::new();
        let server = server();
        let _daemon = desk.daemon();
        let Asked { mut editor, mut program, wire, at_editor, at_program, at_terminal } =
            asked(&desk, &server);
        let terminal = |answer| FromClient::Answer {
            call: at_terminal.call.clone(),
            digest: at_terminal.digest.clone(),
            answer,
        };
        match first {
            "editor" => editor.choose(&at_editor, "once"),
            "program" => program.answer(&at_program, &json!({"behavior": "allow"})),
            _ => wire.say(terminal(PersonAnswer::Once)),
        }
        if first != "editor" {
            let withdrawn = editor.hears("withdrawal", |line| line["method"] == "$/cancel_request");
            assert_eq!(withdrawn["params"]["requestId"], at_editor["id"]);
        }
        if first != "program" {
            let withdrawn = program.kind("control_cancel_request");
            assert_eq!(withdrawn["request_id"], at_program["request_id"]);
        }
        // The late ones say no.
        editor.choose(&at_editor, "no");
        program.answer(&at_program, &json!({"behavior": "deny", "message": "late"}));
        wire.say(terminal(PersonAnswer::Deny("late".to_owned())));
        assert_eq!(program.kind("result")["result"], "Done.", "{first}");
        let ran = std::fs::read_to_string(desk.project().join("ran")).unwrap();
        assert_eq!(ran, "x\n", "{first}");
        editor.ends();
        assert_eq!(program.ends(), 0);
    }
}

/// All at once, many times: one wins, and the call runs once or not at all.
#[test]
fn three_answers_at_once_are_one() {
    for _ in 0..5 {
        let desk = Desk::new();
        let server = server();
        let _daemon = desk.daemon();
        let Asked { mut editor, mut program, wire, at_editor, at_program, at_terminal } =
            asked(&desk, &server);
        editor.choose(&at_editor, "once");
        program.answer(&at_program, &json!({"behavior": "allow"}));
        let answer = PersonAnswer::Once;
        wire.say(FromClient::Answer { call: at_terminal.call, digest: at_terminal.digest, answer });
        assert_eq!(program.kind("result")["result"], "Done.");
        assert_eq!(std::fs::read_to_string(desk.project().join("ran")).unwrap(), "x\n");
        editor.ends();
        assert_eq!(program.ends(), 0);
    }
}

/// The editor's end and the daemon die while the question is open: it is asked again at those who live, and once.
#[test]
fn a_question_outlives_the_editor_and_the_daemon() {
    let desk = Desk::new();
    let server = server();
    let daemon = desk.daemon();
    let Asked { editor, mut program, at_program, .. } = asked(&desk, &server);
    send(editor.pid(), Signal::SIGKILL);
    drop(editor);
    send(daemon.pid, Signal::SIGKILL);
    // The program was asked before, and may answer that.
    program.answer(&at_program, &json!({"behavior": "allow"}));
    let result = program.hears("result or question", |line| {
        line["type"] == "result" || line["type"] == "control_request"
    });
    if result["type"] == "control_request" {
        program.answer(&result, &json!({"behavior": "allow"}));
        program.kind("result");
    }
    assert_eq!(std::fs::read_to_string(desk.project().join("ran")).unwrap(), "x\n");
    assert_eq!(program.ends(), 0);
}
