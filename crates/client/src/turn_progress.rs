//! How far the model's answer is, from the events of a turn. Pure; `living_line` adds the times.

use protocol::client::{AnswerPart, ClientEvent, NextTry};

/// Characters of a token, about. The vendor counts them when the answer is complete.
const TOKEN: usize = 4;

/// The answer that is being received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnProgress {
    /// Events so far that show that the model's server is alive.
    signs: u64,
    /// The part that came last.
    part: Option<AnswerPart>,
    /// Characters of this part.
    characters: usize,
    /// Lines of this part.
    lines: usize,
    /// The tool whose arguments come.
    tool: String,
    /// The try that is waited for or running, and why the one before failed. Gone with the first byte.
    retry: Option<(NextTry, String)>,
}

impl TurnProgress {
    pub(crate) fn take(&mut self, event: &ClientEvent) {
        match event {
            ClientEvent::Delta { part, text } => self.received(*part, text),
            ClientEvent::Struck { reason, next } => {
                self.restart();
                self.retry = next.map(|next| (next, reason.clone()));
            }
            ClientEvent::Prompt { .. }
            | ClientEvent::Answer { .. }
            | ClientEvent::CallEnded { .. }
            | ClientEvent::TurnEnded { .. } => self.restart(),
            ClientEvent::Proposed { .. }
            | ClientEvent::Asked { .. }
            | ClientEvent::Decided { .. }
            | ClientEvent::Started { .. }
            | ClientEvent::Output { .. }
            | ClientEvent::InBackground { .. }
            | ClientEvent::Compacted(_)
            | ClientEvent::Queue { .. }
            | ClientEvent::Changed { .. }
            | ClientEvent::Model { .. }
            | ClientEvent::Learned { .. }
            | ClientEvent::Notice { .. }
            | ClientEvent::AnswerRejected { .. }
            | ClientEvent::Degraded { .. } => {}
        }
    }

    fn received(&mut self, part: AnswerPart, text: &str) {
        self.signs += 1;
        let is_new = part == AnswerPart::Tool || self.part != Some(part);
        // The arguments belong to the tool that was named before.
        let goes_on = part == AnswerPart::Arguments && self.part == Some(AnswerPart::Tool);
        if is_new && !goes_on {
            (self.characters, self.lines) = (0, 0);
        }
        self.part = Some(part);
        self.retry = None;
        match part {
            AnswerPart::Tool => text.clone_into(&mut self.tool),
            // In JSON, the end of a line is written as two characters.
            AnswerPart::Arguments => self.lines += text.matches("\\n").count(),
            AnswerPart::Text | AnswerPart::Thinking => self.lines += text.matches('\n').count(),
        }
        if part != AnswerPart::Tool {
            self.characters += text.chars().count();
        }
    }

    /// The next request, or none.
    fn restart(&mut self) {
        let signs = self.signs + 1;
        *self = Self { signs, ..Self::default() };
    }

    /// Grows with each sign of life of the model's server.
    pub(crate) fn signs(&self) -> u64 {
        self.signs
    }

    /// The part that is being received; none before the first byte.
    pub(crate) fn part(&self) -> Option<AnswerPart> {
        self.part
    }

    /// The try that is waited for or running, and why the one before failed.
    pub(crate) fn retry(&self) -> Option<(NextTry, &str)> {
        self.retry.as_ref().map(|(next, reason)| (*next, reason.as_str()))
    }

    /// The tool whose arguments are being received.
    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }

    /// Lines of the present part.
    pub(crate) fn lines(&self) -> usize {
        self.lines
    }

    /// Tokens of the present part, about.
    pub(crate) fn tokens(&self) -> u64 {
        u64::try_from(self.characters / TOKEN).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(progress: &mut TurnProgress, part: AnswerPart, text: &str) {
        progress.take(&ClientEvent::Delta { part, text: text.to_owned() });
    }

    #[test]
    fn each_part_is_counted_by_itself_and_arguments_with_their_tool() {
        let mut progress = TurnProgress::default();
        piece(&mut progress, AnswerPart::Thinking, &"think ".repeat(20));
        assert_eq!((progress.tokens(), progress.lines()), (30, 0));
        piece(&mut progress, AnswerPart::Text, "a\nb\n");
        assert_eq!((progress.tokens(), progress.lines()), (1, 2));
        piece(&mut progress, AnswerPart::Tool, "write");
        piece(&mut progress, AnswerPart::Arguments, r#"{"text":"a\nb"#);
        piece(&mut progress, AnswerPart::Arguments, r"\nc");
        assert_eq!((progress.tool(), progress.lines()), ("write", 2));
        let before = progress.signs();
        progress.take(&ClientEvent::TurnEnded { end: protocol::session::TurnEnd::Done });
        assert_eq!((progress.part(), progress.tool(), progress.tokens()), (None, "", 0));
        assert!(progress.signs() > before);
    }
}
