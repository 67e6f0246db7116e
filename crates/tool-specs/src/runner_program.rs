//! The programs that run tool calls.

/// The program that runs a tool's calls, one process a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunnerProgram {
    /// Files, git, commands.
    Tool,
    /// Syntax trees. A program of its own, so that no other links the grammars.
    Code,
    /// The network, for calls that have none.
    Web,
    /// MCP servers. A program of its own, so that no other links their protocol.
    Mcp,
}

impl RunnerProgram {
    /// Every runner.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Code, Self::Web, Self::Mcp];

    /// Its executable.
    #[must_use]
    pub const fn executable(self) -> &'static str {
        match self {
            Self::Tool => "agentd-tool",
            Self::Code => "agentd-code",
            Self::Web => "agentd-web",
            Self::Mcp => "agentd-mcp",
        }
    }
}
