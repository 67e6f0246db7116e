//! Summaries by the model in place of the oldest messages: asked for, written, replayed, edited, and the
//! cut where none comes.

use super::talk::*;
use protocol::client::{ModelFacts, Prices};
use protocol::content::{ContentBlock, ModelRequest, StopReason, ToolChoice, Usage};
use protocol::context::{
    Compaction, CompactionCause, CompactionKind, ContextSettings, NumberedSummary, SummaryStep,
};
use protocol::provider::{FromProvider, ProviderFailure};
use protocol::session::{
    FromSession, OpenTurn, SessionBounds, SessionEvent, SessionSetup, ToSession, TurnEnd,
};

const CONTEXT: u64 = 10_000;

fn summarizing() -> SessionSetup {
    SessionSetup {
        context: ContextSettings { compaction: CompactionKind::Summary, ..setup().context },
        facts: ModelFacts { context: Some(CONTEXT), ..ModelFacts::default() },
        max_rounds: 200,
        ..setup()
    }
}

fn steps(words: &[FromSession]) -> Vec<Compaction> {
    let step = |word: &FromSession| match word {
        FromSession::Commit(SessionEvent::Compacted(step)) => Some(step.clone()),
        _ => None,
    };
    words.iter().filter_map(step).collect()
}

fn sent(request: &ModelRequest) -> String {
    format!("{:?}", request.messages)
}

/// A round of one call; the sizes are estimated, since the server counts nothing.
fn round(talk: &mut Talk, result: &str) -> Vec<FromSession> {
    let round = talk.round();
    let id: &'static str = Box::leak(format!("use_{round}").into_boxed_str());
    for word in stream(round, &[Say::Text("next"), Say::Use(id, "read", "{\"path\":\"a\"}")]) {
        talk.tell(ToSession::Stream(word));
    }
    let (stop, usage, model) = (StopReason::ToolUse, Usage::default(), "m".into());
    let ended = FromProvider::Ended { round, stop, usage, model };
    let call = runs(&talk.tell(ToSession::Stream(ended)))[0].id.number;
    talk.call_ended(call, result)
}

/// Rounds with short results until the model is asked for a summary.
fn until_asked(talk: &mut Talk) -> Vec<FromSession> {
    for _ in 0..80 {
        let words = round(talk, &"x".repeat(900));
        if !steps(&words).is_empty() {
            return words;
        }
    }
    panic!("no summary was asked for")
}

/// A turn in the middle of the request of a summary.
fn asked_in_turn() -> (Talk, Vec<FromSession>) {
    let mut talk = Talk::ready(summarizing());
    talk.prompt("an earlier question");
    talk.answer(&[Say::Text("an earlier answer")], StopReason::EndTurn);
    talk.prompt("the question of this turn");
    let words = until_asked(&mut talk);
    (talk, words)
}

fn fails(talk: &mut Talk) -> Vec<FromSession> {
    let (round, kind) = (talk.round(), ProviderFailure::Overloaded);
    talk.tell(ToSession::Stream(FromProvider::Failed { round, kind, message: "busy".into() }))
}

#[test]
fn a_full_context_is_summarized_by_the_model_and_the_turn_goes_on() {
    let (mut talk, words) = asked_in_turn();
    let [Compaction::Summary(SummaryStep::Asked { cause: CompactionCause::Full, dropped, .. })] =
        steps(&words)[..]
    else {
        panic!("{:?}", steps(&words));
    };
    assert!(dropped > 4);
    let before = talk.request().clone();
    assert_eq!((lawful(&before), before.calls), (Ok(()), ToolChoice::No));
    assert!(
        sent(&before).contains("Write a summary") && sent(&before).contains("an earlier answer")
    );
    assert!(!before.tools.is_empty(), "the vendor's cache needs the same beginning");

    let words = talk.answer(&[Say::Text("GOAL: mend it")], StopReason::EndTurn);
    assert!(
        matches!(&steps(&words)[..], [Compaction::Summary(SummaryStep::Written { text, .. })] if text == "GOAL: mend it")
    );
    let after = talk.request();
    assert_eq!((lawful(after), after.calls), (Ok(()), ToolChoice::Yes));
    assert_eq!(after.round, before.round + 1);
    let all = sent(after);
    for kept in ["GOAL: mend it", "an earlier question", "the question of this turn"] {
        assert_eq!(all.matches(kept).count(), 1, "{kept}: {all}");
    }
    for gone in ["an earlier answer", "Write a summary"] {
        assert!(!all.contains(gone), "{gone}: {all}");
    }
    assert!(all.len() < sent(&before).len() / 2);

    // A replayed conversation sends the same.
    let mut journal = talk.journal();
    for (number, word) in talk.said.iter().enumerate().filter_map(|(at, word)| match word {
        FromSession::Run { call, .. } => Some((at, call)),
        _ => None,
    }) {
        let _ = number;
        let (call, origin) = (word.id.clone(), word.origin.clone());
        let place = journal
            .iter()
            .position(|it| matches!(it, SessionEvent::Called { call: named } if named.id == call));
        let result = done(&"x".repeat(900));
        journal.insert(place.unwrap() + 1, SessionEvent::ended(call, origin, result));
    }
    let mut again = Talk::before_replay(summarizing());
    for happened in journal {
        again.tell(ToSession::Replay(happened));
    }
    again.tell(ToSession::ReplayDone { then: OpenTurn::GoesOn, compact: None });
    assert_eq!(again.request().messages, talk.request().messages);
}

