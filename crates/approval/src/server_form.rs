//! The form that an MCP server asks a person to fill in: a flat JSON Schema of primitives, its lines for
//! the person, and their answers. Pure. Used by the broker's questions.
//!
//! `field` checks one value. No word of a form is read to find one that asks for a secret: a line of agentd under each
//! form says who sees the answers.

mod field;

use field::{FormField, plain_line};
use serde_json::{Map, Value};
use std::fmt::Write;

/// Most fields of a form. A person answers no longer one in a terminal.
const FIELDS: usize = 32;
/// Most bytes of a schema.
const SCHEMA: usize = 64 * 1024;
/// Most bytes of the answers.
const ANSWERS: usize = 64 * 1024;

/// A form that a person can be asked to fill in.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerForm {
    fields: Vec<FormField>,
}

impl ServerForm {
    /// Reads a schema.
    ///
    /// # Errors
    /// Why no person is asked to fill it in.
    pub fn parse(schema: &str) -> Result<Self, String> {
        if schema.len() > SCHEMA {
            return Err(format!("its form has more than {SCHEMA} bytes"));
        }
        let schema: Value = serde_json::from_str(schema)
            .map_err(|error| format!("its form is no JSON Schema: {error}"))?;
        let none = Map::new();
        let properties = match schema.get("properties") {
            Some(Value::Object(properties)) => properties,
            None => &none,
            Some(_) => return Err("its form has no fields that agentd can read".to_owned()),
        };
        if properties.len() > FIELDS {
            return Err(format!("its form has more than {FIELDS} fields"));
        }
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if let Some(missing) = required.iter().find(|name| !properties.contains_key(**name)) {
            return Err(format!(
                "its form requires a field that it does not have: {}",
                plain_line(missing, 64)
            ));
        }
        let read = |(name, field): (&String, &Value)| {
            if is_secret(field) {
                return Err(format!(
                    "its form asks for a secret (`{}`), which the protocol forbids",
                    plain_line(name, 64)
                ));
            }
            FormField::parse(name, field, required.contains(&name.as_str()))
        };
        Ok(Self { fields: properties.iter().map(read).collect::<Result<_, _>>()? })
    }

    /// The fields in words, a line each.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for field in &self.fields {
            let _ = writeln!(text, "  {}", field.describe());
        }
        text
    }

    /// The lines that a person completes, with the defaults.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.fields.iter().map(FormField::line).collect()
    }

    /// The answers as a JSON object, from a person's lines or from such an object.
    ///
    /// # Errors
    /// The first fault, with its field, for the person.
    pub fn check(&self, typed: &str) -> Result<String, String> {
        if typed.len() > ANSWERS {
            return Err(format!("the answers have more than {ANSWERS} bytes"));
        }
        let answers = match serde_json::from_str(typed.trim()) {
            Ok(Value::Object(given)) => self.of_object(given)?,
            _ => self.of_lines(typed)?,
        };
        let missing = self
            .fields
            .iter()
            .find(|field| field.is_required && !answers.contains_key(&field.name));
        match missing {
            Some(field) => Err(format!("`{}` is needed", field.name)),
            None => Ok(Value::Object(answers).to_string()),
        }
    }

    fn of_object(&self, given: Map<String, Value>) -> Result<Map<String, Value>, String> {
        let mut answers = Map::new();
        for (name, value) in given {
            let field = self.field(&name)?;
            answers.insert(name, field.accept(value)?);
        }
        Ok(answers)
    }

    fn of_lines(&self, typed: &str) -> Result<Map<String, Value>, String> {
        let mut answers = Map::new();
        if let [only] = &self.fields[..]
            && !typed
                .trim_start()
                .strip_prefix(&only.name)
                .is_some_and(|rest| rest.trim_start().starts_with('='))
        {
            // A single answer needs no name.
            if let Some(value) = only.read(typed.trim())? {
                answers.insert(only.name.clone(), value);
            }
            return Ok(answers);
        }
        for line in typed.lines().filter(|line| !line.trim().is_empty()) {
            let Some((name, value)) = line.split_once('=') else {
                return Err(format!("this line is not `field = answer`: {}", plain_line(line, 80)));
            };
            let field = self.field(name.trim())?;
            if answers.contains_key(&field.name) {
                return Err(format!("`{}` is answered twice", field.name));
            }
            if let Some(value) = field.read(value.trim())? {
                answers.insert(field.name.clone(), value);
            }
        }
        Ok(answers)
    }

    fn field(&self, name: &str) -> Result<&FormField, String> {
        let found = self.fields.iter().find(|field| field.name == name);
        found.ok_or_else(|| format!("the form has no field `{}`", plain_line(name, 64)))
    }
}

/// A server's words without characters that deceive, at most so many characters.
pub(crate) fn plain_text(text: &str, most: usize) -> String {
    field::plain(text, most)
}

