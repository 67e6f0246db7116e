//! `tool_search`: loads tools that requests do not list from the start. The conversation answers it itself; see
//! the crate `session`.

use crate::arguments::dialect::ArgMeaning::Field;
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ToolSearchTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Names of tools, or a few words about what a tool does.
    pub query: String,
}

impl ToolSpec for ToolSearchTool {
    type Input = Input;
    const NAME: &'static str = "tool_search";
    // It reads only the table of tools, and the user is not asked.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Session;
    const DESCRIPTION: &'static str = "Load further tools by name or by what they do. You can call them from your next answer on.";
    const ALIASES: &'static [Alias] = &[];
    const LIMITS: &'static str = "At most 5 tools by words.";
    const EXAMPLE: &'static str = r#"{"query":"git_log"}"#;
    const FIELD_ALIASES: FieldAliases = &[("keyword", Field("query")), ("name", Field("query"))];

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }
}
