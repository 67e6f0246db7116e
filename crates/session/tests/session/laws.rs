//! What holds whatever words come in whatever order.

use super::talk::*;
use proptest::prelude::*;
use protocol::call::{Call, CallOrigin};
use protocol::content::{ContentBlock, StopReason, Usage};
use protocol::context::{
    Compaction, CompactionCause, CompactionKind, ContextSettings, SummaryStep,
};
use protocol::ids::CallId;
use protocol::provider::{AnswerDelta, FromProvider, ProviderFailure};
use protocol::session::{
    FileStamp, FromSession, JoiningWords, OpenTurn, PinnedNews, PinnedStamp, SessionEvent,
    SessionSetup, ToSession, TurnEnd,
};
use std::collections::{HashMap, HashSet};

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

fn delta() -> impl Strategy<Value = AnswerDelta> {
    prop_oneof![
        short(&["", " ", "word"]).prop_map(AnswerDelta::Text),
        Just(AnswerDelta::Thinking("hm".into())),
        Just(AnswerDelta::ThinkingDone { raw: "{}".into() }),
        (short(&["", "a", "b", "c"]), short(&["read", "write", "bash", "nope", "read_file"]))
            .prop_map(|(id, name)| AnswerDelta::ToolStart { id, name }),
        short(&["", "{}", "{\"a\":", "1}", "[]"]).prop_map(AnswerDelta::ToolInput),
        Just(AnswerDelta::BlockDone),
    ]
}

/// A request's number: mostly the open one, sometimes a late or foreign one.
fn round() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![8 => Just(None), 1 => (0_u32..6).prop_map(Some)]
}

/// A word whose request number is still to be filled in.
#[expect(clippy::large_enum_variant, reason = "most are messages of the supervisor")]
#[derive(Debug, Clone)]
enum Word {
    Fixed(ToSession),
    Stream(Option<u32>, FromProvider),
    /// The stamps that were asked for last.
    Stamps(FileStamp),
    /// A whole answer to the open request: words at random seldom make one.
    Answer(Vec<Say>, StopReason),
}

fn say() -> impl Strategy<Value = Say> {
    let id = || proptest::sample::select(&["a", "b", "c", ""][..]);
    let name = || proptest::sample::select(&["read", "read", "grep", "write", "bash", "nope"][..]);
    let input = || proptest::sample::select(&["{}", "{}", "", "{\"a\":"][..]);
    prop_oneof![
        1 => proptest::sample::select(&["", "words"][..]).prop_map(Say::Text),
        1 => Just(Say::Think("{}")),
        6 => (id(), name(), input()).prop_map(|(id, name, input)| Say::Use(id, name, input)),
        1 => (id(), name(), input()).prop_map(|(id, name, input)| Say::CutUse(id, name, input)),
    ]
}

impl Word {
    /// The words of the supervisor, with the number of the open request filled in.
    fn told(self, open: u32, asked: &Asked) -> Vec<ToSession> {
        match self {
            Self::Fixed(word) => vec![word],
            Self::Stream(round, word) => vec![ToSession::Stream(numbered(round, word, open))],
            Self::Stamps(stamp) => vec![asked.stamps(stamp)],
            Self::Answer(blocks, stop) => {
                let mut words: Vec<_> =
                    stream(open, &blocks).into_iter().map(ToSession::Stream).collect();
                let usage = Usage::default();
                let ended = FromProvider::Ended { round: open, stop, usage, model: "m".into() };
                words.push(ToSession::Stream(ended));
                words
            }
        }
    }
}

/// The stamps of pinned files that a session asked for last.
#[derive(Default)]
struct Asked {
    check: u32,
    files: Vec<String>,
}

impl Asked {
    fn hear(&mut self, word: &FromSession) {
        if let FromSession::StatPinned { check, files } = word {
            *self = Self { check: *check, files: files.clone() };
        }
    }

    fn stamps(&self, stamp: FileStamp) -> ToSession {
        let files = self.files.iter().cloned();
        let stamps = files.map(|file| PinnedStamp { file, stamp }).collect();
        ToSession::Pinned(PinnedNews::Stamps { check: self.check, began: 0, stamps })
    }
}

