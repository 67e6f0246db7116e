//! Hooks at events in the conversation: which run is due, what its answer does, and what a replay
//! makes of it.

use super::talk::{Say, Talk, done, results, runs};
use protocol::call::{Call, CallOrigin, Outcome};
use protocol::content::StopReason;
use protocol::hook::{EventHook, HookEvent, SessionHooks};
use protocol::session::{
    ExpandedPrompt, FromSession, OpenTurn, PromptPart, SessionEvent, SessionSetup, ToSession,
    TurnEnd,
};
use serde_json::{Value, json};

fn hooked(event: HookEvent, tools: &[&str], commands: &[&str]) -> SessionSetup {
    let matched: Vec<String> = tools.iter().map(|&tool| tool.to_owned()).collect();
    let events = commands.iter().map(|command| EventHook {
        event,
        matched: (!matched.is_empty()).then(|| matched.clone()),
        command: (*command).to_owned(),
        broken: None,
        timeout_ms: 1000,
        file: "settings.json".to_owned(),
    });
    let hooks = SessionHooks { events: events.collect(), ..SessionHooks::default() };
    SessionSetup { hooks, ..super::talk::setup() }
}

fn answer(talk: &mut Talk, call: &Call, answer: &Value) -> Vec<FromSession> {
    talk.call_ended(call.id.number, &answer.to_string())
}

fn pass() -> Value {
    json!({"verdict": "pass"})
}

fn named(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(|call| call.tool.as_str()).collect()
}

