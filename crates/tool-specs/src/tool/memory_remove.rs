//! `memory_remove`: takes something out of the memory. Answered by `agentd-store`, `memory` in `store`.

use crate::arguments::facts::JudgedFacts;
use crate::memory_scope::MemoryScope;
use crate::rule_target::MatchedBy;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct MemoryRemoveTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its id as memory_search shows it, for example p12.
    pub id: String,
}

impl ToolSpec for MemoryRemoveTool {
    type Input = Input;
    const NAME: &'static str = "memory_remove";
    const KIND: ToolKind = ToolKind::Mutation;
    // Later sessions miss it.
    const JUDGED_AS: ToolKind = ToolKind::Mutation;
    const MATCHED_BY: MatchedBy = MatchedBy::MemoryScope;
    const PROFILE: Profile = Profile::Store;
    const DESCRIPTION: &'static str = "Delete a memory that is no longer true.";
    const ALIASES: &'static [Alias] = &[Alias::plain("forget")];
    const FOUND_BY: Option<&'static str> = Some("forget delete remove erase outdated wrong note");
    const EXAMPLE: &'static str = r#"{"id":"p12"}"#;

    fn facts(Input { id }: &Input) -> JudgedFacts {
        let subject = MemoryScope::of_id(id).subject(&format!("remove {id}"));
        JudgedFacts { command: Some(subject), ..JudgedFacts::default() }
    }
}
