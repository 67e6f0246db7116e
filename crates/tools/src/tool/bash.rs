//! `bash`: a shell command in a cage of its own.

use crate::command::job_place::JobPlace;
use crate::command::{self, ARGUMENT_BYTES, CommandSpec};
use crate::failure::{FailureCode, ToolFailure};
use crate::spec::Tool;
use crate::tool_context::ToolContext;
use tool_specs::ToolAnswer;
use tool_specs::tool::bash::{BashTool, Input};

impl Tool for BashTool {
    fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
        check(&input.command)?;
        let shell = command::shell(ctx);
        let place = place(&input);
        let Input {
            command,
            timeout_ms,
            background: _,
            network: _,
            hosts: _,
            git_settings: _,
            git_signing: _,
            directory: _,
        } = input;
        command::run(
            CommandSpec {
                argv: vec![shell, "-c".to_owned(), command.clone()],
                text: command,
                env: Vec::new(),
                without: None,
                timeout_ms,
                place,
            },
            ctx,
        )
    }
}

fn place(input: &Input) -> JobPlace {
    if input.background { JobPlace::Background } else { JobPlace::Foreground }
}

/// Refuses commands that no shell can receive.
fn check(command: &str) -> Result<(), ToolFailure> {
    let invalid =
        |text: &str, hint: &str| Err(ToolFailure::new(FailureCode::InvalidArguments, text, hint));
    if command.trim().is_empty() {
        return invalid("the command is empty", "Say what to run.");
    }
    if command.contains('\0') {
        return invalid("the command contains a NUL character", "");
    }
    if command.len() > ARGUMENT_BYTES {
        return invalid(
            "the command is longer than 128 KiB",
            "Write it to a file with write, and run that.",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool_specs::interpret;

    #[test]
    fn the_hosts_of_a_call_are_few_and_none_is_a_whole_top_level_domain() {
        let asked = |hosts: &[String]| {
            let input = json!({ "command": "true", "hosts": hosts }).to_string();
            interpret("bash", &input).map(|found| found.hosts.len()).map_err(|no| no.to_string())
        };
        let many = |count: usize| (0..count).map(|n| format!("h{n}.example")).collect::<Vec<_>>();
        assert_eq!(asked(&many(20)), Ok(20));
        assert_eq!(asked(&["*.crates.io".to_owned()]), Ok(1));
        for (hosts, said) in [(many(21), "at most 20"), (vec!["*.com".to_owned()], "top-level")] {
            let no = asked(&hosts);
            assert!(no.as_ref().is_err_and(|no| no.contains(said)), "{no:?}");
        }
    }
}
