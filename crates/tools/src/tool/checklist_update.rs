//! `checklist_update`: one step of a list is on its way or over. Answered by the conversation itself, `own` in `session`.

use crate::arguments::facts::JudgedFacts;
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::{Alias, Tool};
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct ChecklistUpdateTool;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The list's short name.
    group: String,
    /// The step: its text, or its number counted from 1.
    item: String,
    /// How far it is.
    status: ChecklistStatus,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum ChecklistStatus {
    Pending,
    InProgress,
    Done,
    Failed,
}

impl Tool for ChecklistUpdateTool {
    type Input = Input;
    const NAME: &'static str = "checklist_update";
    // It changes only the conversation's own notes, and the user is not asked.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Session;
    const DESCRIPTION: &'static str =
        "Set the status of a checklist step: pending, in_progress, done or failed.";
    const ALIASES: &'static [Alias] = &[];
    const EXAMPLE: &'static str = r#"{"group":"port","item":"read it","status":"done"}"#;

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }

    fn run(_: Input, _: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        Err(ToolFailure::new(FailureCode::UnknownTool, "the conversation answers this itself", ""))
    }
}
