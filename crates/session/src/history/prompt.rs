//! A person's prompt in the messages: at once, or when the commands of its text have ended. Part of
//! [`History`].

use super::{History, TurnMark};
use crate::pending_prompt::PendingPrompt;
use protocol::client::ModelFacts;
use protocol::session::ExpandedPrompt;

impl History {
    pub(super) fn prompt(&mut self, text: &str, expanded: Option<&ExpandedPrompt>) {
        self.say_pending();
        self.close();
        self.budget.begin_turn();
        let news = self.take_news();
        self.user_says(&news);
        let is_typed = expanded.is_some_and(|expanded| expanded.typed_by.is_some());
        self.turn = Some(TurnMark { is_typed, ..self.mark() });
        self.answer_schema = expanded.and_then(|expanded| expanded.answer_schema.clone());
        match expanded {
            Some(expanded) => {
                self.pending = Some(PendingPrompt::new(expanded));
                self.say_pending_if_complete();
            }
            None => self.user_says(text),
        }
    }

    /// Words that join the turn, behind the results of its round.
    pub(super) fn joined(&mut self, text: &str) {
        self.say_pending();
        self.close();
        self.user_says(text);
    }

    /// The place of the next block.
    fn mark(&self) -> TurnMark {
        TurnMark {
            message: self.messages.len().saturating_sub(1),
            block: self.messages.last().map_or(0, |last| last.blocks.len()),
            is_typed: self.turn_is_typed(),
        }
    }

    /// The schema of the running turn's answer, for a model that its server holds to it.
    pub(crate) fn answer_schema(&self, facts: ModelFacts) -> Option<String> {
        self.answer_schema.clone().filter(|_| facts.json_schema == Some(true))
    }

    /// True if the turn is that of a person's own command: the model is not asked in it.
    pub(crate) fn turn_is_typed(&self) -> bool {
        self.turn.is_some_and(|turn| turn.is_typed)
    }

    /// The prompt whose commands have not all ended.
    pub(crate) fn pending_prompt(&self) -> Option<&PendingPrompt> {
        self.pending.as_ref()
    }

    pub(super) fn say_pending_if_complete(&mut self) {
        if self.pending.as_ref().is_some_and(PendingPrompt::is_complete) {
            self.say_pending();
        }
    }

    /// Says the text of the prompt with what its commands printed so far.
    pub(super) fn say_pending(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        // Messages may have been left out meanwhile.
        self.turn = self.turn.map(|_| self.mark());
        self.user_says(&pending.text());
        pending.files().into_iter().for_each(|block| self.user_shows(block));
    }
}
