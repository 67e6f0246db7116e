//! Turns from prompt to end, one case each.

use super::talk::*;
use protocol::call::{CallOrigin, Outcome};
use protocol::client::{ModelFacts, Prices};
use protocol::content::{ContentBlock, MessageRole, StopReason, ToolChoice, Usage};
use protocol::provider::{AnswerDelta, FromProvider, ProviderFailure};
use protocol::session::{
    CallSpan, FromSession, OpenTurn, SessionBounds, SessionEvent, SessionSetup, ToSession, TurnEnd,
};

fn ended(words: &[FromSession]) -> Option<&TurnEnd> {
    words.iter().rev().find_map(|word| match word {
        FromSession::Commit(SessionEvent::TurnEnded { end }) => Some(end),
        _ => None,
    })
}

fn session_calls(most: u32) -> SessionBounds {
    SessionBounds { calls: Some(most), tasks: 4, ..SessionBounds::default() }
}

#[test]
fn text_in_text_out() {
    let mut talk = Talk::ready(setup());
    let words = talk.prompt("hi");
    assert_eq!(
        words[0],
        FromSession::Commit(SessionEvent::Prompt { text: "hi".into(), expanded: None })
    );
    assert_eq!(talk.request().messages, [user("hi")]);
    assert_eq!(talk.request().tools.len(), 4);
    let words = talk.answer(&[Say::Text("hello")], StopReason::EndTurn);
    assert!(matches!(&words[0], FromSession::Commit(SessionEvent::Answer { round: 1, blocks, .. })
        if *blocks == [ContentBlock::Text { text: "hello".into() }]));
    assert_eq!(ended(&words), Some(&TurnEnd::Done));
    talk.prompt("again");
    assert_eq!(talk.round(), 2);
    assert_eq!(talk.request().messages, [user("hi"), assistant("hello"), user("again")]);
}

#[test]
fn results_go_back_as_one_message_in_the_order_asked() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    let words = talk.answer(
        &[
            Say::Text("looking"),
            Say::Use("a", "read_file", "{\"path\":\"x\"}"),
            Say::Use("b", "grep", "{}"),
            Say::Use("c", "write", "{}"),
        ],
        StopReason::ToolUse,
    );
    // The answer, then the names, then what may run at once; the write waits.
    let order: Vec<&str> = words
        .iter()
        .map(|word| match word {
            FromSession::Commit(SessionEvent::Answer { .. }) => "answer",
            FromSession::Commit(SessionEvent::Called { .. }) => "called",
            FromSession::Run { .. } => "run",
            FromSession::Ahead { .. } => "ahead",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(order, ["answer", "called", "called", "called", "run", "run", "ahead"]);
    let started = runs(&words);
    assert_eq!(started[0].tool, "read", "an alias runs under the real name");
    assert_eq!(started[0].id, call_id(1));
    assert_eq!(talk.call_ended(2, "second"), []);
    let words = talk.call_ended(1, "first");
    assert_eq!(runs(&words)[0].tool, "write");
    talk.call_ended(3, "");
    let request = talk.request();
    assert_eq!(lawful(request), Ok(()));
    let texts: Vec<&str> = request.messages[2]
        .blocks
        .iter()
        .map(|block| match block {
            ContentBlock::ToolResult { text, .. } => text.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(texts, ["first", "second", "(no output)"]);
}

#[test]
fn thinking_goes_back_as_it_came() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    let raw = "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"Eq==\"}";
    talk.answer(&[Say::Think(raw), Say::Use("a", "read", "{}")], StopReason::ToolUse);
    talk.call_ended(1, "x");
    assert!(matches!(&talk.request().messages[1].blocks[0],
        ContentBlock::Thinking { raw: sent, .. } if sent == raw));
}

#[test]
fn calls_that_are_no_calls_are_answered_at_once() {
    for (name, input, code, says) in [
        ("raed", "{}", "unknown_tool", "Error [unknown_tool] raed: there is none"),
        ("launch", "{}", "unknown_tool", "Error [unknown_tool] launch: this session has no tool"),
        ("read", "{\"path\":", "invalid_arguments", "Error [invalid_arguments] read: EOF"),
        ("view", "[1]", "invalid_arguments", "Error [invalid_arguments] view: "),
    ] {
        let mut talk = Talk::ready(setup());
        talk.prompt("go");
        let words = talk.answer(&[Say::Use("a", name, input)], StopReason::ToolUse);
        assert!(runs(&words).is_empty());
        let (number, result) = results(&words).remove(0);
        assert_eq!((number, result.outcome), (1, Outcome::Invalid));
        assert_eq!(result.code.as_deref(), Some(code));
        assert!(result.text.contains(says), "{}", result.text);
        assert_eq!(requests(&words).len(), 1, "the model is told at once");
        assert_eq!(lawful(talk.request()), Ok(()));
    }
}

#[test]
fn an_alias_brings_its_defaults_where_the_call_says_nothing_of_them() {
    for (name, input, want) in [
        ("read_file", "{\"path\":\"x\"}", "{\"path\":\"x\",\"raw\":true}"),
        ("read_file", "{\"raw\":false}", "{\"raw\":false}"),
        ("read_file", "", "{\"raw\":true}"),
        ("view", "{ \"path\": \"x\" }", "{ \"path\": \"x\" }"),
        ("read", "{}", "{}"),
    ] {
        let mut talk = Talk::ready(setup());
        talk.prompt("go");
        let words = talk.answer(&[Say::Use("a", name, input)], StopReason::ToolUse);
        let call = runs(&words).remove(0);
        assert_eq!((call.tool.as_str(), call.input.as_str()), ("read", want), "{name} {input}");
    }
}

#[test]
fn a_call_without_arguments_means_an_empty_object() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    let words = talk.answer(&[Say::Use("a", "read", "")], StopReason::ToolUse);
    assert_eq!(runs(&words)[0].input, "{}");
}

#[test]
fn a_retry_voids_the_whole_attempt() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    for word in stream(1, &[Say::Text("half"), Say::Use("a", "bash", "{}")]) {
        talk.tell(ToSession::Stream(word));
    }
    talk.tell(ToSession::Stream(FromProvider::Retrying {
        round: 1,
        attempt: 2,
        of: 5,
        wait_ms: 1,
        reason: "broken".into(),
    }));
    let words = talk.answer(&[Say::Text("whole")], StopReason::EndTurn);
    assert!(runs(&words).is_empty());
    talk.prompt("next");
    assert_eq!(talk.request().messages[1], assistant("whole"));
}

