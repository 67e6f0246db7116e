//! The undos of a person: a rewind to the moment before one takes it back too, unless it takes back what
//! that one had undone. Rebuilt from events, for `undo` only. Pure.

use super::{RESTORE, UndoableChange, UndoableChanges};
use protocol::session::CopyBeforeChange;
use std::ops::RangeInclusive;

/// An undo that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PersonUndo {
    /// The call that undid.
    pub(super) call: u32,
    turn: u32,
    of: Undone,
}

/// What an undo has undone.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Undone {
    Change(UndoableChange),
    Undo(Box<PersonUndo>),
    /// One file of the changes of these calls.
    File {
        path: String,
        calls: RangeInclusive<u32>,
    },
}

impl PersonUndo {
    /// The undo as a change of its own.
    pub(super) fn change(&self) -> UndoableChange {
        UndoableChange {
            turn: self.turn,
            call: self.call,
            tool: RESTORE.to_owned(),
            copies: CopyBeforeChange::Kept,
            tried: false,
            lost: false,
            restored: Vec::new(),
        }
    }

    /// True if it lies behind this moment and has undone something before it.
    fn reaches_across(&self, since: u32) -> bool {
        let first = match &self.of {
            Undone::Change(change) => change.call,
            Undone::Undo(undo) => undo.call,
            Undone::File { calls, .. } => *calls.start(),
        };
        self.call >= since && first < since
    }
}

impl UndoableChanges {
    /// The changes behind this moment, a person's undos included, the oldest first. What could not be
    /// taken back before is tried again.
    pub(super) fn since(&self, call: u32) -> Vec<UndoableChange> {
        let changes = self.done.iter().filter(|change| change.call >= call).cloned();
        let undos = self.undos.iter().filter(|undo| undo.reaches_across(call));
        let mut all: Vec<_> = changes.chain(undos.map(PersonUndo::change)).collect();
        all.sort_by_key(|change| change.call);
        all
    }

    /// A person's call has taken back this call.
    pub(super) fn taken_back(&mut self, by: u32, back: u32) {
        let of = if let Some(at) = self.done.iter().position(|change| change.call == back) {
            Undone::Change(self.done.remove(at))
        } else if let Some(at) = self.undos.iter().position(|undo| undo.call == back) {
            let undo = self.undos.remove(at);
            self.hold_again(&undo.of);
            Undone::Undo(Box::new(undo))
        } else {
            return;
        };
        self.undos.push(PersonUndo { call: by, turn: self.turn, of });
    }

    /// A person's call has put one file back as it was before these calls: taking them back leaves it
    /// alone.
    pub(super) fn restored_file(&mut self, by: u32, path: String, calls: RangeInclusive<u32>) {
        let of = Undone::File { path, calls };
        self.hold_no_more(&of);
        self.undos.push(PersonUndo { call: by, turn: self.turn, of });
    }

    /// What was undone is there again.
    fn hold_again(&mut self, undone: &Undone) {
        match undone {
            Undone::Change(change) => {
                let at = self.done.partition_point(|other| other.call < change.call);
                self.done.insert(at, change.clone());
            }
            Undone::Undo(undo) => {
                self.undos.push((**undo).clone());
                self.hold_no_more(&undo.of);
            }
            Undone::File { path, calls } => {
                for change in self.done.iter_mut().filter(|it| calls.contains(&it.call)) {
                    if let Some(at) = change.restored.iter().position(|restored| restored == path) {
                        change.restored.remove(at);
                    }
                }
            }
        }
    }

    /// What was there is undone.
    fn hold_no_more(&mut self, undone: &Undone) {
        match undone {
            Undone::Change(change) => self.done.retain(|other| other.call != change.call),
            Undone::Undo(undo) => {
                self.undos.retain(|other| other.call != undo.call);
                self.hold_again(&undo.of);
            }
            Undone::File { path, calls } => {
                let of_them = self.done.iter_mut().filter(|change| calls.contains(&change.call));
                of_them.for_each(|change| change.restored.push(path.clone()));
            }
        }
    }
}
