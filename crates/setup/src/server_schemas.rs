//! Schemas of the arguments of MCP tools, in the form that every vendor takes: one schema that a vendor refuses would
//! end each request of the session. Rewritten where the meaning stays; a keyword that is left out only describes a
//! check which the server makes itself. Pure. Used by `server_tools`.
//!
//! Sources: Anthropic refuses `oneOf`, `allOf` and `anyOf` at the top and names of arguments outside
//! `[a-zA-Z0-9_.-]{1,64}`, and wants draft 2020-12
//! (<https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use>). OpenAI wants `type: object` with
//! `properties`, arrays with `items`, and none of `oneOf`, `anyOf`, `allOf`, `enum`, `not` at the top
//! (<https://platform.openai.com/docs/guides/structured-outputs>). Gemini takes the fields of its `Schema`
//! (<https://ai.google.dev/api/caching#Schema>).

use protocol::mcp::NO_SCHEMA;
use serde_json::{Map, Value, json};

/// Longest name of an argument.
const LONGEST_NAME: usize = 64;
/// Most levels, and most parts with all references resolved.
const LEVELS: usize = 32;
const PARTS: usize = 5000;
/// Keywords with a number.
const NUMBERS: [&str; 6] = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"];
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// A schema for all vendors.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolSchema {
    pub(crate) text: String,
    /// Arguments that have another name for models, and their name for the server.
    pub(crate) renamed: Vec<(String, String)>,
}

/// The schema of a tool, or the reason why no vendor can be given one.
pub(crate) fn for_vendors(schema: &Map<String, Value>) -> Result<ToolSchema, String> {
    let root = Value::Object(schema.clone());
    let mut rewrite = Rewrite { root: &root, open: Vec::new(), parts: 0 };
    let mut top = rewrite.schema(&root, 0);
    if rewrite.parts > PARTS {
        return Err(format!("the schema of its arguments has more than {PARTS} parts"));
    }
    if schema.get("type").is_some_and(|name| name == NO_SCHEMA) {
        return Err("it has no schema of its arguments".to_owned());
    }
    let is_object = match top.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
    };
    if !is_object {
        return Err(format!("its arguments are no object but {}", top["type"]));
    }
    top.insert("type".to_owned(), "object".into());
    top.remove("enum");
    join_choices(&mut top);
    top.entry("properties").or_insert_with(|| json!({}));
    let renamed = rename(&mut top);
    Ok(ToolSchema { text: Value::Object(top).to_string(), renamed })
}

/// The arguments of a call with the server's names.
pub fn own_arguments(arguments: &str, renamed: &[(String, String)]) -> Option<String> {
    let mut given: Map<String, Value> = serde_json::from_str(arguments).ok()?;
    for (shown, own) in renamed {
        if let Some(value) = given.remove(shown) {
            given.insert(own.clone(), value);
        }
    }
    Some(Value::Object(given).to_string())
}

struct Rewrite<'a> {
    root: &'a Value,
    /// The references under way.
    open: Vec<&'a str>,
    parts: usize,
}

impl<'a> Rewrite<'a> {
    fn schema(&mut self, schema: &'a Value, level: usize) -> Map<String, Value> {
        self.parts += 1;
        let mut new = Map::new();
        let Some(old) = schema.as_object().filter(|_| level < LEVELS && self.parts <= PARTS) else {
            return new;
        };
        if let Some(to) = old.get("$ref").and_then(Value::as_str)
            && let Some(target) = to.strip_prefix('#').and_then(|to| self.root.pointer(to))
            && !self.open.contains(&to)
        {
            self.open.push(to);
            new = self.schema(target, level);
            self.open.pop();
        }
        for part in list(old.get("allOf")) {
            let part = self.schema(part, level + 1);
            merge(&mut new, part);
        }
        let own = self.keywords(old, level);
        merge(&mut new, own);
        if has_type(&new, "array") && !new.contains_key("items") {
            new.insert("items".to_owned(), json!({}));
        }
        new
    }