#[test]
fn words_about_another_request_are_ignored() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    for round in [0, 2, 99] {
        for word in stream(round, &[Say::Use("a", "bash", "{}")]) {
            assert_eq!(talk.tell(ToSession::Stream(word)), []);
        }
        for word in [
            FromProvider::Failed {
                round,
                kind: ProviderFailure::Unreachable,
                message: "no".into(),
            },
            FromProvider::Cancelled { round },
            FromProvider::Ended {
                round,
                stop: StopReason::ToolUse,
                usage: protocol::content::Usage::default(),
                model: "m".into(),
            },
        ] {
            assert_eq!(talk.tell(ToSession::Stream(word)), []);
        }
    }
    let words = talk.answer(&[Say::Text("mine")], StopReason::EndTurn);
    assert_eq!(ended(&words), Some(&TurnEnd::Done));
}

#[test]
fn after_25_rounds_the_turn_stops_visibly_and_the_next_goes_on() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    for number in 1..=25 {
        let words = talk.answer(&[Say::Use("a", "read", "{}")], StopReason::ToolUse);
        assert_eq!(runs(&words).len(), 1, "round {number}");
        talk.call_ended(number, "text");
        if number == 23 {
            let last = talk.request().messages.last().unwrap();
            assert!(matches!(&last.blocks[0], ContentBlock::ToolResult { text, .. }
                if text.contains("2 of 25 rounds are left")));
        }
    }
    // Once more, for words.
    assert_eq!(requests(&talk.said).len(), 26);
    let may: Vec<_> = requests(&talk.said).iter().map(|asked| asked.calls).collect();
    assert_eq!(may[..25], [ToolChoice::Yes; 25]);
    assert_eq!(may[25], ToolChoice::No);
    assert!(!talk.request().tools.is_empty(), "its calls so far stay known");
    let last = talk.request().messages.last().unwrap();
    assert!(matches!(&last.blocks[0], ContentBlock::ToolResult { text, .. }
        if text.contains("The 25 rounds of this turn are used up")));
    let words = talk.answer(&[Say::Text("half of it is done")], StopReason::EndTurn);
    assert_eq!(ended(&words), Some(&TurnEnd::RoundsUsedUp { rounds: 25 }));
    talk.prompt("more");
    assert_eq!(lawful(talk.request()), Ok(()));
    assert_eq!(talk.round(), 27);
    assert_eq!(talk.request().calls, ToolChoice::Yes);
}

#[test]
fn a_turn_whose_rounds_are_used_up_ends_whatever_comes_instead_of_words() {
    let used_up = Some(TurnEnd::RoundsUsedUp { rounds: 1 });
    let at_its_end = || {
        let mut talk = Talk::ready(SessionSetup { max_rounds: 1, ..setup() });
        talk.prompt("go");
        talk.answer(&[Say::Use("a", "read", "{}")], StopReason::ToolUse);
        talk.call_ended(1, "text");
        assert_eq!(talk.request().calls, ToolChoice::No);
        talk
    };
    // Calls: none runs, and each has its result.
    let mut talk = at_its_end();
    let both = [Say::Use("x", "read", "{}"), Say::Use("y", "write", "{}")];
    let words = talk.answer(&both, StopReason::ToolUse);
    assert!(runs(&words).is_empty());
    assert_eq!(results(&words).len(), 2);
    assert_eq!(results(&words)[1].1.code.as_deref(), Some("budget_used_up"));
    assert_eq!(talk.last_end(), used_up);
    // Nothing, or half a sentence.
    let half = [Say::Text("half a sen")];
    for (said, stop) in [(&[][..], StopReason::EndTurn), (&half[..], StopReason::MaxTokens)] {
        let mut talk = at_its_end();
        talk.answer(said, stop);
        assert_eq!(talk.last_end(), used_up);
    }
    // A server that will not have it.
    let mut talk = at_its_end();
    let (round, message) = (talk.round(), "no tool_choice here".to_owned());
    talk.tell(ToSession::Stream(FromProvider::Failed {
        round,
        kind: ProviderFailure::Rejected,
        message,
    }));
    assert_eq!(talk.last_end(), used_up);
    talk.prompt("more");
    assert_eq!(lawful(talk.request()), Ok(()));
}

