//! The form that a run's last answer must have, and the prompt that asks for it again. Pure. Used by a run.

use serde_json::Value;
use std::fmt;

/// A form that answers must have.
pub trait AnswerCheck: fmt::Debug {
    /// Words that ask for the form. They follow each prompt.
    fn instruction(&self) -> String;

    /// The form as a JSON Schema.
    fn schema(&self) -> String;

    /// The value of an answer.
    ///
    /// # Errors
    /// Why it has not the form; at least one reason.
    fn check(&self, answer: &str) -> Result<Value, Vec<AnswerFault>>;
}

/// Why an answer has not its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerFault {
    /// The part of the answer, as a JSON Pointer; `/` for the whole.
    pub path: String,
    /// In plain words.
    pub message: String,
}

impl fmt::Display for AnswerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// The prompt that asks for the answer once more.
#[must_use]
pub fn repair_prompt(faults: &[AnswerFault]) -> String {
    let list: String = faults.iter().map(|fault| format!("- {fault}\n")).collect();
    format!("Your last answer does not fit the JSON Schema:\n{list}Answer again.")
}

/// The error of a run whose answer has not its form.
#[must_use]
pub fn misfit(faults: &[AnswerFault]) -> String {
    let first = faults.first().map(ToString::to_string).unwrap_or_default();
    let more = match faults.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    format!(
        "the answer does not fit the schema of --json-schema, also when asked again: {first}{more}"
    )
}
