//! A supervisor's side of a conversation, for tests, and the vendors' law on requests.
#![allow(dead_code, clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use protocol::call::{Call, Outcome, ToolResult};
use protocol::content::{Block, Message, ModelRequest, Role, StopReason, ToolSpec, Usage};
use protocol::ids::{CallId, SessionId};
use protocol::judgement::ToolKind;
use protocol::provider::{Delta, FromProvider};
use protocol::session::{
    Copies, FromSession, Happened, OfferedTool, OpenTurn, OtherName, SessionSetup, ToSession,
    TurnEnd,
};
use session::Session;
use std::collections::HashSet;

pub fn tool(name: &str, kind: ToolKind, aliases: &[&str]) -> OfferedTool {
    OfferedTool {
        spec: ToolSpec {
            name: name.into(),
            description: "A tool.".into(),
            input_schema: "{\"type\":\"object\"}".into(),
        },
        kind,
        aliases: aliases.iter().map(|a| other_name(a)).collect(),
        copies: match name {
            "write" | "edit" | "delete" | "undo_restore" => Copies::Kept,
            "bash" => Copies::Compared,
            _ => Copies::None,
        },
    }
}

pub fn setup() -> SessionSetup {
    SessionSetup {
        id: SessionId("0123456789ab".into()),
        model: "m".into(),
        system: "s".into(),
        tools: vec![
            tool("read", ToolKind::Query, &["read_file {\"raw\":true}", "view"]),
            tool("grep", ToolKind::Query, &[]),
            tool("write", ToolKind::Mutation, &[]),
            tool("bash", ToolKind::Mutation, &["shell_exec"]),
        ],
        max_rounds: 25,
        max_calls: 300,
        max_session_calls: None,
        max_tokens: 1000,
        parallel: 4,
        max_result_chars: 30_000,
        context: None,
        pinned: Vec::new(),
        verifiers: Vec::new(),
        formatters: Vec::new(),
    }
}

/// `name`, or `name {defaults}`.
fn other_name(text: &str) -> OtherName {
    let (name, defaults) = text.split_once(' ').unwrap_or((text, "{}"));
    OtherName { name: name.into(), defaults: defaults.into() }
}

/// A session and everything it said.
pub struct Talk {
    pub session: Session,
    pub said: Vec<FromSession>,
}

impl Talk {
    /// Ready, with nothing replayed.
    pub fn ready(setup: SessionSetup) -> Self {
        Self::replayed(setup, Vec::new())
    }

    pub fn replayed(setup: SessionSetup, journal: Vec<Happened>) -> Self {
        let mut talk = Self { session: Session::new(setup), said: Vec::new() };
        for happened in journal {
            talk.tell(ToSession::Replay(happened));
        }
        talk.tell(ToSession::ReplayDone { then: OpenTurn::Waits });
        talk
    }

    /// Says a word; what came of it.
    pub fn tell(&mut self, word: ToSession) -> Vec<FromSession> {
        let out = self.session.step(word);
        self.said.extend(out.iter().cloned());
        out
    }

    pub fn prompt(&mut self, text: &str) -> Vec<FromSession> {
        self.tell(ToSession::Prompt { text: text.into() })
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
        self.tell(ToSession::CallEnded { call: call_id(number), result: done(text) })
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
            FromSession::Commit(Happened::TurnEnded { end }) => Some(end.clone()),
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
                push(Delta::Text((*text).into()));
                push(Delta::BlockDone);
            }
            Say::Think(raw) => push(Delta::ThinkingDone { raw: (*raw).into() }),
            Say::Use(id, name, input) => {
                push(Delta::ToolStart { id: (*id).into(), name: (*name).into() });
                push(Delta::ToolInput((*input).into()));
                push(Delta::BlockDone);
            }
            Say::CutUse(id, name, input) => {
                push(Delta::ToolStart { id: (*id).into(), name: (*name).into() });
                push(Delta::ToolInput((*input).into()));
            }
        }
    }
    words
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
    }
}

pub fn runs(words: &[FromSession]) -> Vec<Call> {
    let run = |word: &FromSession| match word {
        FromSession::Run(call) => Some(call.clone()),
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
        FromSession::Commit(Happened::Result { call, result, .. }) => {
            Some((call.number, result.clone()))
        }
        _ => None,
    };
    words.iter().filter_map(result).collect()
}

pub fn user(text: &str) -> Message {
    Message { role: Role::User, blocks: vec![Block::Text { text: text.into() }] }
}

pub fn assistant(text: &str) -> Message {
    Message { role: Role::Assistant, blocks: vec![Block::Text { text: text.into() }] }
}

/// What the vendors refuse a request for.
pub fn lawful(request: &ModelRequest) -> Result<(), String> {
    let messages = &request.messages;
    if messages.first().map(|m| m.role) != Some(Role::User) {
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
                Block::ToolResult { id, .. } => Some(id.clone()),
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
                (_, Block::Text { text }) if text.trim().is_empty() => {
                    return Err(format!("message {at} has an empty text"));
                }
                (Role::User, Block::ToolResult { text, .. }) => {
                    if place >= results {
                        return Err(format!("message {at} answers what was not asked"));
                    }
                    if text.trim().is_empty() {
                        return Err(format!("message {at} has an empty result"));
                    }
                }
                (Role::Assistant, Block::ToolUse { id, .. }) => {
                    if id.is_empty() || !use_ids.insert(id.clone()) {
                        return Err(format!("the id {id:?} is there twice"));
                    }
                    want.push(id.clone());
                }
                (_, Block::Text { .. }) | (Role::Assistant, Block::Thinking { .. }) => {}
                (role, block) => return Err(format!("{role:?} may not say {block:?}")),
            }
        }
        if message.role == Role::Assistant
            && matches!(message.blocks.last(), Some(Block::Thinking { .. }))
        {
            return Err(format!("message {at} ends with thinking"));
        }
    }
    if want.is_empty() { Ok(()) } else { Err(format!("{want:?} were never answered")) }
}
