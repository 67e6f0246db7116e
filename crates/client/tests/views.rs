//! What each view shows of the same run.
#![allow(clippy::unwrap_used)]

use client::{
    Colour, JsonView, Moment, OpenedSession, RunConclusion, RunView, SessionFacts, StreamJsonView,
    Terminal, TextView, Timing, Transcript, ViewOutput, failure_line,
};
use protocol::call::{Call, CallOrigin, Outcome, ToolResult};
use protocol::client::{AnswerPart, ClientEvent, ModelFacts, PromptUse};
use protocol::confinement::{FilePath, Network};
use protocol::content::{ContentBlock, Usage};
use protocol::ids::{CallId, SessionId};
use protocol::judgement::PermissionMode;
use protocol::mcp::{ServedTool, ServerReport, ServerState};
use protocol::provider::ProviderFailure;
use protocol::session::{CallSpan, TurnEnd};
use serde_json::{Value, json};

fn served(name: &str, state: ServerState, tools: &[&str]) -> ServerReport {
    let tool = |name: &&str| ServedTool {
        name: (*name).to_owned(),
        description: String::new(),
        marked: None,
    };
    ServerReport {
        name: name.to_owned(),
        place: String::new(),
        sandbox: None,
        state,
        tools: tools.iter().map(tool).collect(),
        words: Vec::new(),
    }
}

fn opened() -> OpenedSession {
    OpenedSession {
        facts: SessionFacts {
            session: SessionId("0123456789ab".into()),
            name: String::new(),
            model: "m".into(),
            of_model: ModelFacts::default(),
            models: Vec::new(),
            tools: vec!["read".into(), "bash".into()],
            mode: PermissionMode::Ask,
            network: Network::Off,
            hosts: Vec::new(),
            temp: FilePath::from(std::path::PathBuf::from("/tmp")),
            sandbox: "full".into(),
            warnings: vec!["a rule was ignored".into()],
            trouble: None,
        },
        project: "/p".into(),
        servers: vec![
            served("docs", ServerState::Ready { after_ms: 7 }, &["mcp__docs__find", "bash"]),
            served("dead", ServerState::Ended("it ended".into()), &[]),
            served("late", ServerState::Starts, &[]),
        ],
    }
}

fn call() -> Call {
    Call {
        id: CallId { session: SessionId("0123456789ab".into()), number: 1 },
        origin: CallOrigin::model("toolu_1"),
        tool: "bash".into(),
        input: "{\"command\":\"rm\\u001b[2J -rf\\n/\"}".into(),
    }
}

fn ended(code: Option<&str>) -> ClientEvent {
    ClientEvent::CallEnded {
        call: call().id,
        result: ToolResult {
            outcome: Outcome::Exited { code: 1 },
            text: "no\n[exit code: 1]".into(),
            summary: "exit code 1".into(),
            is_error: true,
            code: code.map(str::to_owned),
            images: Vec::new(),
        },
        refused: vec!["openat /etc/x: EACCES".into()],
        spent: None,
    }
}

fn answer(blocks: Vec<ContentBlock>) -> ClientEvent {
    let usage = Usage { input: Some(10), output: Some(2), cache_read: None, cache_write: None };
    ClientEvent::Answer { blocks, usage }
}

/// A run with one call that failed, as its events.
fn events(end: TurnEnd, code: Option<&str>) -> Vec<ClientEvent> {
    let Call { origin, tool: name, input, .. } = call();
    let id = origin.use_id().unwrap().to_owned();
    vec![
        ClientEvent::Prompt { text: "go".into(), of: PromptUse::Prompt },
        ClientEvent::Delta { part: AnswerPart::Text, text: "I wi".into() },
        answer(vec![
            ContentBlock::Text { text: "I will.".into() },
            ContentBlock::Thinking { text: "hm".into(), raw: "{\"signature\":\"c2ln\"}".into() },
            ContentBlock::ToolUse { id, name, input },
        ]),
        ClientEvent::Proposed { call: call() },
        ended(code),
        answer(vec![ContentBlock::Text { text: "It is\u{1b}[2J done.".into() }]),
        ClientEvent::TurnEnded { end },
    ]
}

fn shown(view: &mut dyn RunView, events: &[ClientEvent]) -> (String, String, RunConclusion) {
    let mut transcript = Transcript::new(opened());
    let mut all = ViewOutput::default();
    let mut take = |shown: ViewOutput| {
        all.out.push_str(&shown.out);
        all.err.push_str(&shown.err);
    };
    take(view.show(&transcript, Moment::Opened(&opened())));
    for event in events {
        assert!(!transcript.is_over());
        transcript.update(event);
        take(view.show(&transcript, Moment::Happened(event)));
    }
    assert!(transcript.is_over());
    let conclusion = transcript.conclude(Timing { all_ms: 1234, model_ms: 1000 }, None);
    take(view.show(&transcript, Moment::Concluded(&conclusion)));
    (all.out, all.err, conclusion)
}

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_run_is_not_judged_by_calls_before_its_first_prompt() {
    let mut transcript = Transcript::new(opened());
    let end = |transcript: &Transcript| {
        transcript.conclude(Timing { all_ms: 1, model_ms: 1 }, None).no_sandbox
    };
    for event in events(TurnEnd::Done, Some("sandbox_unavailable")) {
        transcript.update(&event);
    }
    assert_eq!(end(&transcript), 1);
    transcript.begin_run();
    assert_eq!(end(&transcript), 0);
    let own = Call { id: CallId { number: 99, ..call().id }, ..call() };
    transcript.update(&ClientEvent::Proposed { call: own.clone() });
    let ClientEvent::CallEnded { result, refused, spent, .. } = ended(Some("sandbox_unavailable"))
    else {
        panic!("it is the end of a call");
    };
    transcript.update(&ClientEvent::CallEnded { call: own.id, result, refused, spent });
    // A second prompt of the same run changes nothing.
    transcript.begin_run();
    assert_eq!(end(&transcript), 1);
}

