//! Errors in rules, with their place and a remedy.

use crate::rule::rule_target::MatchedBy;
use std::fmt;

/// A rule that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: rule `{text}`{}: {fault}", place(file, *line), character(*at))]
pub struct RuleError {
    /// The file of the rule, or `flag`.
    pub file: String,
    /// Counted from 1; 0 where there is no file.
    pub line: u32,
    /// The rule as written.
    pub text: String,
    /// The character at fault, counted from 1; 0 where it is no one's.
    pub at: usize,
    /// The error.
    pub fault: RuleFault,
}

/// An error in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleFault {
    /// No tool is called so.
    UnknownTool {
        /// As written.
        name: String,
        /// The tool that was probably meant.
        nearest: Option<&'static str>,
    },
    /// A pattern behind a tool of an MCP server.
    ServerTool,
    /// A pattern for memories that is no scope.
    MemoryScope {
        /// Of which tool.
        tool: &'static str,
        /// As written.
        name: String,
    },
    /// Neither `tool:pattern`, `Tool(pattern)` nor `tool`.
    NoRule,
    /// `tool:` with nothing behind it.
    EmptyPattern,
    /// A call without the command or path that it is about.
    NothingToJudge {
        /// Of which tool.
        tool: &'static str,
    },
    /// A pattern for a tool whose calls have nothing that it could fit.
    NothingToMatch {
        /// Which.
        tool: &'static str,
    },
    /// `Tool(` without its `)`.
    Unclosed,
    /// An `ask` rule for a tool that only looks.
    AskOnQuery {
        /// Which.
        tool: &'static str,
    },
    /// A character that cannot occur in a simple command.
    Operator(char),
    /// A quote in a pattern for commands.
    Quote(char),
    /// A backslash before something else than `*` or itself.
    Backslash,
    /// A control character.
    Control,
    /// A path pattern that begins with `~`.
    Home,
    /// A path pattern that begins with `!`.
    Negated,
    /// A path pattern with a `..` in it.
    Upward,
    /// The glob parser's message.
    Glob(String),
    /// Why this is no host.
    Host(String),
    /// An example under `not` that the rule matches.
    Fits {
        /// Which.
        what: String,
    },
    /// An example under `fits` that the rule does not match.
    FitsNot {
        /// Which.
        what: String,
    },
}

/// A fault and the byte of the rule's text where it is.
pub(crate) type FaultAt = (usize, RuleFault);

impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTool { name, nearest: Some(nearest) } => {
                write!(f, "there is no tool `{name}`; did you mean `{nearest}`?")
            }
            Self::UnknownTool { name, nearest: None } => {
                let names: Vec<_> = tool_specs::rule_targets().iter().map(|tool| tool.name).collect();
                write!(f, "there is no tool `{name}`. There are {}", names.join(", "))
            }
            Self::ServerTool => f.write_str(
                "a rule for a tool of an MCP server is its name, for example `mcp__github__list_*`; \
                 its arguments are not matched",
            ),
            Self::MemoryScope { tool, name } => write!(
                f,
                "`{name}` is not a scope of memories. Write `{tool}:project`, `{tool}:user` (all projects), `{tool}:session`, or `{tool}` for all of them"
            ),
            Self::NoRule => f.write_str(
                "a rule is written `tool:pattern`, for example `bash:cargo *` or `write:src/**`",
            ),
            Self::EmptyPattern => {
                f.write_str("the pattern is missing. For every call of the tool write `*`")
            }
            Self::NothingToJudge { tool } => {
                let example =
                    match crate::rule::rule_target::find(tool).map(|known| known.matched_by) {
                        Some(MatchedBy::Command) if tool.starts_with("git") => "git status",
                        Some(MatchedBy::Command) => "cargo test",
                        Some(MatchedBy::MemoryScope) => "user",
                        Some(MatchedBy::Page) => "https://docs.rs/serde",
                        Some(
                            MatchedBy::Path(_)
                            | MatchedBy::Host
                            | MatchedBy::ServerTool
                            | MatchedBy::Nothing,
                        )
                        | None => "src/main.rs",
                    };
                write!(
                    f,
                    "`{tool}` needs a command, a path or a page after it, for example `{tool}:{example}`"
                )
            }
            Self::NothingToMatch { tool } => write!(
                f,
                "this never matches: calls of `{tool}` have no path and no command. For every call of it write `{tool}`"
            ),
            Self::Unclosed => f.write_str("the closing `)` is missing at the end"),
            Self::AskOnQuery { tool } => write!(
                f,
                "`{tool}` is read-only, so agentd never asks about it. To forbid it, move the rule to permissions.deny"
            ),
            Self::Operator(c) => write!(
                f,
                "`{c}` joins or redirects commands, but a rule matches one simple command. Write one rule per command"
            ),
            Self::Quote(c) => write!(
                f,
                "`{c}` never matches: the shell removes quotes before words are compared. Leave it out, or write `*` for a word that contains a space"
            ),
            Self::Backslash => f.write_str("a backslash may only precede `*` or another backslash"),
            Self::Control => f.write_str("a rule cannot contain a control character"),
            Self::Home => f.write_str(
                "`~` is not expanded here. Write the full path, for example /home/me/notes/**",
            ),
            Self::Negated => {
                f.write_str("a pattern cannot be negated. Use permissions.deny for exceptions")
            }
            Self::Upward => f.write_str(
                "`..` never matches: paths are compared after links and `..` are resolved",
            ),
            Self::Fits { what } => write!(
                f,
                "the example `{what}` is listed under `not`, but the rule matches it. Make the rule narrower, or move the example to `fits`"
            ),
            Self::FitsNot { what } => write!(
                f,
                "the example `{what}` is listed under `fits`, but the rule does not match it. Correct the rule or the example, or move the example to `not`"
            ),
            Self::Host(message) => f.write_str(message),
            Self::Glob(message) => write!(f, "this is not a path pattern: {message}"),
        }
    }
}

fn character(at: usize) -> String {
    if at == 0 { String::new() } else { format!(", character {at}") }
}

fn place(file: &str, line: u32) -> String {
    if line == 0 { file.to_owned() } else { format!("{file}:{line}") }
}
