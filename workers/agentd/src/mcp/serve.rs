//! `agentd mcp serve`: agentd as an MCP server. `agentd-mcp` takes the place of this process; it starts an
//! `agentd` for each run, within the limits of the flags.

use super::become_agentd_mcp;
use crate::cli::ServeFlags;
use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::{CliContext, real_dir};
use std::ffi::{OsStr, OsString};

pub(super) fn main(flags: &ServeFlags) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    context.writable_state()?;
    let dirs = flags.projects.iter().map(|dir| real_dir(dir, "the project directory"));
    let dirs: Vec<_> = dirs.collect::<Result<_, _>>()?;
    let mut words = vec![OsString::from("--serve")];
    let mut add = |name: &str, value: &OsStr| words.extend([name.into(), value.to_owned()]);
    dirs.iter().for_each(|dir| add("--project-dir", dir.as_os_str()));
    let millis = u64::try_from(flags.timeout.as_millis()).unwrap_or(u64::MAX).max(1);
    add("--timeout-ms", millis.to_string().as_ref());
    if let Some(micros) = flags.max_cost {
        add("--max-cost-micros", micros.to_string().as_ref());
    }
    words.push("--".into());
    words.extend(of_runs(flags).into_iter().map(OsString::from));
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    let never = become_agentd_mcp(&words)?;
    match never {}
}

/// The flags that each run gets as they are, each in one word.
fn of_runs(flags: &ServeFlags) -> Vec<String> {
    let mode = flags.permission_mode.map(|mode| format!("--permission-mode={}", mode.name()));
    let model = flags.model.as_ref().map(|model| format!("--model={model}"));
    let allowed = flags.rules.allowed_tools.iter().map(|rule| format!("--allowed-tools={rule}"));
    let denied = flags.rules.disallowed_tools.iter();
    let denied = denied.map(|rule| format!("--disallowed-tools={rule}"));
    mode.into_iter().chain(model).chain(allowed).chain(denied).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::cli::{Cli, CliCommand, McpCommand};

    #[test]
    fn flags_reach_the_runs_as_they_are() {
        let words = ["agentd", "mcp", "serve", "--permission-mode", "acceptEdits", "--model=m"];
        let rules = ["--allowed-tools", "bash:ls", "--disallowed-tools", "bash:-x"];
        let cli = Cli::read(words.iter().chain(&rules)).unwrap();
        let Some(CliCommand::Mcp { command: McpCommand::Serve(flags) }) = cli.command else {
            panic!("it is `mcp serve`")
        };
        let want = [
            "--permission-mode=accept-edits",
            "--model=m",
            "--allowed-tools=bash:ls",
            "--disallowed-tools=bash:-x",
        ];
        assert_eq!(of_runs(&flags), want);
        assert_eq!(flags.timeout.as_secs(), 3600);
    }
}
