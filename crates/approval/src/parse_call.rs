//! A call as a person names it at a terminal, before any model asks for it: `tool:what`, where
//! `what` is a command or a path. For `agentd rules check`.

use crate::rule::error::RuleFault;
use crate::rule::rule_target::{self, MatchedBy};
use crate::shell::grammar;
use protocol::judgement::ToolKind;
use protocol::mcp;
use tool_specs::MemoryScope;

/// A call that the user asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCall {
    /// The tool's real name.
    pub tool: &'static str,
    /// Query or mutation.
    pub kind: ToolKind,
    /// Its command, page or path.
    pub what: CallSubject,
}

/// The subject of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallSubject {
    /// This text, for a shell.
    Command(String),
    /// This page of the web, as written; none where the tool names none.
    Page(Option<String>),
    /// This path, as written; none where the tool works on the whole project.
    Path(Option<String>),
}

impl NamedCall {
    /// Reads `tool:what`.
    ///
    /// # Errors
    /// There is no such tool, or the command or path is missing.
    pub fn parse(text: &str) -> Result<Self, RuleFault> {
        let (name, what) = match text.split_once(':') {
            Some((name, what)) => (name, Some(what)),
            None => (text, None),
        };
        let name = name.trim();
        if let (true, Some(tool)) = (name.starts_with(mcp::PREFIX), rule_target::tool(mcp::CALL)) {
            let what = CallSubject::Command(name.to_owned());
            return Ok(Self { tool: tool.name, kind: tool.kind, what });
        }
        let tool = rule_target::tool(name).ok_or_else(|| RuleFault::UnknownTool {
            name: name.to_owned(),
            nearest: rule_target::nearest(name),
        })?;
        let what = what.filter(|what| !what.trim().is_empty()).map(str::to_owned);
        let what = match (tool.matched_by, tool.kind, what) {
            (MatchedBy::Command, _, Some(command)) => CallSubject::Command(command),
            (MatchedBy::Command, _, None) | (MatchedBy::Path(_), ToolKind::Mutation, None) => {
                return Err(RuleFault::NothingToJudge { tool: tool.name });
            }
            (MatchedBy::Path(_), _, path) => CallSubject::Path(path),
            (MatchedBy::Page, _, page) => CallSubject::Page(page),
            (MatchedBy::MemoryScope, _, Some(scope))
                if MemoryScope::of_subject(&scope).is_some() =>
            {
                CallSubject::Command(scope)
            }
            (MatchedBy::MemoryScope, _, what) => {
                let name = what.unwrap_or_default();
                return Err(RuleFault::MemoryScope { tool: tool.name, name });
            }
            (MatchedBy::ServerTool, _, _) => return Err(RuleFault::ServerTool),
            (MatchedBy::Host | MatchedBy::Nothing, _, None) => CallSubject::Path(None),
            (MatchedBy::Host | MatchedBy::Nothing, _, Some(_)) => {
                return Err(RuleFault::NothingToMatch { tool: tool.name });
            }
        };
        Ok(Self { tool: tool.name, kind: tool.kind, what })
    }
}

/// Every program that a command would run, with its words as they are judged, in their order.
///
/// # Errors
/// Why that cannot be known before it runs, so that no rule can allow it.
pub fn programs(command: &str) -> Result<Vec<String>, String> {
    match grammar::read_plain(command) {
        Ok(script) => Ok(script.iter().map(ToString::to_string).collect()),
        Err(why) => Err(why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_call_is_named_by_its_tool_and_what_it_is_about() {
        let named = NamedCall::parse("Bash:cd a:b && ls").unwrap();
        assert_eq!((named.tool, named.kind), ("bash", ToolKind::Mutation));
        assert_eq!(named.what, CallSubject::Command("cd a:b && ls".into()));
        let named = NamedCall::parse("grep").unwrap();
        assert_eq!((named.kind, named.what), (ToolKind::Query, CallSubject::Path(None)));
        for (wrong, words) in [
            ("bahs:ls", "did you mean `bash`"),
            ("bash", "bash:"),
            ("bash: ", "bash:"),
            ("write:", "write:"),
            ("", "There are"),
        ] {
            let said = NamedCall::parse(wrong).unwrap_err().to_string();
            assert!(said.contains(words), "{wrong:?}: {said}");
        }
    }

    #[test]
    fn programs_are_shown_as_they_are_judged() {
        assert_eq!(programs("a 'b c' | d \"$x\"").unwrap(), ["a 'b c'", "d <unknown>"]);
        assert!(programs("a > b").unwrap_err().contains("redirects"));
    }
}
