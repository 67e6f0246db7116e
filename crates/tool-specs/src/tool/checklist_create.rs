//! `checklist_create`: a list of the steps of a task. The conversation answers it itself; see the
//! crate `session`.

use super::checklist_update::ChecklistStatus;
use crate::arguments::facts::JudgedFacts;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ChecklistCreateTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// A short name of the list, for checklist_update.
    pub group: String,
    /// The subject of the list.
    pub title: String,
    /// The steps, in their order.
    pub items: Vec<String>,
    /// How far each step is, in the order of the items; pending where it is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<ChecklistStatus>,
}

impl ToolSpec for ChecklistCreateTool {
    type Input = Input;
    const NAME: &'static str = "checklist_create";
    // It changes only the conversation's own notes, and the user is not asked.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Session;
    const DESCRIPTION: &'static str = "Create a checklist of the steps of a longer task. The user sees its progress. A list \
        with the same group replaces the earlier one.";
    const ALIASES: &'static [Alias] =
        &[Alias::plain("todo_write"), Alias::plain("update_plan"), Alias::plain("todo")];
    const FOUND_BY: Option<&'static str> =
        Some("todo list plan steps track progress tasks task list notebook");
    const LIMITS: &'static str = "At most 100 steps.";
    const EXAMPLE: &'static str =
        r#"{"group":"port","title":"Port the parser","items":["read it","write it","test it"]}"#;

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }
}
