//! The schema of `--json-schema`: read before the run, and what it says of an answer. Used by `run`
//! only.
//!
//! A schema is complete in itself: a reference to another file or to the network is an error.

use crate::cli_error::CliError;
use client::{AnswerCheck, AnswerFault};
use jsonschema::Validator;
use serde_json::Value;
use std::path::Path;

/// Most errors that the model and the result get.
const MOST_FAULTS: usize = 20;
/// Longest message of one error, in characters.
const MESSAGE: usize = 500;
/// Largest schema in bytes. It is sent with each prompt.
const CAP: usize = 1 << 20;

/// A schema that answers are checked against.
#[derive(Debug)]
pub(crate) struct AnswerSchema {
    schema: Value,
    validator: Validator,
}

impl AnswerSchema {
    /// Reads the schema: the text itself if it begins with `{`, else the file of that name.
    pub(crate) fn read(named: &str) -> Result<Self, CliError> {
        if named.trim_start().starts_with('{') {
            return Self::of_text("--json-schema", named);
        }
        let file = Path::new(named);
        let text = std::fs::read_to_string(file)
            .map_err(|error| CliError::user(format!("--json-schema {named}: {error}")))?;
        Self::of_text(&format!("--json-schema {named}"), &text)
    }

    fn of_text(place: &str, text: &str) -> Result<Self, CliError> {
        let failed = |why: String| CliError::user(format!("{place}: {why}"));
        if text.len() > CAP {
            return Err(failed(format!("it is larger than {} MiB", CAP >> 20)));
        }
        let schema: Value =
            serde_json::from_str(text).map_err(|error| failed(format!("no JSON: {error}")))?;
        Self::checked(place, schema)
    }

    /// A schema of agentd's own.
    pub(crate) fn of_value(schema: Value) -> Result<Self, CliError> {
        Self::checked("the form of the answer", schema)
    }

    fn checked(place: &str, schema: Value) -> Result<Self, CliError> {
        let failed = |why: String| CliError::user(format!("{place}: {why}"));
        if !schema.is_object() {
            return Err(failed("a schema is a JSON object".to_owned()));
        }
        let validator = jsonschema::validator_for(&schema).map_err(|error| {
            let fault = fault(error.instance_path().as_str(), &error.to_string());
            failed(format!("no JSON Schema: {fault}"))
        })?;
        Ok(Self { schema, validator })
    }
}

impl AnswerCheck for AnswerSchema {
    fn instruction(&self) -> String {
        format!(
            "End with an answer that is JSON and nothing else, without a code fence. It \
             has to fit this JSON Schema:\n{}",
            self.schema
        )
    }

    fn schema(&self) -> String {
        self.schema.to_string()
    }

    fn check(&self, answer: &str) -> Result<Value, Vec<AnswerFault>> {
        let value: Value = serde_json::from_str(answer.trim())
            .map_err(|error| vec![fault("", &format!("the answer is no JSON: {error}"))])?;
        let faults: Vec<_> = self
            .validator
            .iter_errors(&value)
            .take(MOST_FAULTS)
            .map(|error| fault(error.instance_path().as_str(), &error.to_string()))
            .collect();
        if faults.is_empty() { Ok(value) } else { Err(faults) }
    }
}

fn fault(path: &str, message: &str) -> AnswerFault {
    let path = if path.is_empty() { "/" } else { path };
    let message = match message.char_indices().nth(MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    };
    AnswerFault { path: path.to_owned(), message }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    const AGE: &str = r#"{"type":"object","properties":{"age":{"type":"integer","minimum":0}},
        "required":["age"],"additionalProperties":false}"#;

    #[test]
    fn an_answer_fits_or_its_faults_are_named_with_their_paths() {
        let schema = AnswerSchema::read(AGE).unwrap();
        assert_eq!(schema.check(" {\"age\": 7}\n"), Ok(json!({"age": 7})));
        for (answer, path, why) in [
            ("{\"age\":\"7\"}", "/age", "is not of type \"integer\""),
            ("{\"age\":-1}", "/age", "minimum"),
            ("{}", "/", "\"age\" is a required property"),
            ("{\"age\":7,\"x\":1}", "/", "'x' was unexpected"),
            ("```json\n{\"age\":7}\n```", "/", "the answer is no JSON: "),
            ("It is 7.", "/", "the answer is no JSON: "),
        ] {
            let faults = schema.check(answer).unwrap_err();
            assert_eq!(faults.len(), 1, "{answer}: {faults:?}");
            assert_eq!(faults[0].path, path, "{answer}: {faults:?}");
            assert!(faults[0].message.contains(why), "{answer}: {faults:?}");
        }
        let both = schema.check("{\"age\":-1,\"x\":1}").unwrap_err();
        assert_eq!(both.len(), 2);
    }

    #[test]
    fn a_wrong_schema_is_named_with_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("schema.json");
        for (text, why) in [
            ("{\"type\":\n oops}", "line 2 column 2"),
            ("[]", "a schema is a JSON object"),
            (r#"{"properties":{"age":{"type":"strin"}}}"#, "/properties/age/type: "),
            (r#"{"required":"age"}"#, "/required: "),
            (r#"{"$ref":"https://example.org/other.json"}"#, "example.org"),
            (r#"{"$ref":"other.json"}"#, "other.json"),
        ] {
            std::fs::write(&file, text).unwrap();
            let refused = AnswerSchema::read(file.to_str().unwrap()).unwrap_err();
            let said = refused.message();
            assert!(said.contains("schema.json: ") && said.contains(why), "{text}: {said}");
        }
        let missing = AnswerSchema::read("none.json").unwrap_err();
        assert!(missing.message().contains("none.json: No such file"), "{}", missing.message());
        std::fs::write(&file, AGE).unwrap();
        AnswerSchema::read(file.to_str().unwrap()).unwrap();
    }
}