#[test]
fn calls_over_the_budget_are_refused_and_then_end_the_turn() {
    let mut talk = Talk::ready(protocol::session::SessionSetup { max_calls: 10, ..setup() });
    talk.prompt("go");
    for number in 1..=9 {
        talk.answer(&[Say::Use("a", "read", "{}")], StopReason::ToolUse);
        talk.call_ended(number, "text");
    }
    let last = talk.request().messages.last().unwrap();
    assert!(matches!(&last.blocks[0], ContentBlock::ToolResult { text, .. }
        if text.contains("1 of 10 tool calls are left")));
    let both = [Say::Use("x", "read", "{}"), Say::Use("y", "read", "{}")];
    let words = talk.answer(&both, StopReason::ToolUse);
    assert_eq!(runs(&words).len(), 1);
    assert_eq!(results(&words)[0].1.code.as_deref(), Some("budget_used_up"));
    talk.call_ended(10, "text");
    let words = talk.answer(&both, StopReason::ToolUse);
    assert!(runs(&words).is_empty());
    assert_eq!(ended(&words), Some(&TurnEnd::CallsUsedUp { calls: 10, of: CallSpan::Turn }));
    talk.prompt("more");
    assert_eq!(lawful(talk.request()), Ok(()));
    let words = talk.answer(&[Say::Use("z", "read", "{}")], StopReason::ToolUse);
    assert_eq!(runs(&words).len(), 1, "the budget is the turn's");
}

#[test]
fn an_answer_after_a_refused_call_ends_the_turn_as_used_up() {
    let mut talk = Talk::ready(protocol::session::SessionSetup { max_calls: 0, ..setup() });
    talk.prompt("go");
    talk.answer(&[Say::Use("a", "read", "{}")], StopReason::ToolUse);
    let words = talk.answer(&[Say::Text("so far")], StopReason::EndTurn);
    assert_eq!(ended(&words), Some(&TurnEnd::CallsUsedUp { calls: 0, of: CallSpan::Turn }));
}

/// A session's calls are counted over its turns, are told of in time, come back with a replay, and those
/// that were refused do not count.
#[test]
fn the_calls_of_a_session_are_bounded_too() {
    let bounded = |most| SessionSetup { max_session: session_calls(most), ..setup() };
    let mut talk = Talk::ready(bounded(10));
    let mut journal = Vec::new();
    for number in 1..=10 {
        let mut words = talk.prompt("go");
        words.extend(talk.answer(&[Say::Use("a", "read", "{}")], StopReason::ToolUse));
        assert_eq!(runs(&words).len(), 1, "{number}");
        words.extend(talk.call_ended(number, "text"));
        let message = talk.request().messages.last().unwrap().clone();
        let told = matches!(&message.blocks[0], ContentBlock::ToolResult { text, .. }
            if text.contains("1 of 10 tool calls are left in this session"));
        assert_eq!(told, number == 9, "{number}: {message:?}");
        words.extend(talk.answer(&[Say::Text("done")], StopReason::EndTurn));
        journal.extend(words.into_iter().filter_map(|word| match word {
            FromSession::Commit(happened) => Some(happened),
            _ => None,
        }));
    }
    let used_up = Some(TurnEnd::CallsUsedUp { calls: 10, of: CallSpan::Session });
    let mut again = Talk::replayed(bounded(10), journal);
    for talk in [&mut talk, &mut again] {
        talk.prompt("more");
        let words = talk.answer(&[Say::Use("b", "read", "{}")], StopReason::ToolUse);
        assert!(runs(&words).is_empty());
        let (_, result) = &results(&words)[0];
        assert_eq!(result.code.as_deref(), Some("budget_used_up"));
        assert!(result.text.contains("10 tool calls of this session"), "{}", result.text);
        talk.answer(&[Say::Text("so far")], StopReason::EndTurn);
        assert_eq!(talk.last_end(), used_up.clone());
    }
}

