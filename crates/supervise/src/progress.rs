//! What a worker's word says of its life. Used by the worker actor.

use crate::restart::Said;
use protocol::broker::FromBroker;
use protocol::provider::FromProvider;
use protocol::session::FromSession;
use protocol::store::FromStore;

/// What a word says of the worker's life: lines for the log are no work.
pub(crate) trait Progress {
    fn said(&self) -> Said;
}

impl Progress for FromSession {
    fn said(&self) -> Said {
        match self {
            // A sign of life comes before the journal is replayed, too.
            Self::Log(_) | Self::Pong(_) => Said::Nothing,
            Self::Ready
            | Self::Commit(_)
            | Self::Ask(_)
            | Self::StatPinned { .. }
            | Self::Run { .. }
            | Self::Answered { .. }
            | Self::CancelAsk
            | Self::NotCompacted
            | Self::CancelCall(_) => Said::Something,
        }
    }
}

impl Progress for FromProvider {
    fn said(&self) -> Said {
        match self {
            Self::Log(_) => Said::Nothing,
            Self::Ready
            | Self::Delta { .. }
            | Self::Retrying { .. }
            | Self::Ended { .. }
            | Self::Failed { .. }
            | Self::Cancelled { .. }
            | Self::Notice { .. }
            | Self::Pong(_) => Said::Something,
        }
    }
}

impl Progress for FromBroker {
    fn said(&self) -> Said {
        match self {
            Self::Log(_) => Said::Nothing,
            Self::Ready { .. } | Self::Verdict { .. } | Self::Rejected { .. } | Self::Pong(_) => {
                Said::Something
            }
        }
    }
}

impl Progress for FromStore {
    fn said(&self) -> Said {
        match self {
            Self::Log(_) => Said::Nothing,
            Self::Ready
            | Self::Foreword(_)
            | Self::Answered { .. }
            | Self::Kept(_)
            | Self::Settled(_)
            | Self::Fetched { .. }
            | Self::Recalled { .. }
            | Self::Pong(_) => Said::Something,
        }
    }
}
