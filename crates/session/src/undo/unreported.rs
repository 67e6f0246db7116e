//! The result of an undo whose turn ended before it was reported; without the report, the model
//! would continue with outdated files. Rebuilt from events, for `undo` only. Pure.

use super::may_have_changed;
use crate::undo_request::UndoRequest;
use protocol::call::ToolResult;

/// An undo that has not been reported.
#[derive(Debug, Default)]
pub(super) struct UnreportedUndo {
    /// Changes whose revert call has no result.
    open: Vec<String>,
    back: Vec<String>,
    /// Changes that may or may not be reverted, with the reason.
    perhaps: Vec<String>,
    /// Changes that are not reverted, with the reason.
    not: Vec<String>,
    /// The call of a rewind, which goes on by itself alone: `:undo` goes by turns.
    since: Option<u32>,
}

impl UnreportedUndo {
    /// The undo that was asked for by these words.
    pub(super) fn of(request: &UndoRequest) -> Self {
        let since = match request {
            UndoRequest::Since(since) => *since,
            UndoRequest::Turn | UndoRequest::File { .. } => None,
        };
        Self { since, ..Self::default() }
    }

    /// A call is to take this back.
    pub(super) fn began(&mut self, what: String) {
        self.open.push(what);
    }

    /// That call has ended.
    pub(super) fn ended(&mut self, what: String, result: &ToolResult) {
        self.open.retain(|open| *open != what);
        let why = || format!("{what}: {}", result.summary.trim_end_matches('.'));
        match result.is_error {
            false => self.back.push(what),
            true if may_have_changed(result) => self.perhaps.push(why()),
            true => self.not.push(why()),
        }
    }

    /// Nothing could be reverted, so there is nothing to report.
    pub(super) fn was_none(&mut self, what: &str) {
        self.open.retain(|open| open != what);
    }

    /// The report for the person and the model.
    pub(super) fn words(&self) -> String {
        let mut said = vec!["The undoing was cut short.".to_owned()];
        if !self.back.is_empty() {
            said.push(format!("Taken back: {}.", self.back.join(", ")));
        }
        let perhaps = self.perhaps.iter().map(|what| format!("Possibly not undone: {what}."));
        let not = self.not.iter().map(|what| format!("Not undone: {what}."));
        let open = self.open.iter().map(|what| format!("Not undone: {what}: never started."));
        said.extend(perhaps.chain(not).chain(open));
        said.push(match self.since {
            Some(call) => format!("`:rewind files {call}` again goes on with the rest."),
            None => "The next `:undo` goes on with the rest.".to_owned(),
        });
        said.join("\n")
    }
}
