//! What cage this host allows, as it was found; and found again where it was none, since what failed
//! may have been a full disk and no kernel. For the root, and whoever opens sessions.

use protocol::confinement::Tier;
use std::sync::{Mutex, PoisonError};

/// The strongest cage this host allows.
#[derive(Debug)]
pub struct HostTier {
    found: Mutex<Tier>,
    probe: fn() -> Tier,
}

impl HostTier {
    /// What was found at the start, and how to look again.
    #[must_use]
    pub fn new(found: Tier, probe: fn() -> Tier) -> Self {
        Self { found: Mutex::new(found), probe }
    }

    /// As it was found last.
    pub(crate) fn last_known(&self) -> Tier {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a session that opens. Takes some 20 ms where none was found before.
    pub(crate) fn current(&self) -> Tier {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if *found == Tier::C {
            *found = (self.probe)();
        }
        *found
    }
}
