//! `checklist_update`: one step of a list is on its way or over. Answered by the conversation itself, `own` in `session`.

use crate::arguments::facts::JudgedFacts;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ChecklistUpdateTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The list's short name.
    pub group: String,
    /// The step: its text, or its number counted from 1.
    pub item: String,
    /// How far it is.
    pub status: ChecklistStatus,
}

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ChecklistStatus {
    Pending,
    InProgress,
    Done,
    Failed,
}

impl ToolSpec for ChecklistUpdateTool {
    type Input = Input;
    const NAME: &'static str = "checklist_update";
    // It changes only the conversation's own notes, and the user is not asked.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Session;
    const DESCRIPTION: &'static str =
        "Set the status of a checklist step: pending, in_progress, done or failed.";
    const ALIASES: &'static [Alias] = &[];
    const FOUND_BY: Option<&'static str> =
        Some("todo mark step done complete tick off progress task list notebook");
    const EXAMPLE: &'static str = r#"{"group":"port","item":"read it","status":"done"}"#;

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }
}
