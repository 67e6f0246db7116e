//! `mcp_writer`: runs an MCP server of the configuration that may write the project.
//! Only the conversation calls it, when the supervisor says so; models do not see it.

use crate::arguments::facts::JudgedFacts;
use crate::rule_target::{Inherit, InheritedRules};
use crate::runner_program::RunnerProgram;
use crate::server_input;
use crate::spec::{Alias, Caller, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;

pub struct McpWriterTool;

impl ToolSpec for McpWriterTool {
    type Input = server_input::Input;
    const NAME: &'static str = "mcp_writer";
    // Never retried by itself: the supervisor starts a server again when it is due.
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::McpWrite;
    const RUNNER: RunnerProgram = RunnerProgram::Mcp;
    const CALLER: Caller = Caller::Conversation;
    const DESCRIPTION: &'static str = "Run a configured MCP server that may write the project.";
    const ALIASES: &'static [Alias] = &[];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::DenyAndAsk)];

    fn facts(input: &Self::Input) -> JudgedFacts {
        server_input::facts(input)
    }
}
