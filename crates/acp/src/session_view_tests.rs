//! What editor and session get, step by step.
#![allow(clippy::unwrap_used)]
use super::*;
use protocol::client::PromptUse;
use protocol::confinement::{FilePath, Network};
use protocol::judgement::{Ask, PermissionMode, PersonAnswer, Question};
use protocol::session::TurnEnd;

fn facts() -> SessionFacts {
    SessionFacts {
        session: SessionId("s".to_owned()),
        name: String::new(),
        model: "m".to_owned(),
        of_model: ModelFacts::default(),
        models: Vec::new(),
        tools: Vec::new(),
        mode: PermissionMode::Ask,
        network: Network::Off,
        hosts: Vec::new(),
        temp: FilePath("/tmp/x".into()),
        sandbox: "full".to_owned(),
        warnings: vec!["a setting was ignored".to_owned()],
        trouble: None,
    }
}

fn message(event: ClientEvent) -> LiveEvent {
    LiveEvent::Message(ToClient::Event { session: SessionId("s".to_owned()), seq: 1, event })
}

fn attached() -> LiveEvent {
    LiveEvent::Message(ToClient::Attached {
        session: SessionId("s".to_owned()),
        name: "terminal 1".to_owned(),
    })
}

fn view(opening: OpenedAs) -> SessionView {
    let mut view = SessionView::new(opening, "/p".to_owned(), WhileBusy::Queue, None);
    assert!(view.happened(LiveEvent::Opened { facts: facts(), last_seq: 0 }).is_empty());
    view
}

fn open() -> SessionView {
    let mut view = view(OpenedAs::New(1.into()));
    view.happened(attached());
    view
}

fn lines(outputs: &[EditorOutput]) -> Vec<&Value> {
    outputs
        .iter()
        .filter_map(|output| match output {
            EditorOutput::Line(line) => Some(line),
            EditorOutput::Send(_) | EditorOutput::Leave => None,
        })
        .collect()
}

fn question() -> Question {
    Question {
        call: CallId { session: SessionId("s".to_owned()), number: 3 },
        tool: "bash".to_owned(),
        input: "{}".to_owned(),
        preview: String::new(),
        confinement: String::new(),
        reason: String::new(),
        widens: Vec::new(),
        ask: Ask::Call { rules: Vec::new(), modes: Vec::new() },
        deadline: 0,
        digest: "d".to_owned(),
    }
}

fn prompt_event(text: &str) -> LiveEvent {
    message(ClientEvent::Prompt { text: text.to_owned(), of: PromptUse::Prompt })
}

#[test]
fn a_new_session_is_answered_once_it_is_open_and_its_warnings_follow() {
    let mut view = view(OpenedAs::New(1.into()));
    let outputs = view.happened(attached());
    let lines = lines(&outputs);
    assert_eq!(lines[0]["result"]["sessionId"], "s");
    assert_eq!(lines[0]["result"]["modes"]["currentModeId"], "ask");
    assert!(lines[1].to_string().contains("a setting was ignored"), "{lines:?}");
    // One that another supervisor has opened again is not answered twice.
    view.happened(LiveEvent::Lost("closed".to_owned()));
    assert!(view.happened(attached()).is_empty());
}

#[test]
fn a_loaded_session_is_replayed_before_the_answer_and_old_questions_are_not_asked() {
    let mut view = view(OpenedAs::Loaded(1.into()));
    let outputs = view.happened(prompt_event("hi"));
    assert_eq!(lines(&outputs)[0]["params"]["update"]["sessionUpdate"], "user_message_chunk");
    assert!(view.happened(message(ClientEvent::Asked { question: question() })).is_empty());
    let decided =
        ClientEvent::Decided { call: question().call, allowed: true, basis: String::new() };
    view.happened(message(decided));
    let outputs = view.happened(attached());
    assert_eq!(lines(&outputs)[0]["id"], 1);
    assert!(lines(&outputs).iter().all(|line| line["method"] != "session/request_permission"));
    // An open one is.
    let mut view = self::view(OpenedAs::Resumed(1.into()));
    view.happened(message(ClientEvent::Asked { question: question() }));
    let outputs = view.happened(attached());
    assert!(lines(&outputs).iter().any(|line| line["method"] == "session/request_permission"));
}

#[test]
fn a_terminal_may_answer_first() {
    let mut view = open();
    let outputs = view.happened(message(ClientEvent::Asked { question: question() }));
    let id = lines(&outputs)[0]["id"].as_str().unwrap().to_owned();
    let decided =
        ClientEvent::Decided { call: question().call, allowed: true, basis: String::new() };
    let outputs = view.happened(message(decided));
    assert_eq!(lines(&outputs)[0]["method"], "$/cancel_request");
    assert_eq!(lines(&outputs)[0]["params"]["requestId"], id.as_str());
    assert!(view.reply(&id, Reply::Selected("once".to_owned())).is_none(), "it is late");
}

