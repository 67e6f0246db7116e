//! The permission rules that apply to a tool: the part of a call that patterns match, and the rules of
//! other tools that apply as well. The crate `approval` judges calls by this table.

use protocol::confinement::Profile;
use protocol::judgement::ToolKind;

/// The part of a call that a rule's pattern is matched with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchedBy {
    /// The words of a command.
    Command,
    /// The real paths that a call names.
    Path(RuleDepth),
    /// The hosts that a call requests.
    Host,
    /// The web page that a call requests.
    Page,
    /// The name of an MCP server's tool.
    ServerTool,
    /// The scope of a memory.
    MemoryScope,
    /// Nothing: only a rule without a pattern applies.
    Nothing,
}

impl MatchedBy {
    /// The default for a tool that runs under this policy.
    pub(crate) const fn of(profile: Profile) -> Self {
        match profile {
            Profile::Command
            | Profile::Verify
            | Profile::Format
            | Profile::Git
            | Profile::GitLook
            | Profile::Hook
            | Profile::GuardHook
            | Profile::Mcp
            | Profile::McpWrite
            | Profile::McpRemote => Self::Command,
            Profile::Query | Profile::Mutate | Profile::Probe | Profile::Document => {
                Self::Path(RuleDepth::Named)
            }
            Profile::Web => Self::Page,
            Profile::Store | Profile::Session | Profile::Broker | Profile::Provider => {
                Self::Nothing
            }
        }
    }
}

/// The paths that a call on a directory affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleDepth {
    /// Only the paths that it names.
    Named,
    /// Everything below them as well.
    Below,
}

/// A tool or right to which rules apply.
#[derive(Debug)]
pub struct RuleTarget {
    /// Its name in rules.
    pub name: &'static str,
    /// Query or mutation, as verdicts see it.
    pub kind: ToolKind,
    /// The part of a call that its patterns are matched with.
    pub matched_by: MatchedBy,
    /// Other tools whose rules apply as well.
    pub inherits: &'static [InheritedRules],
}

/// Another tool or right whose rules apply as well.
#[derive(Debug, Clone, Copy)]
pub struct InheritedRules {
    /// Its name.
    pub tool: &'static str,
    /// Which of its rules.
    pub inherit: Inherit,
}

impl InheritedRules {
    pub(crate) const fn of(tool: &'static str, inherit: Inherit) -> Self {
        Self { tool, inherit }
    }
}

/// Which rules of another tool apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inherit {
    /// All of them.
    All,
    /// Those that deny or ask, but none that allows.
    DenyAndAsk,
    /// Those that deny or ask, for the named paths only and not for everything below them.
    DenyAndAskNamed,
}
