//! Decisions of the allow-list proxy, on wires and in records.

use super::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// The proxy's decision on a command's connections to one host and port.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct ProxyConnection {
    /// As the command named it: `example.org:443`.
    pub place: String,
    /// The decision.
    #[serde(flatten)]
    pub decision: ConnectionOutcome,
    /// How often.
    pub count: u64,
    /// Bytes from the command.
    #[serde(default)]
    pub sent: u64,
    /// Bytes to the command.
    #[serde(default)]
    pub received: u64,
}

/// The result of a connection attempt.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(tag = "decision", content = "detail", rename_all = "snake_case")]
pub enum ConnectionOutcome {
    /// The connection was made to this address, which was judged and dialed. The proxy resolves a name
    /// once.
    Made(String),
    /// It was allowed, and failed, for this reason in plain words.
    Failed(String),
    /// The allow-list does not permit it, for this reason in plain words.
    Refused(String),
    /// The proxy sent a request to this address with the key of the host; `Made` counts its bytes.
    SignedIn(String),
}

impl std::fmt::Display for ProxyConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { place, decision, count, sent, received } = self;
        match decision {
            ConnectionOutcome::Made(address) => {
                write!(f, "{place} at {address}, {sent} bytes sent, {received} received")?;
            }
            ConnectionOutcome::Failed(why) => write!(f, "{place} was allowed and failed: {why}")?,
            ConnectionOutcome::Refused(why) => write!(f, "{place} was refused: {why}")?,
            ConnectionOutcome::SignedIn(address) => {
                write!(f, "the proxy signed in to {place} at {address}")?
            }
        }
        if *count > 1 { write!(f, ", {count} times") } else { Ok(()) }
    }
}
