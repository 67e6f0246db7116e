//! `:undo FILE` and `:undo all FILE`: one file gets its content before the newest turn that changed
//! it, or before the session's first change. One call of `undo_restore` does it; where the store knows
//! of no change in a turn, the turn before it is tried. The changes stay in the list, since their other
//! files are still to be taken back. For `undo` only. Pure.

use super::{NO_CHANGE, UndoStep, UndoableChange, UndoableChanges};
use crate::undo_request::FileChanges;
use protocol::call::ToolResult;
use protocol::session::TurnEnd;

/// Most turns that are tried: each is a call on record, and a name may be mistyped.
const TURNS: u32 = 20;

/// The undo of one file.
#[derive(Debug)]
pub(super) struct FileUndo {
    /// As the person named it.
    path: String,
    changes: FileChanges,
    range: FileRange,
    /// Turns tried so far.
    tried: u32,
    /// A person stopped it, or not.
    end: TurnEnd,
    /// The end of the newest call.
    ended: Option<EndedRestore>,
}

/// The end of one call.
#[derive(Debug)]
struct EndedRestore {
    text: String,
    end: TurnEnd,
    /// The turn before which another may have changed the file.
    older_than: Option<u32>,
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
    /// The undo of this file, or the report that no change of it is known.
    pub(super) fn new(
        path: String,
        changes: FileChanges,
        of: &UndoableChanges,
    ) -> Result<Self, String> {
        match of.range(&path, changes, u32::MAX) {
            Some(range) => {
                let (tried, end, ended) = (0, TurnEnd::Done, None);
                Ok(Self { path, changes, range, tried, end, ended })
            }
            None => Err(format!(
                "Not undone: {path}: no call is known to have changed it here that is not undone \
                 already."
            )),
        }
    }

    /// A person stops it.
    pub(super) fn stop(&mut self) {
        self.end = TurnEnd::Interrupted;
    }

    /// The next range of changes that is taken back.
    pub(super) fn next(&mut self, changes: &UndoableChanges) -> UndoStep {
        if let Some(EndedRestore { text, end, older_than }) = self.ended.take() {
            let older = older_than.and_then(|turn| changes.range(&self.path, self.changes, turn));
            match older {
                Some(range) => self.range = range,
                None => return UndoStep::Over { text, end },
            }
        }
        self.tried += 1;
        let FileRange { since, id, .. } = self.range;
        let input = serde_json::json!({ "id": id, "path": self.path, "since": since });
        UndoStep::Restore(input.to_string())
    }

    /// The running call ended.
    pub(super) fn ended(&mut self, result: &ToolResult) {
        let (text, end) = self.report(result);
        let older_than = self.goes_on(result).then_some(self.range.turn);
        self.ended = Some(EndedRestore { text, end, older_than });
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
