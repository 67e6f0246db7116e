//! Why a session cannot be opened as requested.

use protocol::client::RequestFailure;
use protocol::error_chain::chain;

/// Why a session cannot be opened as requested, for the client.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct OpenFailure {
    /// Its kind.
    pub kind: RequestFailure,
    /// The message, with a remedy.
    pub message: String,
}

impl OpenFailure {
    /// A failure of this kind with this message.
    pub fn new(kind: RequestFailure, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl From<&journal::OpenError> for OpenFailure {
    /// Converts an error of the journal.
    fn from(error: &journal::OpenError) -> Self {
        let kind = match error {
            journal::OpenError::Held { .. } => RequestFailure::Held,
            journal::OpenError::Read(
                journal::ReadError::Missing { .. } | journal::ReadError::NoHeader { .. },
            ) => RequestFailure::NotFound,
            journal::OpenError::Read(_)
            | journal::OpenError::ReadOnlyDisk { .. }
            | journal::OpenError::Mend { .. } => RequestFailure::Disk,
        };
        Self::new(kind, chain(error))
    }
}
