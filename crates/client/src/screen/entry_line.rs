//! The line of a form, or of a rule: it stays with its question while that is open. Pure.

use super::editor::Editor;
use super::key_press::{Direction, KeyPress};

/// What such a line is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum EntryUse {
    /// The rule of an "always" answer.
    #[default]
    Rule,
    /// The form of a server, which may ask for private data.
    Form,
}

/// A line that is filled in for an answer.
#[derive(Debug, Default)]
pub(super) struct EntryLine {
    pub(super) line: Editor,
    used_for: EntryUse,
    /// The text that it began with.
    offered: String,
    /// A rule that the person typed, in whose place Tab shows another.
    typed: Option<String>,
}

impl EntryLine {
    /// It begins with this text. What was typed before is there to be changed.
    pub(super) fn begin(&mut self, used_for: EntryUse, offered: &str) {
        if self.line.is_empty() || self.used_for != used_for {
            self.line.start_over();
            self.line.insert(offered);
            (self.used_for, self.typed) = (used_for, None);
            offered.clone_into(&mut self.offered);
        }
    }

    /// A key of a form: its rows, and no earlier text.
    // All other keys are the editor's, which lists them.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(super) fn form_key(&mut self, key: KeyPress) {
        match key {
            KeyPress::Up => drop(self.line.move_row(Direction::Start)),
            KeyPress::Down => drop(self.line.move_row(Direction::End)),
            KeyPress::EndOfInput => {}
            key => self.line.key(key),
        }
    }

    /// The next of these rules in the place of the shown one. The last is the one that the person typed.
    pub(super) fn suggest_next(&mut self, rules: &[String]) {
        let shown = self.line.text().into_owned();
        if !shown.is_empty() && !rules.contains(&shown) {
            self.typed = Some(shown.clone());
        }
        let round: Vec<&String> = rules.iter().chain(&self.typed).collect();
        let at = round.iter().position(|rule| **rule == shown);
        let next = at.map_or(0, |at| at + 1) % round.len().max(1);
        let Some(rule) = round.get(next) else { return };
        self.line.set(rule);
        if let Some(offered) = rules.get(next) {
            offered.clone_into(&mut self.offered);
        }
    }

    /// Its question was closed before its text was sent. Returns what the person is told.
    pub(super) fn rescue_into(self, input: &mut Editor) -> String {
        match (self.used_for, self.own_text()) {
            (EntryUse::Rule, Some(rule)) => {
                input.keep_killed(rule);
                "that question is closed; Ctrl-Y inserts the rule that you typed".to_owned()
            }
            // It may have private data.
            (EntryUse::Form, _) | (EntryUse::Rule, None) => {
                "that question is closed; what you typed in its form is gone".to_owned()
            }
        }
    }

    /// The text that is the person's own, if there is any.
    pub(super) fn own_text(&self) -> Option<String> {
        let shown = self.line.text();
        let is_own = *shown != self.offered && !shown.trim().is_empty();
        if is_own { Some(shown.into_owned()) } else { self.typed.clone() }
    }
}