fn word() -> impl Strategy<Value = Word> {
    let usage = Usage::default();
    let ended = move |stop| FromProvider::Ended { round: 0, stop, usage, model: "m".into() };
    prop_oneof![
        12 => (round(), 0_u32..4, delta()).prop_map(|(round, index, delta)| {
            Word::Stream(round, FromProvider::Delta { round: 0, index, delta })
        }),
        4 => (round(), stop()).prop_map(move |(round, stop)| Word::Stream(round, ended(stop))),
        6 => (proptest::collection::vec(say(), 0..6), stop())
            .prop_map(|(blocks, stop)| Word::Answer(blocks, stop)),
        1 => round().prop_map(|round| Word::Stream(round, FromProvider::Cancelled { round: 0 })),
        1 => round().prop_map(|round| Word::Stream(round, FromProvider::Retrying {
            round: 0, attempt: 2, of: 5, wait_ms: 0, reason: "broken".into(),
        })),
        1 => round().prop_map(|round| Word::Stream(round, FromProvider::Failed {
            round: 0, kind: ProviderFailure::Unreachable, message: "gone".into(),
        })),
        12 => (1_u32..24, short(&["", "out"])).prop_map(|(number, text)| {
            Word::Fixed(super::talk::call_ended(call_id(number), done(&text)))
        }),
        2 => (1_u32..24).prop_map(|number| Word::Fixed(ToSession::BackgroundEnded {
            call: call_id(number), tool: "bash".into(), result: done("out"),
        })),
        3 => short(&["", " ", "do"]).prop_map(|text| Word::Fixed(ToSession::Prompt { text, expanded: None })),
        8 => proptest::sample::select(&[FileStamp::Missing, FileStamp::Unknown][..])
            .prop_map(Word::Stamps),
        3 => Just(Word::Fixed(ToSession::Joining(JoiningWords::Wait))),
        6 => proptest::collection::vec(short(&["", " ", "and then"]), 0..3)
            .prop_map(|texts| Word::Fixed(ToSession::Joining(JoiningWords::Taken(texts)))),
        1 => Just(Word::Fixed(ToSession::Interrupt)),
        2 => Just(Word::Fixed(ToSession::Compact { focus: String::new() })),
        2 => round().prop_map(|round| Word::Stream(round, FromProvider::Failed {
            round: 0, kind: ProviderFailure::ContextFull, message: "too long".into(),
        })),
        1 => Just(Word::Fixed(ToSession::ReplayDone { then: OpenTurn::Waits, compact: None })),
        1 => happened().prop_map(|happened| Word::Fixed(ToSession::Replay(happened))),
    ]
}

fn block() -> impl Strategy<Value = ContentBlock> {
    prop_oneof![
        short(&["", " ", "word"]).prop_map(|text| ContentBlock::Text { text }),
        Just(ContentBlock::Thinking { text: String::new(), raw: "{}".into() }),
        (short(&["", "a", "b", "c", "d", "e"]), short(&["read", "bash", "nope"]))
            .prop_map(|(id, name)| ContentBlock::ToolUse { id, name, input: "{}".into() }),
        Just(ContentBlock::ToolResult {
            id: "a".into(),
            text: "x".into(),
            is_error: false,
            images: vec![]
        }),
    ]
}

/// A step of a summary, sensible or not.
fn step() -> impl Strategy<Value = Compaction> {
    let (usage, cost) = (Usage::default(), None);
    prop_oneof![
        (0_u32..12, 0_u32..9).prop_map(|(dropped, prompt_bytes)| Compaction::Summary(
            SummaryStep::Asked {
                dropped,
                prompt_bytes,
                focus: "tests".into(),
                cause: CompactionCause::Full,
            }
        )),
        (0_u32..9).prop_map(move |round| {
            Compaction::Summary(SummaryStep::Written { round, text: "so far".into(), usage, cost })
        }),
        (0_u32..9).prop_map(move |round| {
            Compaction::Summary(SummaryStep::Failed { round, reason: "busy".into(), usage, cost })
        }),
        Just(Compaction::Summary(SummaryStep::Edited { text: "edited".into() })),
    ]
}

/// A call has no vendor's id where the model did not ask for it.
fn origin(use_id: String) -> CallOrigin {
    match use_id.is_empty() {
        true => CallOrigin::PromptPart,
        false => CallOrigin::Model { use_id },
    }
}

