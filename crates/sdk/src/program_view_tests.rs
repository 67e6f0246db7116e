//! What program and session get, step by step.
#![allow(clippy::unwrap_used)]
use super::*;
use protocol::client::{ModelFacts, RequestFailure};
use protocol::confinement::{FilePath, Network};
use protocol::content::{ContentBlock, Usage};
use protocol::judgement::{Ask, PermissionMode, Question};
use protocol::session::TurnEnd;

fn facts() -> SessionFacts {
    SessionFacts {
        session: SessionId("s".to_owned()),
        name: String::new(),
        model: "m".to_owned(),
        of_model: ModelFacts::default(),
        models: Vec::new(),
        tools: vec!["bash".to_owned()],
        mode: PermissionMode::Ask,
        network: Network::Off,
        hosts: Vec::new(),
        temp: FilePath("/tmp/x".into()),
        sandbox: "full".to_owned(),
        warnings: Vec::new(),
        trouble: None,
    }
}

fn view(partial: PartialMessages, callback: PermissionCallback) -> ProgramView {
    let options = ProgramOptions {
        project: "/p".into(),
        partial,
        replay: ReplayedMessages::Left,
        callback,
        form: None,
        shown_id: None,
    };
    let mut number = 0;
    let new_uuid = Box::new(move || {
        number += 1;
        format!("u{number}")
    });
    let mut view = ProgramView::new(options, new_uuid);
    view.happened(LiveEvent::Opened { facts: facts(), last_seq: 0 }, 0);
    view.happened(attached(), 0);
    view
}

fn attached() -> LiveEvent {
    let session = SessionId("s".to_owned());
    LiveEvent::Message(ToClient::Attached { session, name: "terminal 1".to_owned() })
}

fn plain() -> ProgramView {
    view(PartialMessages::Left, PermissionCallback::Absent)
}

fn happens(view: &mut ProgramView, event: ClientEvent) -> Vec<ProgramOutput> {
    let session = SessionId("s".to_owned());
    view.happened(LiveEvent::Message(ToClient::Event { session, seq: 1, event }), 5)
}

fn prompt(text: &str, of: PromptUse) -> ClientEvent {
    ClientEvent::Prompt { text: text.to_owned(), of }
}

fn kinds(outputs: &[ProgramOutput]) -> Vec<String> {
    outputs
        .iter()
        .map(|output| match output {
            ProgramOutput::Line(line) => line["type"].as_str().unwrap_or_default().to_owned(),
            ProgramOutput::Send(_) => "send".to_owned(),
            ProgramOutput::Done => "done".to_owned(),
        })
        .collect()
}

fn first(outputs: &[ProgramOutput]) -> &Value {
    let ProgramOutput::Line(line) = &outputs[0] else { panic!("{outputs:?}") };
    line
}

fn answer(text: &str) -> ClientEvent {
    ClientEvent::Answer {
        blocks: vec![ContentBlock::Text { text: text.to_owned() }],
        usage: Usage::default(),
    }
}

#[test]
fn a_prompt_has_an_opening_its_messages_and_one_result() {
    let mut view = plain();
    assert_eq!(kinds(&view.prompt("go".to_owned())), ["send"]);
    let outputs = happens(&mut view, prompt("go", PromptUse::Prompt));
    assert_eq!(kinds(&outputs), ["system"]);
    let init = first(&outputs);
    assert_eq!((&init["permissionMode"], &init["session_id"]), (&"default".into(), &"s".into()));
    let outputs = happens(&mut view, answer("Hello."));
    assert_eq!(kinds(&outputs), ["assistant"]);
    assert_eq!(first(&outputs)["message"]["content"][0]["text"], "Hello.");
    let outputs = happens(&mut view, ClientEvent::TurnEnded { end: TurnEnd::Done });
    assert_eq!(kinds(&outputs), ["result"]);
    assert_eq!(first(&outputs)["result"], "Hello.");
    assert_eq!(kinds(&view.input_closed()), ["done"]);
    assert_eq!(view.last_result(), LastResult::Good);
}

#[test]
fn turns_of_other_clients_are_not_the_program_s() {
    let mut view = plain();
    assert!(happens(&mut view, prompt("theirs", PromptUse::Prompt)).is_empty());
    assert!(happens(&mut view, answer("x")).is_empty());
    view.prompt("mine".to_owned());
    assert!(happens(&mut view, ClientEvent::TurnEnded { end: TurnEnd::Done }).is_empty());
    assert!(view.input_closed().is_empty(), "its own prompt still waits");
    happens(&mut view, prompt("mine", PromptUse::Prompt));
    let outputs = happens(&mut view, ClientEvent::TurnEnded { end: TurnEnd::Done });
    assert_eq!(kinds(&outputs), ["result", "done"]);
}

#[test]
fn a_prompt_in_mid_turn_joins_it_and_comes_back() {
    let mut view = plain();
    view.prompt("go".to_owned());
    happens(&mut view, prompt("go", PromptUse::Prompt));
    view.prompt("and".to_owned());
    let outputs = happens(&mut view, prompt("and", PromptUse::Joined));
    assert_eq!(
        (kinds(&outputs), &first(&outputs)["isReplay"]),
        (vec!["user".to_owned()], &true.into())
    );
    let outputs = happens(&mut view, ClientEvent::TurnEnded { end: TurnEnd::Done });
    assert_eq!(kinds(&outputs), ["result"], "one for both");
}

