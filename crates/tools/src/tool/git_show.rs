//! `git_show`: one commit, or a file as it was in one.

use crate::command::git::{self, GitMode};
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::tool::git_show::{GitShowTool, Input, words};

impl Tool for GitShowTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        if input.reference.trim().is_empty() {
            return Err(ToolFailure::new(
                FailureCode::InvalidArguments,
                "ref is empty",
                "Name a commit, for example HEAD.",
            ));
        }
        git::run(words(&input), GitMode::Looks, ctx)
    }
}
