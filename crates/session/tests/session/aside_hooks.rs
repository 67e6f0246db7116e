//! Hooks of events that the supervisor sees: run beside the calls, each once, and answered once.

use super::talk::{Say, Talk, runs};
use protocol::call::CallOrigin;
use protocol::content::StopReason;
use protocol::hook::{EventHook, HookEvent, HookOccasion, HookRefusal, SessionHooks};
use protocol::session::{FromSession, OpenTurn, SessionEvent, SessionSetup, ToSession, TurnEnd};
use serde_json::{Value, json};

const BASH: Say = Say::Use("t1", "bash", r#"{"command":"ls"}"#);

fn hooked(event: HookEvent, commands: &[&str]) -> SessionSetup {
    let events = commands.iter().map(|command| EventHook {
        event,
        matched: None,
        command: (*command).to_owned(),
        broken: None,
        timeout_ms: 1000,
        file: "settings.json".to_owned(),
    });
    let hooks = SessionHooks { events: events.collect(), ..SessionHooks::default() };
    SessionSetup { hooks, ..super::talk::setup() }
}

fn question(call: u32) -> ToSession {
    ToSession::HooksDue(HookOccasion {
        event: HookEvent::PermissionRequest,
        subject: "bash".to_owned(),
        call: Some((call, r#"{"command":"ls"}"#.to_owned())),
        message: String::new(),
    })
}

fn idle() -> ToSession {
    ToSession::HooksDue(HookOccasion {
        event: HookEvent::Notification,
        subject: "idle_prompt".to_owned(),
        call: None,
        message: "agentd waits".to_owned(),
    })
}

fn ended(words: &[FromSession]) -> Option<(HookEvent, Option<u32>, Option<HookRefusal>)> {
    words.iter().find_map(|word| match word {
        FromSession::HooksEnded { event, call, refusal } => Some((*event, *call, refusal.clone())),
        _ => None,
    })
}

fn input(words: &[FromSession]) -> Value {
    serde_json::from_str(&runs(words)[0].input).unwrap()
}

fn journal(talk: &Talk) -> Vec<SessionEvent> {
    let events = talk.said.iter().filter_map(|word| match word {
        FromSession::Commit(event) => Some(event.clone()),
        _ => None,
    });
    events.collect()
}

#[test]
fn the_first_denial_of_a_question_is_the_answer_and_no_further_hook_runs() {
    let mut talk = Talk::ready(hooked(HookEvent::PermissionRequest, &["one", "two", "three"]));
    talk.prompt("Go.");
    let call = runs(&talk.answer(&[BASH], StopReason::ToolUse))[0].clone();
    assert_eq!(call.tool, "bash", "no hook runs before the question");
    let first = talk.tell(question(call.id.number));
    let run = runs(&first)[0].clone();
    assert_eq!((run.tool.as_str(), &run.origin), ("guard_hook", &CallOrigin::EventHook));
    let about = &input(&first)["about"];
    assert_eq!((&about["tool"], &about["input"]), (&json!("bash"), &json!(r#"{"command":"ls"}"#)));
    // The same question, put again, starts nothing.
    assert!(runs(&talk.tell(question(call.id.number))).is_empty());
    let pass = json!({"verdict": "pass", "context": "unheard"}).to_string();
    let second = runs(&talk.call_ended(run.id.number, &pass))[0].clone();
    let block = json!({"verdict": "block", "reason": "not today"}).to_string();
    let words = talk.call_ended(second.id.number, &block);
    let refusal = HookRefusal { command: "two".to_owned(), reason: "not today".to_owned() };
    let by_two = (HookEvent::PermissionRequest, Some(call.id.number), Some(refusal));
    assert_eq!(ended(&words), Some(by_two.clone()));
    assert!(runs(&words).is_empty(), "{words:?}");
    // The model learns it by the result of its call, and nothing else.
    talk.call_ended(call.id.number, "denied");
    let said = format!("{:?}", talk.request().messages);
    assert!(said.contains("denied") && !said.contains("unheard"), "{said}");
    // A replayed session knows the answer and runs no hook again.
    let mut events = journal(&talk);
    for (number, text) in [(run.id.number, &pass), (second.id.number, &block)] {
        let at = events.iter().position(
            |event| matches!(event, SessionEvent::Called { call } if call.id.number == number),
        );
        let result = SessionEvent::ended(
            super::talk::call_id(number),
            CallOrigin::EventHook,
            super::talk::done(text),
        );
        events.insert(at.unwrap() + 1, result);
    }
    let mut again = Talk::replayed(hooked(HookEvent::PermissionRequest, &["one", "two"]), events);
    let words = again.tell(question(call.id.number));
    assert_eq!((runs(&words).len(), ended(&words)), (0, Some(by_two)));
}

#[test]
fn a_question_whose_hooks_pass_or_fail_is_put() {
    for answer in [json!({"verdict": "pass"}).to_string(), "nonsense".to_owned()] {
        let mut talk = Talk::ready(hooked(HookEvent::PermissionRequest, &["one"]));
        talk.prompt("Go.");
        let call = runs(&talk.answer(&[BASH], StopReason::ToolUse))[0].clone();
        let run = runs(&talk.tell(question(call.id.number)))[0].clone();
        let words = talk.call_ended(run.id.number, &answer);
        let put = Some((HookEvent::PermissionRequest, Some(call.id.number), None));
        assert_eq!(ended(&words), put);
        let named = words.iter().any(|word| matches!(word, FromSession::Notice { .. }));
        assert_eq!(named, answer == "nonsense", "{words:?}");
    }
    // Where no hook is for the event there is an answer, too.
    let mut talk = Talk::ready(super::talk::setup());
    assert_eq!(ended(&talk.tell(idle())), Some((HookEvent::Notification, None, None)));
}

#[test]
fn a_denial_that_interrupts_ends_the_turn_and_an_interrupt_cancels_the_hook() {
    let mut talk = Talk::ready(hooked(HookEvent::PermissionRequest, &["one"]));
    talk.prompt("Go.");
    let call = runs(&talk.answer(&[BASH], StopReason::ToolUse))[0].clone();
    let run = runs(&talk.tell(question(call.id.number)))[0].clone();
    let words = talk.tell(ToSession::Interrupt);
    assert!(words.contains(&FromSession::CancelCall(run.id.clone())), "{words:?}");
    talk.call_ended(run.id.number, &json!({"verdict": "stop", "reason": "enough"}).to_string());
    talk.call_ended(call.id.number, "denied");
    assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted));
    talk.prompt("Go on.");
    let call =
        runs(&talk.answer(&[Say::Use("t2", "bash", r#"{"command":"id"}"#)], StopReason::ToolUse))
            [0]
        .clone();
    let run = runs(&talk.tell(question(call.id.number)))[0].clone();
    talk.call_ended(run.id.number, &json!({"verdict": "stop", "reason": "enough"}).to_string());
    talk.call_ended(call.id.number, "denied");
    let end = talk.last_end();
    assert!(
        matches!(&end, Some(TurnEnd::StoppedByHook { reason }) if reason.contains("enough")),
        "{end:?}"
    );
}

#[test]
fn each_notification_runs_its_hooks_and_a_prompt_meanwhile_loses_none() {
    let mut talk = Talk::ready(hooked(HookEvent::Notification, &["ring"]));
    let first = talk.tell(idle());
    assert_eq!(input(&first)["about"], json!({"word": "idle_prompt", "message": "agentd waits"}));
    let ring = runs(&first)[0].clone();
    // A turn begins while the hook runs, and takes no notice.
    talk.prompt("Go.");
    let words =
        talk.call_ended(ring.id.number, &json!({"verdict": "stop", "reason": "x"}).to_string());
    assert_eq!(ended(&words), Some((HookEvent::Notification, None, None)));
    assert!(
        words
            .iter()
            .any(|word| matches!(word, FromSession::Notice { text } if text.contains("says: x")))
    );
    talk.answer(&[Say::Text("Done.")], StopReason::EndTurn);
    assert_eq!(talk.last_end(), Some(TurnEnd::Done));
    assert_eq!(runs(&talk.tell(idle())).len(), 1);
    // The hook that a dead process left open has its one result.
    let events = journal(&talk);
    let again = Talk::replayed(hooked(HookEvent::Notification, &["ring"]), events);
    let results = super::talk::results(&again.said);
    let open = runs(&talk.said).last().unwrap().id.number;
    assert!(results.iter().any(|(call, _)| *call == open), "{results:?}");
}

#[test]
fn the_end_of_a_sub_agents_turn_is_held_as_any() {
    let mut talk = Talk::ready(hooked(HookEvent::SubagentStop, &["tests"]));
    talk.prompt("Go.");
    let run = runs(&talk.answer(&[Say::Text("First.")], StopReason::EndTurn))[0].clone();
    assert_eq!(run.tool, "hook");
    let words = talk
        .call_ended(run.id.number, &json!({"verdict": "block", "reason": "test it"}).to_string());
    assert!(matches!(words.last(), Some(FromSession::Ask(_))), "{words:?}");
    let run = runs(&talk.answer(&[Say::Text("Second.")], StopReason::EndTurn))[0].clone();
    let about: Value = serde_json::from_str(&run.input).unwrap();
    assert_eq!(about["about"]["continued"], 1);
    talk.call_ended(run.id.number, &json!({"verdict": "pass"}).to_string());
    assert_eq!(talk.last_end(), Some(TurnEnd::Done));
}

#[test]
fn an_event_before_the_end_of_the_replay_has_its_hooks_behind_it() {
    let setup = || hooked(HookEvent::SessionEnd, &["bye"]);
    let mut talk = Talk::ready(setup());
    talk.prompt("Go.");
    talk.answer(&[Say::Text("Done.")], StopReason::EndTurn);
    let mut again = Talk::before_replay(setup());
    let (event, subject) = (HookEvent::SessionEnd, "other".to_owned());
    let due = HookOccasion { event, subject, call: None, message: String::new() };
    assert_eq!(again.tell(ToSession::HooksDue(due)), []);
    for event in journal(&talk) {
        assert_eq!(again.tell(ToSession::Replay(event)), []);
    }
    let words = again.tell(ToSession::ReplayDone { then: OpenTurn::Waits, compact: None });
    let bye = runs(&words)[0].clone();
    let words = again.call_ended(bye.id.number, &json!({"verdict": "pass"}).to_string());
    assert_eq!(ended(&words), Some((HookEvent::SessionEnd, None, None)));
}
