//! `git_log`: the newest commits.

use crate::command::git::{self, GitMode};
use crate::failure::ToolFailure;
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::tool::git_log::{GitLogTool, Input, words};

impl Tool for GitLogTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        if let Some(path) = &input.path {
            git::path(path, ctx)?;
        }
        git::run(words(&input), GitMode::Looks, ctx)
    }
}
