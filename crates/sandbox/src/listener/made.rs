//! Notes what a command in tier B makes of shared memory, so that it can be counted and removed.

use super::notice::Notice;
use super::processes::Processes;
use super::writes::{Claim, Deed};
use crate::seccomp::Role;
use crate::shared_memory::{SHM, Seen};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// Where it is noted.
#[derive(Debug)]
pub(super) struct Made {
    seen: Seen,
    /// `/dev/shm`, and where that really is.
    places: Vec<PathBuf>,
}

impl Made {
    pub(super) fn new(seen: Seen) -> Self {
        let mut places = vec![PathBuf::from(SHM)];
        places.extend(Path::new(SHM).canonicalize().ok().filter(|real| real != Path::new(SHM)));
        Self { seen, places }
    }

    /// Notes new names. To be called before the caller goes on.
    pub(super) fn names(&self, claims: &[Claim]) {
        for claim in claims.iter().filter(|claim| makes(claim.deed)) {
            for place in self.places.iter().filter(|place| claim.path.starts_with(place)) {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.name(&claim.path, place);
            }
        }
    }

    /// Notes the caller as one that may have made a System V segment.
    pub(super) fn segment(&self, notice: &Notice, processes: &Processes) {
        if let Some(status) = processes.status(notice.tid) {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).process(status.tgid);
        }
    }
}

/// Whether a name may come into being.
fn makes(deed: Deed) -> bool {
    match deed {
        Deed::Open(flags) => flags & libc::O_CREAT != 0,
        Deed::Name(Role::Made | Role::Replaced, _) => true,
        Deed::Name(Role::Removed | Role::Linked | Role::Changed(..), _) => false,
    }
}
