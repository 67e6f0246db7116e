//! `memory_add`: something to remember in sessions to come. Answered by `agentd-store`, `memory` in `store`.

use crate::arguments::dialect::ArgMeaning::Field;
use crate::arguments::dialect::FieldAliases;
use crate::arguments::facts::JudgedFacts;
use crate::memory_scope::MemoryScope;
use crate::rule_target::MatchedBy;
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct MemoryAddTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The memory in one or two sentences that are clear without this conversation.
    pub text: String,
    /// Where it holds: until this session is removed, in every session of this project, or in every
    /// project of this user; project where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<MemoryScope>,
}

impl ToolSpec for MemoryAddTool {
    type Input = Input;
    const NAME: &'static str = "memory_add";
    const KIND: ToolKind = ToolKind::Mutation;
    // Later sessions read it.
    const JUDGED_AS: ToolKind = ToolKind::Mutation;
    const MATCHED_BY: MatchedBy = MatchedBy::MemoryScope;
    const PROFILE: Profile = Profile::Store;
    const DESCRIPTION: &'static str = "Save a memory for later: a decision, how this project is built, a preference of the \
        user. Do not save facts that the files already contain, and never keys or passwords.";
    const ALIASES: &'static [Alias] = &[Alias::plain("remember"), Alias::plain("save_memory")];
    const FOUND_BY: Option<&'static str> =
        Some("remember store save note fact preference keep for next time memorize");
    const EXAMPLE: &'static str = r#"{"text":"The project is built with make.","scope":"project"}"#;
    const FIELD_ALIASES: FieldAliases =
        &[("fact", Field("text")), ("content", Field("text")), ("memory", Field("text"))];

    fn facts(Input { text, scope }: &Input) -> JudgedFacts {
        let (text, scope) = (text.trim(), scope.unwrap_or(MemoryScope::Project));
        let stored_bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        JudgedFacts { command: Some(scope.subject(text)), stored_bytes, ..JudgedFacts::default() }
    }
}
