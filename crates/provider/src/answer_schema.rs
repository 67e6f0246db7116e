//! The schema of an answer, in the part of JSON Schema that all vendors take for structured outputs.
//! Pure. Used by the encoders.
//!
//! That part is the smallest of theirs: OpenAI wants each property in `required`, Anthropic takes no
//! bounds of numbers and texts, Gemini no `const`. A schema outside of it goes to the model as words only.

use protocol::content::ModelRequest;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Most levels: OpenAI's bound.
const DEPTH: u32 = 10;
/// Most schemas inside it. OpenAI takes 5,000 properties, and each counts against the time of a compiler.
const PARTS: u32 = 500;
/// Most places with several types: Anthropic's bound.
const UNIONS: u32 = 16;
/// Keys that constrain nothing.
const NOTES: [&str; 2] = ["title", "description"];

/// The schema that the vendor shall enforce, if the request has one and the vendors take it.
pub(crate) fn enforced(request: &ModelRequest) -> Option<Box<RawValue>> {
    let mut schema: Map<String, Value> =
        serde_json::from_str(request.answer_schema.as_deref()?).ok()?;
    // It names the edition, and vendors refuse it.
    schema.remove("$schema");
    let no_definitions = Map::new();
    let definitions = match schema.get("$defs") {
        Some(definitions) => definitions.as_object()?,
        None => &no_definitions,
    };
    let mut check = SchemaCheck { definitions, parts: 0, unions: 0 };
    let mut root = schema.clone();
    root.remove("$defs");
    let is_object = root.get("type").is_some_and(|kind| kind == "object");
    let fits = is_object
        && check.fits(&Value::Object(root), 0)
        && definitions.values().all(|definition| check.fits(definition, 1));
    fits.then(|| serde_json::value::to_raw_value(&schema).ok()).flatten()
}

/// A schema as OpenAI's interfaces name it.
#[derive(Serialize)]
pub(crate) struct NamedSchema {
    name: &'static str,
    strict: bool,
    schema: Box<RawValue>,
}

impl NamedSchema {
    pub(crate) fn of(schema: Box<RawValue>) -> Self {
        Self { name: "answer", strict: true, schema }
    }
}

struct SchemaCheck<'a> {
    definitions: &'a Map<String, Value>,
    parts: u32,
    unions: u32,
}

impl SchemaCheck<'_> {
    fn fits(&mut self, schema: &Value, depth: u32) -> bool {
        self.parts += 1;
        let Some(schema) = schema.as_object().filter(|_| depth < DEPTH && self.parts <= PARTS)
        else {
            return false;
        };
        let only = |keys: &[&str]| {
            schema.keys().all(|key| NOTES.contains(&key.as_str()) || keys.contains(&key.as_str()))
        };
        if let Some(name) = schema.get("$ref") {
            // One that refers to itself has no end, and so passes the depth.
            let name = name.as_str().and_then(|name| name.strip_prefix("#/$defs/"));
            let definition = name.and_then(|name| self.definitions.get(name));
            return only(&["$ref"]) && definition.is_some_and(|it| self.fits(it, depth + 1));
        }
        if let Some(choices) = schema.get("anyOf") {
            self.unions += 1;
            let choices = choices.as_array().filter(|choices| !choices.is_empty());
            return only(&["anyOf"])
                && self.unions <= UNIONS
                && choices.is_some_and(|all| all.iter().all(|one| self.fits(one, depth + 1)));
        }
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            Some(_) | None => return false,
        };
        self.unions += u32::from(types.len() > 1);
        let mut keys = vec!["type", "enum"];
        if types.contains(&"object") {
            keys.extend(["properties", "required", "additionalProperties"]);
        }
        if types.contains(&"array") {
            keys.push("items");
        }
        only(&keys)
            && self.unions <= UNIONS
            && types.iter().all(|name| self.type_fits(name, schema, depth))
            && schema.get("enum").is_none_or(is_plain_choice)
    }

    fn type_fits(&mut self, name: &str, schema: &Map<String, Value>, depth: u32) -> bool {
        match name {
            "string" | "number" | "integer" | "boolean" | "null" => true,
            "array" => schema.get("items").is_some_and(|items| self.fits(items, depth + 1)),
            "object" => {
                let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                    return false;
                };
                let required = schema.get("required").and_then(Value::as_array);
                let is_required =
                    |name: &String| required.is_some_and(|all| all.iter().any(|it| it == name));
                schema.get("additionalProperties") == Some(&Value::Bool(false))
                    && properties.keys().all(is_required)
                    && required.is_none_or(|all| all.len() == properties.len())
                    && properties.values().all(|property| self.fits(property, depth + 1))
            }
            _ => false,
        }
    }
}

