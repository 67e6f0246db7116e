//! Converts arguments to a tool's schema where only one reading is possible: `"2"` and `2.0` become
//! 2, a list in a string becomes that list, another agent's field name becomes ours. The result
//! notes each conversion. Ambiguous values stay as they are, and the later check names the field.

use crate::arguments::dialect::{self, ArgMeaning, FieldAliases, JsonFields};
use crate::arguments::invalid::InvalidCall;
use serde_json::{Map, Number, Value};

/// Longest value that a sentence repeats.
const SHOWN: usize = 40;
/// A time below this is meant in seconds: no command is given less than a second.
const SECONDS_BELOW: u64 = 1000;

/// Notes about converted arguments.
#[derive(Debug, Default)]
pub(crate) struct CoercionNotes(pub Vec<String>);

impl CoercionNotes {
    fn add(&mut self, note: String) {
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    fn taken(&mut self, field: &str, given: &Value, as_what: &Value) {
        self.add(format!("{field} was read as {} (given: {})", short(as_what), short(given)));
    }
}

/// Brings the arguments of `tool` into the form of its schema.
///
/// # Errors
/// Two words for one field that do not say the same.
pub(crate) fn coerce(
    tool: &'static str,
    aliases: FieldAliases,
    schema: &Value,
    fields: JsonFields,
    notes: &mut CoercionNotes,
) -> Result<JsonFields, InvalidCall> {
    Coercer { tool, aliases, notes }.object("", "", schema, fields)
}

struct Coercer<'a> {
    tool: &'static str,
    aliases: FieldAliases,
    notes: &'a mut CoercionNotes,
}

