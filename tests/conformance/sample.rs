//! Arguments that a tool's schema accepts. Pure; used by the client.

use protocol::mcp::{ServerQuestion, ServerReply, ServerWants};
use serde_json::{Map, Value, json};

/// Deepest object that is filled in.
const DEPTH: u8 = 4;

/// Arguments with a value for each property that the schema requires.
pub(crate) fn arguments(schema: &str) -> Value {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    object(&schema, DEPTH)
}

/// The answers of a person who changes no default.
pub(crate) fn answers(question: &ServerQuestion) -> ServerReply {
    let ServerWants::Form(schema) = &question.wants else {
        return ServerReply::Accept(String::new());
    };
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let fields =
        fields.filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone())));
    let Value::Object(mut answers) = object(&schema, DEPTH) else { return ServerReply::Decline };
    answers.extend(fields);
    ServerReply::Accept(Value::Object(answers).to_string())
}

fn object(schema: &Value, depth: u8) -> Value {
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let fill = |name: &str| {
        let property = schema.get("properties").and_then(|all| all.get(name));
        (name.to_owned(), property.map_or(Value::Null, |property| value(property, depth)))
    };
    Value::Object(names.map(fill).collect::<Map<_, _>>())
}

fn value(schema: &Value, depth: u8) -> Value {
    let given = ["const", "default"].into_iter().find_map(|key| schema.get(key));
    let first = ["enum", "examples"].into_iter().find_map(|key| schema.get(key)?.get(0));
    if let Some(value) = given.or(first) {
        return value.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        Some(kind) => kind.as_str(),
        None => None,
    };
    match kind {
        Some("string") => json!("test"),
        Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("number") => schema.get("minimum").cloned().unwrap_or(json!(1.5)),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") if depth > 0 => object(schema, depth.saturating_sub(1)),
        Some("object") => json!({}),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_required_property_gets_a_value_of_its_kind() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": { "type": "number" },
                "b": { "type": ["string", "null"] },
                "c": { "enum": ["x", "y"] },
                "d": { "type": "object", "required": ["e"],
                       "properties": { "e": { "type": "integer", "minimum": 7 } } },
                "left_out": { "type": "string" },
            },
            "required": ["a", "b", "c", "d", "undescribed"],
        });
        let expected =
            json!({ "a": 1.5, "b": "test", "c": "x", "d": { "e": 7 }, "undescribed": null });
        assert_eq!(arguments(&schema.to_string()), expected);
    }

    #[test]
    fn a_schema_that_contains_itself_has_an_end_and_none_is_no_object() {
        let mut schema = json!({ "type": "object" });
        for _ in 0..20 {
            schema = json!({ "type": "object", "required": ["a"], "properties": { "a": schema } });
        }
        assert!(arguments(&schema.to_string()).is_object());
        assert_eq!(arguments("no schema"), json!({}));
    }
}
