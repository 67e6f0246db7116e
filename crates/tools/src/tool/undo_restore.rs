//! `undo_restore`: reverts the changes of one call. The copies come from `agentd-store`; `restore`
//! writes them, in its own cage.

use crate::failure::{FailureCode, ToolFailure};
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::tool::undo_restore::{Input, UndoRestoreTool};

impl Tool for UndoRestoreTool {
    fn run(_: Input, _: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        Err(ToolFailure::new(
            FailureCode::UnknownTool,
            "no copies of the files of this call exist",
            "",
        ))
    }
}
