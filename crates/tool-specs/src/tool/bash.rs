//! `bash`: a shell command in a cage of its own.

use crate::arguments::command_rights::{GitSettingsChoice, SigningChoice};
use crate::arguments::dialect::{BASH_FIELDS, FieldAliases};
use crate::arguments::facts::{JudgedFacts, RunsIn};
use crate::spec::{Alias, ToolSpec};
use protocol::confinement::{Network, Profile};
use protocol::hosts::HostRule;
use protocol::judgement::ToolKind;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

pub struct BashTool;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The command, for the shell.
    pub command: String,
    /// As for a server: if it has not ended after a second, you go on while it runs, and later commands reach
    /// it at localhost. See bash_output, bash_input and bash_stop. Its standard input is a pipe that stays open; add </dev/null
    /// for a program that would wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// Longest time in milliseconds: default 120000, at most 600000; in the background both are 86400000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// Inherit uses the session's setting. On may need approval.
    #[serde(default)]
    pub network: WantedNetwork,
    /// Hosts to reach that the session's network does not, such as crates.io, *.crates.io or
    /// example.org:8443; nothing else is opened. Needs approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "judgeable")]
    pub hosts: Vec<WantedHost>,
    /// Write: may change .git/config and .git/hooks, as git remote add, git push -u and git branch -m do.
    /// Needs approval.
    #[serde(default)]
    pub git_settings: GitSettingsChoice,
    /// On: sign commits and tags with the user's ssh key, as their git settings say. Needs approval.
    #[serde(default)]
    pub git_signing: SigningChoice,
    /// One more directory to read and write, as an absolute path, for this call. Needs approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

/// Limit for the hosts of one call: the user reads each of them in a question.
const MOST_HOSTS: usize = 20;

/// Hosts that a person can judge: not so many that one is overlooked, none that stands for half the
/// internet.
fn judgeable<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<WantedHost>, D::Error> {
    let hosts = Vec::<WantedHost>::deserialize(from)?;
    if hosts.len() > MOST_HOSTS {
        return Err(D::Error::custom(format!(
            "`hosts` takes at most {MOST_HOSTS} entries, not {}",
            hosts.len()
        )));
    }
    match hosts.iter().find(|WantedHost(host)| host.is_of_a_whole_top()) {
        Some(WantedHost(host)) => Err(D::Error::custom(format!(
            "`{host}` covers a whole top-level domain; name the hosts that the command \
                needs"
        ))),
        None => Ok(hosts),
    }
}

// A host that it asks for. A comment with three strokes would go to the model with every request.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, with = "String")]
pub struct WantedHost(pub HostRule);

impl TryFrom<String> for WantedHost {
    type Error = protocol::hosts::HostRuleError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

impl From<WantedHost> for String {
    fn from(WantedHost(rule): WantedHost) -> Self {
        rule.to_string()
    }
}

/// The network that a call asks for.
#[derive(Debug, Default, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum WantedNetwork {
    #[default]
    Inherit,
    Off,
    On,
}

impl ToolSpec for BashTool {
    type Input = Input;
    const NAME: &'static str = "bash";
    const KIND: ToolKind = ToolKind::Mutation;
    const PROFILE: Profile = Profile::Command;
    const DESCRIPTION: &'static str = "Run a shell command in the project directory. It has no standard input, is confined to the \
        project, and all its processes end with it. The result is standard output, then standard \
        error; below a line `--- agentd ---` come notes of agentd, the last one the exit code. Of a \
        long output you get the beginning, the end, and the name of a file with all of it.";
    const ALIASES: &'static [Alias] = &[
        Alias::plain("shell_exec"),
        Alias::plain("shell-run"),
        Alias::plain("shell"),
        Alias::plain("run_command"),
        Alias::plain("local_shell"),
        Alias::plain("container.exec"),
        Alias::plain("shell_command"),
        Alias::plain("exec_command"),
        Alias::plain("execute_command"),
        Alias::plain("run_shell_command"),
        Alias::plain("run_terminal_cmd"),
        Alias::plain("terminal"),
    ];
    const EXAMPLE: &'static str = r#"{"command":"cargo test 2>&1 | tail -20","timeout_ms":300000}"#;
    const FIELD_ALIASES: FieldAliases = BASH_FIELDS;

    fn facts(input: &Input) -> JudgedFacts {
        let network = match input.network {
            WantedNetwork::Inherit => None,
            WantedNetwork::Off => Some(Network::Off),
            WantedNetwork::On => Some(Network::On),
        };
        JudgedFacts {
            command: Some(input.command.clone()),
            network,
            hosts: input.hosts.iter().map(|WantedHost(rule)| rule.clone()).collect(),
            git: Some(input.git_settings.into()),
            signing: input.git_signing.into(),
            directory: input.directory.clone(),
            runs_in: if input.background { RunsIn::Background } else { RunsIn::Foreground },
            ..JudgedFacts::default()
        }
    }
}
