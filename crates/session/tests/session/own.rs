//! Calls that the conversation answers itself: checklists and a search of its own words.

use super::talk::{setup, tool};
use protocol::call::{Call, CallOrigin, CallStage, ToolResult};
use protocol::content::{ContentBlock, StopReason, Usage};
use protocol::ids::{CallId, SessionId};
use protocol::judgement::ToolKind;
use protocol::provider::{AnswerDelta, FromProvider};
use protocol::session::{FromSession, OpenTurn, SessionEvent, SessionSetup, ToSession};
use serde_json::{Value, json};
use session::Session;

fn with_own() -> SessionSetup {
    let mut setup = setup();
    for name in ["checklist_create", "checklist_update", "history_search"] {
        setup.tools.push(tool(name, ToolKind::Query));
    }
    setup
}

fn id(number: u32) -> CallId {
    CallId { session: SessionId("0123456789ab".into()), number }
}

/// A conversation in which these calls had these ends, as its journal has it.
fn replayed(happened: Vec<SessionEvent>) -> Session {
    let mut session = Session::new(with_own(), super::talk::reader);
    for happened in happened {
        session.step(ToSession::Replay(happened));
    }
    session.step(ToSession::ReplayDone { then: OpenTurn::Waits, compact: None });
    session
}

/// A call in its answer, and its end.
fn ended(number: u32, name: &str, input: &Value, result: ToolResult) -> Vec<SessionEvent> {
    let use_id = format!("toolu_{number}");
    let origin = CallOrigin::model(use_id.clone());
    let (name, input) = (name.to_owned(), input.to_string());
    let block = ContentBlock::ToolUse { id: use_id, name: name.clone(), input: input.clone() };
    let call = Call { id: id(number), origin: origin.clone(), tool: name, input };
    vec![
        SessionEvent::Answer {
            round: number,
            blocks: vec![block],
            usage: Usage::default(),
            cost: None,
        },
        SessionEvent::Called { call },
        SessionEvent::ended(id(number), origin, result),
    ]
}

/// The model makes these calls in one answer; each is ended with what the conversation says.
fn asked(session: &mut Session, calls: &[(&str, Value)]) -> Vec<ToolResult> {
    let said = session.step(ToSession::Prompt { text: "Go on.".into(), expanded: None });
    let round = round_of(&said);
    for (at, (name, input)) in (0..).zip(calls) {
        let start =
            AnswerDelta::ToolStart { id: format!("new_{round}_{at}"), name: (*name).into() };
        let deltas = [start, AnswerDelta::ToolInput(input.to_string()), AnswerDelta::BlockDone];
        for delta in deltas {
            session.step(ToSession::Stream(FromProvider::Delta { round, index: at, delta }));
        }
    }
    let mut words = end(session, round, StopReason::ToolUse);
    let mut results = Vec::new();
    while let Some(answered) = words.iter().find_map(|word| match word {
        FromSession::Answered { call, result, .. } => Some((call.id.clone(), result.clone())),
        _ => None,
    }) {
        assert!(!words.iter().any(|word| matches!(word, FromSession::Run { .. })), "{words:?}");
        let (call, result) = answered;
        results.push(result.clone());
        words = session.step(ToSession::CallEnded { call, stage: CallStage::Ended, result });
    }
    let round = round_of(&words);
    for delta in [AnswerDelta::Text("Done.".into()), AnswerDelta::BlockDone] {
        session.step(ToSession::Stream(FromProvider::Delta { round, index: 0, delta }));
    }
    end(session, round, StopReason::EndTurn);
    results
}

/// The request that is open now.
fn round_of(words: &[FromSession]) -> u32 {
    let mut rounds = words.iter().filter_map(|word| match word {
        FromSession::Ask(request) => Some(request.round),
        _ => None,
    });
    rounds.next_back().expect("the model is asked")
}

fn end(session: &mut Session, round: u32, stop: StopReason) -> Vec<FromSession> {
    let usage = Usage::default();
    session.step(ToSession::Stream(FromProvider::Ended { round, stop, usage, model: "m".into() }))
}

fn create(group: &str, items: &[&str]) -> (&'static str, Value) {
    ("checklist_create", json!({"group": group, "title": "The release", "items": items}))
}

fn update(group: &str, item: &str, status: &str) -> (&'static str, Value) {
    ("checklist_update", json!({"group": group, "item": item, "status": status}))
}

