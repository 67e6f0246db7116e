//! `undo_list`: the changes that can be undone. `agentd-store` answers it; see `undo` in the crate
//! `store`.

use crate::arguments::facts::JudgedFacts;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct UndoListTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Show only changes older than the one with this number, to continue a longer list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u32>,
}

impl ToolSpec for UndoListTool {
    type Input = Input;
    const NAME: &'static str = "undo_list";
    // It only looks.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Store;
    const DESCRIPTION: &'static str = "List the changes of this session's file tools and commands that undo_restore can \
        revert, newest first, and the parts that it cannot revert.";
    const ALIASES: &'static [Alias] = &[];
    const FOUND_BY: Option<&'static str> =
        Some("revert roll back recent changes history of edits what changed what can be undone");
    const EXAMPLE: &'static str = "{}";

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }
}
