//! `git_add`: files staged for the next commit.

use crate::command::git::{self, GitMode};
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::tool::git_add::{GitAddTool, Input, words};

impl Tool for GitAddTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        if input.all != input.paths.is_empty() {
            return Err(ToolFailure::new(
                FailureCode::InvalidArguments,
                "either paths or all must be given",
                "Give the paths to stage, or set all.",
            ));
        }
        for path in &input.paths {
            git::path(path, ctx)?;
        }
        git::run(words(&input), GitMode::Adds, ctx)
    }
}
