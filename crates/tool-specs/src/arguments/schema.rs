//! The JSON schema of a tool's arguments, and the check of arguments against it.
//!
//! One schema serves both the model and the check.

use crate::arguments::invalid::InvalidCall;
use protocol::did_you_mean::nearest;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Marks an argument that models are not told of: another name of the tool implies it.
const UNLISTED: &str = "unlisted";

/// The schema as models see it: keys sorted, no references, the same text at every call.
pub(crate) fn listed_of<T: JsonSchema>() -> Value {
    let mut schema = value_of::<T>();
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.retain(|_, property| property.get(UNLISTED).is_none());
    }
    schema
}

/// The schema of `T`, reduced to the features that all vendors support.
pub(crate) fn value_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
        object.remove("description");
        object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    simplify(&mut schema);
    schema
}

/// Removes integer formats, which some vendors refuse, and `null` for optional arguments, which are
/// omitted instead. Sorts keys, independent of serde_json's map type.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.remove("format");
            // Where a comment's lines break in the source is nothing that a model should see.
            if let Some(Value::String(text)) = object.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            if let Some(Value::Array(kinds)) = object.get("type")
                && let [kind, null] = kinds.as_slice()
                && null == "null"
            {
                let kind = kind.clone();
                object.insert("type".to_owned(), kind);
            }
            object.values_mut().for_each(simplify);
            let mut entries: Vec<(String, Value)> = std::mem::take(object).into_iter().collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            object.extend(entries);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Checks `input` against `schema`; the first thing that does not fit is named by its field.
pub(crate) fn check(
    tool: &'static str,
    schema: &Value,
    input: &Map<String, Value>,
) -> Result<(), InvalidCall> {
    check_object(tool, "", schema, input)
}

fn check_object(
    tool: &'static str,
    prefix: &str,
    schema: &Value,
    input: &Map<String, Value>,
) -> Result<(), InvalidCall> {
    let no_properties = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&no_properties);
    for name in input.keys() {
        if !properties.contains_key(name) {
            let known: Vec<String> = properties.keys().cloned().collect();
            let near = nearest(name, properties.keys().map(String::as_str));
            return Err(InvalidCall::UnknownField {
                tool,
                field: format!("{prefix}{name}"),
                nearest: near.first().map(|name| (*name).to_owned()),
                known,
            });
        }
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !input.contains_key(name) {
            return Err(InvalidCall::MissingField {
                tool,
                field: format!("{prefix}{name}"),
                expected: expected(&properties[name]),
            });
        }
    }
    for (name, value) in input {
        check_value(tool, &format!("{prefix}{name}"), &properties[name], value)?;
    }
    Ok(())
}

fn check_value(
    tool: &'static str,
    field: &str,
    schema: &Value,
    value: &Value,
) -> Result<(), InvalidCall> {
    let wrong = |expected: String| InvalidCall::WrongType {
        tool,
        field: field.to_owned(),
        expected,
        found: found(value),
    };
    let fits = match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("null") => value.is_null(),
        Some(_) | None => true,
    };
    if !fits {
        return Err(wrong(expected(schema)));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        return Err(wrong(expected(schema)));
    }
    if let Some(number) = value.as_f64() {
        let below = schema["minimum"].as_f64().is_some_and(|minimum| number < minimum);
        let above = schema["maximum"].as_f64().is_some_and(|maximum| number > maximum);
        if below || above {
            return Err(wrong(expected(schema)));
        }
    }
    match value {
        Value::Array(items) => items.iter().enumerate().try_for_each(|(i, item)| {
            check_value(tool, &format!("{field}[{i}]"), &schema["items"], item)
        }),
        Value::Object(object) if schema["properties"].is_object() => {
            check_object(tool, &format!("{field}."), schema, object)
        }
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Ok(())
        }
    }
}

/// A description of the values that a field accepts.
fn expected(schema: &Value) -> String {
    if let Some(allowed) = schema["enum"].as_array() {
        let words: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        return format!("one of {}", words.join(", "));
    }
    let kind = match schema["type"].as_str() {
        Some("string") => "a string",
        Some("boolean") => "true or false",
        Some("integer") => "a whole number",
        Some("number") => "a number",
        Some("array") => "an array",
        Some("object") => "an object",
        Some(other) => other,
        None => "another value",
    };
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Null, Value::Null) => kind.to_owned(),
        (low, Value::Null) => format!("{kind}, {low} or more"),
        (Value::Null, high) => format!("{kind}, {high} or less"),
        (low, high) => format!("{kind} from {low} to {high}"),
    }
}

/// A value in a few words: its kind, and itself where that is short.
fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) if text.chars().count() <= 40 => format!("the string {text:?}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
