//! `git_commit`: commits the staged changes.

use crate::command::git::{self, GitMode};
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::tool::git_commit::{GitCommitTool, Input, words};

impl Tool for GitCommitTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let subject = input.subject.trim();
        if subject.is_empty() || subject.contains('\n') {
            return Err(ToolFailure::new(
                FailureCode::InvalidArguments,
                "subject must be one non-empty line",
                "Put the rest into body.",
            ));
        }
        git::run(words(&input), GitMode::Commits, ctx)
    }
}
