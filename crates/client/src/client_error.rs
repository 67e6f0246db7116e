//! Why there was no session, or a run of one was ended: for `one_shot`, `attach`, and the connection that
//! both use.

use ipc::ChannelError;
use protocol::client::RequestFailure;

/// Why a run was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStop {
    /// A signal.
    Signal(i32),
    /// The time limit.
    TimeLimit,
    /// The reader of the output closed it.
    OutputClosed,
}

/// Why there was no session, or it was lost.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The supervisor refused or failed the request.
    #[error("{message}")]
    Failed {
        /// Kind of the failure.
        kind: RequestFailure,
        /// Message of the supervisor, with a remedy.
        message: String,
    },
    /// The supervisor is gone, and no other took its place.
    #[error("the connection to the supervisor is lost")]
    Lost(#[source] ChannelError),
    /// One supervisor after another was lost.
    #[error(
        "agentd-supervisor was lost {losses} times without progress, the last time {place}: {how}"
    )]
    LostAgain {
        /// How often since the last progress.
        losses: usize,
        /// How the last one ended.
        how: String,
        /// Where in the turn.
        place: &'static str,
    },
    /// There is no supervisor to connect to.
    #[error(transparent)]
    NoSupervisor(Box<dyn std::error::Error + Send + Sync>),
    /// It was ended before the session was open.
    #[error("ended before the session was open")]
    Stopped(RunStop),
}
