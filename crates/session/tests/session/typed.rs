//! A person's own command: a turn without the model, whose output goes with the next prompt.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use super::talk::{Talk, call_id, done, lawful, requests, results, runs, setup};
use protocol::call::{Call, CallOrigin};
use protocol::hook::{EventHook, HookEvent, SessionHooks};
use protocol::session::{
    ExpandedPrompt, FromSession, OpenTurn, PromptPart, SessionEvent, SessionSetup, ToSession,
    TurnEnd,
};
use serde_json::json;

fn typed(command: &str) -> ToSession {
    let expanded = ExpandedPrompt {
        file: String::new(),
        parts: vec![
            PromptPart::Text(format!("[The user ran this:]\n$ {command}\n")),
            PromptPart::Command(command.to_owned()),
        ],
        allow: Vec::new(),
        answer_schema: None,
        model: None,
        typed_by: Some("pts/0".to_owned()),
    };
    ToSession::Prompt { text: format!("!{command}"), expanded: Some(Box::new(expanded)) }
}

/// The only call of these words.
#[track_caller]
fn call(words: &[FromSession]) -> Call {
    let [call] = &runs(words)[..] else { panic!("{words:?}") };
    call.clone()
}

/// The journal of a conversation, with these ends of its calls.
fn journal(talk: &Talk, ends: &[&str]) -> Vec<SessionEvent> {
    let mut ends = ends.iter();
    let with_end = |happened: SessionEvent| {
        let ended = match &happened {
            SessionEvent::Called { call } => ends
                .next()
                .map(|text| SessionEvent::ended(call.id.clone(), call.origin.clone(), done(text))),
            _ => None,
        };
        std::iter::once(happened).chain(ended)
    };
    talk.journal().into_iter().flat_map(with_end).collect()
}

fn replayed(journal: Vec<SessionEvent>) -> (Talk, Vec<FromSession>) {
    let mut talk = Talk::before_replay(setup());
    for happened in journal {
        talk.tell(ToSession::Replay(happened));
    }
    let words = talk.tell(ToSession::ReplayDone { then: OpenTurn::GoesOn, compact: None });
    (talk, words)
}

#[test]
fn the_model_is_not_asked_and_gets_the_output_with_the_next_prompt() {
    let mut talk = Talk::ready(setup());
    let one = call(&talk.tell(typed("ls")));
    let input = json!({ "command": "ls" }).to_string();
    let wanted = Call { id: call_id(1), origin: CallOrigin::Person, tool: "bash".into(), input };
    assert_eq!(one, wanted);
    talk.call_ended(1, "a.rs");
    assert_eq!(talk.last_end(), Some(TurnEnd::Done));
    call(&talk.tell(typed("pwd")));
    talk.call_ended(2, "/p");
    assert!(requests(&talk.said).is_empty(), "{:?}", talk.said);
    talk.prompt("Go.");
    lawful(talk.request()).unwrap();
    let [message] = &talk.request().messages[..] else { panic!("{:?}", talk.request()) };
    let said = format!("{:?}", message.blocks);
    assert_eq!(message.blocks.len(), 3, "{said}");
    let places = ["$ ls\\na.rs", "$ pwd\\n/p", "Go."].map(|part| said.find(part).unwrap());
    assert!(places.is_sorted(), "{said}");
    let (again, _) = replayed(journal(&talk, &["a.rs", "/p"]));
    assert_eq!(again.request().messages, talk.request().messages);
}

#[test]
fn a_turn_whose_command_has_ended_ends_after_a_replay_and_asks_no_model() {
    let mut talk = Talk::ready(setup());
    call(&talk.tell(typed("ls")));
    let (again, words) = replayed(journal(&talk, &["a.rs"]));
    assert!(runs(&words).is_empty() && requests(&words).is_empty(), "{words:?}");
    assert_eq!(again.last_end(), Some(TurnEnd::Done));
    // The control: one that has no end runs, under its number.
    let (mut again, words) = replayed(journal(&talk, &[]));
    assert_eq!(call(&words).id, call_id(1));
    again.call_ended(1, "a.rs");
    assert_eq!(again.last_end(), Some(TurnEnd::Done));
}

#[test]
fn hooks_of_calls_guard_it_and_hooks_of_prompts_see_the_next_prompt() {
    let hook = |event, command: &str| EventHook {
        event,
        matched: None,
        command: command.to_owned(),
        broken: None,
        timeout_ms: 1000,
        file: "settings.json".to_owned(),
    };
    let events = vec![
        hook(HookEvent::SessionStart, "start"),
        hook(HookEvent::UserPromptSubmit, "prompt"),
        hook(HookEvent::PreToolUse, "before"),
    ];
    let hooks = SessionHooks { events, ..SessionHooks::default() };
    let mut talk = Talk::ready(SessionSetup { hooks, ..setup() });
    for verdict in ["block", "pass"] {
        let guard = call(&talk.tell(typed("ls")));
        assert!(guard.input.contains("before"), "{guard:?}");
        let answer = json!({ "verdict": verdict, "reason": "not now" }).to_string();
        let words = talk.call_ended(guard.id.number, &answer);
        match verdict {
            "pass" => {
                let run = call(&words);
                talk.call_ended(run.id.number, "a.rs");
            }
            _ => assert!(results(&words)[0].1.text.contains("not now"), "{words:?}"),
        }
        assert_eq!(talk.last_end(), Some(TurnEnd::Done), "{verdict}");
    }
    let pass = json!({ "verdict": "pass" }).to_string();
    for hook in ["start", "prompt"] {
        let run = match hook {
            "start" => call(&talk.prompt("Go.")),
            _ => talk
                .said
                .iter()
                .rev()
                .find_map(|word| runs(std::slice::from_ref(word)).pop())
                .unwrap(),
        };
        assert!(run.input.contains(hook), "{hook}: {run:?}");
        talk.call_ended(run.id.number, &pass);
    }
    let said = format!("{:?}", talk.request().messages);
    assert!(said.contains("a.rs") && said.contains("not now") && said.contains("Go."), "{said}");
}
