//! The phases of a call, and the steps and retries that it has behind it.

use crate::server_ask::ServerAsks;
use protocol::call::RunReport;
use protocol::confinement::Enforced;
use protocol::store::UndoCover;

/// How far a call is.
#[derive(Debug)]
pub(crate) enum CallPhase {
    New,
    /// The store searches a cached result.
    CacheLookup,
    /// The store collects the files to restore.
    FetchingRestore,
    /// A probe inspects the call's paths.
    Probing,
    /// The store finds out whether undo covers what the call may change.
    AskingUndo,
    /// The broker judges the call, or a person is asked.
    Judging,
    /// A runner was started for the call and has no `Go`.
    Starting {
        cage: CageState,
    },
    /// `Go` was sent to the runner of this cage, and it has not said that it began.
    Released {
        enforced: Enforced,
    },
    /// The runner has begun.
    Running,
    /// No runner executes it. START is being recorded; the request for it was not sent, which brings
    /// this phase.
    Recording {
        then: Box<CallPhase>,
    },
    /// The store executes the call.
    AtStore,
    /// Another call, whose command runs in the background, executes it. A server may ask people meanwhile.
    AtOtherCall(ServerAsks),
    /// A sub-agent does the work.
    AtSubAgent,
    /// The runner has reported; its process has not ended.
    Reported(Box<RunReport>),
    /// The runner ended by this cause before it could report, and another process restores the
    /// protected files.
    Repairing {
        cause: String,
    },
    Over,
}

/// The cage of a runner that has no `Go`.
#[derive(Debug)]
pub(crate) enum CageState {
    Building,
    Complete(Enforced),
    /// The runner is gone, or a process of its cage; others may live for seconds. No `Go` comes before all have ended.
    Lost,
}

/// Steps that a call takes once, in no fixed phase.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// START is written, and durable for a mutation; the decision is in the audit log, and the copies for undo are made or are not awaited any
    /// longer.
    pub(crate) go_prepared: bool,
    /// The conversation goes on while it runs.
    pub(crate) in_background: bool,
    /// Why the copies for undo are missing, if they are.
    pub(crate) without_copies: Option<String>,
    /// The store's answer about undo, where the verdict depends on it.
    pub(crate) undo_cover: Option<UndoCover>,
}

/// The retries that were used. Each is given once.
#[derive(Debug, Default)]
pub(crate) struct Retried {
    pub(crate) probe: bool,
    /// Of a runner that ended before `Go`.
    pub(crate) start: bool,
    /// Of a query that ended after `Go`.
    pub(crate) run: bool,
    pub(crate) store: bool,
}

impl CallPhase {
    /// The phase once the request that it waits for was sent. A phase that waits for none stays: a second request for
    /// the same call goes to the next store, or is an answer for a server.
    pub(crate) fn sent(self) -> Self {
        match self {
            Self::Starting { cage: CageState::Complete(enforced) } => Self::Released { enforced },
            Self::Recording { then } => *then,
            same @ (Self::New
            | Self::CacheLookup
            | Self::FetchingRestore
            | Self::Probing
            | Self::AskingUndo
            | Self::Judging
            | Self::Starting { cage: CageState::Building | CageState::Lost }
            | Self::Released { .. }
            | Self::Running
            | Self::AtStore
            | Self::AtOtherCall(_)
            | Self::AtSubAgent
            | Self::Reported(_)
            | Self::Repairing { .. }
            | Self::Over) => same,
        }
    }

    /// A runner has no `Go`: nothing of the call has happened.
    pub(crate) fn is_caging(&self) -> bool {
        matches!(self, Self::Probing | Self::Starting { .. })
    }

    /// A runner works for the call, or has reported and not ended.
    pub(crate) fn has_runner(&self) -> bool {
        match self {
            Self::Probing
            | Self::Starting { .. }
            | Self::Released { .. }
            | Self::Running
            | Self::Reported(_) => true,
            Self::New
            | Self::CacheLookup
            | Self::FetchingRestore
            | Self::AskingUndo
            | Self::Judging
            | Self::Recording { .. }
            | Self::AtStore
            | Self::AtOtherCall(_)
            | Self::AtSubAgent
            | Self::Repairing { .. }
            | Self::Over => false,
        }
    }

    /// No runner was started and no request to execute the call was sent.
    pub(crate) fn is_before_start(&self) -> bool {
        matches!(
            self,
            Self::New
                | Self::CacheLookup
                | Self::FetchingRestore
                | Self::AskingUndo
                | Self::Judging
                | Self::Recording { .. }
        )
    }

    /// It may have had an effect, and its end is not known.
    pub(crate) fn may_have_run(&self) -> bool {
        match self {
            Self::Released { .. }
            | Self::Running
            | Self::AtStore
            | Self::AtOtherCall(_)
            | Self::AtSubAgent
            | Self::Reported(_)
            | Self::Repairing { .. } => true,
            Self::New
            | Self::CacheLookup
            | Self::FetchingRestore
            | Self::Probing
            | Self::AskingUndo
            | Self::Judging
            | Self::Starting { .. }
            | Self::Recording { .. }
            | Self::Over => false,
        }
    }

    /// Its runner has `Go`.
    pub(crate) fn is_released(&self) -> bool {
        matches!(self, Self::Released { .. } | Self::Running)
    }

    pub(crate) fn is_cache_lookup(&self) -> bool {
        matches!(self, Self::CacheLookup)
    }

    pub(crate) fn is_fetching(&self) -> bool {
        matches!(self, Self::FetchingRestore)
    }

    pub(crate) fn is_probing(&self) -> bool {
        matches!(self, Self::Probing)
    }

    pub(crate) fn is_asking_undo(&self) -> bool {
        matches!(self, Self::AskingUndo)
    }

    pub(crate) fn is_judging(&self) -> bool {
        matches!(self, Self::Judging)
    }

    pub(crate) fn is_starting(&self) -> bool {
        matches!(self, Self::Starting { .. })
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Self::Running)
    }

    pub(crate) fn is_at_other_call(&self) -> bool {
        matches!(self, Self::AtOtherCall(_))
    }

    pub(crate) fn is_at_sub_agent(&self) -> bool {
        matches!(self, Self::AtSubAgent)
    }

    pub(crate) fn is_at_store(&self) -> bool {
        matches!(self, Self::AtStore)
    }
}
