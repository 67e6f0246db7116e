//! Faults of the audit log, each with its position and a text. Reported by [`crate::verify`].

use super::FILE;
use crate::{Digest, LineFault};

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}line {line}: {kind}", file = prefix(file))]
pub struct AuditFault {
    /// The file's name.
    pub file: String,
    /// Line number, counted from 1. For missing records, the number after the last line.
    pub line: u64,
    /// The kind of fault.
    pub kind: AuditFaultKind,
}

/// The message names the file unless it is the current one.
fn prefix(file: &str) -> String {
    if file == FILE { String::new() } else { format!("{file}, ") }
}

/// The kinds of fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditFaultKind {
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
        /// The last record that a removal claims.
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
    /// A session journal saw another record at this position.
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
