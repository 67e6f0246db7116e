//! What becomes of a turn that the death of a process cut short.

use crate::{Decode, Encode};

/// Policy for a turn that the death of a process cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum OpenTurn {
    /// It waits for a person: its calls get made-up results.
    Waits,
    /// It goes on where it was: calls that were never let go are run, then the model is asked.
    GoesOn,
}
