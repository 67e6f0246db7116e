//! Hooks before the conversation is made smaller: which is due, and what they decide. Part of
//! [`EventHooks`]. Pure.

use super::{EventHooks, HookRun, arguments, of_event, run_of};
use crate::hook_answer::{HookAnswer, HookDecision};
use protocol::context::CompactionCause;
use protocol::hook::HookEvent;
use protocol::session::SessionSetup;
use serde_json::json;

/// The compaction that hooks are run for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compacting {
    pub cause: CompactionCause,
    /// What a person wants the summary to be about.
    pub focus: String,
}

/// The next step of a compaction.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BeforeCompaction {
    /// This run comes first: a tool and its arguments.
    Run(&'static str, String),
    /// All hooks have run.
    Open,
    /// One blocks it, and why. No later hook runs.
    Blocked(String),
}

impl EventHooks {
    /// The next step of a compaction. A hook that failed blocks nothing.
    pub(crate) fn before_compaction(
        &self,
        of: &Compacting,
        setup: &SessionSetup,
    ) -> BeforeCompaction {
        let word = match of.cause {
            CompactionCause::Person => "manual",
            CompactionCause::Full => "auto",
        };
        for hook in of_event(setup, HookEvent::PreCompact, word) {
            let key = run_of(hook, None, None);
            let Some((run, answer)) = self.ended.iter().find(|(run, _)| *run == key) else {
                let about = json!({ "word": word, "message": of.focus });
                let input = arguments(hook, setup, about);
                return BeforeCompaction::Run(HookEvent::PreCompact.tool(), input);
            };
            if let Ok(HookAnswer { reason, .. }) = answer
                && blocks(answer)
            {
                let why = format!("{} blocks it: {reason}", run.label());
                return BeforeCompaction::Blocked(why);
            }
        }
        BeforeCompaction::Open
    }

    /// True if a compaction that a person wants has hooks.
    pub(crate) fn has_compact_hooks(&self, setup: &SessionSetup) -> bool {
        of_event(setup, HookEvent::PreCompact, "manual").next().is_some()
    }

    /// The next compaction runs its hooks again.
    pub(crate) fn compaction_over(&mut self) {
        self.ended.retain(|(run, _)| !is_before_compaction(run));
    }

    /// The journal is replayed. The compaction that a run was for may follow, and does not run it again.
    /// One that a hook blocked is over.
    pub(crate) fn compaction_replayed(&mut self) {
        self.ended.retain(|(run, answer)| !is_before_compaction(run) || !blocks(answer));
    }
}

fn blocks(answer: &Result<HookAnswer, String>) -> bool {
    let verdict = answer.as_ref().map(|answer| answer.verdict);
    matches!(verdict, Ok(HookDecision::Block | HookDecision::Stop))
}

fn is_before_compaction(run: &HookRun) -> bool {
    run.event() == Some(HookEvent::PreCompact)
}
