//! The steps of an answer, in vendor-neutral terms; made by the decoders, used by
//! [`crate::stream`].

use protocol::content::{StopReason, Usage};
use protocol::provider::AnswerDelta;
use std::time::Duration;

/// Largest content of one answer in bytes. An answer that is larger than the largest request
/// could never be sent back, so there is no use in having it.
pub const CONTENT_CAP: usize = 32 << 20;

/// One step, decoded from an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerStep {
    /// A piece of block `index`.
    Piece {
        /// The block's place in the answer.
        index: u32,
        /// The piece.
        delta: AnswerDelta,
    },
    /// The server began its answer again; everything before is void.
    StartedOver,
    /// The answer is whole. Nothing follows.
    Ended(AnswerEnd),
    /// The server gave up. Nothing follows.
    Failed(ServerError),
}

/// How a whole answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerEnd {
    /// Why.
    pub stop: StopReason,
    /// Tokens.
    pub usage: Usage,
    /// The model's own name.
    pub model: String,
}

/// The server's own words for its failure, read by `crate::server_error`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerError {
    /// The vendor's name for it, for example `overloaded_error`.
    pub kind: String,
    /// For people.
    pub message: String,
    /// The vendor's number of the request, where the error gave one.
    pub request_id: Option<String>,
    /// The wait that it asks for.
    pub wait: Option<Duration>,
    /// The HTTP status that it would have been.
    pub status: Option<u16>,
    /// The error is about a daily quota, which no retry can wait for.
    pub day_is_used_up: bool,
}

/// The stream violates the vendor's format, so none of it can be trusted.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// An event's data is not JSON, or one of its fields has the wrong type.
    #[error("event `{event}` is not in the vendor's format")]
    Format {
        /// Its name as far as it is known.
        event: String,
        /// Where it went wrong.
        source: serde_json::Error,
    },
    /// An event lacks something.
    #[error("event `{event}` has no {what}")]
    Lacks {
        /// Its name.
        event: String,
        /// The missing field.
        what: &'static str,
    },
    /// A piece or an end of a block that is not open, or a second beginning.
    #[error("event `{event}` is out of place at block {index}")]
    OutOfPlace {
        /// Its name.
        event: String,
        /// The index of the block.
        index: u32,
    },
    /// The answer ended without saying why.
    #[error("the answer ended without a reason (stop_reason)")]
    NoReason,
    /// More than [`CONTENT_CAP`].
    #[error("the answer's content is larger than {CONTENT_CAP} bytes")]
    TooLarge,
}

impl FormatError {
    pub(crate) fn lacks(event: &str, what: &'static str) -> Self {
        Self::Lacks { event: event.to_owned(), what }
    }

    pub(crate) fn out_of_place(event: &str, index: u32) -> Self {
        Self::OutOfPlace { event: event.to_owned(), index }
    }
}

/// Converts the token counts of a vendor that includes cache tokens in the prompt's count; ours
/// excludes them.
pub(crate) fn with_cache_apart(prompt: Option<u64>, cache: (Option<u64>, Option<u64>)) -> Usage {
    let (cache_read, cache_write) = cache;
    let cached = cache_read.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
    let input = prompt.map(|all| all.saturating_sub(cached));
    Usage { input, output: None, cache_read, cache_write }
}

/// The rest of [`CONTENT_CAP`]; every piece of an answer is counted against it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ContentBudget {
    outcome: usize,
}

impl ContentBudget {
    /// Says a piece, if there is room for it.
    pub(crate) fn emit(
        &mut self,
        index: u32,
        delta: AnswerDelta,
        out: &mut Vec<AnswerStep>,
    ) -> Result<(), FormatError> {
        self.admit(size(&delta))?;
        out.push(AnswerStep::Piece { index, delta });
        Ok(())
    }

    /// Takes room for bytes that are kept here and said later.
    pub(crate) fn admit(&mut self, bytes: usize) -> Result<(), FormatError> {
        self.outcome += bytes;
        match self.outcome > CONTENT_CAP {
            true => Err(FormatError::TooLarge),
            false => Ok(()),
        }
    }
}

/// The content of a piece in bytes.
pub(crate) fn size(delta: &AnswerDelta) -> usize {
    match delta {
        AnswerDelta::Text(text) | AnswerDelta::Thinking(text) | AnswerDelta::ToolInput(text) => {
            text.len()
        }
        AnswerDelta::ThinkingDone { raw } => raw.len(),
        AnswerDelta::ToolStart { id, name } => id.len() + name.len(),
        AnswerDelta::BlockDone => 0,
    }
}
