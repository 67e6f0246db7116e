//! What holds whatever words come in whatever order.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod talk;

use proptest::prelude::*;
use protocol::call::Call;
use protocol::content::{Block, StopReason, Usage};
use protocol::ids::CallId;
use protocol::provider::{Delta, Failure, FromProvider};
use protocol::session::{FromSession, Happened, SessionSetup, ToSession, TurnEnd};
use std::collections::{HashMap, HashSet};
use talk::*;

fn stop() -> impl Strategy<Value = StopReason> {
    prop_oneof![
        4 => Just(StopReason::ToolUse),
        2 => Just(StopReason::EndTurn),
        1 => Just(StopReason::MaxTokens),
        1 => Just(StopReason::PauseTurn),
        1 => Just(StopReason::Refusal { explanation: "no".into() }),
        1 => Just(StopReason::ContextFull),
        1 => Just(StopReason::Other("newer".into())),
    ]
}

fn short(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(words).prop_map(str::to_owned)
}

fn delta() -> impl Strategy<Value = Delta> {
    prop_oneof![
        short(&["", " ", "word"]).prop_map(Delta::Text),
        Just(Delta::Thinking("hm".into())),
        Just(Delta::ThinkingDone { raw: "{}".into() }),
        (short(&["", "a", "b", "c"]), short(&["read", "write", "bash", "nope", "read_file"]))
            .prop_map(|(id, name)| Delta::ToolStart { id, name }),
        short(&["", "{}", "{\"a\":", "1}", "[]"]).prop_map(Delta::ToolInput),
        Just(Delta::BlockDone),
    ]
}

/// A request's number: mostly the open one, sometimes a late or foreign one.
fn round() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![8 => Just(None), 1 => (0_u32..6).prop_map(Some)]
}

/// A word whose request number is still to be filled in.
#[derive(Debug, Clone)]
enum Word {
    Fixed(ToSession),
    Stream(Option<u32>, FromProvider),
}

fn word() -> impl Strategy<Value = Word> {
    let usage = Usage::default();
    let ended = move |stop| FromProvider::Ended { round: 0, stop, usage, model: "m".into() };
    prop_oneof![
        12 => (round(), 0_u32..4, delta()).prop_map(|(round, index, delta)| {
            Word::Stream(round, FromProvider::Delta { round: 0, index, delta })
        }),
        4 => (round(), stop()).prop_map(move |(round, stop)| Word::Stream(round, ended(stop))),
        1 => round().prop_map(|round| Word::Stream(round, FromProvider::Cancelled { round: 0 })),
        1 => round().prop_map(|round| Word::Stream(round, FromProvider::Retrying {
            round: 0, attempt: 2, of: 5, wait_ms: 0, reason: "broken".into(),
        })),
        1 => round().prop_map(|round| Word::Stream(round, FromProvider::Failed {
            round: 0, kind: Failure::Unreachable, message: "gone".into(),
        })),
        6 => (1_u32..12, short(&["", "out"])).prop_map(|(number, text)| {
            Word::Fixed(ToSession::CallEnded { call: call_id(number), result: done(&text) })
        }),
        3 => short(&["", " ", "do"]).prop_map(|text| Word::Fixed(ToSession::Prompt { text })),
        1 => Just(Word::Fixed(ToSession::Interrupt)),
        1 => Just(Word::Fixed(ToSession::ReplayDone)),
        1 => happened().prop_map(|happened| Word::Fixed(ToSession::Replay(happened))),
    ]
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        short(&["", " ", "word"]).prop_map(|text| Block::Text { text }),
        Just(Block::Thinking { text: String::new(), raw: "{}".into() }),
        (short(&["", "a", "b", "c", "d", "e"]), short(&["read", "bash", "nope"]))
            .prop_map(|(id, name)| Block::ToolUse { id, name, input: "{}".into() }),
        Just(Block::ToolResult { id: "a".into(), text: "x".into(), is_error: false }),
    ]
}

/// A record of a journal, sensible or not.
fn happened() -> impl Strategy<Value = Happened> {
    let id = || short(&["", "a", "b", "c", "d", "e"]);
    prop_oneof![
        short(&["", "do"]).prop_map(|text| Happened::Prompt { text }),
        (0_u32..9, proptest::collection::vec(block(), 0..4)).prop_map(|(round, blocks)| {
            Happened::Answer { round, blocks, usage: Usage::default() }
        }),
        (1_u32..9, id()).prop_map(|(number, use_id)| Happened::Called {
            call: Call { id: call_id(number), use_id, tool: "read".into(), input: "{}".into() }
        }),
        (1_u32..9, id()).prop_map(|(number, use_id)| Happened::Result {
            call: call_id(number),
            use_id,
            result: done("out"),
        }),
        prop_oneof![
            Just(TurnEnd::Done),
            Just(TurnEnd::Interrupted),
            Just(TurnEnd::Declined { explanation: String::new() }),
        ]
        .prop_map(|end| Happened::TurnEnded { end }),
    ]
}

