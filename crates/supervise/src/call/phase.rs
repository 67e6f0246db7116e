//! The phases of a call.

use super::server_ask::ServerAsks;
use protocol::call::RunReport;
use protocol::confinement::Enforced;

/// How far a call is.
#[derive(Debug)]
pub(super) enum CallPhase {
    New,
    /// The store searches a cached result.
    CacheLookup,
    /// The store collects the files to restore.
    FetchingRestore,
    /// A probe inspects the call's paths.
    Probing,
    /// The broker judges the call, or a person is asked.
    Judging,
    /// A runner builds its cage, or has built this one and waits for `Go`.
    Starting {
        caged: Option<Enforced>,
    },
    /// `Go` was sent.
    Running,
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
    pub(super) fn is_caging(&self) -> bool {
        matches!(self, Self::Probing | Self::Starting { .. })
    }

    /// A runner works for the call, or has reported and not ended.
    pub(super) fn has_runner(&self) -> bool {
        matches!(self, Self::Probing | Self::Starting { .. } | Self::Running | Self::Reported(_))
    }

    /// No runner was started and no request to execute the call was sent.
    pub(super) fn is_before_start(&self) -> bool {
        matches!(self, Self::New | Self::CacheLookup | Self::FetchingRestore | Self::Judging)
    }

    pub(super) fn is_cache_lookup(&self) -> bool {
        matches!(self, Self::CacheLookup)
    }

    pub(super) fn is_fetching(&self) -> bool {
        matches!(self, Self::FetchingRestore)
    }

    pub(super) fn is_probing(&self) -> bool {
        matches!(self, Self::Probing)
    }

    pub(super) fn is_judging(&self) -> bool {
        matches!(self, Self::Judging)
    }

    pub(super) fn is_starting(&self) -> bool {
        matches!(self, Self::Starting { .. })
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Running)
    }

    pub(super) fn is_at_other_call(&self) -> bool {
        matches!(self, Self::AtOtherCall(_))
    }

    pub(super) fn is_at_sub_agent(&self) -> bool {
        matches!(self, Self::AtSubAgent)
    }

    pub(super) fn is_at_store(&self) -> bool {
        matches!(self, Self::AtStore)
    }
}
