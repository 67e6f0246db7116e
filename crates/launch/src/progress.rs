//! Which messages of a worker count as progress. Used by the worker actor.

use crate::restart::WorkerProgress;
use protocol::broker::FromBroker;
use protocol::provider::FromProvider;
use protocol::session::FromSession;
use protocol::store::FromStore;

/// Progress resets the count of failures; log lines do not count.
pub trait MessageProgress {
    /// If this message is progress.
    fn progress(&self) -> WorkerProgress;
}

impl MessageProgress for FromSession {
    fn progress(&self) -> WorkerProgress {
        match self {
            // A pong is also sent before the journal is replayed.
            Self::Log(_) | Self::Pong(_) => WorkerProgress::NoProgress,
            Self::Ready
            | Self::Commit(_)
            | Self::Ask(_)
            | Self::StatPinned { .. }
            | Self::TakeJoining
            | Self::Run { .. }
            | Self::Ahead { .. }
            | Self::Answered { .. }
            | Self::CancelAsk
            | Self::NotCompacted { .. }
            | Self::Context(_)
            | Self::Notice { .. }
            | Self::HooksEnded { .. }
            | Self::CancelCall(_) => WorkerProgress::Progressed,
        }
    }
}

impl MessageProgress for FromProvider {
    fn progress(&self) -> WorkerProgress {
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

impl MessageProgress for FromBroker {
    fn progress(&self) -> WorkerProgress {
        match self {
            Self::Log(_) => WorkerProgress::NoProgress,
            Self::Ready { .. }
            | Self::Ahead { .. }
            | Self::Verdict { .. }
            | Self::Replied { .. }
            | Self::Rejected { .. }
            | Self::Pong(_) => WorkerProgress::Progressed,
        }
    }
}

impl MessageProgress for FromStore {
    fn progress(&self) -> WorkerProgress {
        match self {
            Self::Log(_) => WorkerProgress::NoProgress,
            Self::Ready
            | Self::Instructions { .. }
            | Self::Answered { .. }
            | Self::BackedUp { .. }
            | Self::ChangesRecorded(_)
            | Self::BackupsFetched { .. }
            | Self::ChangesFetched { .. }
            | Self::CacheAnswer { .. }
            | Self::UndoCovers { .. }
            | Self::Pong(_) => WorkerProgress::Progressed,
        }
    }
}
