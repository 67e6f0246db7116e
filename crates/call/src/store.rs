//! Calls that need the store, which may restart.

use crate::effect::{CallEffect, Cut};
use crate::input::WillRestart;
use crate::machine::CallMachine;
use crate::results::no_store;
use protocol::judgement::ToolKind;

impl CallMachine {
    /// The next store is asked once more. After that the call fails; a mutation may have run.
    pub(crate) fn on_store_lost(
        &mut self,
        cause: String,
        will_restart: WillRestart,
    ) -> Vec<CallEffect> {
        if will_restart == WillRestart::No {
            self.store_failure = Some(cause.clone());
        }
        if self.phase.is_cache_lookup() {
            return self.on_cache_answer(None);
        }
        if !self.phase.is_at_store() && !self.phase.is_fetching() {
            return Vec::new();
        }
        let is_first = !std::mem::replace(&mut self.retried.store, true);
        if will_restart == WillRestart::Yes && !self.cancelled && is_first {
            return Vec::new();
        }
        match self.facts.kind {
            ToolKind::Mutation if self.phase.is_at_store() => {
                self.conclude_cut_short(Cut::AfterGo { cause })
            }
            ToolKind::Mutation | ToolKind::Query => {
                self.conclude(no_store(&self.facts.call.tool, &cause), Cut::No)
            }
        }
    }

    pub(crate) fn on_store_back(&mut self) -> Vec<CallEffect> {
        self.store_failure = None;
        if self.phase.is_at_store() {
            return vec![CallEffect::AskStore(self.facts.call.clone())];
        }
        if self.phase.is_fetching() {
            return vec![CallEffect::FetchRestore(self.facts.call.clone())];
        }
        Vec::new()
    }

    /// A running store answers in a moment, and its change cannot be taken back: the call goes on. A
    /// store that is being restarted is not asked again.
    pub(crate) fn cancel_at_store(&mut self) -> Vec<CallEffect> {
        match self.retried.store {
            true => {
                let cause = "did not answer before a person stopped it".to_owned();
                self.on_store_lost(cause, WillRestart::No)
            }
            false => Vec::new(),
        }
    }
}
