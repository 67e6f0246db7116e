//! Runs an MCP server: a program in a command's cage whose standard streams the engine of `agentd-mcp`
//! speaks with. For the tools `mcp_server` and `mcp_writer`; and,
//! for `mcp_remote`, the client of a server that has an address.

use crate::command::{self, CommandSpec};
use crate::engine::server::ServerSpeech;
use crate::failure::{FailureCode, ToolFailure};
use crate::tool_context::ToolContext;
use std::time::Duration;
use tool_specs::ToolAnswer;
use tool_specs::server_input::{Input, RemoteInput};
use tool_specs::text::shell_words::shell_words;

pub(crate) fn run(input: Input, ctx: &mut ToolContext<'_>) -> Result<ToolAnswer, ToolFailure> {
    let Input { name, command: argv, start_ms, .. } = input;
    if argv.is_empty() {
        let why = "the server has no command".to_owned();
        return Err(ToolFailure::new(FailureCode::InvalidArguments, why, ""));
    }
    let text = shell_words(&argv);
    let start = Duration::from_millis(start_ms);
    command::serve(CommandSpec::server(argv, text), (&name, start, ServerSpeech::Mcp), ctx)
}

/// The switch by which `agentd-mcp` is the client of a server that has an address.
const REMOTE: &str = "--remote";

/// The arguments of that client.
#[derive(Debug, PartialEq, Eq)]
pub struct RemoteClient {
    /// The server's name in the configuration.
    pub name: String,
    /// Its address.
    pub url: String,
    /// How long it may take to become ready, in milliseconds.
    pub start_ms: u64,
}

impl RemoteClient {
    fn words(&self) -> [String; 4] {
        [REMOTE.to_owned(), self.name.clone(), self.url.clone(), self.start_ms.to_string()]
    }

    /// The client of these arguments, if they are of one.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut next = || arguments.next();
        let is_it = next()? == REMOTE;
        let (name, url, start_ms) = (next()?, next()?, next()?.parse().ok()?);
        (is_it && next().is_none()).then_some(Self { name, url, start_ms })
    }
}

pub(crate) fn run_remote(
    input: RemoteInput,
    ctx: &mut ToolContext<'_>,
) -> Result<ToolAnswer, ToolFailure> {
    let own = std::env::current_exe().map_err(|error| {
        let why = format!("the client of the server is not found: {error}");
        ToolFailure::new(FailureCode::Io, why, "")
    })?;
    let RemoteInput { name, url, start_ms, .. } = input;
    let client = RemoteClient { name, url, start_ms };
    let argv = [own.display().to_string()].into_iter().chain(client.words()).collect();
    // The client measures the time; this is for a client that hangs.
    let spoken = (client.name.as_str(), Duration::from_millis(start_ms), ServerSpeech::Relay);
    command::serve(CommandSpec::client(argv, client.url.clone()), spoken, ctx)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_client_knows_its_arguments_and_no_others() {
        let client = RemoteClient { name: "a".into(), url: "https://x".into(), start_ms: 7 };
        assert_eq!(RemoteClient::parse(client.words().into_iter()), Some(client));
        for words in [&["--remote", "a", "https://x"][..], &["--conformance", "a", "b", "7"]] {
            let words = words.iter().map(|word| (*word).to_owned());
            assert_eq!(RemoteClient::parse(words), None);
        }
    }
}