/// A record of a journal, sensible or not.
fn happened() -> impl Strategy<Value = SessionEvent> {
    let id = || short(&["", "a", "b", "c", "d", "e"]);
    prop_oneof![
        short(&["", "do"]).prop_map(|text| SessionEvent::Prompt { text, expanded: None }),
        (0_u32..9, proptest::collection::vec(block(), 0..4)).prop_map(|(round, blocks)| {
            SessionEvent::Answer { round, blocks, usage: Usage::default(), cost: None }
        }),
        (1_u32..9, id()).prop_map(|(number, use_id)| SessionEvent::Called {
            call: Call {
                id: call_id(number),
                origin: origin(use_id),
                tool: "read".into(),
                input: "{}".into(),
            }
        }),
        (1_u32..9, id()).prop_map(|(number, use_id)| {
            SessionEvent::ended(call_id(number), origin(use_id), done("out"))
        }),
        prop_oneof![
            Just(TurnEnd::Done),
            Just(TurnEnd::Interrupted),
            Just(TurnEnd::Declined { explanation: String::new() }),
        ]
        .prop_map(|end| SessionEvent::TurnEnded { end }),
        (1_u32..9).prop_map(|number| SessionEvent::BackgroundEnded {
            call: call_id(number),
            tool: "bash".into(),
            result: done("out"),
        }),
        (0_u32..12, 0_u32..4)
            .prop_map(|(dropped, result_chars)| Compaction::Cut {
                dropped,
                result_chars,
                old: dropped
            })
            .prop_map(SessionEvent::Compacted),
        step().prop_map(SessionEvent::Compacted),
        short(&["", "and then"]).prop_map(|text| SessionEvent::Joined { text }),
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
    /// What a word to the session ends.
    fn told(&mut self, word: &ToSession) {
        match word {
            ToSession::Stream(
                FromProvider::Ended { round, .. }
                | FromProvider::Failed { round, .. }
                | FromProvider::Cancelled { round },
            ) if Some(*round) == self.open_round => self.open_round = None,
            ToSession::CallEnded { call, .. } if self.running.remove(call) => {
                self.answered.insert(call.clone());
            }
            _ => {}
        }
    }

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
            FromSession::Commit(SessionEvent::Answer { blocks, .. }) => {
                self.answer = blocks
                    .iter()
                    .filter_map(|block| match block {
                        ContentBlock::ToolUse { id, .. } => Some(id.clone()),
                        _ => None,
                    })
                    .collect();
            }
            FromSession::Commit(SessionEvent::Called { call }) => {
                prop_assert!(self.named.insert(call.id.clone(), call.clone()).is_none());
            }
            FromSession::Commit(SessionEvent::Result { call, result, .. }) => {
                prop_assert!(!self.running.contains(call), "{result:?}");
                prop_assert!(self.answered.insert(call.clone()), "one result each");
            }
            FromSession::Ahead { call } => {
                prop_assert_eq!(self.named.get(&call.id), Some(call), "named before");
                prop_assert!(!self.answered.contains(&call.id) && !self.running.contains(&call.id));
                prop_assert!(!self.running.is_empty(), "it waits behind one that runs");
            }
            FromSession::Run { call, .. } | FromSession::Answered { call, .. } => {
                prop_assert_eq!(self.named.get(&call.id), Some(call), "named before it runs");
                let of_answer = match &call.origin {
                    CallOrigin::Model { use_id } => self.answer.contains(use_id),
                    own => *own == CallOrigin::PinnedRead,
                };
                prop_assert!(of_answer, "from an answer that ended");
                prop_assert!(!self.answered.contains(&call.id));
                let changes = |tool: &str| matches!(tool, "write" | "bash");
                let running = || self.running.iter().filter_map(|id| self.named.get(id));
                if changes(&call.tool) {
                    prop_assert!(self.running.is_empty(), "a change runs alone");
                } else {
                    prop_assert!(
                        !running().any(|call| changes(&call.tool)),
                        "a change is a barrier"
                    );
                    prop_assert!(self.running.len() < 2, "at most `parallel` at once");
                }
                prop_assert!(self.running.insert(call.id.clone()));
                let input: serde_json::Value = serde_json::from_str(&call.input).unwrap();
                prop_assert!(input.is_object());
            }
            FromSession::Commit(SessionEvent::TurnEnded { .. }) => {
                prop_assert!(self.running.is_empty());
                self.open_round = None;
            }
            FromSession::Commit(SessionEvent::Compacted { .. }) => {}
            FromSession::Commit(
                SessionEvent::BackgroundEnded { .. } | SessionEvent::Joined { .. },
            ) => {
                prop_assert!(false, "the supervisor records it");
            }
            FromSession::TakeJoining => prop_assert_eq!(self.open_round, None),
            FromSession::CancelCall(call) => prop_assert!(self.running.contains(call)),
            FromSession::Commit(SessionEvent::Prompt { .. })
            | FromSession::StatPinned { .. }
            | FromSession::Ready
            | FromSession::NotCompacted { .. }
            | FromSession::Notice { .. }
            | FromSession::Pong(_)
            | FromSession::Context(_)
            | FromSession::HooksEnded { .. }
            | FromSession::Log(_) => {}
        }
        Ok(())
    }
}

fn small() -> SessionSetup {
    let pinned = vec!["a.md".into(), "b.md".into(), "c.md".into()];
    let compaction = CompactionKind::Summary;
    let context = ContextSettings { compaction, ..setup().context };
    SessionSetup { max_rounds: 6, max_calls: 8, parallel: 2, pinned, context, ..setup() }
}

/// What is pinned is read anew by whoever is replayed.
fn unpinned() -> SessionSetup {
    SessionSetup { pinned: Vec::new(), ..small() }
}

