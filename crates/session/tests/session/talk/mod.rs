//! A supervisor's side of a conversation, for tests, and the vendors' law on requests.
#![allow(dead_code, clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use protocol::call::{Call, CallStage, Outcome, ReadStamp, ToolResult};
use protocol::client::ModelFacts;
use protocol::content::{
    ContentBlock, Message, MessageRole, ModelRequest, StopReason, ToolSpec, Usage,
};
use protocol::context::{CompactionKind, ContextSettings};
use protocol::ids::{CallId, SessionId};
use protocol::judgement::ToolKind;
use protocol::provider::{AnswerDelta, FromProvider};
use protocol::session::{
    CopyBeforeChange, FileStamp, FromSession, OfferedTool, OpenTurn, PinnedNews, PinnedStamp,
    SessionBounds, SessionEvent, SessionSetup, ToSession, ToolListing, TurnEnd,
};
use serde_json::{Map, Value};
use session::{CallError, ReadCall, Session};
use std::collections::{HashMap, HashSet};

pub fn tool(name: &str, kind: ToolKind) -> OfferedTool {
    OfferedTool {
        spec: ToolSpec {
            name: name.into(),
            description: "A tool.".into(),
            input_schema: "{\"type\":\"object\"}".into(),
        },
        kind,
        copies: match name {
            "write" | "edit" | "delete" | "undo_restore" => CopyBeforeChange::Kept,
            "bash" => CopyBeforeChange::Compared,
            _ => CopyBeforeChange::None,
        },
        aliases: Vec::new(),
        listing: ToolListing::Always,
    }
}

pub fn setup() -> SessionSetup {
    SessionSetup {
        id: SessionId("0123456789ab".into()),
        project: "/p".into(),
        model: "m".into(),
        system: "s".into(),
        tools: vec![
            tool("read", ToolKind::Query),
            tool("grep", ToolKind::Query),
            tool("write", ToolKind::Mutation),
            tool("bash", ToolKind::Mutation),
        ],
        max_rounds: 25,
        max_calls: 300,
        max_session: SessionBounds::default(),
        max_tokens: 1000,
        parallel: 4,
        context: ContextSettings { max_result_chars: 30_000, compaction: CompactionKind::Cut },
        facts: ModelFacts::default(),
        pinned: Vec::new(),
        hooks: protocol::hook::SessionHooks::default(),
        mode: protocol::judgement::PermissionMode::Ask,
    }
}

