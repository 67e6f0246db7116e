//! `skill_activate`: the instructions of one skill. Answered by `agentd-store`, `skills` in `store`.

use crate::arguments::dialect::ArgMeaning::Field;
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct SkillActivateTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its name, as the list of skills has it.
    pub name: String,
    #[allow(rustdoc::broken_intra_doc_links, reason = "the model reads this text as it stands")]
    /// The arguments of the skill; they replace $ARGUMENTS, $1 and $ARGUMENTS[0] in its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
}

impl ToolSpec for SkillActivateTool {
    type Input = Input;
    const NAME: &'static str = "skill_activate";
    // It only looks.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Store;
    const DESCRIPTION: &'static str =
        "Load the instructions of a skill, and follow them for the current task.";
    const ALIASES: &'static [Alias] = &[Alias::plain("skill"), Alias::plain("use_skill")];
    const FOUND_BY: Option<&'static str> =
        Some("use run skill workflow playbook recipe instructions slash command");
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
}
