//! What an undoing had come to whose turn ended with nothing said of it: a model that was not told would
//! go on by files as they were. Rebuilt from what happened, for `undo` only. Pure.

use super::may_have_changed;
use protocol::call::ToolResult;

/// An undoing of which nothing was said yet.
#[derive(Debug, Default)]
pub(super) struct Unsaid {
    /// What a call that has no result was to take back.
    open: Vec<String>,
    back: Vec<String>,
    /// What may be back and may not, and why that is not known.
    perhaps: Vec<String>,
    /// What is not back, and why.
    not: Vec<String>,
}

impl Unsaid {
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

    /// There was nothing to be taken back: of that nothing is said.
    pub(super) fn was_none(&mut self, what: &str) {
        self.open.retain(|open| open != what);
    }

    /// What became of it, for the person and the model.
    pub(super) fn words(&self) -> String {
        let mut said = vec!["The undoing was cut short.".to_owned()];
        if !self.back.is_empty() {
            said.push(format!("Taken back: {}.", self.back.join(", ")));
        }
        let perhaps =
            self.perhaps.iter().map(|what| format!("Not known to be taken back: {what}."));
        let not = self.not.iter().map(|what| format!("Not taken back: {what}."));
        let open = self.open.iter().map(|what| format!("Not taken back: {what}: never started."));
        said.extend(perhaps.chain(not).chain(open));
        said.push("The next `:undo` goes on with the rest.".to_owned());
        said.join("\n")
    }
}
