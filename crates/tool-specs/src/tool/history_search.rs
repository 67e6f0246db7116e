//! `history_search`: searches earlier messages of this session. The conversation answers it itself;
//! see the crate `session`.

use crate::arguments::dialect::ArgMeaning::Field;
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct HistorySearchTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The text to find; case is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// How many messages, the newest ones; default 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub limit: Option<u8>,
    /// Instead of a search: the number of a call whose result was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub call: Option<u32>,
}

impl ToolSpec for HistorySearchTool {
    type Input = Input;
    const NAME: &'static str = "history_search";
    // It reads only the conversation, and the user is not asked.
    const KIND: ToolKind = ToolKind::Query;
    const PROFILE: Profile = Profile::Session;
    const DESCRIPTION: &'static str = "Search the earlier messages of this session for a keyword; results are in order of time. \
        With `call`, show a result that was left out to make room.";
    const ALIASES: &'static [Alias] = &[];
    const FOUND_BY: Option<&'static str> = Some(
        "earlier conversation previous message user say said told asked before transcript past result \
        omitted cut output",
    );
    const LIMITS: &'static str = "At most 50 messages.";
    const EXAMPLE: &'static str = r#"{"keyword":"migration"}"#;
    const FIELD_ALIASES: FieldAliases =
        &[("query", Field("keyword")), ("pattern", Field("keyword"))];

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }
}