/// The cost is counted over turns and models, is the same after a replay, and ends a turn before its next
/// request.
#[test]
fn a_session_that_reached_its_cost_sends_no_request() {
    let dear = Prices { input: 0, output: 10_000_000, cache_read: None, cache_write: None };
    let facts = |prices| ModelFacts { prices, ..ModelFacts::default() };
    let limited = |most| SessionSetup {
        facts: facts(Some(dear)),
        max_session: SessionBounds { cost: Some(most), ..SessionBounds::default() },
        ..setup()
    };
    let mut talk = Talk::ready(limited(45));
    let mut words = talk.prompt("go");
    words.extend(talk.answer(&[Say::Text("40 millionths")], StopReason::EndTurn));
    assert_eq!(ended(&words), Some(&TurnEnd::Done));
    // Half the price from here on.
    let facts = facts(Some(Prices { output: 5_000_000, ..dear }));
    words.extend(talk.tell(ToSession::Model { name: "m2".into(), max_tokens: 1000, facts }));
    words.extend(talk.prompt("more"));
    words.extend(talk.answer(&[Say::Use("a", "read", "{}")], StopReason::ToolUse));
    let last = talk.call_ended(1, "text");
    let reached = TurnEnd::CostReached { spent: Some(60), most: 45 };
    assert_eq!(ended(&last), Some(&reached));
    assert!(requests(&last).is_empty());
    words.extend(last);
    let journal: Vec<_> = words
        .into_iter()
        .filter_map(|word| match word {
            FromSession::Commit(happened) => Some(happened),
            _ => None,
        })
        .collect();
    let last = Talk::replayed(limited(45), journal.clone()).prompt("again");
    assert_eq!((ended(&last), requests(&last).len()), (Some(&reached), 0));
    let mut raised = Talk::replayed(limited(61), journal);
    assert_eq!(requests(&raised.prompt("again")).len(), 1);
    assert_eq!(lawful(raised.request()), Ok(()));
}

/// An answer without a known cost could cost anything.
#[test]
fn a_limit_of_the_cost_ends_the_turn_behind_an_answer_of_unknown_cost() {
    let max_session = SessionBounds { cost: Some(1000), ..SessionBounds::default() };
    let mut talk = Talk::ready(SessionSetup { max_session, ..setup() });
    talk.prompt("go");
    talk.answer(&[Say::Use("a", "read", "{}")], StopReason::ToolUse);
    let words = talk.call_ended(1, "text");
    assert_eq!(ended(&words), Some(&TurnEnd::CostReached { spent: None, most: 1000 }));
    assert!(requests(&words).is_empty());
}

/// A death behind an answer, before what it may not have was refused, gives it no more.
#[test]
fn a_bound_of_calls_holds_over_a_death() {
    let bounded = || SessionSetup { max_session: session_calls(3), ..setup() };
    let uses = ["a", "b", "c", "d", "e"].map(|id| Say::Use(id, "read", r#"{"path":"a"}"#));
    let mut talk = Talk::ready(bounded());
    let mut journal = Vec::new();
    let mut words = talk.prompt("go");
    words.extend(talk.answer(&uses, StopReason::ToolUse));
    journal.extend(words.into_iter().filter_map(|word| match word {
        FromSession::Commit(happened) => Some(happened),
        _ => None,
    }));
    let is_result = |happened: &&SessionEvent| matches!(happened, SessionEvent::Result { .. });
    assert_eq!((journal.len(), journal.iter().filter(is_result).count()), (9, 2));
    // From the prompt and the answer on: so many calls named, so many refused.
    for kept in 2..=journal.len() {
        let journal = journal[..kept].to_vec();
        let mut again = Talk::before_replay(bounded());
        for happened in &journal {
            again.tell(ToSession::Replay(happened.clone()));
        }
        let mut words = again.tell(ToSession::ReplayDone { then: OpenTurn::GoesOn, compact: None });
        let mut done = runs(&words).len();
        for number in 1..=3 {
            words = again.call_ended(number, "text");
            done += runs(&words).len();
        }
        assert_eq!(done, 3, "{kept}");
        let words = again.answer(&[Say::Text("so far")], StopReason::EndTurn);
        let used_up = TurnEnd::CallsUsedUp { calls: 3, of: CallSpan::Session };
        assert_eq!(ended(&words), Some(&used_up), "{kept}");
    }
}

/// The narrower of two bounds is the one that is named.
#[test]
fn the_bound_that_is_in_the_way_is_the_one_that_is_named() {
    let bounded = SessionSetup { max_calls: 5, max_session: session_calls(1), ..setup() };
    let mut talk = Talk::ready(bounded);
    talk.prompt("go");
    let uses = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|id| Say::Use(id, "read", "{}"));
    let words = talk.answer(&uses, StopReason::ToolUse);
    assert_eq!(runs(&words).len(), 1);
    assert_eq!(results(&words).len(), 7);
    for (_, result) in results(&words) {
        assert!(result.text.contains("of this session"), "{}", result.text);
    }
}

/// Words that do not come are no other end, but they are not passed over in silence.
#[test]
fn last_words_that_do_not_come_are_told_to_the_log_and_a_departed_replay_is_an_end() {
    use protocol::provider::ProviderFailure;
    let failing = |kind: ProviderFailure| {
        let mut talk = Talk::ready(protocol::session::SessionSetup { max_calls: 0, ..setup() });
        talk.prompt("go");
        talk.answer(&[Say::Use("a", "read", "{}")], StopReason::ToolUse);
        let (round, message) = (talk.round(), "the server said 529".to_owned());
        talk.tell(ToSession::Stream(FromProvider::Failed { round, kind, message }))
    };
    let words = failing(ProviderFailure::Overloaded);
    assert_eq!(ended(&words), Some(&TurnEnd::CallsUsedUp { calls: 0, of: CallSpan::Turn }));
    let logged = |word: &FromSession| {
        matches!(word, FromSession::Log(line)
        if line.text.contains("the server said 529"))
    };
    assert!(words.iter().any(logged), "{words:?}");
    let words = failing(ProviderFailure::RecordingDeparted);
    assert!(
        matches!(
            ended(&words),
            Some(TurnEnd::ProviderFailed { kind: ProviderFailure::RecordingDeparted, .. })
        ),
        "{words:?}"
    );
}

#[test]
fn a_call_cut_by_max_tokens_does_not_run_and_the_model_hears_of_it() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    let words = talk.answer(
        &[Say::Use("a", "read", "{}"), Say::CutUse("b", "write", "{\"content\":\"aaa")],
        StopReason::MaxTokens,
    );
    let started = runs(&words);
    assert_eq!((started.len(), started[0].tool.as_str()), (1, "read"));
    assert_eq!(results(&words)[0].1.code.as_deref(), Some("cut"));
    talk.call_ended(1, "text");
    assert_eq!(lawful(talk.request()), Ok(()));
    assert!(matches!(&talk.request().messages[1].blocks[1],
        ContentBlock::ToolUse { input, .. } if input == "{}"));
}

