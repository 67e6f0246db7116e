//! Runs an MCP server: a program in a command's cage whose standard streams the engine of `agentd-mcp`
//! speaks with. For the tools `mcp_server` and `mcp_writer`.

use crate::arguments::facts::{JobRequest, JudgedFacts};
use crate::command::{self, CommandSpec};
use crate::failure::{FailureCode, ToolFailure};
use crate::text::shell_words::shell_words;
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Network;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Its name in the configuration.
    name: String,
    /// The program and its arguments.
    command: Vec<String>,
    /// The names of the variables that it gets beside the usual ones.
    env: Vec<String>,
    /// The hosts that it may reach.
    hosts: Vec<String>,
    /// How long it may take to become ready, in milliseconds.
    start_ms: u64,
}

pub(crate) fn facts(input: &Input) -> JudgedFacts {
    JudgedFacts {
        command: Some(shell_words(&input.command)),
        // The supervisor puts the hosts of the configuration in.
        network: Some(Network::Off),
        job: JobRequest::Background,
        ..JudgedFacts::default()
    }
}

pub(crate) fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
    let Input { name, command: argv, start_ms, .. } = input;
    if argv.is_empty() {
        let why = "the server has no command".to_owned();
        return Err(ToolFailure::new(FailureCode::InvalidArguments, why, ""));
    }
    let text = shell_words(&argv);
    let start = Duration::from_millis(start_ms);
    command::serve(CommandSpec::server(argv, text), (&name, start), ctx)
}
