//! The steps of a summary that the model writes in place of the oldest messages.

use super::{Decode, Encode, Usage};
use serde::{Deserialize, Serialize};

/// Why a conversation is made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum CompactionCause {
    /// A person asked for it.
    Person,
    /// The context is nearly full.
    Full,
}

impl From<bool> for CompactionCause {
    /// On disk: true if a person asked for it.
    fn from(by_person: bool) -> Self {
        if by_person { Self::Person } else { Self::Full }
    }
}

impl From<CompactionCause> for bool {
    fn from(cause: CompactionCause) -> Self {
        cause == CompactionCause::Person
    }
}

/// A step towards a summary, or an edit of it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum SummaryStep {
    /// The model is asked for it.
    Asked {
        /// Number of messages that it will replace.
        dropped: u32,
        /// Bytes of earlier prompts that stay word for word.
        prompt_bytes: u32,
        /// A person's words about its focus; may be empty.
        focus: String,
        /// Why.
        #[serde(rename = "by_person")]
        cause: CompactionCause,
    },
    /// It came.
    Written {
        /// The request's number.
        round: u32,
        /// The whole text.
        text: String,
        /// Tokens.
        usage: Usage,
        /// What it cost, in millionths of a US dollar; absent where that is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<u64>,
    },
    /// It did not come.
    Failed {
        /// The request's number.
        round: u32,
        /// Why, in plain words.
        reason: String,
        /// Tokens.
        usage: Usage,
        /// As in `Written`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<u64>,
    },
    /// A person replaced its text.
    Edited {
        /// The whole text.
        text: String,
    },
}

impl SummaryStep {
    /// The tokens and the cost of the model's answer, if this is its end.
    #[must_use]
    pub fn use_of_model(&self) -> Option<(Usage, Option<u64>)> {
        match self {
            Self::Written { usage, cost, .. } | Self::Failed { usage, cost, .. } => {
                Some((*usage, *cost))
            }
            Self::Asked { .. } | Self::Edited { .. } => None,
        }
    }
}
