//! A change made by a command, with the data needed to revert it. For `snapshot` and for the code
//! that records it.

/// One file that a command changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedFile {
    pub(crate) path: String,
    pub(crate) before: ContentBefore,
    /// The digest after the command; absent if nothing is there.
    pub(crate) after: Option<String>,
}

/// The content before a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContentBefore {
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
    /// No copy exists, with the reason.
    NotCovered(String),
}

/// All that a command did, as far as that can be known.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct CommandEffects {
    pub(crate) changed: Vec<ChangedFile>,
    /// New names that may have been there before.
    pub(crate) uncertain: usize,
}