#[test]
fn a_death_while_the_summary_is_written_asks_for_it_once_more() {
    let (talk, _) = asked_in_turn();
    let mut journal = talk.journal();
    for word in &talk.said {
        if let FromSession::Run { call, .. } = word {
            let place = journal.iter().position(
                |it| matches!(it, SessionEvent::Called { call: named } if named.id == call.id),
            );
            let (call, origin) = (call.id.clone(), call.origin.clone());
            let result = done(&"x".repeat(900));
            journal.insert(place.unwrap() + 1, SessionEvent::ended(call, origin, result));
        }
    }
    let mut again = Talk::before_replay(summarizing());
    for happened in journal {
        again.tell(ToSession::Replay(happened));
    }
    let words = again.tell(ToSession::ReplayDone { then: OpenTurn::GoesOn, compact: None });
    assert_eq!((steps(&words).len(), requests(&words).len()), (1, 1), "{words:?}");
    assert_eq!(again.request().messages, talk.request().messages);
    assert_eq!(again.request().round, talk.request().round);
}

#[test]
fn a_summary_that_fails_is_replaced_by_the_cut_which_is_said() {
    for refuses in [false, true] {
        let (mut talk, _) = asked_in_turn();
        let words = match refuses {
            false => fails(&mut talk),
            true => {
                talk.answer(&[Say::Text("no")], StopReason::Refusal { explanation: String::new() })
            }
        };
        let steps = steps(&words);
        let [
            Compaction::Summary(SummaryStep::Failed { reason, .. }),
            Compaction::Cut { dropped, .. },
        ] = &steps[..]
        else {
            panic!("{steps:?}");
        };
        assert!(reason.contains("left out instead") && *dropped > 0, "{reason}");
        // The turn goes on, and no summary is asked for before the next answer.
        assert_eq!(requests(&words).len(), 1);
        assert_eq!((lawful(talk.request()), talk.request().calls), (Ok(()), ToolChoice::Yes));
        assert!(sent(talk.request()).contains("the question of this turn"));
    }
}

#[test]
fn a_person_has_a_summary_written_between_turns_and_prompts_wait_for_it() {
    let mut talk = Talk::ready(summarizing());
    talk.prompt("one");
    for _ in 0..4 {
        round(&mut talk, &"x".repeat(900));
    }
    // While a turn runs, it comes before the next request.
    assert_eq!(talk.tell(ToSession::Compact { focus: "the tests".into() }), []);
    let words = round(&mut talk, "last");
    assert!(matches!(
        &steps(&words)[..],
        [Compaction::Summary(SummaryStep::Asked { cause: CompactionCause::Person, focus, .. })] if focus == "the tests"
    ));
    assert!(sent(talk.request()).contains("this focus: the tests"));
    let words = talk.answer(&[Say::Text("first summary")], StopReason::EndTurn);
    assert_eq!(requests(&words).len(), 1, "the turn goes on");
    talk.answer(&[Say::Text("done")], StopReason::EndTurn);

    let words = talk.tell(ToSession::Compact { focus: String::new() });
    assert_eq!((steps(&words).len(), requests(&words).len()), (1, 1), "{words:?}");
    let again = talk.tell(ToSession::Compact { focus: String::new() });
    assert!(matches!(&again[..], [FromSession::NotCompacted { why }] if why.contains("already")));
    assert_eq!(talk.prompt("two"), [], "it waits");
    let words = talk.answer(&[Say::Text("second summary")], StopReason::EndTurn);
    assert!(
        sent(talk.request()).contains("second summary") && sent(talk.request()).contains("two")
    );
    assert!(!sent(talk.request()).contains("first summary"));
    assert!(
        words.iter().any(|word| matches!(word, FromSession::Commit(SessionEvent::Prompt { .. })))
    );

    // A replay behind the request asks again, once.
    let mut journal: Vec<_> = talk.journal();
    let asked = journal.iter().rposition(|it| {
        matches!(it, SessionEvent::Compacted(Compaction::Summary(SummaryStep::Asked { .. })))
    });
    journal.truncate(asked.unwrap() + 1);
    let again = Talk::replayed(summarizing(), journal);
    assert_eq!((steps(&again.said).len(), requests(&again.said).len()), (1, 1));
}

#[test]
fn a_stop_of_the_summary_leaves_nothing_out() {
    let (mut talk, _) = asked_in_turn();
    let words = talk.tell(ToSession::Interrupt);
    assert!(words.contains(&FromSession::CancelAsk));
    assert!(matches!(&steps(&words)[..], [Compaction::Summary(SummaryStep::Failed { .. })]));
    assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted));
}

