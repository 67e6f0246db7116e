//! The end of a hook's run, as the tools `hook` and `guard_hook` report it.

use protocol::call::{Outcome, ToolResult};
use serde::Deserialize;

/// The decision of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HookDecision {
    /// None: the rules decide.
    Pass,
    /// A person has to approve it.
    Ask,
    /// It does not happen; after an event: the model learns the reason.
    Block,
    /// It does not happen, and the turn ends.
    Stop,
}

/// The answer of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookAnswer {
    pub verdict: HookDecision,
    #[serde(default)]
    pub reason: String,
    /// Other arguments for the call, under Claude Code's names.
    #[serde(default)]
    pub updated_input: Option<String>,
    /// For the model.
    #[serde(default)]
    pub context: String,
    /// For the person.
    #[serde(default)]
    pub message: String,
    /// How it failed without blocking anything.
    #[serde(default)]
    pub failed: String,
}

/// The answer of a hook, or why it gave none.
pub(crate) fn read(result: &ToolResult) -> Result<HookAnswer, String> {
    match result.outcome {
        Outcome::Done | Outcome::Exited { .. } => serde_json::from_str(&result.text)
            .map_err(|error| format!("its answer cannot be read: {error}")),
        Outcome::TimedOut => Err("it did not end in time".to_owned()),
        Outcome::Interrupted | Outcome::NeverStarted => Err("it was interrupted".to_owned()),
        Outcome::Failed
        | Outcome::Signalled { .. }
        | Outcome::Denied
        | Outcome::Refused { .. }
        | Outcome::Confined { .. }
        | Outcome::OutOfMemory
        | Outcome::Crashed
        | Outcome::Invalid => {
            let summary = result.summary.trim();
            let why = ["guard_hook: ", "hook: "].iter().find_map(|name| summary.strip_prefix(name));
            Err(why.unwrap_or(summary).to_owned())
        }
    }
}
