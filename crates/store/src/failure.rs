//! Why a call of the store could not be done: a stable code, a sentence and a way on.

use rusqlite::ErrorCode;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreErrorCode {
    /// Arguments that are well formed but make no sense.
    InvalidArguments,
    /// There is nothing of that name.
    NotFound,
    /// Above a bound.
    TooLarge,
    /// No space left.
    DiskFull,
    /// Another process holds the file's lock beyond the time limit.
    Busy,
    /// No tool of that name.
    UnknownTool,
    /// No copy of it exists.
    NotCovered,
    /// The file is damaged, and so was the new one.
    Damaged,
    /// Anything else that the system answered.
    Io,
}

impl StoreErrorCode {
    /// Its name in results and records.
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
pub(crate) struct StoreError {
    pub(crate) code: StoreErrorCode,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl StoreError {
    pub(crate) fn new(
        code: StoreErrorCode,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { code, message: message.into(), hint: hint.into() }
    }

    /// The arguments are invalid.
    pub(crate) fn invalid(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StoreErrorCode::InvalidArguments, message, hint)
    }
}

/// The arguments, which were checked against the schema before.
pub(crate) fn arguments<T: serde::de::DeserializeOwned>(input: &str) -> Result<T, StoreError> {
    serde_json::from_str(input)
        .map_err(|error| StoreError::invalid(format!("the arguments do not fit: {error}"), ""))
}

/// True if the file itself is damaged.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        // The list is SQLite's own; all other codes map to `io`.
        #[allow(clippy::wildcard_enum_match_arm)]
        let (code, hint) = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => (
                StoreErrorCode::DiskFull,
                "Nothing was changed. The person must free some space first.",
            ),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
                StoreErrorCode::Busy,
                "Another session was writing. Nothing was changed; try again.",
            ),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => (
                StoreErrorCode::Damaged,
                "Nothing was changed. Go on without it, and tell the person.",
            ),
            // A table of words that could not be opened: of a lock its reader says no more than this.
            _ if error.to_string().contains("vtable constructor failed") => (
                StoreErrorCode::Busy,
                "Another session was writing. Nothing was changed; try again.",
            ),
            _ => {
                (StoreErrorCode::Io, "Nothing was changed. Go on without it, and tell the person.")
            }
        };
        Self::new(code, format!("stored data could not be used: {error}"), hint)
    }
}
