//! Killed text, to be yanked. Pure.

use crate::screen::key_press::Direction;

/// Killed texts that are remembered.
const KILLS: usize = 20;

/// The killed texts, the newest last.
#[derive(Debug, Clone, Default)]
pub(super) struct KillRing(Vec<String>);

impl KillRing {
    /// A text of its own.
    pub(super) fn push(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        self.0.push(text);
        let surplus = self.0.len().saturating_sub(KILLS);
        self.0.drain(..surplus);
    }

    /// Text that was killed right behind the newest one, on this side of it.
    pub(super) fn extend(&mut self, text: &str, side: Direction) {
        match (self.0.last_mut(), side) {
            (Some(last), Direction::Start) => last.insert_str(0, text),
            (Some(last), Direction::End) => last.push_str(text),
            (None, _) => self.push(text.to_owned()),
        }
    }

    /// The newest text is 0, the one before it 1. Begins again behind the oldest.
    pub(super) fn get(&self, age: usize) -> Option<&str> {
        let from_end = age.checked_rem(self.0.len())?;
        self.0.iter().rev().nth(from_end).map(String::as_str)
    }
}
