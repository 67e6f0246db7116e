//! `git_diff`: changes that are not committed yet.

use crate::command::git::{self, GitMode};
use crate::failure::ToolFailure;
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::tool::git_diff::{GitDiffTool, Input, words};

impl Tool for GitDiffTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        if let Some(path) = &input.path {
            git::path(path, ctx)?;
        }
        git::run(words(&input), GitMode::Looks, ctx)
    }
}
