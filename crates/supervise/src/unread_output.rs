//! The newest output of a command that nobody has read yet, bounded. Pure. Used by the call actor.

use protocol::call::ToolResult;
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

    /// As much of it as a result holds, with this line below it.
    pub(crate) fn page(&mut self, line: String, max: u32) -> ToolResult {
        let (page, rest) = tool_specs::command_output(self.take(), line, max);
        self.put_back(rest);
        page
    }

    /// Puts the rest of a text back that was taken last: nothing may have come since.
    pub(crate) fn put_back(&mut self, rest: String) {
        self.text = rest;
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
    fn a_long_output_is_read_on_by_the_next_calls() {
        let line = |number: usize| format!("line {number} of the build\n");
        let all: String = (0..9_000).map(line).collect();
        let mut output = UnreadOutput::default();
        output.push(&all);
        let mut read = String::new();
        let mut pages = 0;
        while !output.is_empty() {
            let text = output.page("[call 3 runs]".to_owned(), 30_000).text;
            assert!(text.chars().count() <= 30_000 && text.ends_with("\n[call 3 runs]"));
            let (page, words) = text.split_once("--- agentd ---\n").unwrap();
            assert_eq!(words.contains("the next bash_output goes on"), !output.is_empty());
            read.push_str(page);
            pages += 1;
            if pages == 1 {
                // What is printed meanwhile stands behind what waits.
                output.push("the end\n");
            }
        }
        assert!(read == all + "the end\n", "{} bytes were read", read.len());
        assert_eq!(pages, 7);
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
