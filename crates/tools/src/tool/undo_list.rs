//! `undo_list`: what can be undone. Answered by `agentd-store`, `undo` in `store`.

use crate::arguments::facts::JudgedFacts;
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::{Alias, Tool};
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct UndoListTool;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Show only changes older than this one, by its number; for what a longer list left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<u32>,
}

impl Tool for UndoListTool {
    type Input = Input;
    const NAME: &'static str = "undo_list";
    // It only looks.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Store;
    const DESCRIPTION: &'static str = "List the changes that file tools and commands made in this session and that undo_restore can take back, the newest first, and what of them is not covered.";
    const ALIASES: &'static [Alias] = &[];

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }

    fn run(_: Input, _: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        Err(ToolFailure::new(FailureCode::UnknownTool, "agentd-store answers this itself", ""))
    }
}
