//! Which messages of a worker count as progress. Used by the worker actor.

use crate::worker::restart::WorkerProgress;
use protocol::broker::FromBroker;
use protocol::provider::FromProvider;
use protocol::session::FromSession;
use protocol::store::FromStore;

/// Progress resets the count of failures; log lines do not count.
pub(crate) trait Progress {
    fn said(&self) -> WorkerProgress;
}

impl Progress for FromSession {
    fn said(&self) -> WorkerProgress {
        match self {
            // A sign of life comes before the journal is replayed, too.
            Self::Log(_) | Self::Pong(_) => WorkerProgress::NoProgress,
            Self::Ready
            | Self::Commit(_)
            | Self::Ask(_)
            | Self::StatPinned { .. }
            | Self::Run { .. }
            | Self::Answered { .. }
            | Self::CancelAsk
            | Self::NotCompacted
            | Self::CancelCall(_) => WorkerProgress::Progressed,
        }
    }
}

impl Progress for FromProvider {
    fn said(&self) -> WorkerProgress {
        match self {
            Self::Log(_) => WorkerProgress::NoProgress,
            Self::Ready
            | Self::Delta { .. }
            | Self::Retrying { .. }
            | Self::Ended { .. }
            | Self::Failed { .. }
            | Self::Cancelled { .. }
            | Self::Notice { .. }
            | Self::Pong(_) => WorkerProgress::Progressed,
        }
    }
}

impl Progress for FromBroker {
    fn said(&self) -> WorkerProgress {
        match self {
            Self::Log(_) => WorkerProgress::NoProgress,
            Self::Ready { .. } | Self::Verdict { .. } | Self::Rejected { .. } | Self::Pong(_) => {
                WorkerProgress::Progressed
            }
        }
    }
}

impl Progress for FromStore {
    fn said(&self) -> WorkerProgress {
        match self {
            Self::Log(_) => WorkerProgress::NoProgress,
            Self::Ready
            | Self::Foreword(_)
            | Self::Answered { .. }
            | Self::Kept(_)
            | Self::Settled(_)
            | Self::Fetched { .. }
            | Self::Recalled { .. }
            | Self::Pong(_) => WorkerProgress::Progressed,
        }
    }
}
