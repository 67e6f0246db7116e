//! Hooks of `PreCompact` in the conversation: when they run, what a refusal stops, and what a death
//! makes of them.

use super::talk::*;
use protocol::call::Call;
use protocol::client::ModelFacts;
use protocol::content::{StopReason, Usage};
use protocol::context::{Compaction, CompactionKind, ContextSettings, SummaryStep};
use protocol::hook::{EventHook, HookEvent, SessionHooks};
use protocol::provider::{FromProvider, ProviderFailure};
use protocol::session::{FromSession, OpenTurn, SessionEvent, SessionSetup, ToSession, TurnEnd};
use serde_json::{Value, json};

fn hooked(compaction: CompactionKind, commands: &[&str]) -> SessionSetup {
    let events = commands.iter().map(|command| EventHook {
        event: HookEvent::PreCompact,
        matched: None,
        command: (*command).to_owned(),
        broken: None,
        timeout_ms: 1000,
        file: "settings.json".to_owned(),
    });
    SessionSetup {
        hooks: SessionHooks { events: events.collect(), ..SessionHooks::default() },
        context: ContextSettings { compaction, ..setup().context },
        facts: ModelFacts { context: Some(10_000), ..ModelFacts::default() },
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

fn refusal(words: &[FromSession]) -> Option<&str> {
    words.iter().find_map(|word| match word {
        FromSession::NotCompacted { why } => Some(why.as_str()),
        _ => None,
    })
}

fn about(call: &Call) -> Value {
    assert_eq!(call.tool, "guard_hook");
    let input: Value = serde_json::from_str(&call.input).unwrap();
    assert_eq!(input["event"], "PreCompact");
    input
}

fn ends(talk: &mut Talk, call: &Call, answer: Value) -> Vec<FromSession> {
    talk.call_ended(call.id.number, &answer.to_string())
}

/// A conversation between turns.
fn idle(setup: SessionSetup) -> Talk {
    let mut talk = Talk::ready(setup);
    for _ in 0..3 {
        talk.prompt("a question");
        talk.answer(&[Say::Text("an answer")], StopReason::EndTurn);
    }
    talk
}

fn compact(talk: &mut Talk) -> Vec<FromSession> {
    talk.tell(ToSession::Compact { focus: "the parser".to_owned() })
}

fn pass() -> Value {
    json!({"verdict": "pass"})
}

fn block() -> Value {
    json!({"verdict": "block", "reason": "not now"})
}

/// A turn whose results fill the context, up to its first hook.
fn full(setup: SessionSetup) -> (Talk, Call) {
    let mut talk = Talk::ready(setup);
    talk.prompt("go");
    for _ in 0..80 {
        let round = talk.round();
        let id: &'static str = Box::leak(format!("use_{round}").into_boxed_str());
        for word in stream(round, &[Say::Use(id, "read", "{\"path\":\"a\"}")]) {
            talk.tell(ToSession::Stream(word));
        }
        let (stop, usage, model) = (StopReason::ToolUse, Usage::default(), "m".into());
        let ended = FromProvider::Ended { round, stop, usage, model };
        let call = runs(&talk.tell(ToSession::Stream(ended)))[0].id.number;
        let words = talk.call_ended(call, &"x".repeat(900));
        if let Some(hook) = runs(&words).pop() {
            assert!(steps(&words).is_empty() && requests(&words).is_empty(), "{words:?}");
            return (talk, hook);
        }
    }
    panic!("the context is not full")
}

#[test]
fn a_manual_compaction_waits_for_each_hook_and_the_next_one_runs_them_again() {
    for (kind, command) in [(CompactionKind::Cut, "cut"), (CompactionKind::Summary, "summary")] {
        let mut talk = idle(hooked(kind, &[command, "two"]));
        let first = compact(&mut talk);
        let run = runs(&first).pop().unwrap();
        assert!(steps(&first).is_empty(), "{first:?}");
        let input = about(&run);
        assert_eq!(
            (&input["command"], &input["about"]["word"]),
            (&json!(command), &json!("manual"))
        );
        assert_eq!(input["about"]["message"], "the parser");
        // Prompts wait for it.
        assert!(requests(&talk.prompt("another question")).is_empty());
        let second = runs(&ends(&mut talk, &run, pass())).pop().unwrap();
        // A failed hook stops nothing.
        let words = talk.call_ended(second.id.number, "no object");
        let notice = |word: &FromSession| matches!(word, FromSession::Notice { text } if text.contains("`two` failed"));
        assert!(words.iter().any(notice), "{words:?}");
        match &steps(&words)[..] {
            [Compaction::Cut { .. }] => assert_eq!(kind, CompactionKind::Cut),
            [Compaction::Summary(SummaryStep::Asked { focus, .. })] => {
                assert_eq!(focus, "the parser");
                talk.answer(&[Say::Text("GOAL")], StopReason::EndTurn);
            }
            other => panic!("{other:?}"),
        }
        let asked = format!("{:?}", talk.request().messages);
        assert!(asked.contains("another question"), "{asked}");
        talk.answer(&[Say::Text("an answer")], StopReason::EndTurn);
        assert_eq!(runs(&compact(&mut talk)).len(), 1);
    }
}

#[test]
fn a_hook_blocks_a_manual_compaction_and_not_an_automatic_one() {
    let mut talk = idle(hooked(CompactionKind::Summary, &["guard"]));
    let run = runs(&compact(&mut talk)).pop().unwrap();
    let words = ends(&mut talk, &run, block());
    let why = refusal(&words).unwrap();
    assert!(why.contains("`guard` blocks it: not now"), "{why}");
    assert!(steps(&words).is_empty() && requests(&words).is_empty(), "{words:?}");
    let run = runs(&compact(&mut talk)).pop().unwrap();
    assert_eq!(steps(&ends(&mut talk, &run, pass())).len(), 1);

    let (mut talk, hook) = full(hooked(CompactionKind::Summary, &["guard"]));
    assert_eq!(about(&hook)["about"]["word"], "auto");
    let words = ends(&mut talk, &hook, block());
    assert!(
        matches!(steps(&words)[..], [Compaction::Summary(SummaryStep::Asked { .. })]),
        "{words:?}"
    );
    let told = |word: &FromSession| matches!(word, FromSession::Notice { text } if text.contains("shrinks it all the same"));
    assert!(words.iter().any(told), "{words:?}");
    // The request behind it begins no other.
    let words = talk.answer(&[Say::Text("GOAL")], StopReason::EndTurn);
    assert_eq!((runs(&words).len(), requests(&words).len()), (0, 1), "{words:?}");
}

#[test]
fn a_request_that_the_vendor_finds_too_long_runs_them_too() {
    let mut talk = idle(hooked(CompactionKind::Summary, &["guard"]));
    talk.prompt("more");
    let (round, kind) = (talk.round(), ProviderFailure::ContextFull);
    let failed = FromProvider::Failed { round, kind, message: "too long".into() };
    let run = runs(&talk.tell(ToSession::Stream(failed.clone()))).pop().unwrap();
    let words = ends(&mut talk, &run, pass());
    assert!(matches!(steps(&words)[..], [Compaction::Cut { .. }]), "{words:?}");
    assert_eq!(requests(&words).len(), 1);
    let round = talk.round();
    let failed = FromProvider::Failed { round, kind, message: "too long".into() };
    talk.tell(ToSession::Stream(failed));
    assert!(matches!(talk.last_end(), Some(TurnEnd::ProviderFailed { .. })));

    talk.prompt("more");
    let run = runs(&talk.answer(&[Say::Text("half")], StopReason::ContextFull)).pop().unwrap();
    assert_eq!(talk.last_end(), Some(TurnEnd::Truncated));
    assert!(matches!(steps(&ends(&mut talk, &run, pass()))[..], [Compaction::Cut { .. }]));
}

#[test]
fn a_person_stops_a_hook_and_nothing_is_left_out() {
    let mut talk = idle(hooked(CompactionKind::Cut, &["slow"]));
    let run = runs(&compact(&mut talk)).pop().unwrap();
    assert_eq!(talk.tell(ToSession::Interrupt), [FromSession::CancelCall(run.id.clone())]);
    assert_eq!(talk.tell(ToSession::Interrupt), []);
    let words = ends(&mut talk, &run, pass());
    assert!(steps(&words).is_empty() && refusal(&words).unwrap().contains("you stopped it"));
    assert_eq!(requests(&talk.prompt("go on")).len(), 1);

    for by_person in [false, true] {
        let (mut talk, mut hook) = full(hooked(CompactionKind::Cut, &["slow"]));
        if by_person {
            ends(&mut talk, &hook, pass());
            compact(&mut talk);
            hook = runs(&talk.answer(&[Say::Use("again", "read", "{}")], StopReason::ToolUse))
                .pop()
                .unwrap();
            hook = runs(&talk.call_ended(hook.id.number, "read")).pop().unwrap();
            assert_eq!(about(&hook)["about"]["word"], "manual");
        }
        talk.tell(ToSession::Interrupt);
        let words = ends(&mut talk, &hook, pass());
        assert!(steps(&words).is_empty(), "{words:?}");
        assert_eq!(refusal(&words).is_some(), by_person, "a wish is answered: {words:?}");
        assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted));
    }
}

