//! Lines that were sent, for the arrows. Pure.

use super::buffer::Buffer;
use std::collections::HashSet;

/// Lines remembered.
const LINES: usize = 1000;

/// The lines, and the one that is shown of them.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    /// The newest last.
    lines: Vec<String>,
    /// Index of the shown one, and the text that was typed before.
    recalled: Option<(usize, Buffer)>,
}

impl History {
    /// The newest of these lines, each once.
    pub(super) fn of(lines: Vec<String>) -> Self {
        let mut seen = HashSet::new();
        let newest = lines.iter().rev().filter(|line| seen.insert(line.as_str())).take(LINES);
        let newest: Vec<&String> = newest.collect();
        Self { lines: newest.into_iter().rev().cloned().collect(), recalled: None }
    }

    pub(super) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The newest line. Where it was there before, it is now only here.
    pub(super) fn push(&mut self, text: &str) {
        if text.trim().is_empty() || self.lines.last().is_some_and(|last| last == text) {
            return;
        }
        // The index of a shown line must stay true.
        if self.recalled.is_none() {
            self.lines.retain(|line| line != text);
        }
        self.lines.push(text.to_owned());
        if self.recalled.is_none() {
            let surplus = self.lines.len().saturating_sub(LINES);
            self.lines.drain(..surplus);
        }
    }

    /// The text that was typed before a line was recalled.
    pub(super) fn draft(&self) -> Option<&Buffer> {
        self.recalled.as_ref().map(|(_, draft)| draft)
    }

    /// The next line that is recalled is the newest. Returns the text that was typed before.
    pub(super) fn rest(&mut self) -> Option<Buffer> {
        self.recalled.take().map(|(_, draft)| draft)
    }

    /// The line before the shown one.
    pub(super) fn earlier(&mut self, shown: &Buffer) -> Option<Buffer> {
        let at = self.recalled.as_ref().map_or(self.lines.len(), |(at, _)| *at);
        let before = at.checked_sub(1)?;
        let draft = self.recalled.take().map_or_else(|| shown.clone(), |(_, draft)| draft);
        self.recalled = Some((before, draft));
        self.lines.get(before).map(|line| Buffer::of(line))
    }

    /// The next line; behind the last one, the text that was typed.
    pub(super) fn later(&mut self) -> Option<Buffer> {
        let (at, draft) = self.recalled.take()?;
        match self.lines.get(at + 1) {
            Some(line) => {
                self.recalled = Some((at + 1, draft));
                Some(Buffer::of(line))
            }
            None => Some(draft),
        }
    }
}
