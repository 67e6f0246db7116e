//! The text of a rule, read: `tool:pattern`, `Tool(pattern)` or `tool`.

use crate::address::AddressPattern;
use crate::error::{Fault, Found, RuleError};
use crate::paths::PathPattern;
use crate::subject::{self, Known, Subject};
use crate::words::WordPattern;
use protocol::hosts::HostRule;
use protocol::judgement::{Rule, RuleEffect, ToolKind};

/// A rule, read.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// Of which tool.
    pub tool: &'static Known,
    /// Which of its calls.
    pub pattern: Pattern,
}

/// Which calls of a tool.
#[derive(Debug)]
pub(crate) enum Pattern {
    /// All.
    Anything,
    /// Commands of these words.
    Words(WordPattern),
    /// Calls on these paths.
    Path(PathPattern),
    /// These hosts.
    Host(HostRule),
    /// Pages of the web.
    Page(AddressPattern),
}

/// Reads a rule.
pub(crate) fn parse(rule: &Rule) -> Result<Parsed, RuleError> {
    read(rule).map_err(|(byte, fault)| RuleError {
        file: rule.file.clone(),
        line: rule.line,
        text: rule.text.clone(),
        at: rule.text.get(..byte).unwrap_or(&rule.text).chars().count() + 1,
        fault,
    })
}

/// The tool that a rule speaks of, without reading its pattern. For every call, so it is quick.
pub(crate) fn tool_of(rule: &Rule) -> Option<&'static Known> {
    let text = rule.text.trim();
    subject::find(&text[..name_end(text, 0)])
}

fn read(rule: &Rule) -> Result<Parsed, Found> {
    let text = rule.text.trim_end();
    let start = text.len() - text.trim_start().len();
    if let Some(at) = text.find(char::is_control) {
        return Err((at, Fault::Control));
    }
    let name_end = name_end(text, start);
    let name = &text[start..name_end];
    if name.is_empty() {
        return Err((start, Fault::NoRule));
    }
    let rest = &text[name_end..];
    let (body, body_at) = match rest.chars().next() {
        None => (None, name_end),
        Some(':') => (Some(rest[1..].to_owned()), name_end + 1),
        Some('(') => {
            let inner = rest[1..].strip_suffix(')').ok_or((text.len(), Fault::Unclosed))?;
            (Some(foreign(inner)), name_end + 1)
        }
        Some(_) => return Err((name_end, Fault::NoRule)),
    };
    let tool = subject::find(name).ok_or_else(|| {
        (start, Fault::UnknownTool { name: name.to_owned(), nearest: subject::nearest(name) })
    })?;
    if rule.effect == RuleEffect::Ask && tool.kind == ToolKind::Query {
        return Err((start, Fault::AskOnQuery { tool: tool.name }));
    }
    let pattern = match (body, tool.subject) {
        (None, _) => Pattern::Anything,
        (Some(body), _) if body.trim().is_empty() => return Err((body_at, Fault::EmptyPattern)),
        (Some(body), Subject::Command) => {
            Pattern::Words(WordPattern::parse(&body).map_err(shift(body_at))?)
        }
        (Some(body), Subject::Path(_)) => {
            let reach = tool.reach(rule.effect);
            let path = PathPattern::parse(body.trim(), rule.effect, reach);
            Pattern::Path(path.map_err(shift(body_at))?)
        }
        (Some(body), Subject::Host) if body.trim() == "*" => Pattern::Anything,
        (Some(body), Subject::Host) => {
            let host = HostRule::of_rule(body.trim());
            let host = host.map_err(|error| (body_at, Fault::Host(error.to_string())))?;
            Pattern::Host(match rule.effect {
                RuleEffect::Allow => host,
                RuleEffect::Deny | RuleEffect::Ask => host.on_every_port(),
            })
        }
        (Some(body), Subject::Nothing | Subject::Page) if body.trim() == "*" => Pattern::Anything,
        (Some(body), Subject::Page) => {
            let page = AddressPattern::parse(body.trim(), rule.effect);
            Pattern::Page(page.map_err(|error| (body_at, Fault::Host(error.to_string())))?)
        }
        (Some(_), Subject::Nothing) => {
            return Err((body_at, Fault::NothingToMatch { tool: tool.name }));
        }
    };
    Ok(Parsed { tool, pattern })
}

fn name_end(text: &str, start: usize) -> usize {
    text[start..]
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
        .map_or(text.len(), |length| start + length)
}

/// What stands between the brackets of `Bash(cargo:*)`: there, `:*` at the end is our ` *`.
fn foreign(inner: &str) -> String {
    match inner.strip_suffix(":*") {
        Some(front) => format!("{front} *"),
        None => inner.to_owned(),
    }
}

fn shift(by: usize) -> impl Fn(Found) -> Found {
    move |(at, fault)| (by + at, fault)
}
