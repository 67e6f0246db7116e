//! Exit codes: the one table, used everywhere and shown by `--help`.

use client::{ClientError, Finished, RunStop};
use protocol::client::RequestFailure;
use protocol::provider::ProviderFailure;
use protocol::session::TurnEnd;
use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CliExit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Detached = 3,
    ApprovalNeeded = 10,
    SandboxUnavailable = 11,
    BudgetUsedUp = 12,
    KeyRefused = 13,
    ProviderUnreachable = 14,
    SupervisorUnreachable = 15,
    Configuration = 16,
    ProcessDied = 17,
    AnswerMisfit = 18,
    Findings = 19,
    SessionLocked = 75,
    TimeLimit = 124,
    Interrupted = 130,
    Terminated = 143,
}

impl CliExit {
    /// All codes, in order; each is a row of `help/exit-codes.md`.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 18] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::Detached,
        Self::ApprovalNeeded,
        Self::SandboxUnavailable,
        Self::BudgetUsedUp,
        Self::KeyRefused,
        Self::ProviderUnreachable,
        Self::SupervisorUnreachable,
        Self::Configuration,
        Self::ProcessDied,
        Self::AnswerMisfit,
        Self::Findings,
        Self::SessionLocked,
        Self::TimeLimit,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// The exit code of a run. The most useful reason for a script comes first: signal or timeout,
    /// missing cage, provider, approval, budget.
    pub(crate) fn of_run(finished: &Finished) -> Self {
        let conclusion = &finished.conclusion;
        match finished.stopped {
            Some(stop) => Self::of_stop(stop),
            None if conclusion.no_sandbox > 0 => Self::SandboxUnavailable,
            None if matches!(conclusion.end, Some(TurnEnd::ProcessDied(_))) => Self::ProcessDied,
            None if conclusion.degraded.is_some() => Self::Failed,
            None => match &conclusion.end {
                Some(TurnEnd::ProviderFailed { kind, message: _ }) => Self::of_provider(*kind),
                _ if !conclusion.unapproved.is_empty() => Self::ApprovalNeeded,
                Some(
                    TurnEnd::RoundsUsedUp { .. }
                    | TurnEnd::CallsUsedUp { .. }
                    | TurnEnd::CostReached { .. },
                ) => Self::BudgetUsedUp,
                Some(TurnEnd::Done) if !conclusion.misfit.is_empty() => Self::AnswerMisfit,
                Some(TurnEnd::Done) => Self::Done,
                Some(TurnEnd::ProcessDied(_)) => Self::ProcessDied,
                Some(
                    TurnEnd::Declined { .. }
                    | TurnEnd::Truncated
                    | TurnEnd::StoppedByHook { .. }
                    | TurnEnd::Interrupted,
                )
                | None => Self::Failed,
            },
        }
    }

    /// How a run without a session ended.
    pub(crate) fn of_error(error: &ClientError) -> Self {
        match error {
            ClientError::Failed { kind, message: _ } => Self::of_failed(*kind),
            ClientError::Lost(_) | ClientError::LostAgain { .. } | ClientError::NoSupervisor(_) => {
                Self::SupervisorUnreachable
            }
            ClientError::Stopped(stop) => Self::of_stop(*stop),
        }
    }

    pub(crate) fn of_failed(kind: RequestFailure) -> Self {
        match kind {
            RequestFailure::Usage | RequestFailure::NotFound => Self::Usage,
            RequestFailure::Configuration => Self::Configuration,
            RequestFailure::SandboxUnavailable => Self::SandboxUnavailable,
            RequestFailure::Held | RequestFailure::NoRoom => Self::SessionLocked,
            RequestFailure::Disk | RequestFailure::Ending | RequestFailure::Internal => {
                Self::Failed
            }
        }
    }

    fn of_stop(stop: RunStop) -> Self {
        match stop {
            RunStop::Signal(number) if number == nix::libc::SIGINT => Self::Interrupted,
            RunStop::Signal(_) => Self::Terminated,
            RunStop::TimeLimit => Self::TimeLimit,
            RunStop::OutputClosed => Self::Failed,
        }
    }

