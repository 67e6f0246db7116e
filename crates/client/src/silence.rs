//! A supervisor that does not answer: when it is pinged, and what is done about it.

use std::time::Duration;

/// Silence of a supervisor before it is pinged. An idle supervisor sends nothing, so silence alone
/// does not prove a loss.
pub(crate) const PING_AFTER: Duration = Duration::from_secs(2);

/// Reaction to a supervisor that does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilenceAction {
    /// It may be slow: wait.
    Wait,
    /// It answers a second connection: connect again.
    Reconnect,
    /// It is stopped or blocked: kill it.
    Kill,
}
