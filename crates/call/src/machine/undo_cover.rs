//! What a call was let pass for: the store finds out before the verdict whether undo covers what it may change, and its
//! cage has to be the one of the verdict.

use super::CallMachine;
use crate::effect::CallEffect;
use crate::facts::{Contained, UndoBy};
use crate::phase::CallPhase;
use crate::results::failed;
use protocol::call::{Outcome, ToolResult};
use protocol::client::ClientEvent;
use protocol::confinement::{Enforced, Tier};
use protocol::hidden::visible;
use protocol::judgement::{Basis, Effect, EffectReach, Verdict};
use protocol::store::{UndoCover, UndoScope};

impl CallMachine {
    pub(super) fn on_undo_cover(&mut self, cover: UndoCover) -> Vec<CallEffect> {
        if !self.phase.is_asking_undo() {
            return Vec::new();
        }
        self.passed.undo_cover = Some(cover);
        self.put_to_broker()
    }

    pub(super) fn judge(&mut self) -> Vec<CallEffect> {
        match self.unanswered_undo() {
            Some(_) if self.store_failure.is_some() => {
                let why = "the session's store does not run".to_owned();
                self.passed.undo_cover = Some(UndoCover::Leaves(why));
                self.put_to_broker()
            }
            Some(of) => {
                self.phase = CallPhase::AskingUndo;
                vec![CallEffect::AskUndo(of)]
            }
            None => self.put_to_broker(),
        }
    }

    /// How far its effects reach, by its cage and by what undo covers.
    pub(super) fn reach(&self) -> EffectReach {
        match (&self.facts.reach, &self.passed.undo_cover) {
            (EffectReach::Undoable, Some(UndoCover::Leaves(why))) => {
                EffectReach::Beyond(vec![Effect::NotUndone(why.clone())])
            }
            (EffectReach::Undoable, None) => EffectReach::Unknown,
            (reach, _) => reach.clone(),
        }
    }

    /// The question to the store on which the verdict depends, while it is not answered.
    pub(super) fn unanswered_undo(&self) -> Option<UndoScope> {
        if self.facts.reach != EffectReach::Undoable || self.passed.undo_cover.is_some() {
            return None;
        }
        match self.facts.undo {
            UndoBy::Snapshot => Some(UndoScope::Project),
            UndoBy::Copy | UndoBy::Restore => Some(UndoScope::Paths(self.paths_in_scope())),
            UndoBy::Nothing => None,
        }
    }

    /// True if it was let pass since undo covers it.
    pub fn is_promised_undo(&self) -> bool {
        matches!(self.verdict, Some(Verdict::Allow(Basis::Sandboxed(_))))
    }

    /// Its result where it was let pass for undo, and the copies for that are missing: it gets no `Go`.
    pub(super) fn promised_undo_is_missing(&self) -> Option<ToolResult> {
        let why = self.passed.without_copies.as_ref().filter(|_| self.is_promised_undo())?;
        let text = format!(
            "The call was not run: the mode sandboxed let it pass since undo would cover it, and now it would not: {}. \
             Try it again: a person is asked if that is still so.",
            visible(why)
        );
        let outcome = Outcome::Confined { what: "undo".to_owned() };
        Some(failed(&self.facts.call.tool, outcome, "not_covered", text))
    }

    /// The conversation goes on while the command runs, or the sub-agent works. Its result comes later, once.
    pub(super) fn on_detach(&mut self) -> Vec<CallEffect> {
        if self.phase.is_running() && self.is_promised_undo() {
            return vec![CallEffect::Show(self.stays_in_foreground())];
        }
        let may = self.facts.may_run_in_background()
            && (self.phase.is_running() || self.phase.is_at_sub_agent());
        if !may || self.cancelled || std::mem::replace(&mut self.passed.in_background, true) {
            return Vec::new();
        }
        self.cache_effect(None).into_iter().chain([CallEffect::Detach]).collect()
    }

    /// Why a person's wish to have it in the background changes nothing.
    fn stays_in_foreground(&self) -> ClientEvent {
        let number = self.facts.call.id.number;
        ClientEvent::Notice {
            text: format!(
                "call {number} stays in the foreground: the mode sandboxed let it pass since undo covers it, and undo \
                 does not tell the changes of a command in the background from others. Stop it, or wait"
            ),
        }
    }

    /// Why it gets no `Go` in this cage, which is weaker than the one for which it was let pass, or than its START
    /// says.
    pub(super) fn promised_more_than(&self, enforced: &Enforced) -> Option<&'static str> {
        let tier = enforced.of_command();
        if self.is_promised_undo() && tier.is_some_and(|tier| tier != Tier::A) {
            return Some(
                "the mode sandboxed let it pass for the full sandbox, and this one is weaker",
            );
        }
        (self.facts.contained == Contained::Yes && tier != Some(Tier::A))
            .then_some("the fleet was told that the call runs in tier A, and its sandbox is weaker")
    }
}