#[test]
fn a_text_cut_by_max_tokens_ends_the_turn_as_cut() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    let words = talk.answer(&[Say::Text("half a sen")], StopReason::MaxTokens);
    assert_eq!(ended(&words), Some(&TurnEnd::Truncated));
}

#[test]
fn a_block_that_never_closed_does_not_run_whatever_the_reason() {
    for stop in [StopReason::ToolUse, StopReason::EndTurn, StopReason::Other("new".into())] {
        let mut talk = Talk::ready(setup());
        talk.prompt("go");
        let words = talk.answer(&[Say::CutUse("b", "bash", "{}")], stop);
        assert!(runs(&words).is_empty());
        assert_eq!(results(&words)[0].1.code.as_deref(), Some("cut"));
    }
}

#[test]
fn a_pause_is_sent_back_as_it_is() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    let words = talk.answer(&[Say::Text("first")], StopReason::PauseTurn);
    assert_eq!(requests(&words)[0].messages, [user("go"), assistant("first")]);
    talk.answer(&[Say::Text("second")], StopReason::EndTurn);
    talk.prompt("next");
    let messages = &talk.request().messages;
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[1].blocks.len(), 2, "one message of both parts");
}

#[test]
fn a_declined_turn_is_left_out_of_what_is_sent_later() {
    let mut talk = Talk::ready(setup());
    talk.prompt("fine");
    talk.answer(&[Say::Text("yes")], StopReason::EndTurn);
    talk.prompt("terrible");
    talk.answer(&[Say::Use("a", "read", "{}")], StopReason::ToolUse);
    talk.call_ended(1, "secret");
    let explanation = "policy".to_owned();
    let words = talk.answer(
        &[Say::Text("I"), Say::Use("b", "bash", "{}")],
        StopReason::Refusal { explanation: explanation.clone() },
    );
    assert!(runs(&words).is_empty());
    assert_eq!(requests(&words).len(), 0, "no retry");
    assert_eq!(ended(&words), Some(&TurnEnd::Declined { explanation }));
    talk.prompt("next");
    let request = talk.request();
    assert_eq!(lawful(request), Ok(()));
    assert_eq!(request.messages[..2], [user("fine"), assistant("yes")]);
    let sent = format!("{:?}", request.messages);
    assert!(!sent.contains("terrible") && !sent.contains("secret"), "{sent}");
    assert!(sent.contains("declined") && sent.contains("next"));
}

/// So many rounds of a turn, each with a result of about `bytes`.
fn rounds(talk: &mut Talk, count: u32, bytes: usize) {
    let first = talk.round();
    for number in first..first + count {
        let id: &'static str = Box::leak(format!("use_{number}").into_boxed_str());
        let round = talk.round();
        for word in stream(round, &[Say::Text("next"), Say::Use(id, "read", "{}")]) {
            talk.tell(ToSession::Stream(word));
        }
        // A server that counts nothing: sizes are estimated.
        let (stop, usage, model) = (StopReason::ToolUse, Usage::default(), "m".into());
        let ended = FromProvider::Ended { round, stop, usage, model };
        let call = runs(&talk.tell(ToSession::Stream(ended)))[0].id.number;
        let words = talk.call_ended(call, &format!("{number} {}", "x".repeat(bytes)));
        assert_eq!(requests(&words).len(), 1);
    }
}

fn sent(talk: &Talk) -> usize {
    format!("{:?}", talk.request().messages).len()
}

fn compactions(talk: &Talk) -> usize {
    let is =
        |word: &&FromSession| matches!(word, FromSession::Commit(SessionEvent::Compacted { .. }));
    talk.said.iter().filter(is).count()
}