#[test]
fn stream_json_is_the_shape_that_scripts_read() {
    let (out, err, _) = shown(&mut StreamJsonView, &events(TurnEnd::Done, None));
    let lines = lines(&out);
    let begins = |line: &str| line.starts_with("{\"type\":\"");
    assert!(out.lines().all(begins), "{out}");
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "user", "assistant", "result"]);
    for line in &lines {
        assert_eq!(line["session_id"], "0123456789ab");
    }
    assert_eq!((&lines[0]["subtype"], &lines[0]["cwd"]), (&json!("init"), &json!("/p")));
    assert_eq!(lines[0]["tools"], json!(["read", "bash", "mcp__docs__find"]));
    let server = |name: &str, status: &str| json!({"name": name, "status": status});
    assert_eq!(
        lines[0]["mcp_servers"],
        json!([server("docs", "connected"), server("dead", "failed"), server("late", "pending")])
    );
    assert_eq!(lines[0]["permissionMode"], "ask");
    let content = &lines[1]["message"]["content"];
    assert_eq!(content[0], json!({"type": "text", "text": "I will."}));
    assert_eq!(content[2]["input"]["command"], "rm\u{1b}[2J -rf\n/");
    let result = &lines[2]["message"]["content"][0];
    assert_eq!((&result["tool_use_id"], &result["is_error"]), (&json!("toolu_1"), &json!(true)));
    assert_eq!(lines[2]["tool_use_result"]["outcome"], json!({"kind": "exited", "code": 1}));
    assert_eq!(lines[2]["tool_use_result"]["refused"][0], "openat /etc/x: EACCES");
    let last = &lines[4];
    assert_eq!((&last["subtype"], &last["is_error"]), (&json!("success"), &json!(false)));
    assert_eq!(last["result"], "It is\u{1b}[2J done.");
    assert_eq!((&last["num_turns"], &last["duration_ms"]), (&json!(2), &json!(1234)));
    assert_eq!(last["duration_api_ms"], 1000);
    assert_eq!(content[1]["signature"], "c2ln");
    let known = json!({"input_tokens": 20, "output_tokens": 4});
    assert_eq!(last["usage"], known, "what is not known is left out");
    assert!(last.get("total_cost_usd").is_none());
    assert!(err.contains("a rule was ignored"));
}

#[test]
fn json_is_the_result_alone() {
    let (out, _, _) = shown(&mut JsonView, &events(TurnEnd::Done, Some("nobody_to_ask")));
    let lines = lines(&out);
    assert_eq!((lines.len(), &lines[0]["type"]), (1, &json!("result")));
    assert_eq!(lines[0]["permission_denials"][0]["tool_name"], "bash");
}

#[test]
fn ends_that_are_not_good_are_errors() {
    let failed =
        TurnEnd::ProviderFailed { kind: ProviderFailure::KeyRefused, message: "401".into() };
    for (end, subtype) in [
        (TurnEnd::RoundsUsedUp { rounds: 25 }, "error_max_turns"),
        (TurnEnd::CallsUsedUp { calls: 300, of: CallSpan::Turn }, "error_max_turns"),
        (TurnEnd::Truncated, "error_during_execution"),
        (TurnEnd::Interrupted, "error_during_execution"),
        (TurnEnd::StoppedByHook { reason: "no".into() }, "error_during_execution"),
        (TurnEnd::Declined { explanation: String::new() }, "error_during_execution"),
        (failed, "error_during_execution"),
    ] {
        let (out, _, conclusion) = shown(&mut JsonView, &events(end.clone(), None));
        let line = lines(&out).remove(0);
        assert_eq!(
            (&line["subtype"], &line["is_error"]),
            (&json!(subtype), &json!(true)),
            "{end:?}"
        );
        assert!(!line["error"].as_str().unwrap().is_empty());
        assert!(conclusion.fault.is_some());
    }
}

#[test]
fn text_puts_the_answer_on_one_stream_and_the_way_on_the_other() {
    let mut view = TextView::new(Colour::Off, Terminal::No);
    let (out, err, conclusion) = shown(&mut view, &events(TurnEnd::Done, Some("nobody_to_ask")));
    assert_eq!(out, "It is\u{1b}[2J done.\n", "a file gets the bytes as they are");
    assert!(err.contains("bash rm\\u{1b}[2J -rf /\n"), "{err}");
    assert!(err.contains("bash exit code 1\n"), "{err}");
    assert!(err.contains("refused: openat /etc/x: EACCES"), "{err}");
    assert!(err.ends_with("session 0123456789ab\n"), "{err}");
    assert!(err.contains("non-interactive") && err.contains("--permission-mode"), "{err}");
    assert!(!err.contains('\u{1b}'), "no colour, no foreign codes");
    assert_eq!(conclusion.unapproved.len(), 1);

    let mut view = TextView::new(Colour::On, Terminal::Yes);
    let (out, err, _) = shown(&mut view, &events(TurnEnd::Done, None));
    assert_eq!(out, "It is\u{fffd}[2J done.\n", "a terminal does not");
    assert!(err.contains("\u{1b}[31m"));
}

#[test]
fn a_failure_before_the_session_is_a_result_too() {
    let line: Value = serde_json::from_str(&failure_line(None, "no key")).unwrap();
    assert_eq!((&line["is_error"], &line["result"]), (&json!(true), &json!("no key")));
}
