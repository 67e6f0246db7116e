//! `hook`: runs a hook that follows an event. It may change the project, as a command may.
//! Only the conversation calls it; models do not see it.

use crate::failure::ToolFailure;
use crate::hook::run_hook;
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::tool::hook::HookTool;

impl Tool for HookTool {
    fn run(input: Self::Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        run_hook::run(input, ctx)
    }
}
