//! `skill_list`: which skills there are. Answered by `agentd-store`, `skills` in `store`.

use crate::arguments::facts::JudgedFacts;
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::{Alias, Tool};
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct SkillListTool;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {}

impl Tool for SkillListTool {
    type Input = Input;
    const NAME: &'static str = "skill_list";
    // It only looks.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Store;
    const DESCRIPTION: &'static str =
        "List the skills of this project and this user, each with its purpose.";
    const ALIASES: &'static [Alias] = &[];
    const EXAMPLE: &'static str = "{}";

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }

    fn run(_: Input, _: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        Err(ToolFailure::new(FailureCode::UnknownTool, "agentd-store answers this itself", ""))
    }
}
