//! The strongest cage that this host allows. If none was found, each opening session probes again:
//! the cause may have been a full disk and not the kernel. For the root and the session opener.

use protocol::confinement::Tier;
use std::sync::{Mutex, PoisonError};

/// The strongest cage this host allows.
#[derive(Debug)]
pub struct HostTier {
    found: Mutex<Tier>,
    probe: fn() -> Tier,
}

impl HostTier {
    /// The tier found at the start, and the function that probes again.
    #[must_use]
    pub fn new(found: Tier, probe: fn() -> Tier) -> Self {
        Self { found: Mutex::new(found), probe }
    }

    /// The tier found by the last probe.
    pub(crate) fn last_known(&self) -> Tier {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tier for a session that opens. Takes some 20 ms if no cage was found before.
    pub(crate) fn current(&self) -> Tier {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if *found == Tier::C {
            *found = (self.probe)();
        }
        *found
    }
}
