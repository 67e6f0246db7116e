//! `skill_activate`: the instructions of one skill. Answered by `agentd-store`, `skills` in `store`.

use crate::arguments::dialect::{ArgMeaning::Field, FieldAliases};
use crate::arguments::facts::JudgedFacts;
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::{Alias, Tool};
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct SkillActivateTool;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Its name, as the list of skills has it.
    name: String,
    /// The arguments of the skill; they replace $ARGUMENTS, $1 and $ARGUMENTS[0] in its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments: Option<String>,
}

impl Tool for SkillActivateTool {
    type Input = Input;
    const NAME: &'static str = "skill_activate";
    // It only looks.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Store;
    const DESCRIPTION: &'static str =
        "Load the instructions of a skill, and follow them for the current task.";
    const ALIASES: &'static [Alias] = &[Alias::plain("skill"), Alias::plain("use_skill")];
    const EXAMPLE: &'static str = r#"{"name":"release","arguments":"1.2.0"}"#;
    const FIELD_ALIASES: FieldAliases = &[
        ("skill", Field("name")),
        ("skill_name", Field("name")),
        ("command", Field("name")),
        ("args", Field("arguments")),
    ];

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }

    fn run(_: Input, _: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        Err(ToolFailure::new(FailureCode::UnknownTool, "agentd-store answers this itself", ""))
    }
}
