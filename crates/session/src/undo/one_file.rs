//! `:undo FILE` and `:undo all FILE`: one file gets its content before the newest turn that changed
//! files, or before the session's first change. One call of `undo_restore` does it. The changes stay in
//! the list, since their other files are still to be taken back. For `undo` only. Pure.

use super::{FileChanges, NO_CHANGE, UndoableChanges, Undoing};
use crate::{Outputs, Session, SessionPhase};
use protocol::call::ToolResult;
use protocol::ids::CallId;
use protocol::session::{SessionEvent, TurnEnd};

/// The undo of one file.
#[derive(Debug)]
pub(crate) struct FileUndo {
    /// As the person named it.
    path: String,
    changes: FileChanges,
    /// The file gets its content before this call.
    since: u32,
    running: CallId,
    /// Whether a person stopped it.
    end: TurnEnd,
}

impl FileUndo {
    /// A person stops it; returns the call that is to end.
    pub(super) fn stop(&mut self) -> CallId {
        self.end = TurnEnd::Interrupted;
        self.running.clone()
    }

    /// The report for the person and the model, and how the turn ends.
    fn report(&self, result: &ToolResult) -> (String, TurnEnd) {
        let Self { path, since, .. } = self;
        if !result.is_error {
            return (
                format!("Taken back: {path}, its covered changes since call {since}."),
                self.end.clone(),
            );
        }
        let way_on = match (self.changes, result.code.as_deref()) {
            (FileChanges::OfTurn, Some(NO_CHANGE)) => {
                " `:undo FILE` looks at the newest turn that changed files, `:undo all FILE` at the \
                 whole session."
            }
            (FileChanges::OfTurn | FileChanges::OfSession, _) => "",
        };
        let why = result.summary.trim_end_matches('.');
        (format!("Not undone: {path}: {why}.{way_on}"), TurnEnd::Interrupted)
    }
}

impl UndoableChanges {
    /// The first and the last call of these changes in which the file was not taken back yet.
    fn range(&self, path: &str, changes: FileChanges) -> Option<(u32, u32)> {
        let newest = self.done.last()?.turn;
        let of_them = self.done.iter().filter(|change| match changes {
            FileChanges::OfTurn => change.turn == newest,
            FileChanges::OfSession => true,
        });
        let mut left = of_them.filter(|change| change.restored.iter().all(|it| it != path));
        let first = left.next()?;
        Some((first.call, left.next_back().unwrap_or(first).call))
    }
}

impl Session {
    pub(super) fn undo_file(&mut self, path: String, changes: FileChanges, out: &mut Outputs) {
        let Some((since, id)) = self.changes.range(&path, changes) else {
            let text = format!(
                "Not undone: {path}: no call is known to have changed it here that is not undone \
                 already."
            );
            return self.end_undoing(text, TurnEnd::Interrupted, out);
        };
        let input = serde_json::json!({ "id": id, "path": path, "since": since });
        let running = self.next_call();
        let undo = FileUndo { path, changes, since, running: running.clone(), end: TurnEnd::Done };
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
        self.take_in(&SessionEvent::Result { call, use_id: String::new(), result });
        self.end_undoing(text, end, out);
    }
}