#[test]
fn a_list_is_made_and_worked_off_in_the_order_asked() {
    let mut session = replayed(Vec::new());
    let results = asked(
        &mut session,
        &[
            create("r", &["build", "test", "tag"]),
            update("r", "build", "done"),
            update("r", "2", "in_progress"),
            update("r", "tag", "failed"),
        ],
    );
    assert_eq!(results.len(), 4, "each waits for the one before it");
    let last = results.last().unwrap();
    assert_eq!(
        last.text,
        "The release (r): 1 of 3 done, 1 failed\n[x] 1. build\n[>] 2. test\n[!] 3. tag\n"
    );
    assert_eq!(last.summary, "The release: 1 of 3 done, 1 failed, now: test");
    assert!(!last.is_error);
}

#[test]
fn what_is_no_list_or_no_step_of_one_is_an_error_and_changes_nothing() {
    let mut session = replayed(Vec::new());
    let long = "x".repeat(301);
    let many: Vec<String> = (0..101).map(|i| i.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let rows = [
        (update("r", "build", "done"), "not_found", "no checklist \"r\""),
        (create("r", &[]), "invalid_arguments", "1 to 100 items"),
        (create("r", &many), "invalid_arguments", "this one 101"),
        (create("r", &["a", " "]), "invalid_arguments", "items[1]"),
        (create("r", &["a", &long]), "invalid_arguments", "items[1]"),
        (create("r", &["a", "a"]), "invalid_arguments", "twice"),
        (create(" ", &["a"]), "invalid_arguments", "group"),
        (create("two\nlines", &["a"]), "invalid_arguments", "group"),
    ];
    for (call, code, words) in rows {
        let result = asked(&mut session, std::slice::from_ref(&call)).remove(0);
        assert_eq!(result.code.as_deref(), Some(code), "{call:?}: {}", result.text);
        assert!(result.is_error && result.text.contains(words), "{}", result.text);
    }
    asked(&mut session, &[create("r", &["a", "b"])]);
    for (call, code, words) in [
        (update("s", "a", "done"), "not_found", "There are r."),
        (update("r", "c", "done"), "not_found", "[ ] 1. a\n[ ] 2. b"),
        (update("r", "0", "done"), "not_found", "no item"),
        (update("r", "3", "done"), "not_found", "no item"),
        (update("r", "a", "finished"), "invalid_arguments", "in_progress"),
    ] {
        let result = asked(&mut session, std::slice::from_ref(&call)).remove(0);
        assert_eq!(result.code.as_deref(), Some(code), "{call:?}: {}", result.text);
        assert!(result.text.contains(words), "{}", result.text);
    }
    let lists: Vec<_> = (0..20).map(|i| i.to_string()).collect();
    let results: Vec<_> =
        lists.iter().flat_map(|group| asked(&mut session, &[create(group, &["a"])])).collect();
    assert_eq!(results.iter().filter(|result| result.is_error).count(), 1, "one list is there");
}

/// Only what is on disk as a success counts: a denied call changed nothing.
#[test]
fn a_replayed_conversation_knows_its_lists() {
    let mut first = replayed(Vec::new());
    let made = asked(&mut first, &[create("r", &["a", "b"])]).remove(0);
    let done = asked(&mut first, &[update("r", "a", "done")]).remove(0);
    let denied = ToolResult { is_error: true, ..done.clone() };
    let mut happened = vec![SessionEvent::Prompt { text: "Release it.".into(), expanded: None }];
    happened.extend(ended(1, "checklist_create", &create("r", &["a", "b"]).1, made));
    happened.extend(ended(2, "checklist_update", &update("r", "a", "done").1, done));
    happened.extend(ended(3, "checklist_update", &update("r", "b", "done").1, denied));
    let mut session = replayed(happened);
    let result = asked(&mut session, &[update("r", "b", "in_progress")]).remove(0);
    assert!(result.text.contains("1 of 2 done\n[x] 1. a\n[>] 2. b\n"), "{}", result.text);
}

#[test]
fn earlier_words_are_found_in_the_order_of_time() {
    let mut happened = Vec::new();
    for (round, (prompt, answer)) in (1..).zip([
        ("Where is the PARSER?", "The parser lies in src/parse.rs."),
        ("And the lexer?", "Beside it."),
        ("Straße?", &"word ".repeat(200)),
    ]) {
        happened.push(SessionEvent::Prompt { text: prompt.into(), expanded: None });
        let blocks = vec![ContentBlock::Text { text: answer.into() }];
        happened.push(SessionEvent::Answer { round, blocks, usage: Usage::default(), cost: None });
    }
    let mut session = replayed(happened);
    for (input, expected) in [
        (
            json!({"keyword": "parser"}),
            "1. person: Where is the PARSER?\n2. you: The parser lies in src/parse.rs.\n",
        ),
        (
            json!({"keyword": "parser", "limit": 1}),
            "[… 1 earlier messages left out; raise limit …]\n2. you: The parser lies in src/parse.rs.\n",
        ),
        (json!({"keyword": "STRASSE"}), "no message of this session holds \"STRASSE\"\n"),
        (json!({"keyword": "straße"}), "5. person: Straße?\n"),
    ] {
        let result = asked(&mut session, &[("history_search", input.clone())]).remove(0);
        assert_eq!(result.text, expected, "{input}");
    }
    let result = asked(&mut session, &[("history_search", json!({"keyword": "word"}))]).remove(0);
    assert!(result.text.ends_with("…\n") && result.text.chars().count() < 350, "{}", result.text);
    let result = asked(&mut session, &[("history_search", json!({"keyword": " "}))]).remove(0);
    assert_eq!(result.code.as_deref(), Some("invalid_arguments"));
}

/// What was left out to make room the model finds by its words, in this life and the next.
#[test]
fn words_that_are_sent_no_more_are_found() {
    let text = "A bittern, in the reeds.";
    let answer = |text: &str| vec![ContentBlock::Text { text: text.into() }];
    let mut happened = vec![
        SessionEvent::Prompt { text: "Which bird is that?".into(), expanded: None },
        SessionEvent::Answer {
            round: 1,
            blocks: answer(text),
            usage: Usage::default(),
            cost: None,
        },
    ];
    for round in 2..8 {
        happened.push(SessionEvent::Prompt { text: "And that?".into(), expanded: None });
        let blocks = answer(&"A heron. ".repeat(200));
        happened.push(SessionEvent::Answer { round, blocks, usage: Usage::default(), cost: None });
    }
    let mut session = replayed(happened.clone());
    let sent = |session: &mut Session| {
        let words = session.step(ToSession::Prompt { text: "Now?".into(), expanded: None });
        end(session, round_of(&words), StopReason::EndTurn);
        format!("{words:?}")
    };
    assert!(sent(&mut session).contains("bittern"), "the control");
    let words = session.step(ToSession::Compact { focus: String::new() });
    let [FromSession::Commit(compacted)] = &words[..] else { panic!("{words:?}") };
    happened.push(compacted.clone());
    for mut session in [session, replayed(happened)] {
        assert!(!sent(&mut session).contains("bittern"), "it is sent no more");
        let search = ("history_search", json!({"keyword": "bittern"}));
        assert_eq!(asked(&mut session, &[search]).remove(0).text, format!("2. you: {text}\n"));
    }
}

/// Room is made where the list was made; what is left to do stays in sight, what is done does not,
/// and neither is taken for something that a person asked when room is made again.
#[test]
fn checklists_that_are_open_survive_a_compaction() {
    let mut session = replayed(Vec::new());
    asked(&mut session, &[create("r", &["- build", "test"]), update("r", "1", "done")]);
    asked(&mut session, &[create("over", &["only step"]), update("over", "1", "done")]);
    for _ in 0..2 {
        for _ in 0..4 {
            asked(&mut session, &[("history_search", json!({"keyword": "x".repeat(200)}))]);
        }
        let words = session.step(ToSession::Compact { focus: String::new() });
        assert!(matches!(words[..], [FromSession::Commit(SessionEvent::Compacted { .. })]));
        let words = session.step(ToSession::Prompt { text: "And now?".into(), expanded: None });
        let sent = words.iter().find_map(|word| match word {
            FromSession::Ask(request) => Some(request.messages[0].blocks[0].clone()),
            _ => None,
        });
        let Some(ContentBlock::Text { text: head }) = sent else { panic!("{words:?}") };
        let list = "not done, as they are now:\nThe release (r): 1 of 2 done\n[x] 1. - build\n[ ] 2. test\n";
        assert_eq!(head.matches(list).count(), 1, "{head}");
        assert!(!head.contains("only step"), "{head}");
        end(&mut session, round_of(&words), StopReason::EndTurn);
    }
}
