//! Runs an MCP server: a program in a command's cage whose standard streams the engine of `agentd-mcp`
//! speaks with. For the tools `mcp_server` and `mcp_writer`; and,
//! for `mcp_remote`, the client of a server that has an address.

use crate::arguments::facts::{ConfiguredRun, JudgedFacts, RunsIn};
use crate::command::{self, CommandSpec};
use crate::engine::server::ServerSpeech;
use crate::failure::{FailureCode, ToolFailure};
use crate::text::shell_words::shell_words;
use crate::tool_answer::ToolAnswer;
use crate::tool_context::ToolContext;
use protocol::confinement::Network;
use protocol::hosts::HostRule;
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
        runs_in: RunsIn::Background,
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

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoteInput {
    /// Its name in the configuration.
    name: String,
    /// Its address, with http:// or https://.
    url: String,
    /// The names of the variables with the headers of each request.
    env: Vec<String>,
    /// The hosts that its client may reach: its own, and where its keys are renewed.
    hosts: Vec<String>,
    /// How long it may take to become ready, in milliseconds.
    start_ms: u64,
}

pub(crate) fn remote_facts(input: &RemoteInput) -> JudgedFacts {
    let hosts = input.hosts.iter().filter_map(|host| HostRule::of_rule(host).ok()).collect();
    JudgedFacts {
        configured: Some(ConfiguredRun::RemoteServer { hosts }),
        command: Some(input.url.clone()),
        network: Some(Network::Off),
        runs_in: RunsIn::Background,
        ..JudgedFacts::default()
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
    fn the_hosts_of_a_client_are_those_of_its_arguments() {
        let hosts = |hosts: &[&str]| {
            let hosts = hosts.iter().map(ToString::to_string).collect();
            let (name, url, env) = ("a".into(), "https://x".into(), Vec::new());
            let facts = remote_facts(&RemoteInput { name, url, env, hosts, start_ms: 7 });
            let Some(ConfiguredRun::RemoteServer { hosts }) = facts.configured else { panic!() };
            hosts
        };
        let named = hosts(&["127.0.0.1:80", "a.example:443"]);
        assert!(named[0].admits("127.0.0.1", 80) && named[1].admits("a.example", 443));
        assert!(hosts(&[]).is_empty());
    }

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
