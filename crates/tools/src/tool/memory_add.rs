//! `memory_add`: something to remember in sessions to come. Answered by `agentd-store`, `memory` in `store`.

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

pub(super) struct MemoryAddTool;

/// Where something is remembered.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum MemoryScope {
    // Until this session is removed.
    Session,
    // In every session of this project.
    Project,
    // In every project of this person.
    User,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The memory in one or two sentences that are clear without this conversation.
    text: String,
    /// Where it holds: until this session is removed, in every session of this project, or in every
    /// project of this user; project where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<MemoryScope>,
}

impl Tool for MemoryAddTool {
    type Input = Input;
    const NAME: &'static str = "memory_add";
    // A mutation, so that it does not run in parallel; judged as a query, because the user is not
    // asked.
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Store;
    const DESCRIPTION: &'static str = "Save a memory for later: a decision, how this project is built, a preference of the \
        user. Do not save facts that the files already contain, and never keys or passwords.";
    const ALIASES: &'static [Alias] = &[Alias::plain("remember"), Alias::plain("save_memory")];
    const EXAMPLE: &'static str = r#"{"text":"The project is built with make.","scope":"project"}"#;
    const FIELD_ALIASES: FieldAliases =
        &[("fact", Field("text")), ("content", Field("text")), ("memory", Field("text"))];

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }

    fn run(_: Input, _: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        Err(ToolFailure::new(FailureCode::UnknownTool, "agentd-store answers this itself", ""))
    }
}
