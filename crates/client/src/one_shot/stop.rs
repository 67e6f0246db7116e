//! The words for a run that ends from outside. Pure. Used by the run's loop.

use crate::client_error::{ClientError, RunStop};
use protocol::client::{DetachReason, RequestFailure};
use protocol::ids::SessionId;

/// The error of a run whose session ended or was taken over.
pub(super) fn detached_error(
    parting: DetachReason,
    session: &SessionId,
    reason: &str,
) -> ClientError {
    let kind = match parting {
        DetachReason::TakenOver => RequestFailure::Held,
        DetachReason::Ended => RequestFailure::Ending,
        DetachReason::Failed => RequestFailure::Internal,
    };
    let message =
        format!("{reason}. `agentd show {session}` prints it, `--resume {session}` continues it");
    ClientError::Failed { kind, message }
}

pub(super) fn why(stop: RunStop) -> &'static str {
    match stop {
        RunStop::Signal(_) => "interrupted by a signal",
        RunStop::TimeLimit => "the time limit of --timeout was reached",
        RunStop::OutputClosed => "the reader of the output closed it",
    }
}