    fn keywords(&mut self, old: &'a Map<String, Value>, level: usize) -> Map<String, Value> {
        let mut new = Map::new();
        for (keyword, value) in old {
            let value = match (keyword.as_str(), value) {
                ("title" | "description", Value::String(_)) | ("default", _) => value.clone(),
                ("type", value) => match types(value) {
                    Some(types) => types,
                    None => continue,
                },
                ("enum", Value::Array(all)) if !all.is_empty() => value.clone(),
                ("additionalProperties", Value::Bool(_)) => value.clone(),
                ("additionalProperties" | "items", Value::Object(_)) => {
                    Value::Object(self.schema(value, level + 1))
                }
                ("properties", Value::Object(all)) => {
                    let each = |(name, schema): (&String, &'a Value)| {
                        (name.clone(), Value::Object(self.schema(schema, level + 1)))
                    };
                    Value::Object(all.iter().map(each).collect())
                }
                ("required", Value::Array(names)) => {
                    names.iter().filter(|name| name.is_string()).cloned().collect()
                }
                (number, Value::Number(_)) if NUMBERS.contains(&number) => value.clone(),
                _ => continue,
            };
            new.insert(keyword.clone(), value);
        }
        if let Some(only) = old.get("const") {
            new.insert("enum".to_owned(), json!([only]));
        }
        let choices: Vec<Value> = ["anyOf", "oneOf"]
            .iter()
            .flat_map(|keyword| list(old.get(*keyword)))
            .map(|choice| Value::Object(self.schema(choice, level + 1)))
            .collect();
        if !choices.is_empty() {
            new.insert("anyOf".to_owned(), choices.into());
        }
        // The items of a tuple, in both drafts.
        let tuple = list(old.get("prefixItems")).iter().chain(list(old.get("items")));
        let tuple: Vec<Value> =
            tuple.map(|item| Value::Object(self.schema(item, level + 1))).collect();
        if !tuple.is_empty() {
            new.insert("items".to_owned(), json!({ "anyOf": tuple }));
        }
        for keyword in ["format", "pattern"] {
            if let Some(word) = old.get(keyword).and_then(Value::as_str) {
                describe(&mut new, &format!("({keyword}: {word})"));
            }
        }
        new
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn has_type(schema: &Map<String, Value>, name: &str) -> bool {
    schema
        .get("type")
        .is_some_and(|types| types == name || list(Some(types)).contains(&name.into()))
}

/// The types that there are; none if there are none.
fn types(value: &Value) -> Option<Value> {
    let is_known = |name: &&Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    let names = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let known: Vec<Value> = names.iter().filter(is_known).cloned().collect();
    match known.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        _ => Some(known.into()),
    }
}

fn describe(schema: &mut Map<String, Value>, more: &str) {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = format!("{text} {more}");
    schema.insert("description".to_owned(), text.trim_start().into());
}

/// Adds the keywords of a schema that holds as well.
fn merge(into: &mut Map<String, Value>, more: Map<String, Value>) {
    for (keyword, value) in more {
        match (into.get_mut(&keyword), value) {
            (Some(Value::Object(all)), Value::Object(more)) if keyword == "properties" => {
                all.extend(more);
            }
            (Some(Value::Array(all)), Value::Array(more)) if keyword == "required" => {
                all.extend(more);
            }
            (_, value) => drop(into.insert(keyword, value)),
        }
    }
}

/// Choices between whole sets of arguments: the arguments of all, and the sets in words.
fn join_choices(top: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = top.remove("anyOf") else { return };
    let mut sets = Vec::new();
    let mut always: Option<Vec<Value>> = None;
    for choice in &choices {
        let properties = choice.get("properties").and_then(Value::as_object);
        let required = list(choice.get("required"));
        always = Some(match always {
            None => required.to_vec(),
            Some(all) => all.into_iter().filter(|name| required.contains(name)).collect(),
        });
        let of_set = properties.map(|all| all.keys().cloned().collect::<Vec<_>>());
        let needed: Vec<String> =
            required.iter().filter_map(Value::as_str).map(Into::into).collect();
        sets.push(
            if needed.is_empty() { of_set.unwrap_or_default() } else { needed }.join(" and "),
        );
        let all = top.entry("properties").or_insert_with(|| json!({}));
        for (name, schema) in properties.into_iter().flatten() {
            let known = all.get(name).cloned().filter(|known| known != schema);
            all[name] = match known {
                None => schema.clone(),
                Some(known) => json!({ "anyOf": [known, schema] }),
            };
        }
    }
    let required = top.entry("required").or_insert_with(|| json!([]));
    if let (Value::Array(all), Some(more)) = (required, always) {
        all.extend(more);
    }
    sets.retain(|set| !set.is_empty());
    if sets.len() > 1 {
        describe(top, &format!("Give one of these sets of arguments: {}.", sets.join("; or ")));
    }
}

/// Gives each argument a name that all vendors take, and names only arguments that there are as required.
fn rename(top: &mut Map<String, Value>) -> Vec<(String, String)> {
    let Some(Value::Object(properties)) = top.get_mut("properties") else { return Vec::new() };
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let is_name =
        |name: &str| !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_letter);
    let odd: Vec<String> = properties.keys().filter(|name| !is_name(name)).cloned().collect();
    let mut renamed = Vec::new();
    for own in odd {
        let letters = own.chars().map(|c| if is_letter(c) { c } else { '_' });
        let stem: String = letters.take(LONGEST_NAME - 8).collect();
        let numbered = (2_u32..).map(|n| format!("{stem}_{n}"));
        let mut names =
            Some(stem.clone()).filter(|stem| !stem.is_empty()).into_iter().chain(numbered);
        let Some(shown) = names.find(|name| !properties.contains_key(name)) else { continue };
        if let Some(mut schema) = properties.remove(&own) {
            if let Some(schema) = schema.as_object_mut() {
                describe(schema, &format!("(the server calls it {own:?})"));
            }
            properties.insert(shown.clone(), schema);
            renamed.push((shown, own));
        }
    }
    let known: Vec<String> = properties.keys().cloned().collect();
    let mut needed: Vec<Value> = Vec::new();
    for name in list(top.get("required")) {
        let shown = renamed.iter().find(|(_, own)| name == own).map(|(shown, _)| shown.as_str());
        let name: Value = shown.or(name.as_str()).unwrap_or_default().into();
        if known.iter().any(|known| name == *known) && !needed.contains(&name) {
            needed.push(name);
        }
    }
    match needed.is_empty() {
        true => drop(top.remove("required")),
        false => drop(top.insert("required".to_owned(), needed.into())),
    }
    renamed
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rewritten(schema: &Value) -> Value {
        let schema = for_vendors(schema.as_object().unwrap()).unwrap();
        serde_json::from_str(&schema.text).unwrap()
    }

