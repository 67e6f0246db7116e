//! `powershell`: a script of PowerShell, where that is installed.

use crate::command::job_place::JobPlace;
use crate::command::{self, ARGUMENT_BYTES, CommandSpec};
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::text::shell_words::shell_words;
use tool_specs::tool::powershell::{Input, PowershellTool, argv};

impl Tool for PowershellTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        let Input { script, timeout_ms } = input;
        let invalid =
            |text: &str, hint: &str| ToolFailure::new(FailureCode::InvalidArguments, text, hint);
        if script.trim().is_empty() {
            return Err(invalid("the script is empty", "Say what to run."));
        }
        if script.contains('\0') {
            return Err(invalid("the script contains a NUL character", ""));
        }
        if script.len() > ARGUMENT_BYTES {
            let hint = "Write it to a file with write, and run that with -File.";
            return Err(invalid("the script is longer than 128 KiB", hint));
        }
        let argv = argv(&script);
        let text = shell_words(&argv);
        let (env, without, place) = (Vec::new(), None, JobPlace::Foreground);
        command::run(CommandSpec { argv, text, env, without, timeout_ms, place }, ctx)
    }
}
