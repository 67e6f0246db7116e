//! The record of a summary that the model writes in place of the oldest messages. Part of
//! [`crate::JournalRecord`].

use crate::values::Usage;
use serde::{Deserialize, Serialize};

/// A step towards a summary, or an edit of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum SummaryRecord {
    /// The model is asked for it.
    Asked {
        /// Number of messages that it will replace.
        dropped: u32,
        /// Bytes of earlier prompts that stay word for word.
        prompt_bytes: u32,
        /// A person's words about its focus; may be empty.
        focus: String,
        /// True if a person asked for it, not the size of the context.
        by_person: bool,
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

impl SummaryRecord {
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