#[test]
fn a_death_in_a_hook_does_not_run_it_again_for_the_same_compaction() {
    let setup = || hooked(CompactionKind::Cut, &["one"]);
    let mut talk = idle(setup());
    compact(&mut talk);
    let replayed = |compact: Option<&str>| {
        let mut again = Talk::before_replay(setup());
        for happened in talk.journal() {
            again.tell(ToSession::Replay(happened));
        }
        let (then, compact) = (OpenTurn::Waits, compact.map(str::to_owned));
        let words = again.tell(ToSession::ReplayDone { then, compact });
        (again, words)
    };
    let (mut again, words) = replayed(Some("the parser"));
    assert_eq!((runs(&words).len(), steps(&words).len()), (0, 1), "{words:?}");
    assert_eq!(runs(&compact(&mut again)).len(), 1, "the next one does");
    // It was stopped, or a hook blocked it: the next one is another.
    let (mut again, words) = replayed(None);
    assert_eq!((runs(&words).len(), steps(&words).len()), (0, 0), "{words:?}");
    assert_eq!(runs(&compact(&mut again)).len(), 1);

    let (talk, hook) = full(setup());
    let mut journal = talk.journal();
    let results = talk.said.iter().filter_map(|word| match word {
        FromSession::Run { call, .. } if call.id != hook.id => Some(call.clone()),
        _ => None,
    });
    for call in results {
        let named = |it: &SessionEvent| matches!(it, SessionEvent::Called { call: named } if named.id == call.id);
        let at = journal.iter().position(named).unwrap();
        let result = done(&"x".repeat(900));
        journal.insert(at + 1, SessionEvent::ended(call.id, call.origin, result));
    }
    let mut again = Talk::before_replay(setup());
    for happened in journal {
        again.tell(ToSession::Replay(happened));
    }
    let words = again.tell(ToSession::ReplayDone { then: OpenTurn::GoesOn, compact: None });
    // It was named and had not begun.
    let run = runs(&words).pop().unwrap();
    assert_eq!((run.id.clone(), runs(&words).len()), (hook.id, 1));
    let words = ends(&mut again, &run, pass());
    assert!(matches!(steps(&words)[..], [Compaction::Cut { .. }]), "{words:?}");
    assert_eq!((runs(&words).len(), requests(&words).len()), (0, 1));
}
