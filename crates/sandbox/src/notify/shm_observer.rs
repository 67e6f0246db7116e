//! Records the shared memory that a command in tier B creates, so that it can be measured and
//! removed.

use super::notify_fd::Notification;
use super::predicted_write::{PathAction, PathClaim};
use super::proc_reader::ProcReader;
use crate::seccomp::EntryChange;
use crate::usage::shared_memory::{SHM, SharedShmCreations};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// Observes creations in `/dev/shm` and System V segments.
#[derive(Debug)]
pub(super) struct ShmObserver {
    seen: SharedShmCreations,
    /// `/dev/shm`, and its real path if that differs.
    places: Vec<PathBuf>,
}

impl ShmObserver {
    pub(super) fn new(seen: SharedShmCreations) -> Self {
        let mut places = vec![PathBuf::from(SHM)];
        places.extend(Path::new(SHM).canonicalize().ok().filter(|real| real != Path::new(SHM)));
        Self { seen, places }
    }

    /// Records new names. Call it before the caller continues.
    pub(super) fn names(&self, claims: &[PathClaim]) {
        for claim in claims.iter().filter(|claim| makes(claim.action)) {
            for place in self.places.iter().filter(|place| claim.path.starts_with(place)) {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.add_name(&claim.path, place);
            }
        }
    }

    /// Records the caller as a possible creator of a System V segment.
    pub(super) fn segment(&self, notice: &Notification, processes: &ProcReader) {
        if let Some(status) = processes.status(notice.tid) {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).add_process(status.tgid);
        }
    }
}

/// True if this action may create a name.
fn makes(action: PathAction) -> bool {
    match action {
        PathAction::Open(flags) => flags & libc::O_CREAT != 0,
        PathAction::Name(EntryChange::Made | EntryChange::Replaced, _) => true,
        PathAction::Name(
            EntryChange::Removed | EntryChange::Linked | EntryChange::Changed(..),
            _,
        ) => false,
    }
}