#[test]
fn a_summary_counts_towards_rounds_and_cost_and_a_budget_that_is_used_up_cuts_instead() {
    let prices =
        Prices { input: 1_000_000, output: 1_000_000, cache_read: None, cache_write: None };
    let costly = |cost| SessionSetup {
        max_session: SessionBounds { cost: Some(cost), ..SessionBounds::default() },
        facts: ModelFacts { prices: Some(prices), ..summarizing().facts },
        ..summarizing()
    };
    // Each answer costs 7.
    let mut talk = Talk::ready(costly(15));
    talk.prompt("one");
    talk.answer(&[Say::Text("a")], StopReason::EndTurn);
    let words = talk.tell(ToSession::Compact { focus: String::new() });
    assert_eq!(requests(&words).len(), 1, "{words:?}");
    talk.answer(&[Say::Text("a summary")], StopReason::EndTurn);
    talk.prompt("two");
    talk.answer(&[Say::Text("b")], StopReason::EndTurn);
    let words = talk.tell(ToSession::Compact { focus: String::new() });
    assert!(requests(&words).is_empty(), "the three cost 21: {words:?}");
    let said = words.iter().find_map(|word| match word {
        FromSession::Notice { text } => Some(text.clone()),
        _ => None,
    });
    assert!(said.unwrap().contains("limit of cost"), "{words:?}");
    assert!(matches!(&steps(&words)[..], [Compaction::Cut { .. }]), "{words:?}");
}

#[test]
fn a_person_edits_the_summary_that_they_have_read_and_no_other() {
    let mut talk = Talk::ready(summarizing());
    let edit = |number, text: &str| {
        ToSession::EditSummary(NumberedSummary { number, text: text.to_owned() })
    };
    let refused = |words: &[FromSession]| matches!(words, [FromSession::NotCompacted { .. }]);
    assert!(refused(&talk.tell(edit(1, "x"))), "there is none");
    talk.prompt("one");
    for _ in 0..4 {
        round(&mut talk, &"x".repeat(900));
    }
    talk.answer(&[Say::Text("done")], StopReason::EndTurn);
    talk.tell(ToSession::Compact { focus: String::new() });
    talk.answer(&[Say::Text("a summary of the model")], StopReason::EndTurn);
    assert!(refused(&talk.tell(edit(1, "  "))));
    let words = talk.tell(edit(1, "the words of the person"));
    assert!(matches!(&steps(&words)[..], [Compaction::Summary(SummaryStep::Edited { .. })]));
    assert!(refused(&talk.tell(edit(1, "again"))), "it is another one now");
    let report = |talk: &mut Talk| match &talk.tell(ToSession::Describe)[..] {
        [FromSession::Context(report)] => report.clone(),
        other => panic!("{other:?}"),
    };
    let text = "the words of the person".to_owned();
    assert_eq!(report(&mut talk).summary, Some(NumberedSummary { number: 2, text }));
    talk.prompt("two");
    let all = sent(talk.request());
    assert!(
        all.contains("the words of the person") && !all.contains("summary of the model"),
        "{all}"
    );
    assert_eq!(lawful(talk.request()), Ok(()));
}

/// The text of the first message that holds these words.
fn block(request: &ModelRequest, words: &str) -> String {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let mut texts = blocks.filter_map(|block| match block {
        ContentBlock::Text { text } | ContentBlock::ToolResult { text, .. } => Some(text.clone()),
        _ => None,
    });
    texts.find(|text| text.contains(words)).unwrap_or_default()
}

#[test]
fn long_results_of_old_rounds_are_cut_before_a_summary_and_can_be_read_again() {
    let mut tools = summarizing().tools;
    tools.push(tool("history_search", protocol::judgement::ToolKind::Query));
    let mut talk = Talk::ready(SessionSetup { tools, ..summarizing() });
    talk.prompt("go");
    let mut cut = Vec::new();
    for number in 0..10 {
        let words = round(&mut talk, &format!("result {number} {}", "y".repeat(2700)));
        cut.extend(steps(&words));
    }
    assert!(matches!(cut[..], [Compaction::Cut { dropped: 0, .. }]), "{cut:?}");
    let short = block(talk.request(), "result 0 ");
    assert!(short.contains("history_search with {\"call\": 1}"), "{short}");
    assert!(block(talk.request(), "result 9 ").len() > 2700, "the newest are whole");
    // The conversation gives it back without running anything.
    let input = "{\"call\": 1}";
    let words = talk.answer(&[Say::Use("again", "history_search", input)], StopReason::ToolUse);
    let answered = words.iter().find_map(|word| match word {
        FromSession::Answered { result, .. } => Some(result.text.clone()),
        _ => None,
    });
    assert!(answered.unwrap().starts_with("result 0 yyy"), "{words:?}");
}
