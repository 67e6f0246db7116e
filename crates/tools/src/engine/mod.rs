//! The engines that some runner programs add to the tools: syntax trees, the web and MCP servers.

pub(crate) mod error;
pub(crate) mod server;
pub(crate) mod syntax;
pub(crate) mod web;

use crate::engine::server::ServerEngine;
use crate::engine::syntax::SyntaxEngine;
use crate::engine::web::WebEngine;
use tool_specs::RunnerProgram;

/// The engine of the program that runs a call, in addition to files and commands.
#[derive(Clone, Copy)]
pub enum Engine<'a> {
    /// Nothing: `agentd-tool`.
    Without,
    /// Read syntax trees: `agentd-code`.
    Trees(&'a dyn SyntaxEngine),
    /// Reach the web: `agentd-web`.
    Web(&'a dyn WebEngine),
    /// Speak with MCP servers: `agentd-mcp`.
    Server(&'a dyn ServerEngine),
}

impl Engine<'_> {
    /// The program that has it.
    #[must_use]
    pub const fn runner(self) -> RunnerProgram {
        match self {
            Self::Without => RunnerProgram::Tool,
            Self::Trees(_) => RunnerProgram::Code,
            Self::Web(_) => RunnerProgram::Web,
            Self::Server(_) => RunnerProgram::Mcp,
        }
    }
}
