//! `undo_restore`: takes back what one call changed. The copies come from `agentd-store`; `restore` puts
//! them back, in a cage of its own.

use crate::arguments::facts::JudgedFacts;
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::{Alias, Tool};
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct UndoRestoreTool;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The number of the change, as undo_list shows it.
    id: u32,
}

impl Tool for UndoRestoreTool {
    type Input = Input;
    const NAME: &'static str = "undo_restore";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Mutate;
    const DESCRIPTION: &'static str = "Take back what one call changed, of a file tool or a command: all of its files become what they were before it, or none where one of them was changed since.";
    const ALIASES: &'static [Alias] = &[Alias::plain("undo"), Alias::plain("undo_edit")];

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }

    fn run(_: Input, _: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        Err(ToolFailure::new(FailureCode::UnknownTool, "nothing was kept for this call", ""))
    }
}
