//! How a session whose last turn has no end is opened again.

use super::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// Policy for a turn that the death of a process cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum OpenTurn {
    /// It waits for a person: its calls get made-up results.
    Waits,
    /// It goes on where it was: calls that were never let go are run, then the model is asked.
    GoesOn,
}

/// A session that was restored from the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct RestoredSession {
    /// The last record of the lost host.
    pub last_seq: u64,
    /// The last record that the restored workspace includes the effects of.
    pub snapshot_seq: u64,
}

impl RestoredSession {
    /// True if a contained call that began with this record on the lost host left nothing here: all its
    /// effects were in the workspace of that host, and the newest snapshot of it is older.
    #[must_use]
    pub fn lacks(&self, start_seq: u64) -> bool {
        self.snapshot_seq < start_seq && start_seq <= self.last_seq
    }
}
