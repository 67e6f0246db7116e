//! `memory_remove`: takes something out of the memory. Answered by `agentd-store`, `memory` in `store`.

use crate::arguments::facts::JudgedFacts;
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::{Alias, Tool};
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Profile;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct MemoryRemoveTool;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Its id as memory_search shows it, for example p12.
    id: String,
}

impl Tool for MemoryRemoveTool {
    type Input = Input;
    const NAME: &'static str = "memory_remove";
    // A mutation, so that it does not run in parallel; judged as a query, because the user is not
    // asked.
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Store;
    const DESCRIPTION: &'static str = "Delete a memory that is no longer true.";
    const ALIASES: &'static [Alias] = &[Alias::plain("forget")];
    const EXAMPLE: &'static str = r#"{"id":"p12"}"#;

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }

    fn run(_: Input, _: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        Err(ToolFailure::new(FailureCode::UnknownTool, "agentd-store answers this itself", ""))
    }
}
