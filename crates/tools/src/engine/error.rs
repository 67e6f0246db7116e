//! The error of an engine.

use crate::failure::{FailureCode, ToolFailure};

/// Why the engine cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineError {
    /// Its kind.
    pub code: FailureCode,
    /// The error in one sentence.
    pub message: String,
    /// The next step; may be empty.
    pub hint: String,
}

impl From<EngineError> for ToolFailure {
    fn from(EngineError { code, message, hint }: EngineError) -> Self {
        Self::new(code, message, hint)
    }
}
