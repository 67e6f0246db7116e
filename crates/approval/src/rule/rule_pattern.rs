//! The text of a rule, read: `tool:pattern`, `Tool(pattern)` or `tool`.

use crate::rule::command_pattern::CommandPattern;
use crate::rule::error::{FaultAt, RuleError, RuleFault};
use crate::rule::page_pattern::PagePattern;
use crate::rule::path_pattern::PathPattern;
use crate::rule::rule_target::{self, MatchedBy, RuleTarget, TargetRules};
use crate::rule::server_tool_pattern::ServerToolPattern;
use protocol::hosts::HostRule;
use protocol::judgement::{Rule, RuleEffect, ToolKind};
use protocol::mcp;
use tool_specs::MemoryScope;

/// A rule, read.
#[derive(Debug)]
pub(crate) struct ParsedRule {
    /// Of which tool.
    pub tool: &'static RuleTarget,
    /// Which of its calls.
    pub pattern: CallPattern,
}

/// Which calls of a tool.
#[derive(Debug)]
pub(crate) enum CallPattern {
    /// All.
    Anything,
    /// Commands of these words.
    Words(CommandPattern),
    /// Calls on these paths.
    Path(PathPattern),
    /// These hosts.
    Host(HostRule),
    /// Pages of the web.
    Page(PagePattern),
    /// Tools of MCP servers.
    ServerTool(ServerToolPattern),
    /// Memories of this scope.
    MemoryScope(MemoryScope),
}

/// Reads a rule.
pub(crate) fn parse(rule: &Rule) -> Result<ParsedRule, RuleError> {
    read(rule).map_err(|(byte, fault)| RuleError {
        file: rule.file.clone(),
        line: rule.line,
        text: rule.text.clone(),
        at: rule.text.get(..byte).unwrap_or(&rule.text).chars().count() + 1,
        fault,
    })
}

/// The tool of a rule. It does not parse the pattern, since it runs for every call.
pub(crate) fn tool_of(rule: &Rule) -> Option<&'static RuleTarget> {
    let text = rule.text.trim();
    rule_target::find(&text[..name_end(text, 0)])
}

fn read(rule: &Rule) -> Result<ParsedRule, FaultAt> {
    let text = rule.text.trim_end();
    let start = text.len() - text.trim_start().len();
    if let Some(at) = text.find(char::is_control) {
        return Err((at, RuleFault::Control));
    }
    if let (Some(pattern), Some(tool)) =
        (ServerToolPattern::of(&text[start..]), rule_target::find(mcp::CALL))
    {
        return Ok(ParsedRule { tool, pattern: CallPattern::ServerTool(pattern) });
    }
    let name_end = name_end(text, start);
    let name = &text[start..name_end];
    if name.is_empty() {
        return Err((start, RuleFault::NoRule));
    }
    let rest = &text[name_end..];
    let (body, body_at) = match rest.chars().next() {
        None => (None, name_end),
        Some(':') => (Some(rest[1..].to_owned()), name_end + 1),
        Some('(') => {
            let inner = rest[1..].strip_suffix(')').ok_or((text.len(), RuleFault::Unclosed))?;
            (Some(foreign(inner)), name_end + 1)
        }
        Some(_) => return Err((name_end, RuleFault::NoRule)),
    };
    let tool = rule_target::find(name).ok_or_else(|| {
        (
            start,
            RuleFault::UnknownTool { name: name.to_owned(), nearest: rule_target::nearest(name) },
        )
    })?;
    if rule.effect == RuleEffect::Ask && tool.kind == ToolKind::Query {
        return Err((start, RuleFault::AskOnQuery { tool: tool.name }));
    }
    let pattern = match (body, tool.matched_by) {
        (None, _) => CallPattern::Anything,
        (Some(body), _) if body.trim().is_empty() => {
            return Err((body_at, RuleFault::EmptyPattern));
        }
        (Some(body), MatchedBy::Command) => {
            let words = match rest.starts_with('(') {
                true => CommandPattern::parse_claude(&body),
                false => CommandPattern::parse(&body),
            };
            CallPattern::Words(words.map_err(shift(body_at))?)
        }
        (Some(body), MatchedBy::Path(_)) => {
            let depth = tool.depth(rule.effect);
            let path = PathPattern::parse(body.trim(), rule.effect, depth);
            CallPattern::Path(path.map_err(shift(body_at))?)
        }
        (Some(body), MatchedBy::Host) if body.trim() == "*" => CallPattern::Anything,
        (Some(body), MatchedBy::Host) => {
            let host = HostRule::of_rule(body.trim());
            let host = host.map_err(|error| (body_at, RuleFault::Host(error.to_string())))?;
            CallPattern::Host(match rule.effect {
                RuleEffect::Allow => host,
                RuleEffect::Deny | RuleEffect::Ask => host.on_every_port(),
            })
        }
        (Some(body), MatchedBy::Nothing | MatchedBy::Page | MatchedBy::MemoryScope)
            if body.trim() == "*" =>
        {
            CallPattern::Anything
        }
        (Some(body), MatchedBy::Page) => {
            let page = PagePattern::parse(body.trim(), rule.effect);
            CallPattern::Page(page.map_err(|error| (body_at, RuleFault::Host(error.to_string())))?)
        }
        (Some(body), MatchedBy::MemoryScope) => {
            let scope = MemoryScope::parse(body.trim()).ok_or_else(|| {
                (body_at, RuleFault::MemoryScope { tool: tool.name, name: body.trim().to_owned() })
            })?;
            CallPattern::MemoryScope(scope)
        }
        (Some(_), MatchedBy::ServerTool) => return Err((body_at, RuleFault::ServerTool)),
        (Some(_), MatchedBy::Nothing) => {
            return Err((body_at, RuleFault::NothingToMatch { tool: tool.name }));
        }
    };
    Ok(ParsedRule { tool, pattern })
}

fn name_end(text: &str, start: usize) -> usize {
    text[start..]
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
        .map_or(text.len(), |length| start + length)
}

/// Converts the text in the brackets of `Bash(cargo:*)`: `:*` at its end is our ` *`.
fn foreign(inner: &str) -> String {
    match inner.strip_suffix(":*") {
        Some(front) => format!("{front} *"),
        None => inner.to_owned(),
    }
}

fn shift(by: usize) -> impl Fn(FaultAt) -> FaultAt {
    move |(at, fault)| (by + at, fault)
}
