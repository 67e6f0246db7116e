//! The parts of a conversation, independent of any vendor.

use crate::{Decode, Encode};
pub use journal::{ContentBlock, ImageRef, MediaType, Usage};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum MessageRole {
    /// The person, and the results of tools.
    User,
    /// The model.
    Assistant,
}

/// An image with its bytes.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct ImageFile {
    /// Which.
    pub image: ImageRef,
    /// Its bytes.
    pub data: Vec<u8>,
}

impl std::fmt::Debug for ImageFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ImageFile({:?}, {} bytes)", self.image, self.data.len())
    }
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
    /// The bytes of the images that the messages show. The conversation leaves this empty; the
    /// supervisor reads them from the journal for the provider.
    pub images: Vec<ImageFile>,
    /// The JSON Schema of the turn's last answer, for a model that can be held to it.
    pub answer_schema: Option<String>,
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
