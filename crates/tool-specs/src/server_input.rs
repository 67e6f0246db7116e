//! The arguments of the tools that run an MCP server or its client, which the conversation calls.

use crate::arguments::facts::{ConfiguredRun, JudgedFacts, RunsIn};
use crate::text::shell_words::shell_words;
use protocol::confinement::Network;
use protocol::hosts::HostRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The arguments of `mcp_server` and `mcp_writer`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its name in the configuration.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The names of the variables that it gets beside the usual ones.
    pub env: Vec<String>,
    /// The hosts that it may reach.
    pub hosts: Vec<String>,
    /// How long it may take to become ready, in milliseconds.
    pub start_ms: u64,
}

/// The arguments of `mcp_remote`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoteInput {
    /// Its name in the configuration.
    pub name: String,
    /// Its address, with http:// or https://.
    pub url: String,
    /// The names of the variables with the headers of each request.
    pub env: Vec<String>,
    /// The hosts that its client may reach: its own, and where its keys are renewed.
    pub hosts: Vec<String>,
    /// How long it may take to become ready, in milliseconds.
    pub start_ms: u64,
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

#[cfg(test)]
mod tests {
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
}