#[test]
fn near_its_limit_a_conversation_leaves_its_beginning_out_and_keeps_the_prompt_and_the_latest() {
    let mut talk = Talk::ready(SessionSetup {
        facts: ModelFacts { context: Some(10_000), ..ModelFacts::default() },
        max_rounds: 200,
        ..setup()
    });
    talk.prompt("an earlier question");
    talk.answer(&[Say::Text("an earlier answer")], StopReason::EndTurn);
    talk.prompt("the question of this turn, word for word");
    // About 900 tokens each: the limit of 8,000 comes within the first 10. Long results of old rounds
    // are cut first; the beginning goes where that is not enough.
    let before = talk.round();
    rounds(&mut talk, 9, 2700);
    let all = format!("{:?}", talk.request().messages);
    assert!(all.contains("call read again"), "{all}");
    assert!(all.contains("an earlier question") && !all.contains("The beginning of"), "{all}");
    rounds(&mut talk, 51, 2700);
    assert!(compactions(&talk) >= 1, "it was never made shorter");
    for request in requests(&talk.said) {
        assert_eq!(lawful(request), Ok(()));
        let bytes = format!("{:?}", request.messages).len();
        assert!(bytes < 9_000 * 3, "{bytes} bytes were sent");
    }
    let all = format!("{:?}", talk.request().messages);
    assert!(all.contains("Text { text: \"the question of this turn, word for word\" }"), "{all}");
    assert!(all.contains("an earlier question") && all.contains("left out"), "{all}");
    assert!(all.contains(&format!("{} xxx", before + 59)), "the latest result is there");
    assert!(!all.contains(&format!("text: \"{before} xxx")), "the first result is not");
}

#[test]
fn a_context_that_is_full_is_made_shorter_once_and_asked_again() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    rounds(&mut talk, 6, 5000);
    let before = sent(&talk);
    let full = |talk: &mut Talk| {
        let round = talk.round();
        talk.tell(ToSession::Stream(FromProvider::Failed {
            round,
            kind: ProviderFailure::ContextFull,
            message: "prompt is too long".into(),
        }))
    };
    let words = full(&mut talk);
    assert_eq!(requests(&words).len(), 1);
    assert_eq!(lawful(talk.request()), Ok(()));
    assert!(sent(&talk) < before * 2 / 3, "{} of {before}", sent(&talk));
    // Once is enough: the next one ends the turn.
    let words = full(&mut talk);
    assert!(requests(&words).is_empty());
    assert!(matches!(
        ended(&words),
        Some(TurnEnd::ProviderFailed { kind: ProviderFailure::ContextFull, .. })
    ));
    assert_eq!(compactions(&talk), 1);
    // And what is replayed asks what the first would have asked.
    let journal = talk.said.iter().filter_map(|word| match word {
        FromSession::Commit(happened) => Some(happened.clone()),
        FromSession::Run { call, .. } => {
            let result = done(&format!("{} {}", call.id.number, "x".repeat(5000)));
            Some(SessionEvent::ended(call.id.clone(), call.origin.clone(), result))
        }
        _ => None,
    });
    let mut again = Talk::replayed(setup(), journal.collect());
    for talk in [&mut talk, &mut again] {
        talk.prompt("and now");
    }
    assert_eq!(again.request().messages, talk.request().messages);
}

#[test]
fn a_person_can_make_room_between_turns_and_while_one_runs() {
    let mut talk = Talk::ready(setup());
    let words = talk.tell(ToSession::Compact { focus: String::new() });
    assert!(matches!(words[..], [FromSession::NotCompacted { .. }]), "nothing to leave out");
    talk.prompt("one");
    rounds(&mut talk, 4, 4000);
    let words = talk.tell(ToSession::Compact { focus: String::new() });
    assert!(matches!(words[..], [FromSession::Commit(SessionEvent::Compacted { .. })]));
    let before = sent(&talk);
    rounds(&mut talk, 1, 10);
    assert!(sent(&talk) < before, "{} of {before}", sent(&talk));
    talk.answer(&[Say::Text("done")], StopReason::EndTurn);
    let words = talk.tell(ToSession::Compact { focus: String::new() });
    assert!(matches!(words[..], [FromSession::Commit(SessionEvent::Compacted { .. })]));
    talk.prompt("two");
    assert_eq!(lawful(talk.request()), Ok(()));
}

#[test]
fn a_full_context_ends_the_turn_and_runs_nothing() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    let words = talk.answer(&[Say::Use("b", "bash", "{}")], StopReason::ContextFull);
    assert!(runs(&words).is_empty());
    assert_eq!(ended(&words), Some(&TurnEnd::Truncated));
    talk.prompt("next");
    assert_eq!(lawful(talk.request()), Ok(()));
}

#[test]
fn an_empty_answer_to_results_is_asked_for_once_more() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    talk.answer(&[Say::Use("a", "read", "{}")], StopReason::ToolUse);
    talk.call_ended(1, "text");
    let words = talk.answer(&[], StopReason::EndTurn);
    assert_eq!(requests(&words).len(), 1);
    let words = talk.answer(&[Say::Text(" \n")], StopReason::EndTurn);
    assert_eq!(ended(&words), Some(&TurnEnd::Done));

    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    let words = talk.answer(&[], StopReason::EndTurn);
    assert_eq!(ended(&words), Some(&TurnEnd::Done), "without results it is an answer");
}

