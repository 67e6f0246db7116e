//! Decisions of the allow-list proxy, on wires and in records.

use crate::{Decode, Encode};

/// The proxy's decision on a command's connections to one host and port.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProxyConnection {
    /// As the command named it: `example.org:443`.
    pub place: String,
    /// The decision.
    pub decision: ConnectionOutcome,
    /// How often.
    pub count: u64,
    /// Bytes from the command.
    pub sent: u64,
    /// Bytes to the command.
    pub received: u64,
}

/// The result of a connection attempt.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ConnectionOutcome {
    /// The connection was made, to this address.
    Made {
        /// The address that was judged and dialed; the proxy resolves a name once.
        address: String,
    },
    /// It was allowed, and failed.
    Failed {
        /// In plain words.
        why: String,
    },
    /// The allow-list does not permit it.
    Refused {
        /// In plain words.
        why: String,
    },
    /// The proxy sent a request to this address with the key of the host.
    SignedIn {
        /// As in `Made`, which counts the bytes.
        address: String,
    },
}

impl std::fmt::Display for ProxyConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { place, decision, count, sent, received } = self;
        match decision {
            ConnectionOutcome::Made { address } => {
                write!(f, "{place} at {address}, {sent} bytes sent, {received} received")?;
            }
            ConnectionOutcome::Failed { why } => {
                write!(f, "{place} was allowed and failed: {why}")?
            }
            ConnectionOutcome::Refused { why } => write!(f, "{place} was refused: {why}")?,
            ConnectionOutcome::SignedIn { address } => {
                write!(f, "the proxy signed in to {place} at {address}")?
            }
        }
        if *count > 1 { write!(f, ", {count} times") } else { Ok(()) }
    }
}
