//! Changes that can be taken back. Pure.

use super::buffer::Buffer;

/// Steps that are remembered, and bytes of their texts. The newest one is, of any size.
const STEPS: usize = 200;
const BYTES: usize = 1 << 20;

/// A kind of change. Those of one kind in a row are one step where they belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// This character was typed: a word is a step.
    Typed(char),
    /// A character was erased.
    Erased,
    /// A step of its own.
    Whole,
}

/// The texts before each step, and those that were taken back.
#[derive(Debug, Clone, Default)]
pub(super) struct UndoStack {
    past: Vec<Buffer>,
    future: Vec<Buffer>,
    /// The change that the next one may continue.
    open: Option<Change>,
}

impl UndoStack {
    /// Remembers a text that is about to be changed.
    pub(super) fn note(&mut self, before: &Buffer, change: Change) {
        let continues = match (self.open, change) {
            (Some(Change::Typed(last)), Change::Typed(next)) => {
                !last.is_whitespace() || next.is_whitespace()
            }
            (Some(Change::Erased), Change::Erased) => true,
            _ => false,
        };
        self.open = Some(change);
        self.future.clear();
        if continues {
            return;
        }
        self.past.push(before.clone());
        let surplus = self.past.len().saturating_sub(STEPS);
        self.past.drain(..surplus);
        while self.past.len() > 1 && self.past.iter().map(Buffer::size).sum::<usize>() > BYTES {
            self.past.remove(0);
        }
    }

    /// The next change is a step of its own, as where the cursor has moved.
    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// The text before the last step.
    pub(super) fn undo(&mut self, now: &Buffer) -> Option<Buffer> {
        self.close();
        // A key that found nothing to erase changed nothing.
        let differs = self.past.iter().rposition(|before| before != now)?;
        self.past.truncate(differs + 1);
        self.future.push(now.clone());
        self.past.pop()
    }

    /// The text behind the step that was taken back last.
    pub(super) fn redo(&mut self, now: &Buffer) -> Option<Buffer> {
        self.close();
        let after = self.future.pop()?;
        self.past.push(now.clone());
        Some(after)
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
