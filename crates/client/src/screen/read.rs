//! What views read of a [`Screen`].

use super::editor::Editor;
use super::{AnswerUsage, AttachOptions, ConnectionState, Focus, Screen, TurnState};
use crate::cost::sum;
use crate::screen_items::ScreenItems;
use crate::session_facts::SessionFacts;
use protocol::client::{Prices, SessionRow, WaitingText};
use protocol::content::Usage;
use protocol::ids::SessionId;
use protocol::judgement::Question;
use std::borrow::Cow;

impl AnswerUsage {
    /// One more answer.
    pub(super) fn answered(&mut self, usage: Usage, prices: Option<Prices>) {
        self.all = sum(self.all, usage);
        self.spent.answered(usage, prices);
        self.of_turn.answered(usage, prices);
    }
}

impl Screen {
    /// The session, once one is open.
    #[must_use]
    pub fn session(&self) -> Option<&SessionId> {
        self.facts.as_ref().map(|facts| &facts.session)
    }

    /// What is known about the session, once one is open.
    #[must_use]
    pub fn facts(&self) -> Option<&SessionFacts> {
        self.facts.as_ref()
    }

    /// Calls that run, questions that wait, and the line that is streamed.
    #[must_use]
    pub fn items(&self) -> &ScreenItems {
        &self.items
    }

    /// The question that the keys reach.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        self.list.question(self.items.questions())
    }

    /// Its place among the open ones, counted from 1, and their number.
    #[must_use]
    pub fn question_place(&self) -> Option<(usize, usize)> {
        self.list.place(self.items.questions())
    }

    /// Does a turn run?
    #[must_use]
    pub fn turn(&self) -> TurnState {
        self.turn
    }

    /// Target of the keys.
    #[must_use]
    pub fn focus(&self) -> Focus {
        self.focus
    }

    /// Where this terminal is with the supervisor.
    #[must_use]
    pub fn connection(&self) -> ConnectionState {
        self.connection
    }

    /// Rights and names that do not change.
    #[must_use]
    pub fn options(&self) -> &AttachOptions {
        &self.options
    }

    /// Prompts that wait for the running turn to end.
    #[must_use]
    pub fn queued(&self) -> &[WaitingText] {
        &self.prompts.queued
    }

    /// True if a prompt was sent and is not known to be on disk.
    #[must_use]
    pub fn has_unconfirmed(&self) -> bool {
        !self.prompts.sent.is_empty()
    }

    /// The input line, or that of a form or a rule, with its mark.
    #[must_use]
    pub fn input(&self) -> (&Editor, &'static str) {
        match self.focus {
            Focus::Form => (&self.list.entry.line, "form: "),
            Focus::Rule(_) => (&self.list.entry.line, "rule: "),
            Focus::Line if self.editor.is_normal_mode() => (&self.editor, "N "),
            Focus::Line if self.editor.is_command() => (&self.editor, "! "),
            Focus::Line => (&self.editor, "> "),
        }
    }

    /// The unsent text of the input line.
    #[must_use]
    pub fn draft(&self) -> Cow<'_, str> {
        self.editor.text()
    }

    /// The same, behind the texts that were put away: a draft keeps all of them.
    #[must_use]
    pub fn unsent(&self) -> Cow<'_, str> {
        self.editor.unsent()
    }

    /// Prompts of this terminal, the newest last.
    #[must_use]
    pub fn history(&self) -> &[String] {
        self.editor.history()
    }

    /// One line about the last action.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Tokens and costs.
    #[must_use]
    pub fn tokens(&self) -> &AnswerUsage {
        &self.tokens
    }

    /// All sessions, as the supervisor listed them last.
    #[must_use]
    pub fn sessions(&self) -> &[SessionRow] {
        &self.last_words.sessions
    }

    /// True if the session has events that are older than all received ones.
    #[must_use]
    pub fn has_earlier(&self) -> bool {
        self.seqs.first.is_some_and(|first| first > 1)
    }
}
