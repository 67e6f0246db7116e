//! The phases of a call.

use crate::server_ask::ServerAsks;
use protocol::call::RunReport;
use protocol::confinement::Enforced;

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
    /// The broker judges the call, or a person is asked.
    Judging,
    /// A runner builds its cage, or has built this one and waits for `Go`. None is left where it has
    /// ended and a process of its cage has not.
    Starting {
        caged: Option<Enforced>,
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

impl CallPhase {
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
