//! `guard_hook`: runs a hook that decides about a step before it happens. The project is read-only for it.
//! Only the conversation calls it; models do not see it.

use crate::failure::ToolFailure;
use crate::hook::run_hook;
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::tool::guard_hook::GuardHookTool;

impl Tool for GuardHookTool {
    fn run(input: Self::Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        run_hook::run(input, ctx)
    }
}
