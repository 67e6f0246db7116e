//! `mcp_server`: runs an MCP server of the configuration.
//! Only the conversation calls it, when the supervisor says so; models do not see it.

use crate::failure::ToolFailure;
use crate::server;
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::tool::mcp_server::McpServerTool;

impl Tool for McpServerTool {
    fn run(input: Self::Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        server::run(input, ctx)
    }
}