#[test]
fn a_failed_provider_ends_the_turn_and_the_words_stay() {
    let mut talk = Talk::ready(setup());
    talk.prompt("one");
    for word in stream(1, &[Say::Text("half")]) {
        talk.tell(ToSession::Stream(word));
    }
    let (kind, message) = (ProviderFailure::KeyRefused, "401".to_owned());
    let failed = FromProvider::Failed { round: 1, kind, message: message.clone() };
    let words = talk.tell(ToSession::Stream(failed));
    assert_eq!(ended(&words), Some(&TurnEnd::ProviderFailed { kind, message }));
    talk.prompt("two");
    let request = talk.request();
    assert_eq!(request.messages.len(), 1);
    assert_eq!(request.messages[0].blocks.len(), 2);
    assert_eq!(lawful(request), Ok(()));
}

#[test]
fn prompts_wait_for_their_turn_in_order() {
    let mut talk = Talk::ready(setup());
    talk.prompt("one");
    assert_eq!(talk.prompt("two"), []);
    assert_eq!(talk.prompt("three"), []);
    for (answer, next) in [("1", "two"), ("2", "three")] {
        let answer = if answer == "1" { Say::Text("1") } else { Say::Text("2") };
        let words = talk.answer(&[answer], StopReason::EndTurn);
        let prompt =
            FromSession::Commit(SessionEvent::Prompt { text: next.into(), expanded: None });
        assert!(words.contains(&prompt));
    }
    assert_eq!(talk.request().messages.len(), 5);
}

#[test]
fn a_blank_prompt_asks_nothing() {
    let mut talk = Talk::ready(setup());
    let words = talk.prompt(" \n\t");
    assert!(requests(&words).is_empty());
    assert_eq!(ended(&words), Some(&TurnEnd::Done));
}

#[test]
fn an_interrupt_while_the_model_speaks_keeps_the_words_that_came() {
    let mut talk = Talk::ready(setup());
    talk.prompt("one");
    // The block is never closed, and no other one begins.
    let delta = AnswerDelta::Text("half".into());
    talk.tell(ToSession::Stream(FromProvider::Delta { round: 1, index: 0, delta }));
    let words = talk.tell(ToSession::Interrupt);
    assert_eq!(words[0], FromSession::CancelAsk);
    assert_eq!(ended(&words), Some(&TurnEnd::Interrupted));
    // The end crosses the cancel on its way.
    assert_eq!(talk.end(StopReason::ToolUse), []);
    assert_eq!(talk.tell(ToSession::Interrupt), []);
    talk.prompt("two");
    assert_eq!(lawful(talk.request()), Ok(()));
    assert_eq!(talk.round(), 2);
    let sent = format!("{:?}", talk.request());
    assert!(sent.contains("one") && sent.contains("two"), "the control: {sent}");
    assert!(sent.contains("half"), "people saw it: {sent}");
}

#[test]
fn an_interrupt_while_the_model_speaks_keeps_what_was_whole_and_no_call() {
    let mut talk = Talk::ready(setup());
    talk.prompt("hi");
    let delta = |index, delta| ToSession::Stream(FromProvider::Delta { round: 1, index, delta });
    let start = AnswerDelta::ToolStart { id: "a".into(), name: "read".into() };
    for (index, piece) in [
        (0, AnswerDelta::Text("I look.".into())),
        (0, AnswerDelta::BlockDone),
        (1, start),
        (1, AnswerDelta::ToolInput("{}".into())),
        (1, AnswerDelta::BlockDone),
        (2, AnswerDelta::Text("Behind".into())),
    ] {
        talk.tell(delta(index, piece));
    }
    let words = talk.tell(ToSession::Interrupt);
    assert_eq!(words[0], FromSession::CancelAsk);
    let kept = FromSession::Commit(SessionEvent::Answer {
        round: 1,
        blocks: vec![ContentBlock::Text { text: "I look.".into() }],
        usage: Usage::default(),
        cost: Some(0),
    });
    assert_eq!(words[1], kept);
    assert_eq!(ended(&words), Some(&TurnEnd::Interrupted));
    assert_eq!(words.len(), 3);
}

#[test]
fn an_interrupt_while_calls_run_waits_for_their_ends() {
    let mut talk = Talk::ready(setup());
    talk.prompt("one");
    talk.answer(
        &[Say::Use("a", "read", "{}"), Say::Use("b", "read", "{}"), Say::Use("c", "bash", "{}")],
        StopReason::ToolUse,
    );
    talk.prompt("two");
    let words = talk.tell(ToSession::Interrupt);
    let cancelled = [FromSession::CancelCall(call_id(1)), FromSession::CancelCall(call_id(2))];
    assert_eq!(words[..2], cancelled);
    assert_eq!(results(&words)[0].1.code.as_deref(), Some("not_run"));
    assert_eq!(ended(&words), None);
    assert_eq!(talk.tell(ToSession::Interrupt), []);
    assert_eq!(talk.call_ended(2, "late"), []);
    let words = talk.call_ended(1, "late");
    assert_eq!(ended(&words), Some(&TurnEnd::Interrupted));
    assert_eq!(lawful(talk.request()), Ok(()));
    let last = talk.request().messages.last().unwrap();
    assert_eq!(
        (last.role, last.blocks.len()),
        (MessageRole::User, 4),
        "three results and the prompt"
    );
}

