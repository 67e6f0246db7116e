//! Prompts of this terminal that no answer followed yet: sent, queued, or part of a turn that could not be sent. Pure.

/// Prompts that are not part of a turn yet, and those of a turn without an answer.
#[derive(Debug, Default)]
pub(crate) struct UnstartedPrompts {
    /// Queued by the supervisor behind the running turn.
    pub(super) queued: Vec<String>,
    /// Sent, but not yet confirmed to be on disk.
    pub(super) sent: Vec<String>,
    /// Sent over a connection that was lost before the confirmation.
    pub(super) unsure: Vec<String>,
    /// Of this terminal, on disk, and not in a turn that was answered.
    unanswered: Vec<String>,
    /// Those among them that the running turn began with.
    of_turn: Vec<String>,
    /// Those of failed turns that are in the input line.
    failed: Vec<String>,
}

impl UnstartedPrompts {
    /// The prompt is on disk.
    pub(super) fn confirm(&mut self, text: &str) {
        for said in [&mut self.unsure, &mut self.sent] {
            if let Some(place) = said.iter().position(|said| said == text) {
                self.unanswered.push(said.remove(place));
                return;
            }
        }
    }

    /// The supervisor does not have it any more.
    pub(super) fn taken_back(&mut self, text: &str) {
        self.confirm(text);
        for known in [&mut self.queued, &mut self.unanswered] {
            if let Some(place) = known.iter().rposition(|known| known == text) {
                known.remove(place);
            }
        }
    }

    /// The prompt is part of the running turn.
    pub(super) fn begins(&mut self, text: &str) {
        self.confirm(text);
        if let Some(place) = self.unanswered.iter().position(|known| known == text) {
            self.of_turn.push(self.unanswered.remove(place));
        }
    }

    /// The running turn has an answer, or is over.
    pub(super) fn answered(&mut self) {
        self.of_turn.clear();
    }

    /// The running turn could not be sent. Returns the input line with the prompts of this and of the failed turns
    /// before it, then what was typed. None where the turn had none of this terminal.
    pub(super) fn turn_failed(&mut self, typed: &str) -> Option<String> {
        if self.of_turn.is_empty() {
            return None;
        }
        let before = self.failed.join("\n");
        let rest = typed.strip_prefix(before.as_str()).filter(|_| !before.is_empty());
        if rest.is_none() {
            self.failed.clear();
        }
        let rest = rest.unwrap_or(typed).trim_start_matches('\n').to_owned();
        self.failed.append(&mut self.of_turn);
        let all = self.failed.iter().chain([&rest]).filter(|text| !text.is_empty());
        Some(all.cloned().collect::<Vec<_>>().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(texts: &[&str]) -> UnstartedPrompts {
        let sent = texts.iter().map(|text| (*text).to_owned()).collect();
        UnstartedPrompts { sent, ..UnstartedPrompts::default() }
    }

    #[test]
    fn prompts_of_turns_that_failed_stand_in_their_order_before_what_is_typed() {
        let mut prompts = sent(&["first", "second"]);
        prompts.begins("first");
        // The second one was queued.
        prompts.confirm("second");
        assert_eq!(prompts.turn_failed("typed").as_deref(), Some("first\ntyped"));
        prompts.begins("second");
        let line = prompts.turn_failed("first\ntyped, and more");
        assert_eq!(line.as_deref(), Some("first\nsecond\ntyped, and more"));
    }

    #[test]
    fn a_prompt_of_another_terminal_or_with_an_answer_or_taken_back_does_not_come_back() {
        let mut prompts = sent(&["mine", "mine too"]);
        prompts.begins("another's");
        assert_eq!(prompts.turn_failed(""), None);
        prompts.begins("mine");
        prompts.answered();
        assert_eq!(prompts.turn_failed(""), None);
        prompts.taken_back("mine too");
        prompts.begins("mine too");
        assert_eq!(prompts.turn_failed(""), None);
    }

    #[test]
    fn a_line_that_was_changed_meanwhile_keeps_what_is_in_it() {
        let mut prompts = sent(&["a", "b"]);
        prompts.begins("a");
        assert_eq!(prompts.turn_failed("").as_deref(), Some("a"));
        prompts.begins("b");
        assert_eq!(prompts.turn_failed("other").as_deref(), Some("b\nother"));
    }
}