#[test]
fn tools_have_the_names_that_programs_draw() {
    let mut view = plain();
    view.prompt("go".to_owned());
    happens(&mut view, prompt("go", PromptUse::Prompt));
    let input = r#"{"path":"a"}"#.to_owned();
    let blocks = vec![ContentBlock::ToolUse { id: "t".to_owned(), name: "read".to_owned(), input }];
    let outputs = happens(&mut view, ClientEvent::Answer { blocks, usage: Usage::default() });
    let call = &first(&outputs)["message"]["content"][0];
    assert_eq!((&call["name"], &call["input"]["file_path"]), (&"Read".into(), &"/p/a".into()));
}

#[test]
fn a_callback_is_asked_and_a_terminal_may_answer_first() {
    let question = Question {
        call: CallId { session: SessionId("s".to_owned()), number: 3 },
        tool: "bash".to_owned(),
        input: r#"{"command":"make"}"#.to_owned(),
        preview: String::new(),
        confinement: String::new(),
        reason: String::new(),
        widens: Vec::new(),
        ask: Ask::Call { rules: Vec::new(), modes: Vec::new() },
        deadline: 0,
        digest: "d".to_owned(),
    };
    let asked = ClientEvent::Asked { question: question.clone() };
    assert!(happens(&mut plain(), asked.clone()).is_empty(), "without a callback nobody is asked");
    let mut view = view(PartialMessages::Left, PermissionCallback::Answers);
    let outputs = happens(&mut view, asked.clone());
    let request = first(&outputs).clone();
    assert_eq!(request["request"]["tool_name"], "Bash");
    let decided = ClientEvent::Decided { call: question.call, allowed: true, basis: String::new() };
    let outputs = happens(&mut view, decided);
    assert_eq!(first(&outputs)["type"], "control_cancel_request");
    let id = request["request_id"].as_str().unwrap();
    assert!(view.reply(id, &Err(String::new())).is_empty());
    // A program that says no more answers no.
    view.input_closed();
    assert_eq!(kinds(&happens(&mut view, asked)), ["control_request", "send"]);
}

#[test]
fn wishes_are_answered_when_the_session_has_them_and_unknown_ones_are_named() {
    let mut view = plain();
    let set = |mode: &str| ControlRequest::SetMode(mode.to_owned());
    assert_eq!(kinds(&view.request("a".to_owned(), set("acceptEdits"))), ["send"]);
    let change = SettingChange::Mode(PermissionMode::AcceptEdits);
    let outputs = happens(&mut view, ClientEvent::Changed { change, by: String::new() });
    assert_eq!(first(&outputs)["response"]["request_id"], "a");
    assert_eq!(kinds(&view.request("b".to_owned(), set("acceptEdits"))), ["control_response"]);
    let outputs = view.request("c".to_owned(), set("yolo"));
    assert_eq!(first(&outputs)["response"]["subtype"], "error");
    let unknown = ControlRequest::Unknown("rewind_files".to_owned());
    let outputs = view.request("d".to_owned(), unknown);
    assert!(first(&outputs).to_string().contains("rewind_files"));
    view.request("e".to_owned(), ControlRequest::SetModel(Some("x".to_owned())));
    let failure = ToClient::Failed { kind: RequestFailure::Usage, message: "no".to_owned() };
    let outputs = view.happened(LiveEvent::Message(failure), 5);
    assert_eq!(first(&outputs)["response"]["error"], "no");
}

#[test]
fn a_prompt_that_can_have_no_result_of_the_model_s_has_one() {
    let mut view = plain();
    view.prompt("go".to_owned());
    let outputs = view.ended("the disk is full");
    assert_eq!(kinds(&outputs), ["result", "done"]);
    assert_eq!(
        (&first(&outputs)["is_error"], view.last_result()),
        (&true.into(), LastResult::Error)
    );
}

#[test]
fn partial_messages_come_where_they_are_wanted() {
    for (partial, count) in [(PartialMessages::Told, 3), (PartialMessages::Left, 0)] {
        let mut view = view(partial, PermissionCallback::Absent);
        view.prompt("go".to_owned());
        happens(&mut view, prompt("go", PromptUse::Prompt));
        let part = protocol::client::AnswerPart::Text;
        let outputs = happens(&mut view, ClientEvent::Delta { part, text: "He".to_owned() });
        assert_eq!(outputs.len(), count);
    }
}

/// What reached no disk is sent again, and what did or was refused is not.
#[test]
fn a_prompt_that_was_lost_with_its_supervisor_is_sent_again_once() {
    let mut view = plain();
    view.prompt("lost".to_owned());
    view.prompt("queued".to_owned());
    let waiting =
        protocol::client::WaitingText { text: "queued".to_owned(), busy: WhileBusy::Steer };
    happens(&mut view, ClientEvent::Queue { waiting: vec![waiting] });
    view.happened(LiveEvent::Lost("closed".to_owned()), 5);
    assert!(view.prompt("meanwhile".to_owned()).is_empty());
    assert_eq!(kinds(&view.happened(attached(), 5)), ["send", "send"]);
    let failure = ToClient::Failed { kind: RequestFailure::Usage, message: "read-only".to_owned() };
    assert_eq!(kinds(&view.happened(LiveEvent::Message(failure), 5)), ["result"]);
    view.happened(LiveEvent::Lost("closed".to_owned()), 5);
    assert_eq!(kinds(&view.happened(attached(), 5)), ["send"]);
}
