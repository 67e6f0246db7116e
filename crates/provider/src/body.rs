//! Helpers of all encoders.

use protocol::content::{ModelRequest, ToolChoice, ToolSpec};
use protocol::provider::Effort;
use serde::Serialize;
use serde_json::value::RawValue;

/// A part of the request is not JSON although it must be.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The schema of a tool.
    #[error("the input schema of tool `{tool}` is not a JSON object")]
    Schema {
        /// The tool's name.
        tool: String,
    },
    /// A thinking block, which can only have been damaged since it came.
    #[error("a thinking block of message {message} is not a JSON object")]
    Thinking {
        /// The message's place, counted from 1.
        message: usize,
    },
    /// Nothing is left to send.
    #[error("the conversation has no message with content")]
    Empty,
    /// A string that does not serialise; cannot happen.
    #[error("the request cannot be written as JSON")]
    Json(#[source] serde_json::Error),
}

/// True if the request has tools that the model must not call.
pub(crate) fn calls_are_forbidden(request: &ModelRequest) -> bool {
    // Vendors refuse a choice among no tools.
    request.calls == ToolChoice::No && !request.tools.is_empty()
}

/// JSON that is an object, byte for byte.
pub(crate) fn object(json: &str) -> Option<&RawValue> {
    let raw: &RawValue = serde_json::from_str(json).ok()?;
    raw.get().starts_with('{').then_some(raw)
}

/// A tool as the vendors other than Anthropic name its parts.
#[derive(Serialize)]
pub(crate) struct FunctionSpec<'a> {
    pub name: &'a str,
    pub description: &'a str,
    pub parameters: &'a RawValue,
}

/// The tools in their order, their schemas byte for byte.
pub(crate) fn tools(specs: &[ToolSpec]) -> Result<Vec<FunctionSpec<'_>>, EncodeError> {
    specs
        .iter()
        .map(|spec| {
            Ok(FunctionSpec {
                name: &spec.name,
                description: &spec.description,
                parameters: object(&spec.input_schema)
                    .ok_or_else(|| EncodeError::Schema { tool: spec.name.clone() })?,
            })
        })
        .collect()
}

/// The effort in OpenAI's word.
pub(crate) fn effort_word(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}
