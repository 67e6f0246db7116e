//! `mcp_remote`: runs the client of an MCP server that has an address.
//! Only the conversation calls it, when the supervisor says so; models do not see it.

use crate::arguments::facts::JudgedFacts;
use crate::runner_program::RunnerProgram;
use crate::server_input;
use crate::spec::{Alias, Caller, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;

pub struct McpRemoteTool;

impl ToolSpec for McpRemoteTool {
    type Input = server_input::RemoteInput;
    const NAME: &'static str = "mcp_remote";
    // Never retried by itself: the supervisor starts a server again when it is due.
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::McpRemote;
    const RUNNER: RunnerProgram = RunnerProgram::Mcp;
    const CALLER: Caller = Caller::Conversation;
    const DESCRIPTION: &'static str =
        "Run the client of a configured MCP server that has an address.";
    const ALIASES: &'static [Alias] = &[];

    fn facts(input: &Self::Input) -> JudgedFacts {
        server_input::remote_facts(input)
    }
}