/// Fills the number of the open request into a word of the provider.
fn numbered(round: Option<u32>, mut word: FromProvider, open: u32) -> FromProvider {
    let filled = round.unwrap_or(open);
    match &mut word {
        FromProvider::Delta { round, .. }
        | FromProvider::Retrying { round, .. }
        | FromProvider::Ended { round, .. }
        | FromProvider::Failed { round, .. }
        | FromProvider::Cancelled { round } => *round = filled,
        _ => {}
    }
    word
}

/// A supervisor that keeps a journal, as the real one does.
struct Keeper {
    session: session::Session,
    journal: Vec<SessionEvent>,
    running: HashMap<CallId, CallOrigin>,
    round: u32,
    last_messages: Vec<protocol::content::Message>,
}

impl Keeper {
    fn tell(&mut self, word: ToSession) {
        if matches!(word, ToSession::Joining(JoiningWords::Taken(_))) {
            // Said where it is asked for.
            return;
        }
        self.told(word);
    }

    fn told(&mut self, word: ToSession) {
        if let ToSession::BackgroundEnded { call, tool, result } = &word {
            let (call, tool, result) = (call.clone(), tool.clone(), result.clone());
            self.journal.push(SessionEvent::BackgroundEnded { call, tool, result });
        }
        if let ToSession::CallEnded { call, result, .. } = &word {
            let Some(origin) = self.running.remove(call) else { return };
            let (call, result) = (call.clone(), result.clone());
            self.journal.push(SessionEvent::ended(call, origin, result));
        }
        for said in self.session.step(word) {
            match said {
                FromSession::Commit(happened) => self.journal.push(happened),
                FromSession::Run { call, .. } | FromSession::Answered { call, .. } => {
                    self.running.insert(call.id, call.origin);
                }
                FromSession::Ask(request) => {
                    self.round = request.round;
                    self.last_messages = request.messages;
                }
                FromSession::TakeJoining => {
                    let text = "words that join".to_owned();
                    self.journal.push(SessionEvent::Joined { text: text.clone() });
                    self.told(ToSession::Joining(JoiningWords::Taken(vec![text])));
                }
                _ => {}
            }
        }
    }

    /// Ends whatever runs, then asks once more.
    fn ask_anew(&mut self) {
        self.tell(ToSession::Interrupt);
        for call in self.running.keys().cloned().collect::<Vec<_>>() {
            self.tell(super::talk::call_ended(call, done("late")));
        }
        // Prompts that waited run now; each is stopped in its turn.
        for _ in 0..200 {
            self.tell(ToSession::Interrupt);
        }
        self.tell(ToSession::Prompt { text: "anew".into(), expanded: None });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_lawful_and_nothing_unfinished_runs(
        journal in proptest::collection::vec(happened(), 0..12),
        words in proptest::collection::vec(word(), 0..120),
    ) {
        let mut watch = Watch::default();
        let mut session = session::Session::new(small(), reader);
        for happened in journal {
            // Calls of a journal have their names and results there.
            if let SessionEvent::Called { call } = &happened {
                watch.named.entry(call.id.clone()).or_insert_with(|| call.clone());
                watch.answered.insert(call.id.clone());
            }
            prop_assert!(session.step(ToSession::Replay(happened)).is_empty());
        }
        // What a journal leaves open is closed under the names it gave.
        for word in session.step(ToSession::ReplayDone { then: OpenTurn::Waits, compact: None }) {
            match &word {
                FromSession::Commit(SessionEvent::Result { call, .. }) => { watch.answered.insert(call.clone()); }
                other => watch.hear(other)?,
            }
        }
        let mut asked = Asked::default();
        for word in words {
            for word in word.told(watch.last_round, &asked) {
                watch.told(&word);
                for said in session.step(word) {
                    asked.hear(&said);
                    watch.hear(&said)?;
                }
            }
        }
    }

    #[test]
    fn a_replayed_session_asks_what_the_first_one_asks(
        words in proptest::collection::vec(word(), 0..120),
    ) {
        let mut keeper = Keeper {
            session: session::Session::new(unpinned(), reader),
            journal: Vec::new(),
            running: HashMap::new(),
            round: 0,
            last_messages: Vec::new(),
        };
        keeper.tell(ToSession::ReplayDone { then: OpenTurn::Waits, compact: None });
        for word in words {
            for word in word.told(keeper.round, &Asked::default()) {
                keeper.tell(word);
            }
        }
        keeper.ask_anew();
        // The journal up to the last prompt is what a new process is told.
        let anew = keeper.journal.pop();
        prop_assert_eq!(anew, Some(SessionEvent::Prompt { text: "anew".into(), expanded: None }));
        let mut again = Talk::replayed(unpinned(), keeper.journal);
        again.prompt("anew");
        prop_assert_eq!(&again.request().messages, &keeper.last_messages);
    }
}
