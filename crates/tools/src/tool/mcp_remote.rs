//! `mcp_remote`: runs the client of an MCP server that has an address.
//! Only the conversation calls it, when the supervisor says so; models do not see it.

use crate::failure::ToolFailure;
use crate::server;
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::tool::mcp_remote::McpRemoteTool;

impl Tool for McpRemoteTool {
    fn run(input: Self::Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        server::run_remote(input, ctx)
    }
}
