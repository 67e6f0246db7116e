//! The failure of a tool: a stable code, a message and a hint.

use protocol::call::{Outcome, ToolResult};
use protocol::hidden::{for_model, line_for_model};
use std::io;
pub use tool_specs::FailureCode;
use tool_specs::text::truncate;

/// A failure with everything that a result says about it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ToolFailure {
    /// Its kind.
    pub code: FailureCode,
    /// The error in one sentence.
    pub message: String,
    /// The next step; may be empty.
    pub hint: String,
    /// How the call ended.
    pub outcome: Outcome,
    /// The system error.
    #[source]
    pub source: Option<io::Error>,
}

impl ToolFailure {
    /// A failure of a tool that could not.
    pub fn new(code: FailureCode, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: hint.into(),
            outcome: Outcome::Failed,
            source: None,
        }
    }

    /// A call that was ended on request before it was through.
    pub fn interrupted() -> Self {
        Self {
            outcome: Outcome::Interrupted,
            ..Self::new(FailureCode::Interrupted, "the call was cancelled before it finished", "")
        }
    }

    /// A system error on the use of `named`; `action` completes "could not …".
    pub fn io(action: &str, named: &str, error: io::Error) -> Self {
        let (code, hint) = of_error(&error);
        Self {
            source: Some(io::Error::from(error.kind())),
            ..Self::new(code, format!("could not {action} {named:?}: {error}"), hint)
        }
    }
}

/// The result of a tool that could not.
pub(crate) fn failed(tool: &str, failure: ToolFailure, max: usize) -> ToolResult {
    let ToolFailure { code, message, hint, outcome, source: _ } = failure;
    let result = ToolResult::error(outcome, code.name(), tool, &message, &hint);
    let text = truncate::fit(&for_model(&result.text), max, "");
    let summary = line_for_model(&result.summary).into_owned();
    ToolResult { text, summary, ..result }
}

/// The code and the way on for an answer of the system.
fn of_error(error: &io::Error) -> (FailureCode, &'static str) {
    use nix::errno::Errno;
    let Some(number) = error.raw_os_error() else {
        return (FailureCode::Io, "");
    };
    // Errno is the system's list: errors that are not named here get the code `io`.
    #[allow(clippy::wildcard_enum_match_arm)]
    match Errno::from_raw(number) {
        Errno::ENOENT => (FailureCode::NotFound, "Find the right path with ls or glob."),
        Errno::EACCES | Errno::EPERM => (
            FailureCode::PermissionDenied,
            "The file permissions or the sandbox do not allow this; ask the user if you \
                need it.",
        ),
        Errno::EROFS => (FailureCode::PermissionDenied, "This file system is mounted read-only."),
        Errno::EISDIR => (FailureCode::IsDirectory, "Use ls for a directory."),
        Errno::ENOTDIR => (FailureCode::NotADirectory, "One component of the path is a file."),
        Errno::ENOSPC | Errno::EDQUOT => {
            (FailureCode::DiskFull, "Nothing was changed. Free disk space first.")
        }
        Errno::EFBIG => {
            (FailureCode::TooLarge, "The file would exceed the size limit of the call.")
        }
        Errno::ENAMETOOLONG => {
            (FailureCode::InvalidArguments, "The name is longer than 255 bytes.")
        }
        Errno::ELOOP => (
            FailureCode::Stale,
            "Part of the path became a symbolic link during the call. Try the call again.",
        ),
        _ => (FailureCode::Io, ""),
    }
}
