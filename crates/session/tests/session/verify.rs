//! What was configured to be run behind edits: when it is run, and where what it found is told.

use super::talk::*;
use protocol::call::{Call, CallOrigin};
use protocol::content::{ContentBlock, StopReason};
use protocol::hook::EditHook;
use protocol::judgement::ToolKind;
use protocol::session::{FromSession, OpenTurn, SessionEvent, SessionSetup, ToSession};
use session::Session;

fn with_verifier() -> SessionSetup {
    let mut setup = setup();
    setup.tools.push(tool("edit", ToolKind::Mutation));
    setup.hooks.verifiers = vec![EditHook {
        files: "*.rs".into(),
        package: Some("Cargo.toml".into()),
        command: "check".into(),
    }];
    setup
}

const A: Say = Say::Use("a", "edit", "{\"path\":\"src/a.rs\"}");
const B: Say = Say::Use("b", "edit", "{\"path\":\"b.rs\"}");
const TEXT: Say = Say::Use("c", "edit", "{\"path\":\"c.md\"}");
const COMMAND: Say = Say::Use("d", "bash", "{}");

/// Runs a round of these calls to its last end; the verifier's call, where there is one.
fn round(talk: &mut Talk, calls: &[Say]) -> Option<Call> {
    talk.prompt("go");
    talk.answer(calls, StopReason::ToolUse);
    let mut said = Vec::new();
    for number in (1..).take(calls.len()) {
        said = talk.call_ended(number, "ok");
    }
    runs(&said).into_iter().next()
}