/// True for a field whose answer is a secret, as its schema says.
fn is_secret(field: &Value) -> bool {
    field.get("format").and_then(Value::as_str) == Some("password")
        || field.get("writeOnly") == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn form(fields: &Value, required: &[&str]) -> Result<ServerForm, String> {
        let schema = json!({"type": "object", "properties": fields, "required": required});
        ServerForm::parse(&schema.to_string())
    }

    #[test]
    fn answers_are_checked_against_the_schema_of_each_kind_of_field() {
        let fields = json!({
            "name": {"type": "string", "minLength": 2, "maxLength": 5},
            "mail": {"type": "string", "format": "email"},
            "page": {"type": "string", "format": "uri"},
            "day": {"type": "string", "format": "date"},
            "at": {"type": "string", "format": "date-time"},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "share": {"type": "number", "minimum": 0.5, "maximum": 1.5},
            "sure": {"type": "boolean"},
            "level": {"type": "string", "enum": ["low", "high"], "enumNames": ["Low", "High"]},
            "kind": {"type": "string", "oneOf": [{"const": "a", "title": "First"}]},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "maxItems": 1},
        });
        let form = form(&fields, &[]).unwrap();
        for (line, wanted) in [
            ("name = Böb", Some(json!({"name": "Böb"}))),
            ("name = a", None),
            ("name = abcdef", None),
            ("mail = a@b.example", Some(json!({"mail": "a@b.example"}))),
            ("mail = a b@c", None),
            ("page = https://a.example/x", Some(json!({"page": "https://a.example/x"}))),
            ("page = a.example", None),
            ("day = 2026-02-28", Some(json!({"day": "2026-02-28"}))),
            ("day = 2026-02-29", None),
            ("at = 2026-02-28T10:00:00Z", Some(json!({"at": "2026-02-28T10:00:00Z"}))),
            ("at = 2026-02-28T25:00:00Z", None),
            ("at = today", None),
            ("count = 3", Some(json!({"count": 3}))),
            ("count = 0", None),
            ("count = 10", None),
            ("count = 1.5", None),
            ("share = 0.5", Some(json!({"share": 0.5}))),
            ("share = 2", None),
            ("share = nan", None),
            ("sure = yes", Some(json!({"sure": true}))),
            ("sure = maybe", None),
            ("level = high", Some(json!({"level": "high"}))),
            ("level = High", Some(json!({"level": "high"}))),
            ("level = other", None),
            ("kind = First", Some(json!({"kind": "a"}))),
            ("tags = x", Some(json!({"tags": ["x"]}))),
            ("tags = x, y", None),
            ("tags = z", None),
            ("other = 1", None),
            ("name", None),
            ("name = Bob\nname = Eve", None),
            ("name =\ncount = 2", Some(json!({"count": 2}))),
            (r#"{"count": 2, "sure": false}"#, Some(json!({"count": 2, "sure": false}))),
            (r#"{"count": "2"}"#, None),
            (r#"{"other": 2}"#, None),
        ] {
            let answers = form.check(line);
            let read = answers.as_deref().ok().map(|json| serde_json::from_str(json).unwrap());
            assert_eq!(read, wanted, "{line}: {answers:?}");
        }
    }

    #[test]
    fn a_required_field_is_needed_and_a_default_is_offered() {
        let fields = json!({
            "name": {"type": "string", "default": "Bob"},
            "count": {"type": "integer", "default": 3},
            "tags": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}, "default": ["x"]},
        });
        let form = form(&fields, &["name"]).unwrap();
        assert_eq!(form.lines(), ["count = 3", "name = Bob", "tags = x"]);
        assert_eq!(form.check("count = 3"), Err("`name` is needed".to_owned()));
        let all = form.check(&form.lines().join("\n")).unwrap();
        let all: Value = serde_json::from_str(&all).unwrap();
        assert_eq!(all, json!({"count": 3, "name": "Bob", "tags": ["x"]}));
    }

    #[test]
    fn a_single_answer_needs_no_name() {
        let form = form(&json!({"name": {"type": "string"}}), &["name"]).unwrap();
        assert_eq!(form.check("Bob = me"), Ok(r#"{"name":"Bob = me"}"#.to_owned()));
        assert_eq!(form.check("name = Bob"), Ok(r#"{"name":"Bob"}"#.to_owned()));
        assert!(form.check("").is_err());
    }

    #[test]
    fn a_form_whose_schema_says_secret_is_refused() {
        for field in [
            json!({"type": "string", "format": "password"}),
            json!({"type": "string", "writeOnly": true}),
        ] {
            let refused = form(&json!({"value": field}), &[]);
            assert!(refused.is_err_and(|why| why.contains("secret (`value`)")), "{field}");
        }
        let words = json!({"type": "string", "title": "Your password", "writeOnly": false});
        assert!(form(&json!({"password": words}), &[]).is_ok(), "words are for the person to read");
    }

    #[test]
    fn a_form_that_is_not_flat_or_too_large_is_refused() {
        for field in [
            json!({"type": "object", "properties": {}}),
            json!({"type": "array", "items": {"type": "object"}}),
            json!({"type": "null"}),
            json!({"$ref": "#/x"}),
            json!("string"),
        ] {
            assert!(form(&json!({"a": field}), &[]).is_err(), "{field}");
        }
        let many: Map<String, Value> =
            (0..33).map(|at| (format!("f{at}"), json!({"type": "string"}))).collect();
        assert!(form(&Value::Object(many), &[]).is_err());
        assert!(form(&json!({"a = b": {"type": "string"}}), &[]).is_err());
        assert!(form(&json!({"a": {"type": "string"}}), &["b"]).is_err());
        assert!(ServerForm::parse("[").is_err());
        assert!(ServerForm::parse(&" ".repeat(SCHEMA + 1)).is_err());
    }

    #[test]
    fn a_servers_words_lose_characters_that_deceive() {
        let fields = json!({"a": {"type": "string", "title": "Na\u{202e}me\u{1b}[31m", "description": "One\nTwo"}});
        let form = form(&fields, &["a"]).unwrap();
        assert_eq!(form.describe(), "  a: Name[31m (text, needed). One Two\n");
    }
}