    fn of_provider(kind: ProviderFailure) -> Self {
        match kind {
            ProviderFailure::KeyRefused | ProviderFailure::NoKey => Self::KeyRefused,
            ProviderFailure::Unreachable | ProviderFailure::Overloaded => Self::ProviderUnreachable,
            ProviderFailure::Rejected
            | ProviderFailure::BadRequest
            | ProviderFailure::RecordingDeparted
            | ProviderFailure::ContextFull => Self::Failed,
        }
    }
}

impl From<CliExit> for ExitCode {
    fn from(exit: CliExit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::{OpenedSession, SessionFacts, Timing, Transcript};
    use protocol::call::{Call, CallOrigin, Outcome, ToolResult};
    use protocol::client::{ClientEvent, ModelFacts};
    use protocol::confinement::{FilePath, Network};
    use protocol::ids::{CallId, SessionId};
    use protocol::judgement::PermissionMode;
    use protocol::session::CallSpan;

    fn finished(end: Option<TurnEnd>, code: Option<&str>, stopped: Option<RunStop>) -> Finished {
        let session = SessionId("0".into());
        let mut transcript = Transcript::new(OpenedSession {
            facts: SessionFacts {
                session: session.clone(),
                name: String::new(),
                model: String::new(),
                of_model: ModelFacts::default(),
                models: Vec::new(),
                tools: Vec::new(),
                mode: PermissionMode::Ask,
                network: Network::Off,
                hosts: Vec::new(),
                temp: FilePath::from(std::path::PathBuf::from("/tmp")),
                sandbox: String::new(),
                warnings: Vec::new(),
                trouble: None,
            },
            project: String::new(),
            servers: Vec::new(),
        });
        let id = CallId { session: session.clone(), number: 1 };
        let (origin, tool, input) = (CallOrigin::model("a"), "bash".into(), "{}".into());
        transcript
            .update(&ClientEvent::Proposed { call: Call { id: id.clone(), origin, tool, input } });
        transcript.update(&ClientEvent::CallEnded {
            call: id,
            result: ToolResult {
                outcome: Outcome::Failed,
                text: String::new(),
                summary: String::new(),
                is_error: true,
                code: code.map(str::to_owned),
                images: Vec::new(),
            },
            refused: Vec::new(),
            spent: None,
        });
        if let Some(end) = end {
            transcript.update(&ClientEvent::TurnEnded { end });
        }
        Finished { conclusion: transcript.conclude(Timing::default(), None), session, stopped }
    }

    #[test]
    fn every_end_has_its_code() {
        let failed = |kind| TurnEnd::ProviderFailed { kind, message: String::new() };
        for (end, code, stopped, want) in [
            (Some(TurnEnd::Done), None, None, 0),
            (Some(TurnEnd::Done), Some("nobody_to_ask"), None, 10),
            (Some(TurnEnd::Done), Some("sandbox_unavailable"), None, 11),
            (Some(TurnEnd::RoundsUsedUp { rounds: 1 }), None, None, 12),
            (Some(TurnEnd::RoundsUsedUp { rounds: 1 }), Some("nobody_to_ask"), None, 10),
            (Some(TurnEnd::CallsUsedUp { calls: 1, of: CallSpan::Turn }), None, None, 12),
            (Some(TurnEnd::CostReached { spent: Some(2), most: 1 }), None, None, 12),
            (Some(failed(ProviderFailure::KeyRefused)), None, None, 13),
            (Some(failed(ProviderFailure::NoKey)), Some("nobody_to_ask"), None, 13),
            (Some(failed(ProviderFailure::Unreachable)), None, None, 14),
            (Some(failed(ProviderFailure::Rejected)), None, None, 1),
            (Some(TurnEnd::Truncated), None, None, 1),
            (Some(TurnEnd::Interrupted), None, Some(RunStop::Signal(2)), 130),
            (None, None, Some(RunStop::Signal(15)), 143),
            (Some(TurnEnd::Interrupted), Some("nobody_to_ask"), Some(RunStop::TimeLimit), 124),
            (None, None, None, 1),
        ] {
            let exit = CliExit::of_run(&finished(end.clone(), code, stopped));
            assert_eq!(exit as u8, want, "{end:?} {code:?} {stopped:?}");
        }
    }
}
