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
    // A change, so that it waits for its neighbours; judged as a look, since nobody is asked about it.
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Store;
    const DESCRIPTION: &'static str =
        "Forget something that was remembered and does not hold any more.";
    const ALIASES: &'static [Alias] = &[Alias::plain("forget")];

    fn facts(_: &Input) -> JudgedFacts {
        JudgedFacts::default()
    }

    fn run(_: Input, _: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        Err(ToolFailure::new(FailureCode::UnknownTool, "agentd-store answers this itself", ""))
    }
}
