//! The errors of opening the audit log and of appending to it.

use crate::LineFault;
use crate::audit::list::ListError;
use crate::blobs::BlobError;
use std::io;
use std::path::PathBuf;

/// Why the audit log was not opened, or a record not taken.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The directory or file cannot be made or opened.
    #[error("cannot open the audit log {path}")]
    Open {
        /// The log.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Its lock was not to be had.
    #[error("cannot lock the audit log {path}")]
    Lock {
        /// The log.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Its last line is damaged, so that no chain can go on from it.
    #[error(
        "the last line of the audit log {path} is damaged; see `agentd audit verify`, then move \
         the log elsewhere to begin a new one"
    )]
    Damaged {
        /// The log.
        path: PathBuf,
        /// The damage.
        #[source]
        fault: LineFault,
    },
    /// Records that this process wrote are missing: another process cut, replaced or removed the
    /// file.
    #[error(
        "the audit log {path} has lost records since this process wrote to it; see `agentd audit \
         verify`, then start again"
    )]
    Cut {
        /// The log.
        path: PathBuf,
    },
    /// An earlier record failed.
    #[error("the audit log {path} takes no more records since one could not be kept: {cause}")]
    Closed {
        /// The log.
        path: PathBuf,
        /// The first failure, in words.
        cause: String,
    },
    /// The record cannot be put into words.
    #[error("the record cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// A script or long input could not be kept.
    #[error("a script could not be kept for the audit log")]
    Script(#[from] BlobError),
    /// The existing log could not be read.
    #[error("cannot search the audit log {path}")]
    Search {
        /// The log.
        path: PathBuf,
        /// The obstacle.
        source: ListError,
    },
    /// The line could not be written.
    #[error("cannot write to the audit log {path}; is the disk full?")]
    Write {
        /// The log.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// The disk did not confirm it.
    #[error("the disk did not confirm a record of the audit log {path}")]
    Sync {
        /// The log.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}
