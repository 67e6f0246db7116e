//! `git_status`: the files that differ from the last commit.

use crate::command::git::{self, GitMode};
use crate::failure::ToolFailure;
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::tool::git_status::{GitStatusTool, Input, words};

impl Tool for GitStatusTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        git::run(words(&input), GitMode::Looks, ctx)
    }
}
