//! What a command changed, with what it takes to put it back. For `snapshot` and who writes it down.

/// One file that a command changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) path: String,
    pub(crate) before: Before,
    /// The digest of what the command left; absent where nothing is there.
    pub(crate) after: Option<String>,
}

/// What was there before a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Before {
    Absent,
    File {
        bytes: Vec<u8>,
        mode: u32,
        digest: String,
    },
    /// The same bytes with other permissions.
    Mode {
        bytes: Vec<u8>,
        mode: u32,
        digest: String,
    },
    Link {
        digest: String,
    },
    /// Nothing is kept of it, and why.
    NotCovered(String),
}

/// All that a command did, as far as that can be known.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) changed: Vec<Changed>,
    /// New names that may have been there before.
    pub(crate) uncertain: usize,
}
