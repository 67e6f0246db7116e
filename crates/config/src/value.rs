//! Reads one value from a file, a variable or a flag, by the type of its key.

use crate::duration;
use crate::environment;
use crate::hook_text;
use crate::origin::ValueOrigin;
use crate::schema::{ListKind, ValueKind};
use crate::vendors::VENDORS_OWN;
use protocol::hosts::HostRule;
use protocol::judgement::ExampleVerdict;
use toml::de::DeValue;

/// The value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigValue {
    /// A name, a URL, a word.
    Text(String),
    /// A count, or a time in milliseconds.
    Number(u64),
    /// Rules or directories, each with its own place.
    List(Vec<ListItem>),
}

impl ConfigValue {
    /// The text, where it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        let Self::Text(text) = self else { return None };
        Some(text)
    }

    /// The number, where it is one.
    pub(crate) fn number(&self) -> Option<u64> {
        let Self::Number(number) = self else { return None };
        Some(*number)
    }

    /// The elements of a list.
    pub(crate) fn items(&self) -> Option<&[ListItem]> {
        let Self::List(items) = self else { return None };
        Some(items)
    }

    /// As it would be written in a file.
    pub(crate) fn written(&self, kind: ValueKind) -> String {
        match (self, kind) {
            (Self::Text(text), _) => format!("{text:?}"),
            (Self::Number(ms), ValueKind::Time(..)) => format!("{:?}", duration::written(*ms)),
            (Self::Number(number), _) => number.to_string(),
            (Self::List(items), _) => {
                let texts: Vec<_> = items.iter().map(|item| item.text.as_str()).collect();
                format!("{texts:?}")
            }
        }
    }
}

/// One element of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListItem {
    /// As written.
    pub text: String,
    /// Where.
    pub origin: ValueOrigin,
    /// The examples given with a rule.
    pub examples: Vec<ListExample>,
}

/// A call beside a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListExample {
    /// Whether the rule should match it.
    pub said: ExampleVerdict,
    /// As written.
    pub what: String,
    /// Counted from 1.
    pub line: u32,
}

/// Why a value is not one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ValueError {
    /// The value as written.
    pub found: String,
    /// The values that the key takes.
    pub wanted: String,
}

/// Reads the value of a key of this kind; for a list, one element of it.
pub(crate) fn read(kind: ValueKind, written: &DeValue<'_>) -> Result<ConfigValue, ValueError> {
    let read = match (kind, written) {
        (_, DeValue::String(text)) => of_text(kind, text),
        (ValueKind::Count(least, most), DeValue::Integer(_)) => {
            whole(written).and_then(|number| count(number, least, most))
        }
        (ValueKind::Word(words), DeValue::Boolean(on)) => word(words, switch_word(*on)),
        (_, _) => None,
    };
    read.ok_or_else(|| ValueError { found: shown(written), wanted: wanted(kind) })
}

