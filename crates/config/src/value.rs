//! One value: read from what a file, a variable or a flag says, by the kind of its key.

use crate::duration;
use crate::environment;
use crate::hook;
use crate::keys::{Key, Kind};
use crate::origin::Origin;
use crate::vendors::VENDORS_OWN;
use protocol::hosts::HostRule;
use protocol::judgement::Said;

/// What a key was set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A name, a URL, a word.
    Text(String),
    /// A count, or a time in milliseconds.
    Number(u64),
    /// Rules or directories, each with its own place.
    List(Vec<Item>),
}

/// One element of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// As written.
    pub text: String,
    /// Where.
    pub origin: Origin,
    /// The calls that stand beside a rule.
    pub examples: Vec<Beside>,
}

/// A call beside a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Beside {
    /// What is said of it.
    pub said: Said,
    /// As written.
    pub what: String,
    /// Counted from 1.
    pub line: u32,
}

/// What stands where a value is expected, before its key has a say.
#[derive(Debug)]
pub(crate) enum Raw<'a> {
    /// A string of a file.
    Text(&'a str),
    /// A whole number of a file.
    Number(i128),
    /// The text of a variable or a flag, which has no types.
    Untyped(&'a str),
    /// Something no key takes here, in words.
    Other(&'static str),
}

/// Why a value is not one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unfit {
    /// What stands there.
    pub found: String,
    /// What should.
    pub wanted: String,
}

/// The value of a key that is no list; for a list, one element of it.
pub(crate) fn read(key: &Key, raw: &Raw<'_>) -> Result<Value, Unfit> {
    let read = match (key.kind, raw) {
        (
            Kind::Name | Kind::Rules | Kind::Dirs | Kind::Files,
            Raw::Text(text) | Raw::Untyped(text),
        ) => line(text),
        (Kind::Hosts, Raw::Text(text) | Raw::Untyped(text)) => {
            text.parse::<HostRule>().ok().map(|rule| Value::Text(rule.to_string()))
        }
        (Kind::Variables, Raw::Text(text) | Raw::Untyped(text)) => {
            environment::can_be_added(text).then(|| Value::Text((*text).to_owned()))
        }
        (Kind::Verifiers, Raw::Text(text) | Raw::Untyped(text)) => {
            line(text).filter(|_| hook::read(text).is_some())
        }
        (Kind::Formatters, Raw::Text(text) | Raw::Untyped(text)) => {
            line(text).filter(|_| hook::read_formatter(text).is_some())
        }
        (Kind::Url, Raw::Text(text) | Raw::Untyped(text)) => url(text),
        (Kind::Word(words), Raw::Text(text) | Raw::Untyped(text)) => {
            words.contains(text).then(|| Value::Text((*text).to_owned()))
        }
        (Kind::Count(least, most), Raw::Number(number)) => count(*number, least, most),
        (Kind::Count(least, most), Raw::Untyped(text)) => {
            text.parse().ok().and_then(|number| count(number, least, most))
        }
        (Kind::Time(least, most), Raw::Text(text) | Raw::Untyped(text)) => {
            duration::milliseconds(text).and_then(|ms| count(ms.into(), least, most))
        }
        (Kind::Count(..), Raw::Text(_))
        | (
            Kind::Name
            | Kind::Url
            | Kind::Word(_)
            | Kind::Time(..)
            | Kind::Rules
            | Kind::Dirs
            | Kind::Files
            | Kind::Hosts
            | Kind::Variables
            | Kind::Verifiers
            | Kind::Formatters,
            Raw::Number(_),
        )
        | (_, Raw::Other(_)) => None,
    };
    read.ok_or_else(|| Unfit { found: shown(raw), wanted: wanted(key.kind) })
}

/// What a key takes, in words.
pub(crate) fn wanted(kind: Kind) -> String {
    match kind {
        Kind::Name => "one line of text".into(),
        Kind::Url => {
            "a URL such as \"https://api.anthropic.com\", with no user, query or fragment in it, \
             or \"vendor\" for the vendor's own"
                .into()
        }
        Kind::Word(words) => {
            let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
            format!("one of {}", quoted.join(", "))
        }
        Kind::Count(least, most) => format!("a whole number from {least} to {most}"),
        Kind::Time(least, most) => format!(
            "a time from \"{}\" to \"{}\", written as \"500ms\", \"60s\", \"5m\" or \"1h\"",
            duration::written(least),
            duration::written(most)
        ),
        Kind::Rules => "a list of rules such as [\"bash:cargo *\"]".into(),
        Kind::Hosts => format!("a list of hosts such as {}", HostRule::EXAMPLES),
        Kind::Variables => "a list of variables such as [\"DATABASE_HOST\", \"MYAPP_*\"], none with the \
             name of a key or of what agentd sets itself: what a command sees can be sent to the model, so \
             keys stay with programs that the person runs"
            .into(),
        Kind::Verifiers => format!("a list of commands such as [{}]", hook::VERIFIER),
        Kind::Formatters => format!("a list of commands such as [{}]", hook::FORMATTER),
        Kind::Dirs => "a list of directories such as [\"/srv/data\"]".into(),
        Kind::Files => "a list of files such as [\"src/lib.rs\"]".into(),
    }
}

fn shown(raw: &Raw<'_>) -> String {
    match raw {
        // Cut, since a whole file may stand between two quotes.
        Raw::Text(text) | Raw::Untyped(text) => {
            format!("{:?}", text.chars().take(80).collect::<String>())
        }
        Raw::Number(number) => number.to_string(),
        Raw::Other(what) => (*what).into(),
    }
}

fn line(text: &str) -> Option<Value> {
    let fits = !text.trim().is_empty() && text.len() <= 4096 && !text.contains(char::is_control);
    fits.then(|| Value::Text(text.to_owned()))
}

fn count(number: i128, least: u64, most: u64) -> Option<Value> {
    let number = u64::try_from(number).ok()?;
    (least..=most).contains(&number).then_some(Value::Number(number))
}

/// A URL whose parts cannot carry a password or a trailing query into logs, or the vendor's own.
fn url(text: &str) -> Option<Value> {
    if text == VENDORS_OWN {
        return Some(Value::Text(text.to_owned()));
    }
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    let host = rest.split('/').next()?;
    let fits = !host.is_empty()
        && !host.starts_with(':')
        && text.len() <= 2048
        && text.chars().all(|c| c.is_ascii_graphic() && !"@?#\\\"<>".contains(c));
    fits.then(|| Value::Text(text.to_owned()))
}
