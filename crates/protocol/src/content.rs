//! What a conversation is made of, in words that belong to no vendor.

use crate::{Decode, Encode};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Role {
    /// The person, and the results of tools.
    User,
    /// The model.
    Assistant,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Block {
    /// Words.
    Text {
        /// Never empty in what is sent to a model.
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
    /// What a call came to.
    ToolResult {
        /// The id of its `ToolUse`.
        id: String,
        /// For the model.
        text: String,
        /// Whether the call failed.
        is_error: bool,
    },
}

/// One turn of one speaker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// In order; never empty in what is sent to a model.
    pub blocks: Vec<Block>,
}

/// A tool as a model is told of it.
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
    /// What the model is told before the conversation.
    pub system: String,
    /// In the table's order.
    pub tools: Vec<ToolSpec>,
    /// Alternating roles, the user first, every call with its result.
    pub messages: Vec<Message>,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    /// The text of pinned files that changed. It belongs to this request and is no part of the
    /// conversation.
    pub updated: Option<FilesUpdated>,
    /// Whether the answer may call tools.
    pub calls: MayCall,
}

/// Whether an answer may call tools. They are named in the request all the same: the vendors want to
/// know those of earlier calls, and their caches the same beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum MayCall {
    /// As it likes.
    Yes,
    /// Words only: what a turn may call is used up.
    No,
}

/// The current text of pinned files that changed. How it is marked is the vendor's custom.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FilesUpdated {
    /// Each file between marks of its own.
    pub text: String,
    /// Where it stands.
    pub place: UpdatePlace,
}

/// Where changed files stand among the results of a round, in interfaces that have both places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum UpdatePlace {
    /// Behind all of them.
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
    /// Cut at `max_tokens`; an unfinished call of it does not run.
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
