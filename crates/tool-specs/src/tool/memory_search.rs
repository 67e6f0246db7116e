//! `memory_search`: searches saved memories. `agentd-store` answers it; see `memory` in the crate
//! `store`.

use crate::arguments::dialect::ArgMeaning::Field;
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::memory_scope::MemoryScope;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct MemorySearchTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Words to search for; results contain any of them, the best match first.
    pub query: String,
    /// Only of this scope; all three where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<MemoryScope>,
    /// How many; 10 where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub limit: Option<u8>,
}

impl ToolSpec for MemorySearchTool {
    type Input = Input;
    const NAME: &'static str = "memory_search";
    // It only looks.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Store;
    const DESCRIPTION: &'static str = "Search the memories of this session, this project and this user. Search here before \
        you ask the user something that they may have said before.";
    const ALIASES: &'static [Alias] = &[Alias::plain("recall"), Alias::plain("search_memory")];
    const FOUND_BY: Option<&'static str> =
        Some("recall remember known preference notes knowledge earlier sessions");
    const LIMITS: &'static str = "At most 20 results.";
    const EXAMPLE: &'static str = r#"{"query":"how the project is built"}"#;
    const FIELD_ALIASES: FieldAliases =
        &[("keyword", Field("query")), ("max_results", Field("limit"))];

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }
}