#[test]
fn an_answer_reaches_the_session_with_the_digest_of_the_question() {
    let mut view = open();
    let outputs = view.happened(message(ClientEvent::Asked { question: question() }));
    let id = lines(&outputs)[0]["id"].as_str().unwrap().to_owned();
    let outputs = view.reply(&id, Reply::Selected("once".to_owned())).unwrap();
    let answer = FromClient::Answer {
        call: question().call,
        digest: "d".to_owned(),
        answer: PersonAnswer::Once,
    };
    assert_eq!(outputs, [send(answer)]);
    // Its decision needs no further word to the editor.
    let decided =
        ClientEvent::Decided { call: question().call, allowed: true, basis: String::new() };
    assert!(view.happened(message(decided)).is_empty());
}

#[test]
fn a_prompt_is_answered_at_the_end_of_its_turn_over_a_lost_supervisor() {
    let mut view = open();
    let outputs = view.prompt(7.into(), "s", "go".to_owned());
    assert!(
        matches!(&outputs[..], [EditorOutput::Send(word)] if matches!(**word, FromClient::Prompt { .. }))
    );
    assert!(view.happened(prompt_event("go")).is_empty(), "the editor shows it itself");
    let outputs = view.happened(LiveEvent::Lost("closed".to_owned()));
    assert!(lines(&outputs)[0].to_string().contains("another one continues"));
    let outputs = view.happened(message(ClientEvent::TurnEnded { end: TurnEnd::Done }));
    assert_eq!(lines(&outputs)[0], &result_line(&7.into(), &json!({"stopReason": "end_turn"})));
}

#[test]
fn what_is_cancelled_or_closed_is_answered() {
    let mut view = open();
    view.prompt(7.into(), "s", "go".to_owned());
    view.happened(prompt_event("go"));
    let outputs = view.cancel("s");
    assert_eq!(outputs, [send(FromClient::Interrupt { session: SessionId("s".to_owned()) })]);
    let outputs = view.happened(message(ClientEvent::TurnEnded { end: TurnEnd::Interrupted }));
    assert_eq!(lines(&outputs)[0]["result"]["stopReason"], "cancelled");
    view.prompt(8.into(), "s", "wait".to_owned());
    let outputs = view.close(&9.into(), "s");
    let said = lines(&outputs);
    assert_eq!((&said[0]["id"], &said[1]["id"]), (&8.into(), &9.into()));
    assert_eq!(outputs.last(), Some(&EditorOutput::Leave));
}

#[test]
fn a_change_is_answered_when_the_session_has_it() {
    let mut view = open();
    let outputs = view.set_mode(4.into(), "ask");
    assert_eq!(lines(&outputs)[0], &result_line(&4.into(), &json!({})), "it is so already");
    assert!(lines(&view.set_mode(5.into(), "plan")).is_empty());
    let change = SettingChange::Mode(PermissionMode::Plan);
    let outputs = view.happened(message(ClientEvent::Changed { change, by: "x".to_owned() }));
    let said = lines(&outputs);
    assert!(said.iter().any(|line| **line == result_line(&5.into(), &json!({}))), "{said:?}");
    assert!(said.iter().any(|line| line["params"]["update"]["currentModeId"] == "plan"));
    view.set_option(6.into(), "network", &"on".into());
    let failure = ToClient::Failed {
        kind: protocol::client::RequestFailure::Usage,
        message: "not here".to_owned(),
    };
    let outputs = view.happened(LiveEvent::Message(failure));
    assert_eq!(lines(&outputs)[0]["error"]["message"], "not here");
}

#[test]
fn nothing_that_an_editor_asked_for_stays_open() {
    let mut view = view(OpenedAs::New(1.into()));
    let outputs = view.ended(Some(&RpcError::internal("no supervisor")));
    assert_eq!(lines(&outputs)[0]["error"]["message"], "no supervisor");
    let mut view = open();
    view.prompt(7.into(), "s", "go".to_owned());
    view.set_mode(8.into(), "plan");
    assert_eq!(lines(&view.ended(None)).len(), 2);
}

/// What reached no disk is sent again, and what did is not.
#[test]
fn a_prompt_that_was_lost_with_its_supervisor_is_sent_again_once() {
    let prompts = |outputs: &[EditorOutput]| {
        let is_prompt = |output: &&EditorOutput| matches!(output, EditorOutput::Send(word) if matches!(**word, FromClient::Prompt { .. }));
        outputs.iter().filter(is_prompt).count()
    };
    let mut view = open();
    assert_eq!(prompts(&view.prompt(7.into(), "s", "lost".to_owned())), 1);
    view.prompt(8.into(), "s", "queued".to_owned());
    let busy = WhileBusy::Queue;
    let waiting = vec![protocol::client::WaitingText { text: "queued".to_owned(), busy }];
    view.happened(message(ClientEvent::Queue { waiting }));
    view.happened(LiveEvent::Lost("closed".to_owned()));
    assert_eq!(prompts(&view.prompt(9.into(), "s", "meanwhile".to_owned())), 0);
    assert_eq!(prompts(&view.happened(attached())), 2);
    // One that the session refused is answered, and never sent again.
    let failure = ToClient::Failed {
        kind: protocol::client::RequestFailure::Usage,
        message: "read-only".to_owned(),
    };
    let outputs = view.happened(LiveEvent::Message(failure));
    assert_eq!(lines(&outputs)[0]["id"], 7);
    view.happened(LiveEvent::Lost("closed".to_owned()));
    assert_eq!(prompts(&view.happened(attached())), 1);
}
