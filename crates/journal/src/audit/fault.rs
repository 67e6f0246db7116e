//! What can be wrong with the audit log, each with its place and in words. Found by [`crate::verify`].

use super::FILE;
use crate::{Digest, LineFault};

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}line {line}: {kind}", file = prefix(file))]
pub struct Fault {
    /// The file's name.
    pub file: String,
    /// Where in it, counted from 1. Behind the last line for what is missing there.
    pub line: u64,
    /// What.
    pub kind: FaultKind,
}

/// The file is named where it is not the one that is written.
fn prefix(file: &str) -> String {
    if file == FILE { String::new() } else { format!("{file}, ") }
}

/// What can be wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// The line's bytes changed.
    #[error("changed: {0}")]
    Changed(LineFault),
    /// Records before this line are gone.
    #[error("records {from} to {to} are missing before it")]
    Removed {
        /// The first that is gone.
        from: u64,
        /// The last that is gone.
        to: u64,
    },
    /// The line tells of a removal, and no anchor shows that it stood there when a call ended.
    #[error(
        "it says that the records up to {to} were removed, which is not confirmed by any session: \
         somebody may have cut the log and put this in, or the call that ran then has not ended"
    )]
    NotConfirmed {
        /// The last that is said to be removed.
        to: u64,
    },
    /// The line was put in: the chain goes past it.
    #[error("put in: the record behind it does not follow from it")]
    Inserted,
    /// The line is a good record that does not follow from the one before it.
    #[error("does not follow from the record before it")]
    Unlinked,
    /// The log ends before a record that a session journal saw in it.
    #[error("the log was cut: session {session} saw record {record} in it")]
    Cut {
        /// The session.
        session: String,
        /// The record of the log.
        record: u64,
    },
    /// The line is another record than the one that a session journal saw in this place.
    #[error("written anew: session {session} saw another record in this place")]
    Rewritten {
        /// The session.
        session: String,
    },
    /// A script or long input that it names is gone or changed.
    #[error("the text {digest} that it names is gone or changed")]
    Text {
        /// The text's digest.
        digest: Digest,
    },
}
