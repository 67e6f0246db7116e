//! `mcp_server`: runs an MCP server of the configuration.
//! Only the conversation calls it, when the supervisor says so; models do not see it.

use crate::arguments::facts::JudgedFacts;
use crate::rule_target::{Inherit, InheritedRules};
use crate::runner_program::RunnerProgram;
use crate::server_input;
use crate::spec::{Alias, Caller, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;

pub struct McpServerTool;

impl ToolSpec for McpServerTool {
    type Input = server_input::Input;
    const NAME: &'static str = "mcp_server";
    // Never retried by itself: the supervisor starts a server again when it is due.
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Mcp;
    const RUNNER: RunnerProgram = RunnerProgram::Mcp;
    const CALLER: Caller = Caller::Conversation;
    const DESCRIPTION: &'static str = "Run a configured MCP server.";
    const ALIASES: &'static [Alias] = &[];
    const INHERITS: &'static [InheritedRules] = &[InheritedRules::of("bash", Inherit::DenyAndAsk)];

    fn facts(input: &Self::Input) -> JudgedFacts {
        server_input::facts(input)
    }
}