/// A whole number.
pub(crate) fn whole(written: &DeValue<'_>) -> Option<i128> {
    let number = written.as_integer()?;
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

fn of_text(kind: ValueKind, text: &str) -> Option<ConfigValue> {
    match kind {
        ValueKind::Name => line(text),
        ValueKind::Url => url(text),
        // A key may have a word of its own that is spelt so.
        ValueKind::Word(words) => word(words, text).or_else(|| match text {
            "true" => word(words, switch_word(true)),
            "false" => word(words, switch_word(false)),
            _ => None,
        }),
        ValueKind::Count(..) => None,
        ValueKind::Time(least, most) => count(duration::milliseconds(text)?.into(), least, most),
        ValueKind::List(ListKind::Rules | ListKind::Dirs | ListKind::Files) => line(text),
        ValueKind::List(ListKind::Hosts) => {
            text.parse::<HostRule>().ok().map(|rule| ConfigValue::Text(rule.to_string()))
        }
        ValueKind::List(ListKind::Variables) => {
            environment::can_be_added(text).then(|| ConfigValue::Text(text.to_owned()))
        }
        ValueKind::List(ListKind::Verifiers) => {
            line(text).filter(|_| hook_text::read(text).is_some())
        }
        ValueKind::List(ListKind::Formatters) => {
            line(text).filter(|_| hook_text::read_formatter(text).is_some())
        }
    }
}

/// Describes the values that a key takes.
pub(crate) fn wanted(kind: ValueKind) -> String {
    match kind {
        ValueKind::Name => "one line of text".into(),
        ValueKind::Url => {
            "a URL such as \"https://api.anthropic.com\", with no user, query or fragment in it, \
             or \"vendor\" for the vendor's own"
                .into()
        }
        ValueKind::Word(words) => {
            let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
            let also = if words.contains(&"on") { ", true (on) or false (off)" } else { "" };
            format!("one of {}{also}", quoted.join(", "))
        }
        ValueKind::Count(least, most) => format!("a whole number from {least} to {most}"),
        ValueKind::Time(least, most) => format!(
            "a time from \"{}\" to \"{}\", written as \"500ms\", \"60s\", \"5m\" or \"1h\"",
            duration::written(least),
            duration::written(most)
        ),
        ValueKind::List(of) => format!("a list of {}", elements(of)),
    }
}

fn elements(of: ListKind) -> String {
    match of {
        ListKind::Rules => "rules such as [\"bash:cargo *\"]".into(),
        ListKind::Hosts => format!("hosts such as {}", HostRule::EXAMPLES),
        ListKind::Variables => "variables such as [\"DATABASE_HOST\", \"MYAPP_*\"], none with the name of a key or \
             of what agentd sets itself: what a command sees can be sent to the model, so keys stay with programs \
             that the person runs"
            .into(),
        ListKind::Verifiers => format!("commands such as [{}]", hook_text::VERIFIER),
        ListKind::Formatters => format!("commands such as [{}]", hook_text::FORMATTER),
        ListKind::Dirs => "directories such as [\"/srv/data\"]".into(),
        ListKind::Files => "files such as [\"src/lib.rs\"]".into(),
    }
}

fn word(words: &[&str], said: &str) -> Option<ConfigValue> {
    words.contains(&said).then(|| ConfigValue::Text(said.to_owned()))
}

/// The word of a key that is on or off.
fn switch_word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn shown(written: &DeValue<'_>) -> String {
    if let Some(text) = written.as_str() {
        // Truncated: the value may be a whole file between two quotes.
        return format!("{:?}", text.chars().take(80).collect::<String>());
    }
    match (whole(written), written.as_bool()) {
        (Some(number), _) => number.to_string(),
        (None, Some(on)) => on.to_string(),
        (None, None) if written.is_integer() => "a number too large".to_owned(),
        (None, None) => kind_of(written).to_owned(),
    }
}

/// The type of a value, in words.
pub(crate) fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn line(text: &str) -> Option<ConfigValue> {
    let fits = !text.trim().is_empty() && text.len() <= 4096 && !text.contains(char::is_control);
    fits.then(|| ConfigValue::Text(text.to_owned()))
}

fn count(number: i128, least: u64, most: u64) -> Option<ConfigValue> {
    let number = u64::try_from(number).ok()?;
    (least..=most).contains(&number).then_some(ConfigValue::Number(number))
}

/// A URL whose parts cannot carry a password or a trailing query into logs, or the vendor's own.
fn url(text: &str) -> Option<ConfigValue> {
    if text == VENDORS_OWN {
        return Some(ConfigValue::Text(text.to_owned()));
    }
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    let host = rest.split('/').next()?;
    let fits = !host.is_empty()
        && !host.starts_with(':')
        && text.len() <= 2048
        && text.chars().all(|c| c.is_ascii_graphic() && !"@?#\\\"<>".contains(c));
    fits.then(|| ConfigValue::Text(text.to_owned()))
}