#[test]
fn ids_that_repeat_are_made_unlike() {
    let mut talk = Talk::ready(setup());
    for (number, prompt) in [(1, "one"), (4, "two")] {
        talk.prompt(prompt);
        let twice =
            [Say::Use("a", "read", "{}"), Say::Use("a", "read", "{}"), Say::Use("", "read", "{}")];
        talk.answer(&twice, StopReason::ToolUse);
        for number in number..number + 3 {
            talk.call_ended(number, "x");
        }
        assert_eq!(lawful(talk.request()), Ok(()));
        talk.answer(&[Say::Text("ok")], StopReason::EndTurn);
    }
}

#[test]
fn open_calls_of_a_journal_are_closed_on_load() {
    let mut talk = Talk::ready(setup());
    talk.prompt("one");
    let both = [Say::Use("a", "read", "{}"), Say::Use("b", "bash", "{}")];
    talk.answer(&both, StopReason::ToolUse);
    let commits: Vec<SessionEvent> = talk
        .said
        .iter()
        .filter_map(|word| match word {
            FromSession::Commit(happened) => Some(happened.clone()),
            _ => None,
        })
        .collect();
    // Cut after each record: the prompt, the answer, each name.
    for kept in 0..=commits.len() {
        let mut again = Talk::replayed(setup(), commits[..kept].to_vec());
        let open = if kept < 2 { 0 } else { 2 };
        assert_eq!(results(&again.said).len(), open, "{kept}");
        assert!(requests(&again.said).is_empty(), "nothing goes on by itself");
        assert_eq!(again.said.last(), Some(&FromSession::Ready));
        again.prompt("go on");
        assert_eq!(lawful(again.request()), Ok(()), "{kept}");
        let words = again.answer(&[Say::Use("n", "read", "{}")], StopReason::ToolUse);
        let number = if kept < 2 { 1 } else { 3 };
        assert_eq!(runs(&words)[0].id, call_id(number), "numbers go on");
    }
}

#[test]
fn a_replayed_session_asks_what_the_first_would_have_asked() {
    let mut talk = Talk::ready(protocol::session::SessionSetup { max_calls: 2, ..setup() });
    let mut journal = Vec::new();
    let mut keep = |words: Vec<FromSession>| {
        for word in words {
            if let FromSession::Commit(happened) = word {
                journal.push(happened);
            }
        }
    };
    keep(talk.prompt("one"));
    keep(talk.answer(
        &[
            Say::Text("t"),
            Say::Think("{}"),
            Say::Use("a", "nope", "{}"),
            Say::Use("b", "read", "{}"),
        ],
        StopReason::ToolUse,
    ));
    let words = talk.call_ended(2, "found");
    journal.push(SessionEvent::ended(call_id(2), CallOrigin::model("b"), done("found")));
    let request = requests(&words)[0].clone();
    let setup = protocol::session::SessionSetup { max_calls: 2, ..setup() };
    let mut again = Talk::replayed(setup, journal);
    again.prompt("two");
    let mut messages = again.request().messages.clone();
    let last = messages.last_mut().unwrap();
    assert_eq!(last.blocks.pop(), Some(ContentBlock::Text { text: "two".into() }));
    assert_eq!(messages, request.messages);
}

#[test]
fn a_large_result_is_cut_where_its_tool_did_not() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    talk.answer(&[Say::Use("a", "read", "{}")], StopReason::ToolUse);
    talk.call_ended(1, &"line\n".repeat(20_000));
    let ContentBlock::ToolResult { text, .. } = &talk.request().messages[2].blocks[0] else {
        panic!("no result")
    };
    assert!(text.len() < 42_000 && text.contains("left out"), "{}", text.len());
}

#[test]
fn an_answer_without_end_is_dropped() {
    let mut talk = Talk::ready(setup());
    talk.prompt("go");
    let delta = AnswerDelta::Text("x".repeat(8 << 20));
    let mut words = Vec::new();
    for _ in 0..5 {
        let delta = FromProvider::Delta { round: 1, index: 0, delta: delta.clone() };
        words.extend(talk.tell(ToSession::Stream(delta)));
    }
    assert_eq!(words[0], FromSession::CancelAsk);
    assert!(matches!(ended(&words), Some(TurnEnd::ProviderFailed { .. })));
}

#[test]
fn a_ping_is_answered_in_every_phase() {
    let mut session = session::Session::new(setup(), reader);
    assert_eq!(session.step(ToSession::Ping(7)), [FromSession::Pong(7)]);
    session.step(ToSession::ReplayDone { then: OpenTurn::Waits, compact: None });
    session.step(ToSession::Prompt { text: "go".into(), expanded: None });
    assert_eq!(session.step(ToSession::Ping(8)), [FromSession::Pong(8)]);
}
