//! `skill_list`: which skills there are. Answered by `agentd-store`, `skills` in `store`.

use crate::arguments::facts::JudgedFacts;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct SkillListTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

impl ToolSpec for SkillListTool {
    type Input = Input;
    const NAME: &'static str = "skill_list";
    // It only looks.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Store;
    const DESCRIPTION: &'static str =
        "List the skills of this project and this user, each with its purpose.";
    const ALIASES: &'static [Alias] = &[];
    const FOUND_BY: Option<&'static str> =
        Some("available skills workflows playbooks recipes instructions which skills");
    const EXAMPLE: &'static str = "{}";

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }
}
