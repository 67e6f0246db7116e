//! What a call was let pass for: the store finds out before the verdict whether undo covers what it may change, and its
//! cage has to be the one of the verdict.

use super::CallMachine;
use crate::effect::CallEffect;
use crate::facts::{Contained, UndoBy};
use crate::phase::CallPhase;
use protocol::confinement::{Enforced, Tier};
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
    fn unanswered_undo(&self) -> Option<UndoScope> {
        if self.facts.reach != EffectReach::Undoable || self.passed.undo_cover.is_some() {
            return None;
        }
        match self.facts.undo {
            UndoBy::Snapshot => Some(UndoScope::Project),
            UndoBy::Copy | UndoBy::Restore => Some(UndoScope::Paths(self.paths_in_scope())),
            UndoBy::Nothing => None,
        }
    }

    /// Why it gets no `Go` in this cage, which is weaker than the one for which it was let pass, or than its START
    /// says.
    pub(super) fn promised_more_than(&self, enforced: &Enforced) -> Option<&'static str> {
        let tier = enforced.of_command();
        let by_sandbox = matches!(self.verdict, Some(Verdict::Allow(Basis::Sandboxed(_))));
        if by_sandbox && tier.is_some_and(|tier| tier != Tier::A) {
            return Some(
                "the mode sandboxed let it pass for the full sandbox, and this one is weaker",
            );
        }
        (self.facts.contained == Contained::Yes && tier != Some(Tier::A))
            .then_some("the fleet was told that the call runs in tier A, and its sandbox is weaker")
    }
}
