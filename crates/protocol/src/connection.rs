//! What the proxy of an allow-list decided, as wires and records say it.

use crate::{Decode, Encode};

/// What was decided of connections to one place that a command asked our proxy for.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Connection {
    /// As the command named it: `example.org:443`.
    pub place: String,
    /// What was decided.
    pub decision: Passage,
    /// How often.
    pub count: u64,
    /// Bytes from the command.
    pub sent: u64,
    /// Bytes to the command.
    pub received: u64,
}

/// Whether a connection was made.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Passage {
    /// It was, to this address.
    Made {
        /// The one that was judged; a name is looked up once.
        address: String,
    },
    /// It was allowed and could not be made.
    Failed {
        /// In plain words.
        why: String,
    },
    /// It was not allowed.
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

impl std::fmt::Display for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { place, decision, count, sent, received } = self;
        match decision {
            Passage::Made { address } => {
                write!(f, "{place} at {address}, {sent} bytes sent, {received} received")?;
            }
            Passage::Failed { why } => write!(f, "{place} was allowed and failed: {why}")?,
            Passage::Refused { why } => write!(f, "{place} was refused: {why}")?,
            Passage::SignedIn { address } => {
                write!(f, "the proxy signed in to {place} at {address}")?
            }
        }
        if *count > 1 { write!(f, ", {count} times") } else { Ok(()) }
    }
}