fn is_plain_choice(choices: &Value) -> bool {
    let is_plain = |choice: &Value| !choice.is_object() && !choice.is_array();
    choices.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_plain))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::content::ToolChoice;
    use serde_json::json;

    fn of(schema: &Value) -> Option<Value> {
        let request = ModelRequest {
            round: 1,
            model: "m".to_owned(),
            system: String::new(),
            tools: Vec::new(),
            messages: Vec::new(),
            max_tokens: 1,
            updated: None,
            calls: ToolChoice::Yes,
            images: Vec::new(),
            answer_schema: Some(schema.to_string()),
        };
        enforced(&request).map(|schema| serde_json::from_str(schema.get()).unwrap())
    }

    /// An object with one property.
    fn with(property: Value) -> Value {
        json!({"type": "object", "properties": {"a": property}, "required": ["a"],
            "additionalProperties": false})
    }

    #[test]
    fn schemas_of_the_common_part_are_enforced_as_they_are() {
        for property in [
            json!({"type": "string", "description": "d"}),
            json!({"type": ["integer", "null"], "title": "t"}),
            json!({"type": "array", "items": with(json!({"type": "boolean"}))}),
            json!({"type": "string", "enum": ["x", "y"]}),
            json!({"anyOf": [{"type": "number"}, with(json!({"type": "null"}))]}),
        ] {
            let schema = with(property);
            assert_eq!(of(&schema), Some(schema.clone()), "{schema}");
        }
        let mut schema = with(json!({"$ref": "#/$defs/b"}));
        schema["$defs"] = json!({"b": with(json!({"type": "string"}))});
        let wanted = schema.clone();
        schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        assert_eq!(of(&schema), Some(wanted));
    }

    #[test]
    fn others_are_left_to_agentd_s_own_check() {
        for property in [
            json!({"type": "integer", "minimum": 0}),
            json!({"type": "string", "pattern": "^x"}),
            json!({"type": "array"}),
            json!({"type": "object", "properties": {}}),
            json!({"type": "object", "properties": {"b": {"type": "null"}}, "additionalProperties": false}),
            json!({"const": 1}),
            json!({}),
            json!(true),
            json!({"$ref": "#/$defs/none"}),
            json!({"$ref": "#/$defs/loop"}),
            json!({"anyOf": []}),
        ] {
            let mut schema = with(property);
            schema["$defs"] = json!({"loop": with(json!({"$ref": "#/$defs/loop"}))});
            assert_eq!(of(&schema), None, "{schema}");
        }
        assert_eq!(of(&json!({"type": "string"})), None, "the root is an object");
        let deep = (0..12).fold(json!({"type": "null"}), |inner, _| with(inner));
        assert_eq!(of(&deep), None);
        let union = json!({"anyOf": [{"type": "null"}]});
        let many: Map<String, Value> = (0..17).map(|it| (it.to_string(), union.clone())).collect();
        let names: Vec<&String> = many.keys().collect();
        let wide = json!({"type": "object", "properties": many, "required": names,
            "additionalProperties": false});
        assert_eq!(of(&wide), None);
    }
}
