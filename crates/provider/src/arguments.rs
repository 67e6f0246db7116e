//! The arguments and the name of an earlier call, as the strictest vendor takes them: one call that a model wrote
//! badly must not make every later request one that servers refuse. Pure; for the encoders.

use protocol::surrogates;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// Most levels of arguments. Vendors parse them with limits of about 100 levels for a whole request.
const DEEPEST: usize = 64;
/// Most letters of a tool's name.
const LONGEST_NAME: usize = 64;

/// The arguments as the text of a JSON object, byte for byte where a strict parser takes them. If the
/// model's own text is no such object, it is wrapped in one, so that the model can see its mistake.
pub(crate) fn arguments(input: &str) -> Cow<'_, str> {
    if input.trim().is_empty() {
        return "{}".into();
    }
    let input = surrogates::replaced(input);
    if is_strict_object(&input) {
        return input;
    }
    // A name that comes twice: the last one counts, as for the call itself.
    let once = serde_json::from_str::<Value>(&input).map(|value| value.to_string());
    match once.ok().filter(|once| is_strict_object(once)) {
        Some(once) => once.into(),
        None => serde_json::json!({ "invalid_arguments": input }).to_string().into(),
    }
}

/// [`arguments`] where a vendor takes an object, not its text.
pub(crate) struct ArgumentObject<'a>(pub(crate) &'a str);

impl Serialize for ArgumentObject<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let text = arguments(self.0);
        serde_json::from_str::<&RawValue>(&text).map_err(S::Error::custom)?.serialize(to)
    }
}

/// The letters that all vendors take in the name of a tool, `_` for each other one.
pub(crate) fn tool_name(name: &str) -> Cow<'_, str> {
    match plain(name) {
        name if name.is_empty() => "unknown".into(),
        name if name.len() > LONGEST_NAME => name[..LONGEST_NAME].to_owned().into(),
        name => name,
    }
}

/// The text with ASCII letters, digits, `_` and `-` alone.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match text.chars().all(is_plain) {
        true => text.into(),
        false => text.chars().map(|c| if is_plain(c) { c } else { '_' }).collect::<String>().into(),
    }
}

fn is_strict_object(json: &str) -> bool {
    let mut from = serde_json::Deserializer::from_str(json);
    json.trim_start().starts_with('{')
        && StrictValue { levels: DEEPEST }.deserialize(&mut from).is_ok()
        && from.end().is_ok()
}

/// A value of so many levels at most, each name once, each number one that a parser can hold.
#[derive(Clone, Copy)]
struct StrictValue {
    levels: usize,
}

impl StrictValue {
    fn inner<E: Error>(self) -> Result<Self, E> {
        let levels = self.levels.checked_sub(1).ok_or_else(|| E::custom("too many levels"))?;
        Ok(Self { levels })
    }
}

impl<'de> DeserializeSeed<'de> for StrictValue {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue {
    type Value = ();
    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
        let inner = self.inner()?;
        while all.next_element_seed(inner)?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
        let (inner, mut names) = (self.inner()?, HashSet::new());
        while let Some(name) = all.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("a name comes twice"));
            }
            all.next_value_seed(inner)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strict_objects_are_sent_as_they_came() {
        let deep = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let kept = [
            r#"{"z": 1, "a": [ ]}"#.to_owned(),
            r#"{"a":"\ud83d\ude00\u0000"}"#.to_owned(),
            deep(64),
        ];
        for input in &kept {
            assert_eq!(arguments(input), *input);
        }
        for (input, sent) in [
            ("", "{}"),
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#"{"a":1e999}"#, r#"{"invalid_arguments":"{\"a\":1e999}"}"#),
            (r#"{"a":NaN}"#, r#"{"invalid_arguments":"{\"a\":NaN}"}"#),
            (r#"{"a":1} x"#, r#"{"invalid_arguments":"{\"a\":1} x"}"#),
            (r#"{"a":"\ud83d"#, r#"{"invalid_arguments":"{\"a\":\"\\ufffd"}"#),
            (r#""x""#, r#"{"invalid_arguments":"\"x\""}"#),
            ("null", r#"{"invalid_arguments":"null"}"#),
        ] {
            assert_eq!(arguments(input), sent, "{input}");
        }
        for levels in [65, 200, 50_000] {
            assert!(arguments(&deep(levels)).starts_with(r#"{"invalid_arguments":"#), "{levels}");
        }
    }

    #[test]
    fn names_have_letters_that_vendors_take() {
        let long = "x".repeat(70);
        for (name, sent) in
            [("bash", "bash"), ("a.b é", "a_b__"), ("", "unknown"), (&long, &long[..64])]
        {
            assert_eq!(tool_name(name), sent);
        }
    }
}