/// A table of tools that takes every object: what the real one takes is for its own tests to say.
pub fn reader(name: &str, input: &str, project: &str) -> Result<ReadCall, CallError> {
    let (tool, raw) = match name {
        "read_file" => ("read", true),
        "view" => ("read", false),
        "shell_exec" => ("bash", false),
        other => (other, false),
    };
    let none = |tool: Option<&str>, code: &str, why: &str| CallError {
        tool: tool.map(str::to_owned),
        result: Box::new(ToolResult::error(Outcome::Invalid, code, name, why, "")),
    };
    if name == "raed" {
        return Err(none(None, "unknown_tool", "there is none"));
    }
    let fields: Map<String, Value> = serde_json::from_str(input)
        .map_err(|error| none(Some(tool), "invalid_arguments", &error.to_string()))?;
    let at = |field: &str| match fields.get(field) {
        Some(Value::String(path)) => vec![path.clone()],
        Some(Value::Array(paths)) => {
            paths.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    let paths = [at("path"), at("paths")].concat();
    let note = (name == "view").then(|| format!("[read in {project}]"));
    let input = match raw && !fields.contains_key("raw") {
        true => Value::from_iter(fields.into_iter().chain([("raw".to_owned(), true.into())])),
        false => return Ok(call(tool, input.to_owned(), note, paths)),
    };
    Ok(call(tool, input.to_string(), note, paths))
}

fn call(tool: &str, input: String, note: Option<String>, paths: Vec<String>) -> ReadCall {
    let removed = if tool == "delete" { paths.clone() } else { Vec::new() };
    ReadCall { tool: tool.to_owned(), input, note, paths, removed }
}

/// A session and everything it said.
pub struct Talk {
    pub session: Session,
    pub said: Vec<FromSession>,
    /// How often a person edited each pinned file. A file without a number has no stamp.
    pub edits: HashMap<String, Option<u64>>,
}

impl Talk {
    /// Ready, with nothing replayed.
    pub fn ready(setup: SessionSetup) -> Self {
        Self::replayed(setup, Vec::new())
    }

    pub fn replayed(setup: SessionSetup, journal: Vec<SessionEvent>) -> Self {
        let mut talk = Self::before_replay(setup);
        for happened in journal {
            talk.tell(ToSession::Replay(happened));
        }
        talk.tell(ToSession::ReplayDone { then: OpenTurn::Waits, compact: None });
        talk
    }

    /// Nothing is replayed yet.
    pub fn before_replay(setup: SessionSetup) -> Self {
        Self { session: Session::new(setup, reader), said: Vec::new(), edits: HashMap::new() }
    }

    /// Says a word; what came of it. Stamps of pinned files are answered at once.
    pub fn tell(&mut self, word: ToSession) -> Vec<FromSession> {
        let mut out = self.session.step(word);
        if let Some(FromSession::StatPinned { check, files }) = out.last() {
            let stamps = files.iter().map(|file| self.stamp(file)).collect();
            let word = PinnedNews::Stamps { check: *check, began: i64::MAX, stamps };
            let word = ToSession::Pinned(word);
            out.extend(self.session.step(word));
        }
        self.said.extend(out.iter().cloned());
        out
    }

    /// A person edits a pinned file.
    pub fn edit(&mut self, file: &str) {
        let edits = self.edits.entry(file.to_owned()).or_insert(Some(0));
        *edits = edits.map(|edits| edits + 1);
    }

    fn stamp(&self, file: &str) -> PinnedStamp {
        let edits = self.edits.get(file).copied().unwrap_or(Some(0));
        let stamp = edits.map_or(FileStamp::Unknown, |size| {
            FileStamp::Found(ReadStamp { device: 1, inode: 1, size, modified: 1, changed: 1 })
        });
        PinnedStamp { file: file.to_owned(), stamp }
    }

    pub fn prompt(&mut self, text: &str) -> Vec<FromSession> {
        self.tell(ToSession::Prompt { text: text.into(), expanded: None })
    }

    /// Streams an answer to the open request.
    pub fn answer(&mut self, blocks: &[Say], stop: StopReason) -> Vec<FromSession> {
        let round = self.round();
        for word in stream(round, blocks) {
            assert_eq!(self.tell(ToSession::Stream(word)), []);
        }
        self.end(stop)
    }

    pub fn end(&mut self, stop: StopReason) -> Vec<FromSession> {
        let round = self.round();
        let usage = Usage { input: Some(3), output: Some(4), ..Usage::default() };
        self.tell(ToSession::Stream(FromProvider::Ended { round, stop, usage, model: "m".into() }))
    }

    pub fn call_ended(&mut self, number: u32, text: &str) -> Vec<FromSession> {
        self.tell(call_ended(call_id(number), done(text)))
    }

    /// What the journal would hold.
    pub fn journal(&self) -> Vec<SessionEvent> {
        let event = |word: &FromSession| match word {
            FromSession::Commit(happened) => Some(happened.clone()),
            _ => None,
        };
        self.said.iter().filter_map(event).collect()
    }

    /// The newest request.
    pub fn request(&self) -> &ModelRequest {
        requests(&self.said).pop().unwrap()
    }

    pub fn round(&self) -> u32 {
        requests(&self.said).pop().map_or(0, |request| request.round)
    }

    /// What the journal would hold: commits, and the results that calls ended with.
    pub fn last_end(&self) -> Option<TurnEnd> {
        self.said.iter().rev().find_map(|word| match word {
            FromSession::Commit(SessionEvent::TurnEnded { end }) => Some(end.clone()),
            _ => None,
        })
    }
}

/// A block of an answer.
#[derive(Debug, Clone)]
pub enum Say {
    Text(&'static str),
    Think(&'static str),
    Use(&'static str, &'static str, &'static str),
    CutUse(&'static str, &'static str, &'static str),
}

pub fn stream(round: u32, blocks: &[Say]) -> Vec<FromProvider> {
    let mut words = Vec::new();
    for (index, block) in (0..).zip(blocks) {
        let mut push = |delta| words.push(FromProvider::Delta { round, index, delta });
        match block {
            Say::Text(text) => {
                push(AnswerDelta::Text((*text).into()));
                push(AnswerDelta::BlockDone);
            }
            Say::Think(raw) => push(AnswerDelta::ThinkingDone { raw: (*raw).into() }),
            Say::Use(id, name, input) => {
                push(AnswerDelta::ToolStart { id: (*id).into(), name: (*name).into() });
                push(AnswerDelta::ToolInput((*input).into()));
                push(AnswerDelta::BlockDone);
            }
            Say::CutUse(id, name, input) => {
                push(AnswerDelta::ToolStart { id: (*id).into(), name: (*name).into() });
                push(AnswerDelta::ToolInput((*input).into()));
            }
        }
    }
    words
}

/// The end of a call, as the supervisor tells it.
pub fn call_ended(call: CallId, result: ToolResult) -> ToSession {
    ToSession::CallEnded { call, stage: CallStage::Ended, result }
}

pub fn call_id(number: u32) -> CallId {
    CallId { session: SessionId("0123456789ab".into()), number }
}

pub fn done(text: &str) -> ToolResult {
    ToolResult {
        outcome: Outcome::Done,
        text: text.into(),
        summary: "done".into(),
        is_error: false,
        code: None,
        images: Vec::new(),
    }
}

pub fn runs(words: &[FromSession]) -> Vec<Call> {
    let run = |word: &FromSession| match word {
        FromSession::Run { call, .. } => Some(call.clone()),
        _ => None,
    };
    words.iter().filter_map(run).collect()
}

pub fn requests(words: &[FromSession]) -> Vec<&ModelRequest> {
    words
        .iter()
        .filter_map(|word| match word {
            FromSession::Ask(request) => Some(request),
            _ => None,
        })
        .collect()
}

pub fn results(words: &[FromSession]) -> Vec<(u32, ToolResult)> {
    let result = |word: &FromSession| match word {
        FromSession::Commit(SessionEvent::Result { call, result, .. }) => {
            Some((call.number, result.clone()))
        }
        _ => None,
    };
    words.iter().filter_map(result).collect()
}

pub fn user(text: &str) -> Message {
    Message { role: MessageRole::User, blocks: vec![ContentBlock::Text { text: text.into() }] }
}

pub fn assistant(text: &str) -> Message {
    Message { role: MessageRole::Assistant, blocks: vec![ContentBlock::Text { text: text.into() }] }
}

/// What the vendors refuse a request for.
pub fn lawful(request: &ModelRequest) -> Result<(), String> {
    let messages = &request.messages;
    if messages.first().map(|m| m.role) != Some(MessageRole::User) {
        return Err("the first message is not the user's".into());
    }
    let mut use_ids = HashSet::new();
    let mut want: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message.blocks.is_empty() {
            return Err(format!("message {at} is empty"));
        }
        if at > 0 && messages[at - 1].role == message.role {
            return Err(format!("message {at} repeats the role"));
        }
        let given: Vec<String> = message
            .blocks
            .iter()
            .take(want.len())
            .filter_map(|block| match block {
                ContentBlock::ToolResult { id, .. } => Some(id.clone()),
                _ => None,
            })
            .collect();
        if given != want {
            return Err(format!("message {at} answers {given:?} where {want:?} were asked"));
        }
        let results = want.len();
        want.clear();
        for (place, block) in message.blocks.iter().enumerate() {
            match (message.role, block) {
                (_, ContentBlock::Text { text }) if text.trim().is_empty() => {
                    return Err(format!("message {at} has an empty text"));
                }
                (MessageRole::User, ContentBlock::ToolResult { text, .. }) => {
                    if place >= results {
                        return Err(format!("message {at} answers what was not asked"));
                    }
                    if text.trim().is_empty() {
                        return Err(format!("message {at} has an empty result"));
                    }
                }
                (MessageRole::Assistant, ContentBlock::ToolUse { id, .. }) => {
                    if id.is_empty() || !use_ids.insert(id.clone()) {
                        return Err(format!("the id {id:?} is there twice"));
                    }
                    want.push(id.clone());
                }
                (_, ContentBlock::Text { .. })
                | (MessageRole::Assistant, ContentBlock::Thinking { .. }) => {}
                (role, block) => return Err(format!("{role:?} may not say {block:?}")),
            }
        }
        if message.role == MessageRole::Assistant
            && matches!(message.blocks.last(), Some(ContentBlock::Thinking { .. }))
        {
            return Err(format!("message {at} ends with thinking"));
        }
    }
    if want.is_empty() { Ok(()) } else { Err(format!("{want:?} were never answered")) }
}
