//! Pinned files on the wire to `agentd-session`: their stamps, by which a change is noticed.

use crate::call::ReadStamp;
use crate::{Decode, Encode};

/// A pinned file as `stat(2)` describes it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PinnedStamp {
    /// As `read` is given it.
    pub file: String,
    /// Its stamp.
    pub stamp: FileStamp,
}

/// News about pinned files.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum PinnedNews {
    /// These are pinned now, and no others; as `read` is given them.
    Files(Vec<String>),
    /// The answer to `StatPinned`.
    Stamps {
        /// The number of the question.
        check: u32,
        /// When the supervisor began to look, in nanoseconds of Unix time.
        began: i64,
        /// One for each file of the question.
        stamps: Vec<PinnedStamp>,
    },
}

/// The state of a file's stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum FileStamp {
    /// It has this one.
    Found(ReadStamp),
    /// There is no such file.
    Missing,
    /// The filesystem did not answer, or with an error.
    Unknown,
}
