//! One field of a server's form: its kind, its line for the person, and the check of an answer. Pure.

use protocol::hidden::without_hidden;
use serde_json::{Number, Value};
use std::fmt::Write;

/// Most characters of a name, of a field's words and of one choice.
const NAME: usize = 64;
const WORDS: usize = 400;
const CHOICE: usize = 120;
/// Most choices of a field, and those that are shown.
const CHOICES: usize = 200;
/// Most characters of one answer.
const ANSWER: usize = 8000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct FormField {
    pub(super) name: String,
    pub(super) is_required: bool,
    title: String,
    about: String,
    kind: FieldKind,
    default: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum FieldKind {
    Text { least: Option<u64>, most: Option<u64>, format: Option<TextFormat> },
    Number { least: Option<f64>, most: Option<f64> },
    Integer { least: Option<i64>, most: Option<i64> },
    Boolean,
    One(Vec<Choice>),
    Several { choices: Vec<Choice>, least: Option<u64>, most: Option<u64> },
}

#[derive(Debug, Clone, PartialEq)]
struct Choice {
    value: String,
    title: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextFormat {
    Email,
    Uri,
    Date,
    DateTime,
}

impl FormField {
    pub(super) fn parse(name: &str, schema: &Value, is_required: bool) -> Result<Self, String> {
        let shown = plain_line(name, NAME);
        if shown != name || name.trim() != name || name.is_empty() || name.contains('=') {
            return Err(format!("its form has a field with a name that cannot be typed: {shown}"));
        }
        let unknown = || format!("its form has a field of a kind that agentd cannot ask: `{name}`");
        let kind = kind_of(schema).ok_or_else(unknown)?;
        let words = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut field = Self {
            name: name.to_owned(),
            is_required,
            title: plain_line(words("title"), WORDS),
            about: plain_line(words("description"), WORDS),
            kind,
            default: None,
        };
        // A default that is no answer is left out.
        let default = schema.get("default").cloned();
        field.default =
            default.and_then(|value| field.accept(value).ok()).map(|value| typed(&value));
        Ok(field)
    }

    pub(super) fn line(&self) -> String {
        let default = self.default.as_deref().unwrap_or_default();
        format!("{} = {default}", self.name).trim_end().to_owned()
    }

    pub(super) fn describe(&self) -> String {
        let mut text = self.name.clone();
        if !self.title.is_empty() && self.title != self.name {
            let _ = write!(text, ": {}", self.title);
        }
        let needed = if self.is_required { ", needed" } else { "" };
        let _ = write!(text, " ({}{needed})", self.kind.describe());
        if !self.about.is_empty() {
            let _ = write!(text, ". {}", self.about);
        }
        text
    }

    /// The answer in a person's words; none where the field is left out.
    pub(super) fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        if typed.is_empty() {
            return Ok(None);
        }
        let value = match &self.kind {
            FieldKind::Text { .. } | FieldKind::One(_) => Value::from(typed),
            FieldKind::Number { .. } => typed
                .parse::<f64>()
                .ok()
                .and_then(Number::from_f64)
                .map(Value::Number)
                .ok_or_else(|| format!("`{}` is a number", self.name))?,
            FieldKind::Integer { .. } => typed
                .parse::<i64>()
                .map(Value::from)
                .map_err(|_| format!("`{}` is a whole number", self.name))?,
            FieldKind::Boolean => match typed.to_ascii_lowercase().as_str() {
                "yes" | "y" | "true" => Value::Bool(true),
                "no" | "n" | "false" => Value::Bool(false),
                _ => return Err(format!("`{}` is yes or no", self.name)),
            },
            FieldKind::Several { .. } => {
                typed.split(',').map(str::trim).filter(|one| !one.is_empty()).collect()
            }
        };
        self.accept(value).map(Some)
    }

    /// The answer, if it is one.
    pub(super) fn accept(&self, value: Value) -> Result<Value, String> {
        let name = &self.name;
        match (&self.kind, value) {
            (FieldKind::Text { least, most, format }, Value::String(text)) => {
                let length = text.chars().count();
                if length > ANSWER {
                    return Err(format!("`{name}` has more than {ANSWER} characters"));
                }
                in_bounds(name, length as u64, (*least, *most), " characters")?;
                if let Some(format) = format.filter(|format| !format.fits(&text)) {
                    return Err(format!("`{name}` is no {}", format.describe()));
                }
                Ok(Value::String(text))
            }
            (FieldKind::Number { least, most }, Value::Number(number)) => {
                let value = number.as_f64().ok_or_else(|| format!("`{name}` is a number"))?;
                in_bounds(name, value, (*least, *most), "")?;
                Ok(Value::Number(number))
            }
            (FieldKind::Integer { least, most }, Value::Number(number)) => {
                let value = number.as_i64().ok_or_else(|| format!("`{name}` is a whole number"))?;
                in_bounds(name, value, (*least, *most), "")?;
                Ok(Value::Number(number))
            }
            (FieldKind::Boolean, Value::Bool(value)) => Ok(Value::Bool(value)),
            (FieldKind::One(choices), Value::String(text)) => {
                choose(name, choices, &text).map(Value::String)
            }
            (FieldKind::Several { choices, least, most }, Value::Array(values)) => {
                in_bounds(name, values.len() as u64, (*least, *most), " choices")?;
                let one = |value: &Value| match value.as_str() {
                    Some(text) => choose(name, choices, text).map(Value::String),
                    None => Err(format!("`{name}` has an answer of another kind")),
                };
                values.iter().map(one).collect::<Result<Vec<_>, _>>().map(Value::Array)
            }
            _ => Err(format!("`{name}` is {}", self.kind.describe())),
        }
    }
}

impl FieldKind {
    fn describe(&self) -> String {
        match self {
            Self::Text { least, most, format } => {
                let kind = format.map_or("text", TextFormat::describe);
                format!("{kind}{}", bounds(least.as_ref(), most.as_ref(), " characters"))
            }
            Self::Number { least, most } => {
                format!("number{}", bounds(least.as_ref(), most.as_ref(), ""))
            }
            Self::Integer { least, most } => {
                format!("whole number{}", bounds(least.as_ref(), most.as_ref(), ""))
            }
            Self::Boolean => "yes or no".to_owned(),
            Self::One(choices) => format!("one of {}", list(choices)),
            Self::Several { choices, least, most } => format!(
                "any of {}{}, with commas",
                list(choices),
                bounds(least.as_ref(), most.as_ref(), " choices")
            ),
        }
    }
}

impl TextFormat {
    fn describe(self) -> &'static str {
        match self {
            Self::Email => "email address",
            Self::Uri => "web address with its scheme",
            Self::Date => "date as 2026-01-31",
            Self::DateTime => "time as 2026-01-31T12:00:00Z",
        }
    }

    fn fits(self, text: &str) -> bool {
        match self {
            Self::Email => {
                let plain = !text.contains(char::is_whitespace);
                let parts = text.rsplit_once('@');
                plain && parts.is_some_and(|(who, host)| !who.is_empty() && !host.is_empty())
            }
            Self::Uri => url::Url::parse(text).is_ok(),
            Self::Date => is_date(text),
            Self::DateTime => text
                .split_once(['T', 't'])
                .is_some_and(|(date, time)| is_date(date) && is_time(time)),
        }
    }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2))
    else {
        return false;
    };
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// As RFC 3339 has it behind the `T`.
fn is_time(text: &str) -> bool {
    let (clock, zone) = match text.find(['Z', 'z', '+', '-']) {
        Some(at) => text.split_at(at),
        None => return false,
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let clock_fits = match clock.split(':').collect::<Vec<_>>()[..] {
        [hour, minute, second] => {
            digits(hour, 2).is_some_and(|hour| hour < 24)
                && digits(minute, 2).is_some_and(|minute| minute < 60)
                && digits(second, 2).is_some_and(|second| second <= 60)
        }
        _ => false,
    };
    let zone_fits = match zone.split_at_checked(1) {
        Some(("Z" | "z", "")) => true,
        Some(("+" | "-", offset)) => offset.split_once(':').is_some_and(|(hour, minute)| {
            digits(hour, 2).is_some_and(|hour| hour < 24)
                && digits(minute, 2).is_some_and(|minute| minute < 60)
        }),
        _ => false,
    };
    clock_fits && zone_fits && !fraction.is_empty() && fraction.bytes().all(|c| c.is_ascii_digit())
}

fn digits(text: &str, length: usize) -> Option<u32> {
    let fits = text.len() == length && text.bytes().all(|c| c.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten()
}

fn kind_of(schema: &Value) -> Option<FieldKind> {
    let number = |key: &str| schema.get(key).and_then(Value::as_u64);
    let real = |key: &str| schema.get(key).and_then(Value::as_f64);
    let whole = |key: &str| schema.get(key).and_then(Value::as_i64);
    match schema.get("type")?.as_str()? {
        "string" => match (choices_of(schema), schema.get("enum").or(schema.get("oneOf"))) {
            (Some(choices), _) => Some(FieldKind::One(choices)),
            (None, Some(_)) => None,
            (None, None) => Some(FieldKind::Text {
                least: number("minLength"),
                most: number("maxLength"),
                format: match schema.get("format").and_then(Value::as_str) {
                    Some("email") => Some(TextFormat::Email),
                    Some("uri") => Some(TextFormat::Uri),
                    Some("date") => Some(TextFormat::Date),
                    Some("date-time") => Some(TextFormat::DateTime),
                    Some(_) | None => None,
                },
            }),
        },
        "number" => Some(FieldKind::Number { least: real("minimum"), most: real("maximum") }),
        "integer" => Some(FieldKind::Integer { least: whole("minimum"), most: whole("maximum") }),
        "boolean" => Some(FieldKind::Boolean),
        "array" => Some(FieldKind::Several {
            choices: choices_of(schema.get("items")?)?,
            least: number("minItems"),
            most: number("maxItems"),
        }),
        _ => None,
    }
}

fn choices_of(schema: &Value) -> Option<Vec<Choice>> {
    let titled = schema.get("oneOf").or(schema.get("anyOf")).and_then(Value::as_array);
    let choices: Option<Vec<Choice>> = match (titled, schema.get("enum").and_then(Value::as_array))
    {
        (Some(titled), _) => titled
            .iter()
            .map(|one| {
                let title = one.get("title").and_then(Value::as_str).map(str::to_owned);
                Some(Choice { value: one.get("const")?.as_str()?.to_owned(), title })
            })
            .collect(),
        (None, Some(values)) => {
            let names = schema.get("enumNames").and_then(Value::as_array);
            let name = |at| names.and_then(|names| names.get(at)).and_then(Value::as_str);
            let values = values.iter().enumerate();
            values
                .map(|(at, value)| {
                    let title = name(at).map(str::to_owned);
                    Some(Choice { value: value.as_str()?.to_owned(), title })
                })
                .collect()
        }
        (None, None) => None,
    };
    let is_plain = |choice: &Choice| plain_line(&choice.value, CHOICE) == choice.value;
    choices.filter(|all| !all.is_empty() && all.len() <= CHOICES && all.iter().all(is_plain))
}

fn choose(name: &str, choices: &[Choice], typed: &str) -> Result<String, String> {
    let by_value = choices.iter().find(|choice| choice.value == typed);
    let found =
        by_value.or_else(|| choices.iter().find(|choice| choice.title.as_deref() == Some(typed)));
    let wrong = || format!("`{name}` is one of {}", list(choices));
    found.map(|choice| choice.value.clone()).ok_or_else(wrong)
}

fn list(choices: &[Choice]) -> String {
    let words = |choice: &Choice| match &choice.title {
        Some(title) if *title != choice.value => {
            format!("{} ({})", choice.value, plain_line(title, CHOICE))
        }
        Some(_) | None => choice.value.clone(),
    };
    choices.iter().map(words).collect::<Vec<_>>().join(", ")
}

fn bounds<T: std::fmt::Display>(least: Option<&T>, most: Option<&T>, unit: &str) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!(", {least} to {most}{unit}"),
        (Some(least), None) => format!(", at least {least}{unit}"),
        (None, Some(most)) => format!(", at most {most}{unit}"),
        (None, None) => String::new(),
    }
}

fn in_bounds<T: PartialOrd + std::fmt::Display>(
    name: &str,
    value: T,
    (least, most): (Option<T>, Option<T>),
    unit: &str,
) -> Result<(), String> {
    if let Some(least) = least.filter(|least| value < *least) {
        return Err(format!("`{name}` has to be at least {least}{unit}"));
    }
    match most.filter(|most| value > *most) {
        Some(most) => Err(format!("`{name}` may be at most {most}{unit}")),
        None => Ok(()),
    }
}

/// An answer as a person types it.
fn typed(value: &Value) -> String {
    match value {
        Value::String(text) => plain_line(text, ANSWER),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(values) => {
            values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        Value::Null | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// Words of a server without characters that deceive.
pub(super) fn plain(text: &str, most: usize) -> String {
    let kept = without_hidden(text).replace('\t', " ");
    match kept.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &kept[..at]),
        None => kept,
    }
}

/// The same on one line.
pub(super) fn plain_line(text: &str, most: usize) -> String {
    plain(text, most).replace('\n', " ")
}
