//! The newest output of a command that nobody has read yet, bounded. Pure. Used by the call actor.

use regex::Regex;

/// Most bytes; of more output the newest are kept.
const MOST: usize = 256 * 1024;

/// Text in the order in which it was printed.
#[derive(Debug, Default)]
pub(crate) struct UnreadOutput {
    text: String,
    /// Bytes before it that were dropped.
    dropped: usize,
}

impl UnreadOutput {
    /// Adds text at the end.
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        let surplus = self.text.len().saturating_sub(MOST);
        if surplus > 0 {
            let at = (surplus..=self.text.len()).find(|at| self.text.is_char_boundary(*at));
            let at = at.unwrap_or(self.text.len());
            self.text.drain(..at);
            self.dropped += at;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// True if one of its lines fits.
    pub(crate) fn has_line(&self, pattern: &Regex) -> bool {
        self.text.lines().any(|line| pattern.is_match(line))
    }

    /// All of it, which counts as read from now on.
    pub(crate) fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        match std::mem::take(&mut self.dropped) {
            0 => text,
            dropped => format!("[... {dropped} bytes before this were not kept ...]\n{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn it_is_read_once_and_a_flood_keeps_its_end() {
        let mut output = UnreadOutput::default();
        assert_eq!((output.is_empty(), output.take().as_str()), (true, ""));
        output.push("one\ntw");
        output.push("o\n");
        assert!(!output.is_empty());
        assert_eq!(output.take(), "one\ntwo\n");
        assert_eq!(output.take(), "");
        // Three bytes each: a border falls into a character.
        output.push(&"€".repeat(MOST / 3));
        output.push("end");
        let text = output.take();
        assert!(
            text.starts_with("[... 3 bytes before this were not kept ...]\n€"),
            "{}",
            text.len()
        );
        assert!(text.ends_with("€end") && text.len() < MOST + 60);
        assert_eq!(output.take(), "", "nothing is dropped twice");
    }

    #[test]
    fn a_line_is_found_once_it_is_there_and_not_across_lines() {
        let pattern = Regex::new("listening on \\d+").unwrap();
        let mut output = UnreadOutput::default();
        output.push("listening\non 80\nlistening on");
        assert!(!output.has_line(&pattern));
        output.push(" 8080");
        assert!(output.has_line(&pattern));
        output.take();
        assert!(!output.has_line(&pattern), "read lines do not count");
    }
}
