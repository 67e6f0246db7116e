//! `run`: a program with its arguments, without a shell.

use crate::command::job_place::JobPlace;
use crate::command::{self, ARGUMENT_BYTES, CommandSpec};
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::text::shell_words::shell_words;
use tool_specs::tool::run::{Input, RunTool};

impl Tool for RunTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let Input { argv, timeout_ms, git_settings: _, git_signing: _, directory: _ } = input;
        check(&argv)?;
        let text = shell_words(&argv);
        let (env, without, place) = (Vec::new(), None, JobPlace::Foreground);
        command::run(CommandSpec { argv, text, env, without, timeout_ms, place }, ctx)
    }
}

/// Refuses arguments that no program can receive.
fn check(argv: &[String]) -> Result<(), ToolFailure> {
    let invalid =
        |text: &str, hint: &str| Err(ToolFailure::new(FailureCode::InvalidArguments, text, hint));
    match argv.first().map(|name| name.trim()) {
        None => return invalid("argv is empty", "Name the program, then its arguments."),
        Some("") => return invalid("the program name is empty", "Name the program first."),
        Some(_) => {}
    }
    if argv.iter().any(|word| word.contains('\0')) {
        return invalid("an argument contains a NUL character", "");
    }
    if argv.iter().any(|word| word.len() > ARGUMENT_BYTES) {
        return invalid(
            "an argument is longer than 128 KiB",
            "Write it to a file with write, and give the program that file.",
        );
    }
    Ok(())
}