impl Coercer<'_> {
    /// `place` is the path of the object inside the arguments, `prefix` names its fields in messages.
    fn object(
        &mut self,
        place: &str,
        prefix: &str,
        schema: &Value,
        fields: JsonFields,
    ) -> Result<JsonFields, InvalidCall> {
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let mut named = JsonFields::new();
        let (ours, mut theirs): (Vec<_>, Vec<_>) =
            fields.into_iter().partition(|(name, _)| properties.contains_key(name));
        // These depend on the other fields, so they come last.
        let aliases = self.aliases;
        let rests = |said: &str| {
            matches!(
                dialect::meaning(aliases, place, said),
                Some(ArgMeaning::EndLine | ArgMeaning::Literal)
            )
        };
        theirs.sort_by_key(|(said, _)| rests(said));
        named.extend(ours.into_iter().filter(|(_, value)| !value.is_null()));
        for (said, value) in theirs {
            // Many models send null for omitted fields.
            if !value.is_null() {
                self.rename(place, properties, &mut named, said, value)?;
            }
        }
        let mut fitted = JsonFields::new();
        for (name, value) in named {
            let Some(schema) = properties.get(&name) else {
                fitted.insert(name, value);
                continue;
            };
            let below = match place {
                "" => name.clone(),
                place => format!("{place}.{name}"),
            };
            let field = format!("{prefix}{name}");
            if let Some(value) = self.value(&below, &field, schema, value)? {
                fitted.insert(name, value);
            }
        }
        Ok(fitted)
    }

    /// Stores a value under our name for another agent's field `said`.
    fn rename(
        &mut self,
        place: &str,
        properties: &JsonFields,
        named: &mut JsonFields,
        said: String,
        value: Value,
    ) -> Result<(), InvalidCall> {
        let spelled = properties.keys().find(|name| dialect::fold(name) == dialect::fold(&said));
        let means = match spelled {
            Some(name) if !said.starts_with('-') => return self.put(named, name, &said, value),
            Some(_) | None => dialect::meaning(self.aliases, place, &said),
        };
        match means {
            Some(ArgMeaning::Field("path")) if properties.contains_key("paths") => {
                self.put(named, "paths", &said, value)
            }
            Some(ArgMeaning::Field(name)) if properties.contains_key(name) => {
                // Lines before, after and around a match are one number here.
                if name == "context" && self.tool == "grep" {
                    let most = [named.get(name), Some(&value)];
                    let most = most.into_iter().flatten().filter_map(whole).max();
                    named.insert(name.to_owned(), most.map_or(value, Value::from));
                    return Ok(());
                }
                self.put(named, name, &said, value)
            }
            Some(ArgMeaning::Opposite(name)) => match truth(&value) {
                Some(flag) => self.put(named, name, &said, Value::from(!flag)),
                None => insert_as_given(named, said, value),
            },
            Some(ArgMeaning::Time(name)) => match whole(&value) {
                Some(0) => Ok(()),
                Some(time) if time < SECONDS_BELOW => {
                    self.notes.add(format!("{said} {time} was read as {time} seconds"));
                    self.put(named, name, &said, Value::from(time * 1000))
                }
                Some(time) => self.put(named, name, &said, Value::from(time)),
                None => insert_as_given(named, said, value),
            },
            Some(ArgMeaning::Seconds(name)) => match whole(&value) {
                Some(0) => Ok(()),
                Some(time) => self.put(named, name, &said, Value::from(time.saturating_mul(1000))),
                None => insert_as_given(named, said, value),
            },
            Some(ArgMeaning::Range) => self.range(named, said, &value),
            Some(ArgMeaning::EndLine) => self.end_line(named, said, value),
            Some(ArgMeaning::FileType) => {
                let files = value.as_str().and_then(dialect::files_of);
                match files.filter(|_| !named.contains_key("include")) {
                    Some(files) => drop(named.insert("include".to_owned(), files.into())),
                    None => self.notes.add(format!("{said} {} was ignored", short(&value))),
                }
                Ok(())
            }
            Some(ArgMeaning::Literal) => {
                if truth(&value) == Some(true)
                    && let Some(Value::String(pattern)) = named.get_mut("pattern")
                {
                    *pattern = regex_syntax::escape(pattern);
                }
                Ok(())
            }
            Some(ArgMeaning::Ignored) => Ok(()),
            Some(ArgMeaning::Unmet(sentence)) => {
                if !is_nothing(&value) {
                    self.notes.add(sentence.trim_end_matches('.').to_owned());
                }
                Ok(())
            }
            // The check names it.
            Some(ArgMeaning::Field(_)) | None => insert_as_given(named, said, value),
        }
    }

    fn put(
        &mut self,
        named: &mut JsonFields,
        name: &str,
        said: &str,
        value: Value,
    ) -> Result<(), InvalidCall> {
        // Their word may name one where ours names several.
        let several = matches!(name, "paths" | "patterns");
        let one = value.as_str().filter(|one| several && !one.starts_with('['));
        let value = one.map(|one| Value::from(vec![one])).unwrap_or(value);
        match named.get(name) {
            Some(other) if *other != value => Err(InvalidCall::Unfit {
                tool: self.tool,
                reason: format!("{name} and {said} are both given with different values"),
            }),
            Some(_) => Ok(()),
            None => insert_as_given(named, name.to_owned(), value),
        }
    }

    /// `[FIRST, LAST]`, where -1 is the end of the file.
    fn range(
        &mut self,
        named: &mut JsonFields,
        said: String,
        value: &Value,
    ) -> Result<(), InvalidCall> {
        let given = match value.as_str() {
            Some(text) => serde_json::from_str(text).unwrap_or_default(),
            None => value.clone(),
        };
        let lines =
            given.as_array().map(|lines| lines.iter().map(Value::as_i64).collect::<Vec<_>>());
        let Some([Some(first), Some(last)]) = lines.as_deref() else {
            return insert_as_given(named, said, value.clone());
        };
        if *first > 0 {
            self.put(named, "offset", &said, Value::from(*first))?;
        }
        match last.checked_sub((*first).max(1)).map(|more| more + 1) {
            Some(limit) if *last > 0 && limit > 0 => {
                self.put(named, "limit", &said, Value::from(limit))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn end_line(
        &mut self,
        named: &mut JsonFields,
        said: String,
        value: Value,
    ) -> Result<(), InvalidCall> {
        let Some(last) = whole(&value) else { return insert_as_given(named, said, value) };
        let first = named.get("offset").and_then(whole).unwrap_or(1).max(1);
        match last.checked_sub(first) {
            Some(more) => self.put(named, "limit", &said, Value::from(more + 1)),
            None => insert_as_given(named, said, value),
        }
    }

    /// None where the value says the same as none at all.
    fn value(
        &mut self,
        place: &str,
        field: &str,
        schema: &Value,
        value: Value,
    ) -> Result<Option<Value>, InvalidCall> {
        let fitted = match schema["type"].as_str() {
            Some("string") => text(schema, &value),
            Some("boolean") => truth(&value).map(Value::from),
            Some("integer") => return Ok(self.integer(field, schema, value)),
            Some("array") => return self.array(place, field, schema, value).map(Some),
            Some("object") => return self.nested(place, field, schema, value).map(Some),
            Some(_) | None => None,
        };
        Ok(Some(self.say(field, value, fitted)))
    }

    fn say(&mut self, field: &str, given: Value, fitted: Option<Value>) -> Value {
        match fitted {
            Some(fitted) if fitted != given => {
                self.notes.taken(field, &given, &fitted);
                fitted
            }
            Some(_) | None => given,
        }
    }

    fn integer(&mut self, field: &str, schema: &Value, given: Value) -> Option<Value> {
        let Some(number) = signed(&given) else { return Some(given) };
        let least = schema["minimum"].as_i64();
        // Others count lines from 0.
        if number == 0 && least == Some(1) && field == "offset" {
            self.notes.add("offset 0 was read as 1".to_owned());
            return None;
        }
        Some(self.say(field, given, Some(Value::from(number))))
    }

    fn array(
        &mut self,
        place: &str,
        field: &str,
        schema: &Value,
        given: Value,
    ) -> Result<Value, InvalidCall> {
        let of = schema["items"]["type"].as_str();
        let list = match &given {
            Value::String(text) if text.trim_start().starts_with('[') => {
                serde_json::from_str(text).ok().filter(Value::is_array)
            }
            Value::Object(_) if of == Some("object") => Some(Value::Array(vec![given.clone()])),
            Value::String(_)
            | Value::Object(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_) => None,
        };
        let list = self.say(field, given, list);
        let Value::Array(items) = list else { return Ok(list) };
        let mut fitted = Vec::new();
        for (at, item) in items.into_iter().enumerate() {
            let named = format!("{field}[{at}]");
            let item = self.value(place, &named, &schema["items"], item)?;
            fitted.extend(item);
        }
        Ok(Value::Array(fitted))
    }

    fn nested(
        &mut self,
        place: &str,
        field: &str,
        schema: &Value,
        given: Value,
    ) -> Result<Value, InvalidCall> {
        let object = match &given {
            Value::String(text) if text.trim_start().starts_with('{') => {
                serde_json::from_str(text).ok().filter(Value::is_object)
            }
            Value::String(_)
            | Value::Object(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_) => None,
        };
        let object = self.say(field, given, object);
        match object {
            Value::Object(fields) if schema["properties"].is_object() => {
                let prefix = format!("{field}.");
                self.object(place, &prefix, schema, fields).map(Value::Object)
            }
            Value::Object(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Ok(object),
        }
    }
}

/// Under this name, for the check to judge.
fn insert_as_given(named: &mut JsonFields, name: String, value: Value) -> Result<(), InvalidCall> {
    named.insert(name, value);
    Ok(())
}

fn text(schema: &Value, given: &Value) -> Option<Value> {
    if let (Some(allowed), Some(word)) = (schema["enum"].as_array(), given.as_str()) {
        let same = |one: &&Value| {
            one.as_str().is_some_and(|one| dialect::fold(one) == dialect::fold(word.trim()))
        };
        return allowed.iter().find(same).cloned();
    }
    None
}

fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) if text.trim().eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.trim().eq_ignore_ascii_case("false") => Some(false),
        Value::Number(number) if number.as_u64() == Some(1) => Some(true),
        Value::Number(number) if number.as_u64() == Some(0) => Some(false),
        Value::String(_) | Value::Number(_) | Value::Null | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

fn whole(value: &Value) -> Option<u64> {
    u64::try_from(signed(value)?).ok()
}

/// A whole number, however it is written.
fn signed(value: &Value) -> Option<i64> {
    let of_float = |float: f64| {
        // Beyond 2^53 a float is no exact whole number.
        #[allow(clippy::cast_possible_truncation)]
        (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0).then_some(float as i64)
    };
    match value {
        Value::Number(number) => number.as_i64().or_else(|| of_float(number.as_f64()?)),
        Value::String(text) => {
            let number: Number = serde_json::from_str(text.trim()).ok()?;
            number.as_i64().or_else(|| of_float(number.as_f64()?))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty() || text == "false",
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// A value as it is written, cut where it is long.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.chars().count() > SHOWN {
        true => format!("{}…", text.chars().take(SHOWN).collect::<String>()),
        false => text,
    }
}
