//! The cages of a session's commands, as clients know them: their tier, and the places that calls are not granted,
//! since keys lie there or a command could have led the way to them. Pure.

use protocol::confinement::{Enforced, Tier};
use std::collections::BTreeSet;

/// What clients know of the cages.
#[derive(Debug)]
pub(super) struct KnownCages {
    /// At first the highest that the host and the configuration allow, then that of the last command.
    tier: Tier,
    /// The places, a sentence each.
    left_out: BTreeSet<String>,
}

impl KnownCages {
    pub(super) fn at_first(highest: Tier, left_out: &[String]) -> Self {
        Self { tier: highest, left_out: left_out.iter().cloned().collect() }
    }

    pub(super) fn tier(&self) -> Tier {
        self.tier
    }

    /// A call has this cage. Returns the places that clients do not know yet.
    pub(super) fn enforced(&mut self, enforced: &Enforced) -> Vec<String> {
        self.tier = enforced.of_command().unwrap_or(self.tier);
        let is_new = |text: &&String| self.left_out.insert((*text).clone());
        enforced.left_out.iter().filter(is_new).cloned().collect()
    }
}
