//! The answer of a hook, as the tools `hook` and `guard_hook` report it, and its meaning by the table of events:
//! for the guarded step, for the turn, for the model and for the person. Pure.

use super::run::HookRun;
use protocol::call::{Outcome, ToolResult};
use protocol::hook::{BlockEffect, HookEvent};
use serde::Deserialize;

/// The decision of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HookDecision {
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
pub(super) struct HookAnswer {
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

impl HookAnswer {
    pub(super) fn blocks(&self) -> bool {
        matches!(self.verdict, HookDecision::Block | HookDecision::Stop)
    }
}

/// A run that ended.
#[derive(Debug)]
pub(super) struct EndedRun {
    pub run: HookRun,
    /// The error says why there is none.
    pub answer: Result<HookAnswer, String>,
}

impl EndedRun {
    pub(super) fn new(run: HookRun, result: &ToolResult) -> Self {
        Self { run, answer: read(result) }
    }

    pub(super) fn is_of(&self, event: HookEvent) -> bool {
        self.run.event() == Some(event)
    }

    pub(super) fn blocks(&self) -> bool {
        self.answer.as_ref().is_ok_and(HookAnswer::blocks)
    }

    /// True if it makes a turn go on that would have ended.
    pub(super) fn makes_go_on(&self) -> bool {
        let verdict = self.answer.as_ref().map(|answer| answer.verdict);
        self.run.block() == Some(BlockEffect::TurnGoesOn) && verdict == Ok(HookDecision::Block)
    }

    /// Why the guarded call or compaction does not happen. `from` names the hook and its file.
    pub(super) fn refusal(&self, from: &str) -> Option<String> {
        match (self.run.block()?, &self.answer) {
            (BlockEffect::CallRefused, Err(why)) => Some(format!(
                "{from} failed: {why}. A hook that decides about a call and fails lets it not run"
            )),
            (BlockEffect::CallRefused, Ok(answer)) if answer.blocks() => {
                Some(format!("{from}: {}", answer.reason))
            }
            (BlockEffect::CompactionRefused, Ok(answer)) if answer.blocks() => {
                Some(format!("{} blocks it: {}", self.run.label(), answer.reason))
            }
            // A refused prompt ends the turn, and of a denied question the supervisor is told.
            (
                BlockEffect::CallRefused
                | BlockEffect::PromptRefused
                | BlockEffect::QuestionDenied
                | BlockEffect::ModelLearns
                | BlockEffect::TurnGoesOn
                | BlockEffect::CompactionRefused
                | BlockEffect::PersonLearns,
                _,
            ) => None,
        }
    }

    /// Why it ends the turn.
    pub(super) fn end_of_turn(&self) -> Option<String> {
        let label = self.run.label();
        let block = self.run.block();
        let refuses = block == Some(BlockEffect::PromptRefused);
        match &self.answer {
            // The turn ends by itself.
            _ if block == Some(BlockEffect::TurnGoesOn) || self.ends_nothing() => None,
            Ok(HookAnswer { verdict: HookDecision::Stop, reason, .. }) => {
                Some(format!("{label}: {reason}"))
            }
            Ok(HookAnswer { verdict: HookDecision::Block, reason, .. }) if refuses => {
                Some(format!("{label} refuses the prompt: {reason}"))
            }
            Ok(_) => None,
            Err(why) if refuses => Some(format!(
                "{label} failed: {why}. A hook that decides about a prompt and fails lets it not \
                 be sent"
            )),
            Err(_) => None,
        }
    }

    /// The part of it that the model is shown.
    pub(super) fn text(&self) -> Option<String> {
        let answer = self.answer.as_ref().ok()?;
        if self.run.event().is_some_and(HookEvent::is_aside) || self.ends_nothing() {
            return None;
        }
        // Why a call did not run is its result.
        let is_for_model =
            matches!(self.run.block(), Some(BlockEffect::ModelLearns | BlockEffect::TurnGoesOn));
        let reason = if self.blocks() && is_for_model { answer.reason.as_str() } else { "" };
        let parts = [reason, answer.context.as_str()].into_iter().filter(|part| !part.is_empty());
        let parts: Vec<&str> = parts.collect();
        (!parts.is_empty()).then(|| format!("{} says: {}", self.run.label(), parts.join("\n")))
    }

    /// The part of it that the person is shown.
    pub(super) fn notice(&self) -> Option<String> {
        let label = self.run.label();
        match &self.answer {
            Ok(answer) if !answer.message.is_empty() => {
                Some(format!("{label} says: {}", answer.message))
            }
            Ok(answer) if !answer.failed.is_empty() => {
                Some(format!("{label} failed: {}", answer.failed))
            }
            // The model does not learn of these events.
            Ok(answer) if !answer.reason.is_empty() => {
                let is_for_person = self.run.block() == Some(BlockEffect::PersonLearns);
                is_for_person.then(|| format!("{label} says: {}", answer.reason))
            }
            Ok(_) => None,
            Err(why) => Some(format!("{label} failed: {why}")),
        }
    }

    /// True if hooks of the event only learn of it, as far as the turn goes.
    fn ends_nothing(&self) -> bool {
        matches!(self.run.block(), Some(BlockEffect::PersonLearns | BlockEffect::CompactionRefused))
    }
}

/// The answer of a hook, or why it gave none.
fn read(result: &ToolResult) -> Result<HookAnswer, String> {
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