const READ: Say = Say::Use("t1", "read", r#"{"path":"a"}"#);
const GREP: Say = Say::Use("t2", "grep", r#"{"pattern":"x"}"#);
const BASH: Say = Say::Use("t3", "bash", r#"{"command":"ls"}"#);

#[test]
fn a_guarded_call_waits_for_each_of_its_hooks_and_learns_what_they_changed() {
    let mut talk = Talk::ready(hooked(HookEvent::PreToolUse, &["bash"], &["one", "two", "one"]));
    talk.prompt("Go.");
    let first = runs(&talk.answer(&[BASH], StopReason::ToolUse));
    assert_eq!((named(&first), &first[0].origin), (vec!["guard_hook"], &CallOrigin::EventHook));
    let input: Value = serde_json::from_str(&first[0].input).unwrap();
    assert_eq!((&input["command"], &input["about"]["tool"]), (&json!("one"), &json!("bash")));
    let changed =
        json!({"verdict": "ask", "reason": "why", "updated_input": "{\"command\":\"id\"}"});
    let second = runs(&answer(&mut talk, &first[0], &changed));
    let input: Value = serde_json::from_str(&second[0].input).unwrap();
    assert_eq!(input["command"], "two");
    assert_eq!(input["about"]["input"], r#"{"command":"id"}"#, "the next one sees the change");
    let words = answer(&mut talk, &second[0], &pass());
    let FromSession::Run { call, note, asked } = words.last().unwrap() else { panic!("{words:?}") };
    assert_eq!((call.tool.as_str(), call.input.as_str()), ("bash", r#"{"command":"id"}"#));
    assert!(note.as_ref().unwrap().contains("`one` changed the arguments"), "{note:?}");
    assert!(asked.as_ref().unwrap().contains("why"), "{asked:?}");
    // Equal commands run once, and the model asked for one call.
    assert_eq!(talk.request().messages.len(), 1);
    talk.call_ended(call.id.number, "ran");
    assert_eq!(talk.request().messages.len(), 3);
}

#[test]
fn unguarded_neighbours_run_and_a_blocked_call_has_its_one_result() {
    let mut talk = Talk::ready(hooked(HookEvent::PreToolUse, &["grep"], &["guard"]));
    talk.prompt("Go.");
    let first = runs(&talk.answer(&[READ, GREP], StopReason::ToolUse));
    assert_eq!(named(&first), ["read"], "a hook runs alone");
    let hook = runs(&talk.call_ended(first[0].id.number, "text"));
    assert_eq!(named(&hook), ["guard_hook"]);
    let words = answer(&mut talk, &hook[0], &json!({"verdict": "block", "reason": "no grep"}));
    let (_, result) = results(&words).pop().unwrap();
    assert!(result.is_error && result.text.contains("no grep"), "{result:?}");
    assert_eq!(result.outcome, Outcome::Denied);
    assert!(matches!(words.last(), Some(FromSession::Ask(_))), "{words:?}");
    super::talk::lawful(talk.request()).unwrap();
}

#[test]
fn context_of_a_guard_stands_in_the_result_while_neighbours_still_run() {
    let mut talk = Talk::ready(hooked(HookEvent::PreToolUse, &["read", "grep"], &["guard"]));
    talk.prompt("Go.");
    let hook = runs(&talk.answer(&[READ, GREP], StopReason::ToolUse));
    assert_eq!(hook.len(), 1, "one hook at a time");
    let says = json!({"verdict": "pass", "context": "It rains."});
    let hook = runs(&answer(&mut talk, &hook[0], &says));
    let both = runs(&answer(&mut talk, &hook[0], &pass()));
    assert_eq!(named(&both), ["read", "grep"]);
    talk.call_ended(both[0].id.number, "text");
    talk.call_ended(both[1].id.number, "none");
    let said = format!("{:?}", talk.request().messages.last().unwrap());
    assert!(said.contains("text") && said.contains("It rains."), "{said}");
}

#[test]
fn a_replayed_session_runs_no_hook_twice() {
    let setup = || hooked(HookEvent::PreToolUse, &["bash"], &["one", "two"]);
    let mut talk = Talk::ready(setup());
    talk.prompt("Go.");
    let first = runs(&talk.answer(&[BASH], StopReason::ToolUse));
    let second = runs(&answer(&mut talk, &first[0], &pass()));
    // What is on disk: the first hook ended, the second is named.
    let mut journal: Vec<SessionEvent> = Vec::new();
    for word in &talk.said {
        if let FromSession::Commit(event) = word {
            journal.push(event.clone());
        }
    }
    let at = journal.len() - 1;
    let result = done(&pass().to_string());
    let ended =
        |call: &Call, result| SessionEvent::ended(call.id.clone(), CallOrigin::EventHook, result);
    journal.insert(at, ended(&first[0], result));
    let replay = |journal: &[SessionEvent], then| {
        let mut talk = Talk::before_replay(setup());
        for event in journal {
            talk.tell(ToSession::Replay(event.clone()));
        }
        let words = talk.tell(ToSession::ReplayDone { then, compact: None });
        (talk, words)
    };
    let (mut again, words) = replay(&journal, OpenTurn::GoesOn);
    assert_eq!(runs(&words), second, "the one that was only named");
    assert_eq!(named(&runs(&answer(&mut again, &second[0], &pass()))), ["bash"]);
    // One that was cut short is lost, and so is its call.
    let mut cut = done("");
    cut.outcome = Outcome::Interrupted;
    journal.push(ended(&second[0], cut));
    let (_, words) = replay(&journal, OpenTurn::GoesOn);
    assert!(runs(&words).is_empty(), "{words:?}");
    let (_, result) = results(&words).pop().unwrap();
    assert!(result.text.contains("interrupted") && result.text.contains("did not run"));
    journal.pop();
    let (_, words) = replay(&journal, OpenTurn::Waits);
    assert_eq!((runs(&words).len(), results(&words).len()), (0, 2), "the hook's and the call's");
}

#[test]
fn hooks_behind_calls_run_once_the_round_is_over() {
    let mut talk = Talk::ready(hooked(HookEvent::PostToolUse, &[], &["after"]));
    talk.prompt("Go.");
    let both = runs(&talk.answer(&[READ, GREP], StopReason::ToolUse));
    assert_eq!(named(&both), ["read", "grep"]);
    assert!(runs(&talk.call_ended(both[0].id.number, "text")).is_empty());
    let mut failed = done("no");
    failed.is_error = true;
    let ended = super::talk::call_ended(both[1].id.clone(), failed);
    let hook = runs(&talk.tell(ended));
    assert_eq!(named(&hook), ["hook"], "for the one that succeeded");
    let words = answer(&mut talk, &hook[0], &json!({"verdict": "block", "reason": "too short"}));
    assert!(matches!(words.last(), Some(FromSession::Ask(_))), "{words:?}");
    let said = format!("{:?}", talk.request().messages.last().unwrap());
    assert_eq!(said.matches("too short").count(), 1, "{said}");
}

#[test]
fn a_stop_of_the_turn_drops_the_guarded_call() {
    let mut talk = Talk::ready(hooked(HookEvent::PreToolUse, &["bash"], &["one"]));
    talk.prompt("Go.");
    let hook = runs(&talk.answer(&[BASH], StopReason::ToolUse));
    let words = talk.tell(ToSession::Interrupt);
    assert!(words.contains(&FromSession::CancelCall(hook[0].id.clone())), "{words:?}");
    let mut cut = done("");
    cut.outcome = Outcome::Interrupted;
    let words = talk.tell(super::talk::call_ended(hook[0].id.clone(), cut));
    assert!(runs(&words).is_empty() && talk.last_end().is_some(), "{words:?}");
}

#[test]
fn hooks_of_a_prompt_come_before_the_model_and_may_refuse_it() {
    let mut setup = hooked(HookEvent::UserPromptSubmit, &[], &["guard"]);
    let start = hooked(HookEvent::SessionStart, &["startup"], &["start"]);
    setup.hooks.events.extend(start.hooks.events);
    let mut talk = Talk::ready(setup);
    let first = runs(&talk.prompt("Go."));
    assert_eq!(named(&first), ["hook"], "the start comes first");
    let guard = runs(&answer(&mut talk, &first[0], &json!({"verdict": "pass", "context": "hi"})));
    assert_eq!(named(&guard), ["guard_hook"]);
    assert!(guard[0].input.contains("Go."), "{guard:?}");
    answer(&mut talk, &guard[0], &json!({"verdict": "pass", "context": "It rains."}));
    let said = format!("{:?}", talk.request().messages);
    assert!(said.contains("hi") && said.contains("It rains."), "{said}");
    talk.answer(&[Say::Text("Done.")], StopReason::EndTurn);
    // The next prompt is refused: the model is not asked, and never gets it.
    let guard = runs(&talk.prompt("The password is x."));
    assert_eq!(named(&guard), ["guard_hook"], "a session starts once");
    let words = answer(&mut talk, &guard[0], &json!({"verdict": "block", "reason": "a secret"}));
    assert!(super::talk::requests(&words).is_empty(), "{words:?}");
    let end = format!("{:?}", talk.last_end());
    assert!(end.contains("StoppedByHook") && end.contains("a secret"), "{end}");
    let guard = runs(&talk.prompt("Again."));
    answer(&mut talk, &guard[0], &pass());
    let said = format!("{:?}", talk.request().messages);
    assert!(said.contains("Again.") && !said.contains("password"), "{said}");
    super::talk::lawful(talk.request()).unwrap();
    talk.answer(&[Say::Text("Done.")], StopReason::EndTurn);
    // One that fails lets the prompt not be sent.
    let guard = runs(&talk.prompt("Once more."));
    let mut failed = done("");
    failed.outcome = Outcome::TimedOut;
    let words = talk.tell(super::talk::call_ended(guard[0].id.clone(), failed));
    assert!(super::talk::requests(&words).is_empty(), "{words:?}");
    assert!(format!("{:?}", talk.last_end()).contains("did not end in time"));
}

#[test]
fn a_hook_of_the_end_makes_the_turn_go_on_a_bounded_number_of_times() {
    let mut talk = Talk::ready(hooked(HookEvent::Stop, &[], &["tests"]));
    talk.prompt("Go.");
    let mut rounds = 0;
    loop {
        let hook = runs(&talk.answer(&[Say::Text("Done.")], StopReason::EndTurn));
        let Some(hook) = hook.first() else { break };
        rounds += 1;
        assert!(hook.input.contains(&format!("\"continued\":{}", rounds - 1)), "{hook:?}");
        let block = json!({"verdict": "block", "reason": "a test fails"});
        let words = answer(&mut talk, hook, &block);
        assert!(matches!(words.last(), Some(FromSession::Ask(_))), "{words:?}");
        let said = format!("{:?}", talk.request().messages.last().unwrap());
        assert!(said.contains("a test fails"), "{said}");
        super::talk::lawful(talk.request()).unwrap();
    }
    assert_eq!(rounds, 5);
    assert_eq!(talk.last_end(), Some(TurnEnd::Done));
    let told = talk
        .said
        .iter()
        .any(|word| matches!(word, FromSession::Notice { text } if text.contains("5 times")));
    assert!(told, "the person learns why it ends");
    // In the next turn it passes, and the turn ends.
    talk.prompt("Again.");
    let hook = runs(&talk.answer(&[Say::Text("Done.")], StopReason::EndTurn));
    let words = answer(&mut talk, &hook[0], &pass());
    assert!(super::talk::requests(&words).is_empty(), "{words:?}");
    assert_eq!(talk.last_end(), Some(TurnEnd::Done));
}

#[test]
fn a_replay_behind_the_hook_of_a_turns_end_goes_on_where_it_was() {
    let setup = || hooked(HookEvent::Stop, &[], &["tests"]);
    let mut talk = Talk::ready(setup());
    talk.prompt("Go.");
    let hook = runs(&talk.answer(&[Say::Text("Done.")], StopReason::EndTurn));
    let mut journal: Vec<SessionEvent> = Vec::new();
    for word in &talk.said {
        if let FromSession::Commit(event) = word {
            journal.push(event.clone());
        }
    }
    let replay = |journal: &[SessionEvent]| {
        let mut talk = Talk::before_replay(setup());
        for event in journal {
            talk.tell(ToSession::Replay(event.clone()));
        }
        talk.tell(ToSession::ReplayDone { then: OpenTurn::GoesOn, compact: None })
    };
    assert_eq!(runs(&replay(&journal)), hook, "it was only named");
    let named_at = journal.len() - 1;
    assert_eq!(named(&runs(&replay(&journal[..named_at]))), ["hook"], "it was due");
    let ended = |answer: Value| {
        let result = done(&answer.to_string());
        SessionEvent::ended(hook[0].id.clone(), CallOrigin::EventHook, result)
    };
    journal.push(ended(json!({"verdict": "block", "reason": "no"})));
    assert_eq!(super::talk::requests(&replay(&journal)).len(), 1);
    journal.pop();
    journal.push(ended(pass()));
    let words = replay(&journal);
    assert!(runs(&words).is_empty() && super::talk::requests(&words).is_empty(), "{words:?}");
}

#[test]
fn a_prompt_whose_turn_is_stopped_before_its_hooks_let_it_pass_is_left_out() {
    let search = |talk: &Talk| format!("{:?}", talk.request().messages);
    let setup = || hooked(HookEvent::UserPromptSubmit, &[], &["one", "two"]);
    for stop_behind in 0..2 {
        let mut talk = Talk::ready(setup());
        let mut guard = runs(&talk.prompt("The password is x."));
        for _ in 0..stop_behind {
            guard = runs(&answer(&mut talk, &guard[0], &pass()));
        }
        talk.tell(ToSession::Interrupt);
        answer(&mut talk, &guard[0], &pass());
        assert_eq!(talk.last_end(), Some(TurnEnd::Interrupted), "behind {stop_behind}");
        let guard = runs(&talk.prompt("Again."));
        let guard = runs(&answer(&mut talk, &guard[0], &pass()));
        answer(&mut talk, &guard[0], &pass());
        let said = search(&talk);
        assert!(said.contains("Again."), "{said}");
        // Behind the last hook it had passed.
        assert_eq!(said.contains("password"), stop_behind == 1, "{stop_behind}: {said}");
    }
}

#[test]
fn the_commands_of_a_prompt_wait_for_the_hooks_that_decide_about_it() {
    let expanded = || {
        Some(Box::new(ExpandedPrompt {
            file: "deploy.md".to_owned(),
            parts: vec![PromptPart::Command("./deploy.sh".to_owned())],
            allow: Vec::new(),
            answer_schema: None,
            model: None,
            typed_by: None,
        }))
    };
    let prompt = || ToSession::Prompt { text: "/deploy".to_owned(), expanded: expanded() };
    let mut talk = Talk::ready(hooked(HookEvent::UserPromptSubmit, &[], &["guard"]));
    let guard = runs(&talk.tell(prompt()));
    assert_eq!(named(&guard), ["guard_hook"]);
    assert!(guard[0].input.contains("./deploy.sh"), "the hook sees the command: {guard:?}");
    let words = answer(&mut talk, &guard[0], &json!({"verdict": "block", "reason": "not now"}));
    assert!(runs(&words).is_empty(), "{words:?}");
    // The control: behind a hook that lets it pass it runs.
    let guard = runs(&talk.tell(prompt()));
    let command = runs(&answer(&mut talk, &guard[0], &pass()));
    assert_eq!(named(&command), ["bash"]);
    talk.call_ended(command[0].id.number, "deployed");
    assert!(format!("{:?}", talk.request().messages).contains("deployed"));
    // A replay between the two runs the hook first, too.
    let setup = hooked(HookEvent::UserPromptSubmit, &[], &["guard"]);
    let mut again = Talk::before_replay(setup);
    again.tell(ToSession::Replay(SessionEvent::Prompt {
        text: "/deploy".to_owned(),
        expanded: expanded(),
    }));
    let words = again.tell(ToSession::ReplayDone { then: OpenTurn::GoesOn, compact: None });
    assert_eq!(named(&runs(&words)), ["guard_hook"]);
}

#[test]
fn the_context_of_the_start_outlives_a_first_prompt_that_is_refused() {
    let mut setup = hooked(HookEvent::UserPromptSubmit, &[], &["guard"]);
    let start = hooked(HookEvent::SessionStart, &["startup"], &["start"]);
    setup.hooks.events.extend(start.hooks.events);
    let mut talk = Talk::ready(setup);
    let start = runs(&talk.prompt("My password is x."));
    let context = json!({"verdict": "pass", "context": "Be brief."});
    let guard = runs(&answer(&mut talk, &start[0], &context));
    answer(&mut talk, &guard[0], &json!({"verdict": "block", "reason": "no secrets"}));
    let guard = runs(&talk.prompt("Go."));
    assert_eq!(named(&guard), ["guard_hook"], "the start's hook runs once");
    answer(&mut talk, &guard[0], &pass());
    let said = format!("{:?}", talk.request().messages);
    assert!(said.contains("Be brief.") && !said.contains("password"), "{said}");
}
