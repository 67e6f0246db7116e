//! Words of a person that join a running turn.

use super::talk::*;
use protocol::client::{ModelFacts, Prices};
use protocol::content::{ContentBlock, ModelRequest, StopReason, ToolChoice};
use protocol::hook::{EventHook, HookEvent, SessionHooks};
use protocol::session::{
    FromSession, JoiningWords, SessionBounds, SessionEvent, SessionSetup, ToSession, TurnEnd,
};

fn waits(talk: &mut Talk) {
    let told = talk.tell(ToSession::Joining(JoiningWords::Wait));
    assert_eq!(told, [], "nothing is interrupted");
}

fn taken(talk: &mut Talk, texts: &[&str]) -> Vec<FromSession> {
    let texts = texts.iter().map(|&text| text.to_owned()).collect();
    talk.tell(ToSession::Joining(JoiningWords::Taken(texts)))
}

/// A turn whose call runs.
fn in_call(setup: SessionSetup) -> Talk {
    let mut talk = Talk::ready(setup);
    talk.prompt("go");
    talk.answer(&[Say::Use("a", "read", "{}")], StopReason::ToolUse);
    talk
}

fn ended(words: &[FromSession]) -> Option<&TurnEnd> {
    words.iter().find_map(|word| match word {
        FromSession::Commit(SessionEvent::TurnEnded { end }) => Some(end),
        _ => None,
    })
}

fn texts_of_last(request: &ModelRequest) -> Vec<&str> {
    let blocks = &request.messages.last().unwrap().blocks;
    let text = |block| match block {
        &ContentBlock::Text { ref text } | &ContentBlock::ToolResult { ref text, .. } => {
            text.as_str()
        }
        other => panic!("{other:?}"),
    };
    blocks.iter().map(text).collect()
}

#[test]
fn words_stand_behind_the_results_of_the_round_and_are_replayed_there() {
    let mut talk = in_call(setup());
    waits(&mut talk);
    waits(&mut talk);
    let words = talk.call_ended(1, "text");
    assert_eq!(words, [FromSession::TakeJoining], "no request before they are there");
    let words = taken(&mut talk, &["only three", "and fast"]);
    let [FromSession::Ask(request)] = &words[..] else { panic!("{words:?}") };
    assert_eq!(texts_of_last(request), ["text", "only three", "and fast"]);
    assert_eq!(lawful(request), Ok(()));
    let end = talk.answer(&[Say::Text("done")], StopReason::EndTurn);
    assert_eq!(ended(&end), Some(&TurnEnd::Done));
    let live = talk.prompt("again");

    let joined = |text: &str| SessionEvent::Joined { text: text.to_owned() };
    let mut journal = Vec::new();
    for said in &talk.said {
        match said {
            FromSession::Commit(SessionEvent::Prompt { text, .. }) if text == "again" => break,
            FromSession::Commit(happened) => journal.push(happened.clone()),
            FromSession::TakeJoining => {
                let origin = protocol::call::CallOrigin::model("a");
                journal.push(SessionEvent::ended(call_id(1), origin, done("text")));
                journal.extend(["only three", "and fast"].map(joined));
            }
            _ => {}
        }
    }
    let replayed = Talk::replayed(setup(), journal).prompt("again");
    let messages = |words: &[FromSession]| requests(words)[0].messages.clone();
    assert_eq!(messages(&replayed), messages(&live));
}

#[test]
fn a_turn_without_another_request_takes_no_words() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    waits(&mut talk);
    let end = talk.answer(&[Say::Text("done")], StopReason::EndTurn);
    assert_eq!(ended(&end), Some(&TurnEnd::Done));
    assert!(!end.contains(&FromSession::TakeJoining));
    // The supervisor sends them as a prompt then.
    assert_eq!(requests(&talk.prompt("only three")).len(), 1);

    let dear = Prices { input: 0, output: 10_000_000, cache_read: None, cache_write: None };
    let facts = ModelFacts { prices: Some(dear), ..ModelFacts::default() };
    let max_session = SessionBounds { cost: Some(1), ..SessionBounds::default() };
    let mut talk = in_call(SessionSetup { facts, max_session, ..setup() });
    waits(&mut talk);
    let end = talk.call_ended(1, "text");
    assert!(matches!(ended(&end), Some(TurnEnd::CostReached { .. })), "{end:?}");
    assert!(!end.contains(&FromSession::TakeJoining));
}

#[test]
fn words_that_were_taken_back_leave_the_request_as_it_was() {
    let mut talk = in_call(setup());
    waits(&mut talk);
    talk.call_ended(1, "text");
    let words = taken(&mut talk, &[]);
    assert_eq!(texts_of_last(requests(&words)[0]), ["text"]);
}

#[test]
fn a_stop_before_the_words_come_ends_the_turn_without_a_request() {
    let mut talk = in_call(setup());
    waits(&mut talk);
    talk.call_ended(1, "text");
    assert_eq!(talk.tell(ToSession::Interrupt), []);
    // The supervisor knew of the stop before it answered.
    let words = taken(&mut talk, &[]);
    assert_eq!(ended(&words), Some(&TurnEnd::Interrupted));
    assert!(requests(&words).is_empty());
    let words = talk.prompt("only three");
    assert_eq!(texts_of_last(requests(&words)[0]), ["text", "only three"]);
}

#[test]
fn the_last_words_of_a_turn_and_a_hook_that_judges_prompts_leave_words_to_the_next_turn() {
    let mut talk = in_call(SessionSetup { max_rounds: 1, ..setup() });
    waits(&mut talk);
    let words = talk.call_ended(1, "text");
    assert_eq!(requests(&words)[0].calls, ToolChoice::No, "the model may only speak");

    let hook = EventHook {
        event: HookEvent::UserPromptSubmit,
        matched: None,
        command: "judge".into(),
        broken: None,
        timeout_ms: 1000,
        file: "settings.json".into(),
    };
    let hooks = SessionHooks { events: vec![hook], ..SessionHooks::default() };
    let mut talk = Talk::ready(SessionSetup { hooks, ..setup() });
    let judged = talk.prompt("go");
    let judge = runs(&judged)[0].clone();
    talk.call_ended(judge.id.number, r#"{"verdict":"pass"}"#);
    talk.answer(&[Say::Use("a", "read", "{}")], StopReason::ToolUse);
    waits(&mut talk);
    let words = talk.call_ended(judge.id.number + 1, "text");
    assert_eq!(requests(&words).len(), 1, "{words:?}");
}

#[test]
fn words_that_nobody_asked_for_are_ignored() {
    let mut talk = in_call(setup());
    let words = taken(&mut talk, &["only three"]);
    assert!(matches!(words[..], [FromSession::Log(_)]), "{words:?}");
    let words = talk.call_ended(1, "text");
    assert_eq!(texts_of_last(requests(&words)[0]), ["text"]);
}