/// Watches what a session says, as the supervisor would.
#[derive(Default)]
struct Watch {
    open_round: Option<u32>,
    last_round: u32,
    named: HashMap<CallId, Call>,
    running: HashSet<CallId>,
    answered: HashSet<CallId>,
    /// Vendor's ids of the newest answer that was committed.
    answer: Vec<String>,
}

impl Watch {
    fn hear(&mut self, word: &FromSession) -> Result<(), TestCaseError> {
        match word {
            FromSession::Ask(request) => {
                prop_assert_eq!(lawful(request), Ok(()));
                prop_assert!(request.round > self.last_round, "numbers rise");
                prop_assert_eq!(self.open_round, None, "one request at a time");
                prop_assert!(self.running.is_empty(), "calls end before the next request");
                let all = self.named.keys().all(|call| self.answered.contains(call));
                prop_assert!(all, "every call has its result");
                self.last_round = request.round;
                self.open_round = Some(request.round);
            }
            FromSession::CancelAsk => {
                prop_assert!(self.open_round.take().is_some());
            }
            FromSession::Commit(Happened::Answer { blocks, .. }) => {
                self.answer = blocks
                    .iter()
                    .filter_map(|block| match block {
                        Block::ToolUse { id, .. } => Some(id.clone()),
                        _ => None,
                    })
                    .collect();
            }
            FromSession::Commit(Happened::Called { call }) => {
                prop_assert!(self.named.insert(call.id.clone(), call.clone()).is_none());
            }
            FromSession::Commit(Happened::Result { call, result, .. }) => {
                prop_assert!(!self.running.contains(call), "{result:?}");
                prop_assert!(self.answered.insert(call.clone()), "one result each");
            }
            FromSession::Run(call) => {
                prop_assert_eq!(self.named.get(&call.id), Some(call), "named before it runs");
                prop_assert!(self.answer.contains(&call.use_id), "from an answer that ended");
                prop_assert!(!self.answered.contains(&call.id));
                prop_assert!(self.running.insert(call.id.clone()));
                let input: serde_json::Value = serde_json::from_str(&call.input).unwrap();
                prop_assert!(input.is_object());
            }
            FromSession::Commit(Happened::TurnEnded { .. }) => {
                prop_assert!(self.running.is_empty());
                self.open_round = None;
            }
            FromSession::CancelCall(call) => prop_assert!(self.running.contains(call)),
            FromSession::Commit(Happened::Prompt { .. })
            | FromSession::Ready
            | FromSession::Pong(_)
            | FromSession::Log(_) => {}
        }
        Ok(())
    }
}

fn small() -> SessionSetup {
    SessionSetup { max_rounds: 6, max_calls: 8, parallel: 2, ..setup() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_lawful_and_nothing_unfinished_runs(
        journal in proptest::collection::vec(happened(), 0..12),
        words in proptest::collection::vec(word(), 0..120),
    ) {
        let mut watch = Watch::default();
        let mut session = session::Session::new(small());
        for happened in journal {
            // Calls of a journal have their names and results there.
            if let Happened::Called { call } = &happened {
                watch.named.entry(call.id.clone()).or_insert_with(|| call.clone());
                watch.answered.insert(call.id.clone());
            }
            prop_assert!(session.step(ToSession::Replay(happened)).is_empty());
        }
        // What a journal leaves open is closed under the names it gave.
        for word in session.step(ToSession::ReplayDone) {
            match &word {
                FromSession::Commit(Happened::Result { call, .. }) => { watch.answered.insert(call.clone()); }
                other => watch.hear(other)?,
            }
        }
        for word in words {
            let word = match word {
                Word::Fixed(word) => word,
                Word::Stream(round, mut word) => {
                    let filled = round.unwrap_or(watch.last_round);
                    match &mut word {
                        FromProvider::Delta { round, .. }
                        | FromProvider::Retrying { round, .. }
                        | FromProvider::Ended { round, .. }
                        | FromProvider::Failed { round, .. }
                        | FromProvider::Cancelled { round } => *round = filled,
                        _ => {}
                    }
                    if matches!(word, FromProvider::Ended { .. } | FromProvider::Failed { .. } | FromProvider::Cancelled { .. })
                        && Some(filled) == watch.open_round
                    {
                        watch.open_round = None;
                    }
                    ToSession::Stream(word)
                }
            };
            if let ToSession::CallEnded { call, .. } = &word
                && watch.running.remove(call)
            {
                watch.answered.insert(call.clone());
            }
            for said in session.step(word) {
                watch.hear(&said)?;
            }
        }
    }
}
