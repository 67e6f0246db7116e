//! The strongest cage that this host allows. If none was found, each opening session probes again:
//! the cause may have been a full disk and not the kernel. For the root and the session opener.

use protocol::confinement::Tier;
use sandbox::CageError;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The strongest cage this host allows.
#[derive(Debug)]
pub struct HostTier {
    found: Mutex<Tier>,
    root: PathBuf,
    probe: fn(&Path) -> Result<Tier, CageError>,
}

impl HostTier {
    /// Probes with this function in this directory, now and whenever no cage was found before.
    ///
    /// # Errors
    /// If the directory cannot be used.
    pub fn probed(
        root: &Path,
        probe: fn(&Path) -> Result<Tier, CageError>,
    ) -> Result<Self, CageError> {
        Ok(Self { found: Mutex::new(probe(root)?), root: root.to_owned(), probe })
    }

    /// The tier found by the last probe.
    #[must_use]
    pub fn last_known(&self) -> Tier {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tier for a session that opens. Takes some 20 ms if no cage was found before.
    ///
    /// # Errors
    /// If the directory cannot be used, on a full disk for example.
    pub(crate) fn current(&self) -> Result<Tier, CageError> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if *found == Tier::C {
            *found = (self.probe)(&self.root)?;
        }
        Ok(*found)
    }
}