    #[test]
    fn every_schema_is_that_of_an_object_and_plain_ones_stay() {
        let empty = json!({"type": "object", "properties": {}});
        for schema in [json!({}), json!({"type": "object"}), json!({"type": ["object", "null"]})] {
            assert_eq!(rewritten(&schema), empty);
        }
        assert_eq!(rewritten(&json!({"enum": [{}], "not": {}, "$schema": "x"})), empty);
        let plain = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "description": "A.", "minLength": 1},
            "b": {"type": "array", "items": {"type": ["integer", "null"], "minimum": 0}},
        }, "additionalProperties": false});
        assert_eq!(rewritten(&plain), plain);
        let none = for_vendors(json!({"type": "array"}).as_object().unwrap()).unwrap_err();
        assert!(none.contains("no object"), "{none}");
    }

    #[test]
    fn choices_at_the_top_become_arguments_and_words() {
        let text = json!({"type": "string"});
        let schema = json!({
            "properties": {"z": text}, "required": ["z"],
            "oneOf": [
                {"properties": {"a": text, "c": text}, "required": ["a", "c"]},
                {"properties": {"b": text, "c": {"type": "integer"}}, "required": ["b", "c"]},
            ],
            "allOf": [{"properties": {"d": text}, "required": ["d"]}],
        });
        assert_eq!(
            rewritten(&schema),
            json!({
                "type": "object", "required": ["d", "z", "c"],
                "properties": {"a": text, "b": text, "d": text, "z": text,
                               "c": {"anyOf": [text, {"type": "integer"}]}},
                "description": "Give one of these sets of arguments: a and c; or b and c.",
            })
        );
    }

    #[test]
    fn references_are_resolved_and_end() {
        let schema = json!({
            "properties": {"n": {"$ref": "#/$defs/node"}, "far": {"$ref": "https://x/y"},
                           "bad": {"$ref": "#/$defs/none"}},
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        });
        assert_eq!(
            rewritten(&schema)["properties"],
            json!({"n": {"type": "object", "properties": {"next": {}}}, "far": {}, "bad": {}})
        );
        let twice =
            |n: u32| json!({"anyOf": vec![json!({"$ref": format!("#/$defs/{}", n + 1)}); 9]});
        let bomb = json!({"properties": {"a": {"$ref": "#/$defs/0"}},
            "$defs": (0..9).map(|n| (n.to_string(), twice(n))).collect::<Map<_, _>>()});
        assert!(for_vendors(bomb.as_object().unwrap()).unwrap_err().contains("parts"));
    }

    #[test]
    fn keywords_that_a_vendor_refuses_are_said_otherwise() {
        let schema = json!({"properties": {
            "a": {"const": 1, "$comment": "x", "exclusiveMinimum": true, "required": true},
            "b": {"type": "string", "format": "uri", "pattern": "^x"},
            "c": {"type": "array"}, "d": {"type": "array", "items": [{"type": "string"}]},
            "e": true, "f": {"type": "any"}, "g": null,
        }, "required": ["gone", "a", 7]});
        assert_eq!(
            rewritten(&schema),
            json!({"type": "object", "required": ["a"], "properties": {
                "a": {"enum": [1]}, "b": {"type": "string", "description": "(format: uri) (pattern: ^x)"},
                "c": {"type": "array", "items": {}},
                "d": {"type": "array", "items": {"anyOf": [{"type": "string"}]}},
                "e": {}, "f": {}, "g": {},
            }})
        );
    }

    #[test]
    fn names_go_to_the_server_as_it_has_them() {
        let schema = json!({"properties": {"$filter": {"type": "string"}, "_filter": {}, "": {}},
            "required": ["$filter"]});
        let schema = for_vendors(schema.as_object().unwrap()).unwrap();
        let text: Value = serde_json::from_str(&schema.text).unwrap();
        assert_eq!(text["required"], json!(["_filter_2"]), "{text}");
        let own = own_arguments(r#"{"_filter_2":"a","_filter":"b"}"#, &schema.renamed).unwrap();
        assert_eq!(own, r#"{"$filter":"a","_filter":"b"}"#);
    }
}
