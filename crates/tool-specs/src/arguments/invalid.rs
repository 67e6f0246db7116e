//! The errors of a call that names no tool or has wrong arguments, with their hints for the model.

use crate::failure_code::FailureCode;
use protocol::call::{Outcome, ToolResult};
use protocol::hidden::line_for_model;

/// Why something is no call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCall {
    /// No tool and no alias has this name.
    #[error("there is no tool {name:?}")]
    UnknownTool {
        /// As called.
        name: String,
        /// Tools with a like name.
        nearest: Vec<&'static str>,
        /// All tools that a model can call.
        known: Vec<&'static str>,
    },
    /// The arguments cannot be read as JSON.
    #[error("{tool}: the arguments are not JSON: {reason}")]
    NotJson {
        /// The tool.
        tool: &'static str,
        /// With line and column.
        reason: String,
    },
    /// The arguments are JSON, but no object.
    #[error("{tool}: the arguments must be a JSON object")]
    NotAnObject {
        /// The tool.
        tool: &'static str,
    },
    /// A field that the tool does not have.
    #[error("{tool}: unknown field {field:?}")]
    UnknownField {
        /// The tool.
        tool: &'static str,
        /// As given.
        field: String,
        /// The field that was probably meant.
        nearest: Option<String>,
        /// All that there are.
        known: Vec<String>,
    },
    /// A field that must be there.
    #[error("{tool}: the field {field:?} is missing")]
    MissingField {
        /// The tool.
        tool: &'static str,
        /// The field.
        field: String,
        /// The expected value.
        expected: String,
    },
    /// Of the right type, and still nothing that can be asked for.
    #[error("{tool}: {reason}")]
    Unfit {
        /// The tool.
        tool: &'static str,
        /// The error and the expected value.
        reason: String,
    },
    /// A value that the field does not take.
    #[error("{tool}: the field {field:?} must be {expected}, not {found}")]
    WrongType {
        /// The tool.
        tool: &'static str,
        /// The field.
        field: String,
        /// The expected value.
        expected: String,
        /// The given value.
        found: String,
    },
}

impl InvalidCall {
    /// The tool's real name, where there is such a tool.
    #[must_use]
    pub fn tool(&self) -> Option<&'static str> {
        match self {
            Self::UnknownTool { .. } => None,
            Self::NotJson { tool, .. }
            | Self::NotAnObject { tool }
            | Self::UnknownField { tool, .. }
            | Self::MissingField { tool, .. }
            | Self::Unfit { tool, .. }
            | Self::WrongType { tool, .. } => Some(tool),
        }
    }

    /// Its stable code.
    #[must_use]
    pub fn code(&self) -> FailureCode {
        match self {
            Self::UnknownTool { .. } => FailureCode::UnknownTool,
            Self::NotJson { .. }
            | Self::NotAnObject { .. }
            | Self::UnknownField { .. }
            | Self::MissingField { .. }
            | Self::Unfit { .. }
            | Self::WrongType { .. } => FailureCode::InvalidArguments,
        }
    }

    /// The way on.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownTool { nearest, .. } if !nearest.is_empty() => {
                format!("Did you mean {}?", nearest.join(" or "))
            }
            Self::UnknownTool { known, .. } => format!("The tools are {}.", known.join(", ")),
            Self::NotJson { .. } | Self::NotAnObject { .. } => {
                "Send the arguments as one JSON object.".to_owned()
            }
            Self::UnknownField { nearest: Some(near), .. } => format!("Did you mean {near:?}?"),
            Self::UnknownField { known, .. } => format!("The fields are {}.", known.join(", ")),
            Self::MissingField { expected, .. } => format!("It must be {expected}."),
            Self::Unfit { .. } | Self::WrongType { .. } => {
                "Nothing was done; correct the field.".to_owned()
            }
        }
    }

    /// The result of a call that was none, for the model and the record.
    #[must_use]
    pub fn result(&self) -> ToolResult {
        let (said, code) = (line_for_model(&self.to_string()).into_owned(), self.code().name());
        let (tool, message) = match (self, self.tool()) {
            (Self::UnknownTool { name, .. }, _) => {
                (line_for_model(name).into_owned(), said.as_str())
            }
            (_, tool) => {
                let tool = tool.unwrap_or_default();
                (tool.to_owned(), said.strip_prefix(&format!("{tool}: ")).unwrap_or(&said))
            }
        };
        let hint = line_for_model(&self.hint()).into_owned();
        ToolResult::error(Outcome::Invalid, code, &tool, message, &hint)
    }
}