/// What the newest request tells of each call.
fn told(talk: &Talk) -> Vec<String> {
    let last = talk.request().messages.last().unwrap();
    let text = |block: &ContentBlock| match block {
        ContentBlock::ToolResult { text, .. } => Some(text.clone()),
        ContentBlock::Text { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::Image { .. } => None,
    };
    last.blocks.iter().filter_map(text).collect()
}

#[test]
fn it_is_run_once_behind_the_edits_and_told_in_the_last_of_them() {
    let mut talk = Talk::ready(with_verifier());
    let call = round(&mut talk, &[A, B, TEXT, COMMAND]).unwrap();
    assert_eq!(
        (&call.origin, call.tool.as_str(), call.id.number),
        (&CallOrigin::EditHook, "verify", 5)
    );
    let input: serde_json::Value = serde_json::from_str(&call.input).unwrap();
    let wanted = serde_json::json!({"command": "check", "package": "Cargo.toml", "paths": ["src/a.rs", "b.rs"]});
    assert_eq!(input, wanted);
    let said = talk.call_ended(5, "no errors");
    assert_eq!(requests(&said).len(), 1, "then the model is asked");
    assert_eq!(told(&talk), ["ok", "ok\n\nno errors", "ok", "ok"]);
}

#[test]
fn what_several_kinds_of_files_have_in_common_is_run_once_for_all_of_them() {
    let mut setup = with_verifier();
    let of = |files: &str, package: Option<&str>| EditHook {
        files: files.into(),
        package: package.map(str::to_owned),
        command: "check".into(),
    };
    setup.hooks.verifiers.extend([of("*.md", Some("Cargo.toml")), of("*.md", None)]);
    let mut talk = Talk::ready(setup);
    talk.prompt("go");
    talk.answer(&[A, TEXT], StopReason::ToolUse);
    talk.call_ended(1, "ok");
    let mut said = talk.call_ended(2, "ok");
    let mut inputs = Vec::new();
    while let Some(call) = runs(&said).into_iter().next() {
        inputs.push(serde_json::from_str::<serde_json::Value>(&call.input).unwrap());
        said = talk.call_ended(call.id.number, "no errors");
    }
    let both = serde_json::json!({"command": "check", "package": "Cargo.toml", "paths": ["src/a.rs", "c.md"]});
    assert_eq!(inputs, [both, serde_json::json!({"command": "check", "paths": ["c.md"]})]);
}

#[test]
fn rounds_without_such_edits_have_none() {
    for calls in [&[TEXT, COMMAND][..], &[COMMAND][..]] {
        let mut talk = Talk::ready(with_verifier());
        assert_eq!(round(&mut talk, calls), None);
        assert_eq!(told(&talk).len(), calls.len());
    }
    let mut talk = Talk::ready(setup());
    assert_eq!(round(&mut talk, &[A]), None, "none is configured");
}

#[test]
fn a_conversation_that_died_meanwhile_tells_what_was_found_and_runs_nothing_again() {
    let mut talk = Talk::ready(with_verifier());
    let verifier = round(&mut talk, &[A]).unwrap();
    let happened = talk.said.iter().filter_map(|word| match word {
        FromSession::Commit(happened) => Some(happened.clone()),
        _ => None,
    });
    let mut journal: Vec<SessionEvent> = happened.collect();
    let result = |number, origin, text| SessionEvent::ended(call_id(number), origin, done(text));
    // The supervisor writes results itself: the edit's stands before the verifier's name.
    let at = journal.len() - 1;
    journal.insert(at, result(1, CallOrigin::model("a"), "ok"));
    // Killed before the verifier was named: it is run now.
    let resumed = |journal: &[SessionEvent]| {
        let mut session = Session::new(with_verifier(), super::talk::reader);
        for happened in journal {
            session.step(ToSession::Replay(happened.clone()));
        }
        session.step(ToSession::ReplayDone { then: OpenTurn::GoesOn, compact: None })
    };
    let said = resumed(&journal[..at + 1]);
    assert_eq!(runs(&said).len(), 1, "{said:?}");
    // Killed between its name and its start: the same call is run.
    assert_eq!(runs(&resumed(&journal)), [verifier]);
    // Killed behind it: it is told and the model is asked.
    journal.push(result(2, CallOrigin::EditHook, "no errors"));
    let said = resumed(&journal);
    assert_eq!(runs(&said), []);
    let request = requests(&said)[0].clone();
    assert!(format!("{:?}", request.messages).contains("ok\\n\\nno errors"), "{request:?}");
}

#[test]
fn files_are_put_in_form_one_after_another_before_anything_looks_at_them() {
    let mut setup = with_verifier();
    let hook =
        |files: &str| EditHook { files: files.into(), package: None, command: "form".into() };
    setup.hooks.formatters = vec![hook("*.rs"), hook("a.rs")];
    setup.tools.push(tool("delete", ToolKind::Mutation));
    let gone = Say::Use("e", "delete", "{\"paths\":[\"b.rs\"]}");
    let mut talk = Talk::ready(setup.clone());
    // Once each, though two patterns are for one of them, and not what is there no more.
    let form = round(&mut talk, &[A, B, TEXT, gone]).unwrap();
    assert_eq!(
        (&form.origin, form.tool.as_str(), form.id.number),
        (&CallOrigin::EditHook, "format", 5)
    );
    assert_eq!(form.input, "{\"command\":\"form\",\"path\":\"src/a.rs\"}");
    let verifier = runs(&talk.call_ended(5, "formatted")).remove(0);
    assert_eq!((verifier.tool.as_str(), verifier.id.number), ("verify", 6));
    talk.call_ended(6, "no errors");
    assert_eq!(told(&talk), ["ok\n\nformatted", "ok", "ok", "ok\n\nno errors"]);
    // Killed between its name and its start: the same call is run, and nothing twice.
    let mut talk = Talk::ready(setup.clone());
    let form = round(&mut talk, &[A]).unwrap();
    let happened = talk.said.iter().filter_map(|word| match word {
        FromSession::Commit(happened) => Some(happened.clone()),
        _ => None,
    });
    let mut journal: Vec<SessionEvent> = happened.collect();
    let result = |number, origin| SessionEvent::ended(call_id(number), origin, done("ok"));
    journal.insert(journal.len() - 1, result(1, CallOrigin::model("a")));
    let resumed = |journal: &[SessionEvent]| {
        let mut session = Session::new(setup.clone(), super::talk::reader);
        for happened in journal {
            session.step(ToSession::Replay(happened.clone()));
        }
        session.step(ToSession::ReplayDone { then: OpenTurn::GoesOn, compact: None })
    };
    assert_eq!(runs(&resumed(&journal)), [form]);
    journal.push(result(2, CallOrigin::EditHook));
    let next = runs(&resumed(&journal));
    assert_eq!(next.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>(), ["verify"]);
}
