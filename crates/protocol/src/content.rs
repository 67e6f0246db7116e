//! The parts of a conversation, independent of any vendor.

use crate::{Decode, Encode};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum MessageRole {
    /// The person, and the results of tools.
    User,
    /// The model.
    Assistant,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ContentBlock {
    /// Words.
    Text {
        /// Never empty in a request to a model.
        text: String,
    },
    /// The model's reasoning, which must be sent back as it came.
    Thinking {
        /// For people; may be empty.
        text: String,
        /// The vendor's block as JSON, byte for byte.
        raw: String,
    },
    /// A call the model asks for.
    ToolUse {
        /// The vendor's id, which pairs it with its result.
        id: String,
        /// As the model said it, known or not.
        name: String,
        /// Arguments as the model sent them; JSON, if it kept to it.
        input: String,
    },
    /// The result of a call.
    ToolResult {
        /// The id of its `ToolUse`.
        id: String,
        /// For the model.
        text: String,
        /// True if the call failed.
        is_error: bool,
    },
}

/// One turn of one speaker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Message {
    /// Who speaks.
    pub role: MessageRole,
    /// In order; never empty in a request to a model.
    pub blocks: Vec<ContentBlock>,
}

/// The description of a tool for a model.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ToolSpec {
    /// Its real name.
    pub name: String,
    /// Written for the model.
    pub description: String,
    /// JSON Schema of its arguments, byte-stable so that prompt caches hit.
    pub input_schema: String,
}

/// Everything one request to a model says.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ModelRequest {
    /// Counted from 1 over the session; names the request in every event about it.
    pub round: u32,
    /// The vendor's name of the model.
    pub model: String,
    /// The system prompt.
    pub system: String,
    /// In the table's order.
    pub tools: Vec<ToolSpec>,
    /// Alternating roles, the user first, every call with its result.
    pub messages: Vec<Message>,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    /// The current text of changed pinned files. Part of this request only, not of the
    /// conversation.
    pub updated: Option<FilesUpdated>,
    /// Tool choice for the answer.
    pub calls: ToolChoice,
}

/// Tool choice of a request. The request lists the tools either way: vendors require the tools of
/// earlier calls, and their caches need the same prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ToolChoice {
    /// As it likes.
    Yes,
    /// Text only: the turn has used up its calls.
    No,
}

/// The current text of pinned files that changed. How it is marked is the vendor's custom.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FilesUpdated {
    /// Each file between marks of its own.
    pub text: String,
    /// Where it stands.
    pub place: UpdatePosition,
}

/// Where changed files stand among the results of a round, in interfaces that have both places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum UpdatePosition {
    /// After all of them.
    BehindResults,
    /// At the end of the last one, where the model said nothing to it behind them.
    InsideLastResult,
}

/// Tokens of one answer, each known only where the vendor said it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct Usage {
    /// Read without the cache's help.
    pub input: Option<u64>,
    /// Written by the model.
    pub output: Option<u64>,
    /// Read from the vendor's cache.
    pub cache_read: Option<u64>,
    /// Written into the vendor's cache.
    pub cache_write: Option<u64>,
}

/// Why an answer ended, once its terminal event was seen.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum StopReason {
    /// The model is done.
    EndTurn,
    /// It wants its calls run.
    ToolUse,
    /// Cut at `max_tokens`; an incomplete call in it does not run.
    MaxTokens,
    /// A stop sequence of ours.
    StopSequence,
    /// The vendor's own tool loop paused: send the content back as it is and go on.
    PauseTurn,
    /// The model declines; the same text is not sent again.
    Refusal {
        /// The vendor's words; may be empty.
        explanation: String,
    },
    /// The context is full.
    ContextFull,
    /// A reason newer than this build, by its name.
    Other(String),
}
