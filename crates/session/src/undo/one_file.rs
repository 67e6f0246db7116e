//! `:undo FILE` and `:undo all FILE`: one file gets its content before the newest turn that changed
//! it, or before the session's first change. One call of `undo_restore` does it; where the store knows
//! of no change in a turn, the turn before it is tried. The changes stay in the list, since their other
//! files are still to be taken back. For `undo` only. Pure.

use super::{NO_CHANGE, UndoableChange, UndoableChanges, Undoing};
use crate::undo_request::FileChanges;
use crate::{Outputs, Session, SessionPhase};
use protocol::call::{CallOrigin, ToolResult};
use protocol::ids::CallId;
use protocol::session::{SessionEvent, TurnEnd};

/// Most turns that are tried: each is a call on record, and a name may be mistyped.
const TURNS: u32 = 20;

/// The undo of one file.
#[derive(Debug)]
pub(crate) struct FileUndo {
    /// As the person named it.
    path: String,
    changes: FileChanges,
    range: FileRange,
    /// Turns tried so far.
    tried: u32,
    running: CallId,
    /// Whether a person stopped it.
    end: TurnEnd,
}

/// The changes of one call of `undo_restore`.
#[derive(Debug, Clone, Copy)]
struct FileRange {
    /// The first and the last call.
    since: u32,
    id: u32,
    /// The turn of the last one.
    turn: u32,
}

impl FileUndo {
    /// A person stops it; returns the call that is to end.
    pub(super) fn stop(&mut self) -> CallId {
        self.end = TurnEnd::Interrupted;
        self.running.clone()
    }

    /// True if an older turn may have changed the file.
    fn goes_on(&self, result: &ToolResult) -> bool {
        result.code.as_deref() == Some(NO_CHANGE)
            && self.changes == FileChanges::OfTurn
            && self.end == TurnEnd::Done
            && self.tried < TURNS
    }

    /// The report for the person and the model, and how the turn ends.
    fn report(&self, result: &ToolResult) -> (String, TurnEnd) {
        let (path, since) = (&self.path, self.range.since);
        if !result.is_error {
            let text = format!("Taken back: {path}, its covered changes since call {since}.");
            return (text, self.end.clone());
        }
        let why = result.summary.trim_end_matches('.');
        (format!("Not undone: {path}: {why}."), TurnEnd::Interrupted)
    }
}

impl UndoableChanges {
    /// The changes in which the file was not taken back yet: of the newest turn below this one, or of
    /// all.
    fn range(&self, path: &str, changes: FileChanges, below: u32) -> Option<FileRange> {
        let is_left = |change: &&UndoableChange| {
            !change.lost && change.turn < below && change.restored.iter().all(|it| it != path)
        };
        let left = || self.done.iter().filter(is_left);
        let newest = left().next_back()?;
        let first = left().find(|change| match changes {
            FileChanges::OfTurn => change.turn == newest.turn,
            FileChanges::OfSession => true,
        })?;
        Some(FileRange { since: first.call, id: newest.call, turn: newest.turn })
    }
}

impl Session {
    pub(super) fn undo_file(&mut self, path: String, changes: FileChanges, out: &mut Outputs) {
        let Some(range) = self.changes.range(&path, changes, u32::MAX) else {
            let text = format!(
                "Not undone: {path}: no call is known to have changed it here that is not undone \
                 already."
            );
            return self.end_undoing(text, TurnEnd::Interrupted, out);
        };
        let (running, end) = (self.next_call(), TurnEnd::Done);
        self.restore_file(FileUndo { path, changes, range, tried: 1, running, end }, out);
    }

    fn restore_file(&mut self, undo: FileUndo, out: &mut Outputs) {
        let FileRange { since, id, .. } = undo.range;
        let input = serde_json::json!({ "id": id, "path": undo.path, "since": since });
        let running = undo.running.clone();
        self.phase = SessionPhase::Undoing(Undoing::File(undo));
        self.run_restore(running, &input, out);
    }

    /// A call ended while one file is taken back.
    pub(super) fn file_undone(&mut self, call: CallId, result: ToolResult, out: &mut Outputs) {
        let SessionPhase::Undoing(Undoing::File(undo)) = &self.phase else { return };
        // Any other is late: it has its result already.
        if undo.running != call {
            return;
        }
        let (text, end) = undo.report(&result);
        let older = undo.goes_on(&result).then_some(undo.range.turn);
        let (path, changes, tried) = (undo.path.clone(), undo.changes, undo.tried + 1);
        self.take_in(&SessionEvent::ended(call, CallOrigin::Undo, result));
        let older = older.and_then(|turn| self.changes.range(&path, changes, turn));
        match older {
            Some(range) => {
                let (running, end) = (self.next_call(), TurnEnd::Done);
                self.restore_file(FileUndo { path, changes, range, tried, running, end }, out);
            }
            None => self.end_undoing(text, end, out),
        }
    }
}
