//! Why a call of the store could not be done: a stable code, a sentence and a way on.

use rusqlite::ErrorCode;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Arguments that are well formed but make no sense.
    InvalidArguments,
    /// There is nothing of that name.
    NotFound,
    /// Above a bound.
    TooLarge,
    /// No space left.
    DiskFull,
    /// Another process holds the file for longer than anybody waits.
    Busy,
    /// No tool of that name.
    UnknownTool,
    /// No copy of it was kept.
    NotCovered,
    /// The file is damaged, and so was the new one.
    Damaged,
    /// Anything else that the system answered.
    Io,
}

impl Code {
    /// As it stands in results and records.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::InvalidArguments => "invalid_arguments",
            Self::NotFound => "not_found",
            Self::TooLarge => "too_large",
            Self::DiskFull => "disk_full",
            Self::Busy => "busy",
            Self::UnknownTool => "unknown_tool",
            Self::NotCovered => "not_covered",
            Self::Damaged => "damaged",
            Self::Io => "io",
        }
    }
}

/// A failure with everything that a result says about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into() }
    }

    /// What was said makes no sense.
    pub(crate) fn invalid(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Code::InvalidArguments, message, hint)
    }
}

/// The arguments, which were checked against the schema before.
pub(crate) fn arguments<T: serde::de::DeserializeOwned>(input: &str) -> Result<T, Failure> {
    serde_json::from_str(input)
        .map_err(|error| Failure::invalid(format!("the arguments do not fit: {error}"), ""))
}

/// Whether the file itself is to blame.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        // SQLite's list, not ours: what is not named here is `io`.
        #[allow(clippy::wildcard_enum_match_arm)]
        let (code, hint) = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => {
                (Code::DiskFull, "Nothing was changed. The person must free some space first.")
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                (Code::Busy, "Another session was writing. Nothing was changed; try again.")
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                (Code::Damaged, "Nothing was changed. Go on without it, and tell the person.")
            }
            // A table of words that could not be opened: of a lock its reader says no more than this.
            _ if error.to_string().contains("vtable constructor failed") => {
                (Code::Busy, "Another session was writing. Nothing was changed; try again.")
            }
            _ => (Code::Io, "Nothing was changed. Go on without it, and tell the person."),
        };
        Self::new(code, format!("what is kept could not be used: {error}"), hint)
    }
}
