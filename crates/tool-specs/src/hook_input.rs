//! The arguments of the tools `hook` and `guard_hook`, which the conversation calls at an event.

use crate::arguments::facts::{ConfiguredRun, JudgedFacts};
use protocol::confinement::Network;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The arguments.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The event, by its name.
    pub event: String,
    /// The command, for a shell.
    pub command: String,
    /// Why it cannot be run as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// Longest time it may take, in milliseconds.
    pub timeout_ms: u64,
    /// The session.
    pub session: String,
    /// The subject of the event.
    pub about: HookSubject,
}

/// The subject of the event, in our own terms.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct HookSubject {
    /// The number of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// The call's tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The call's arguments as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// One of several files that the call names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The call's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The sentence of a notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The word that a matcher of the event is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<String>,
    /// How often hooks have made this turn go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued: Option<u32>,
}

pub(crate) fn facts(input: &Input) -> JudgedFacts {
    let Input { event, command, broken, timeout_ms, .. } = input;
    let (event, broken, timeout_ms) = (event.clone(), broken.clone(), *timeout_ms);
    let configured =
        ConfiguredRun::EventHook { event, command: command.clone(), broken, timeout_ms };
    JudgedFacts {
        command: Some(command.clone()),
        configured: Some(configured),
        network: Some(Network::Off),
        ..JudgedFacts::default()
    }
}
