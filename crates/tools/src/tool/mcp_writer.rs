//! `mcp_writer`: runs an MCP server of the configuration that may write the project.
//! Only the conversation calls it, when the supervisor says so; models do not see it.

use crate::arguments::facts::JudgedFacts;
use crate::failure::ToolFailure;
use crate::rule_target::{Inherit, InheritedRules};
use crate::runner_program::RunnerProgram;
use crate::server;
use crate::spec::{Alias, Caller, Tool};
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;

pub(super) struct McpWriterTool;

impl Tool for McpWriterTool {
    type Input = server::Input;
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
        server::facts(input)
    }

    fn run(input: Self::Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        server::run(input, ctx)
    }
}
