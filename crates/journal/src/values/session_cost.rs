//! What a session cost so far, as far as that is known.

use super::{Decode, Encode};

/// The cost of a session's answers and of its sub-agents, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub enum SessionCost {
    /// No cost is known.
    #[default]
    Unknown,
    /// All of it.
    Whole(u64),
    /// An answer had no price.
    AtLeast(u64),
}

impl SessionCost {
    /// With one more answer, or one more sub-agent.
    pub(crate) fn add(&mut self, cost: Option<u64>) {
        *self = match (*self, cost) {
            (Self::Unknown, Some(cost)) => Self::Whole(cost),
            (Self::Unknown, None) => Self::AtLeast(0),
            (Self::Whole(before), Some(cost)) => Self::Whole(before.saturating_add(cost)),
            (Self::AtLeast(before), Some(cost)) => Self::AtLeast(before.saturating_add(cost)),
            (Self::Whole(before) | Self::AtLeast(before), None) => Self::AtLeast(before),
        };
    }
}
