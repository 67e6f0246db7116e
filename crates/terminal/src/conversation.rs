//! The conversation: its blocks, the visible rows, the chosen block. Pure.

use crate::block::{Block, Entry};
use crate::row::Row;
use crate::theme::Theme;
use client::ScreenItem;
use std::collections::VecDeque;

/// The position of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// The end; new rows push the others up.
    End,
    /// This row of this block is the first.
    At { block: usize, row: usize },
}

/// All blocks.
#[derive(Debug)]
pub(crate) struct Conversation {
    blocks: VecDeque<Block>,
    anchor: Anchor,
    /// The chosen block, while a person goes through them.
    chosen: Option<usize>,
    /// The block and the row that a search found last.
    found: Option<(usize, usize)>,
    /// Which row of the last view that is.
    found_in_view: Option<usize>,
    /// Blocks that came while the end was not in view.
    below: usize,
    /// The end was in view before the rows stood still for a selection.
    stands_still: bool,
    /// Blocks in view, with the place of their first row, from the last frame.
    places: Vec<(u16, usize)>,
}

/// A visible row, and its block; live rows have none.
pub(crate) type ShownRow = (Option<usize>, Row);

impl Default for Conversation {
    fn default() -> Self {
        Self {
            blocks: VecDeque::new(),
            anchor: Anchor::End,
            chosen: None,
            found: None,
            found_in_view: None,
            below: 0,
            stands_still: false,
            places: Vec::new(),
        }
    }
}

impl Conversation {
    pub(crate) fn push(&mut self, item: ScreenItem) {
        let Some(block) = Block::of(item) else { return };
        let rest = match self.blocks.back_mut() {
            Some(last) => last.absorb(block),
            None => Some(block),
        };
        if let Some(block) = rest {
            let is_end = matches!(block.entry, Entry::Totals(_) | Entry::TurnEnd);
            if self.anchor != Anchor::End && !is_end {
                self.below += 1;
            }
            self.blocks.push_back(block);
        }
    }

    /// Puts earlier items before all. The visible rows stay.
    pub(crate) fn push_earlier(&mut self, items: Vec<ScreenItem>) {
        let mut earlier = Self::default();
        items.into_iter().for_each(|item| earlier.push(item));
        let count = earlier.blocks.len();
        for block in earlier.blocks.into_iter().rev() {
            self.blocks.push_front(block);
        }
        if let Anchor::At { block, .. } = &mut self.anchor {
            *block += count;
        }
        self.chosen = self.chosen.map(|at| at + count);
        self.found = self.found.map(|(at, row)| (at + count, row));
    }

    /// All rows are made anew: their styles are others.
    pub(crate) fn forget_rows(&mut self) {
        self.blocks.iter_mut().for_each(Block::forget_rows);
    }

    pub(crate) fn below(&self) -> usize {
        self.below
    }

    /// Which row of the last view a search found last.
    pub(crate) fn found_in_view(&self) -> Option<usize> {
        self.found_in_view.filter(|_| self.found.is_some_and(|(at, _)| Some(at) == self.chosen))
    }

    pub(crate) fn chosen(&self) -> Option<usize> {
        self.chosen
    }

    pub(crate) fn chosen_block(&mut self) -> Option<&mut Block> {
        self.blocks.get_mut(self.chosen?)
    }

    /// All of its text.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.blocks.iter().map(|block| block.text() + "\n").collect()
    }

    /// Prompts, the newest last.
    pub(crate) fn prompts(&self) -> Vec<String> {
        let prompt = |block: &'_ Block| match &block.entry {
            Entry::Prompt(text) => Some(text.clone()),
            Entry::Answer(_)
            | Entry::Thinking(_)
            | Entry::Call(_)
            | Entry::Queries(_)
            | Entry::Note(_)
            | Entry::Error(_)
            | Entry::Decided(..)
            | Entry::Totals(_)
            | Entry::TurnEnd => None,
        };
        self.blocks.iter().filter_map(prompt).collect()
    }

    /// The newest block that is an exchange: the last prompt and what followed.
    pub(crate) fn last_exchange(&mut self, width: usize, look: &Theme) -> Vec<Row> {
        let is_prompt = |block: &Block| matches!(block.entry, Entry::Prompt(_));
        let first = self.blocks.iter().rposition(is_prompt).unwrap_or(0);
        let blocks = self.blocks.iter_mut().skip(first);
        blocks.flat_map(|block| block.rows(width, look).to_vec()).collect()
    }

    /// True if the streamed line belongs to the last block.
    pub(crate) fn ends_with_answer(&self) -> bool {
        self.blocks.back().is_some_and(|block| matches!(block.entry, Entry::Answer(_)))
    }

    /// The rows in view, `live` behind the last block. Fewer than `height` where there are no more.
    pub(crate) fn view(
        &mut self,
        size: (usize, usize),
        streaming: &str,
        live: &[Row],
        look: &Theme,
    ) -> Vec<ShownRow> {
        let (width, height) = size;
        if let Anchor::At { block, row } = self.anchor {
            let rows = self.view_from(block, row, size, live, look);
            if rows.len() >= height {
                return rows;
            }
            // The end came into view.
            self.show_end();
        }
        let mut rows: VecDeque<ShownRow> = live.iter().map(|row| (None, row.clone())).collect();
        let last = self.blocks.len().saturating_sub(1);
        let mut found = None;
        for (at, block) in self.blocks.iter_mut().enumerate().rev() {
            let Some(room) = height.checked_sub(rows.len()).filter(|room| *room > 0) else { break };
            let streaming = if at == last { streaming } else { "" };
            // The place of a row that was found counts from the first one of its block.
            let found_row = self.found.filter(|(block, _)| *block == at).map(|(_, row)| row);
            let most = if found_row.is_some() { usize::MAX } else { room };
            let before = rows.len();
            for row in block.last_rows(width, streaming, look, most).into_iter().rev() {
                rows.push_front((Some(at), row));
            }
            // From the end: more rows come before it.
            if let Some(row) = found_row {
                found = rows.len().checked_sub(row).filter(|behind| *behind > before);
            }
        }
        self.found_in_view = found.and_then(|behind| rows.len().min(height).checked_sub(behind));
        let surplus = rows.len().saturating_sub(height);
        rows.drain(..surplus);
        rows.into()
    }

    fn rows_of(&mut self, at: usize, width: usize, look: &Theme) -> &[Row] {
        self.blocks.get_mut(at).map(|block| block.rows(width, look)).unwrap_or_default()
    }

    fn view_from(
        &mut self,
        block: usize,
        row: usize,
        size: (usize, usize),
        live: &[Row],
        look: &Theme,
    ) -> Vec<ShownRow> {
        let (width, height) = size;
        self.found_in_view = None;
        let mut rows = Vec::new();
        for at in block..self.blocks.len() {
            let skipped = if at == block { row } else { 0 };
            let left = height.saturating_sub(rows.len());
            if let Some((_, row)) = self.found.filter(|(block, _)| *block == at) {
                self.found_in_view = row.checked_sub(skipped).map(|row| rows.len() + row);
            }
            let part = self.rows_of(at, width, look).iter().skip(skipped).take(left);
            rows.extend(part.map(|row| (Some(at), row.clone())));
        }
        rows.extend(live.iter().map(|row| (None, row.clone())));
        rows.truncate(height);
        rows
    }

    pub(crate) fn show_end(&mut self) {
        self.anchor = Anchor::End;
        self.below = 0;
    }

    /// The rows in view stay where they are, whatever comes below.
    pub(crate) fn stand_still(&mut self, size: (usize, usize), look: &Theme) {
        if self.anchor == Anchor::End {
            let (block, row) = self.top_at_end(size, look);
            self.anchor = Anchor::At { block, row };
            self.stands_still = true;
        }
    }

    /// The end is in view again, if it was before the rows stood still.
    pub(crate) fn go_on(&mut self) {
        if std::mem::take(&mut self.stands_still) {
            self.show_end();
        }
    }

    /// Moves the view by rows; up is negative. True if the beginning is in view.
    pub(crate) fn scroll(&mut self, rows: isize, size: (usize, usize), look: &Theme) -> bool {
        let (mut block, mut row) = match self.anchor {
            Anchor::At { block, row } => (block, row),
            Anchor::End if rows > 0 => return false,
            Anchor::End => self.top_at_end(size, look),
        };
        let mut left = rows.unsigned_abs();
        while left > 0 {
            if rows < 0 {
                if row > 0 {
                    let step = row.min(left);
                    (row, left) = (row - step, left - step);
                } else if block > 0 {
                    block -= 1;
                    row = self.rows_of(block, size.0, look).len();
                } else {
                    break;
                }
            } else {
                let count = self.rows_of(block, size.0, look).len();
                let step = left.min(count - row.min(count));
                (row, left) = (row + step, left - step);
                if row >= count {
                    if block + 1 >= self.blocks.len() {
                        self.show_end();
                        return false;
                    }
                    (block, row) = (block + 1, 0);
                    if step == 0 && count > 0 {
                        continue;
                    }
                }
            }
        }
        self.anchor = Anchor::At { block, row };
        block == 0 && row == 0
    }

    /// The first row in view while the end is.
    fn top_at_end(&mut self, size: (usize, usize), look: &Theme) -> (usize, usize) {
        let mut left = size.1;
        for at in (0..self.blocks.len()).rev() {
            let count = self.rows_of(at, size.0, look).len();
            if count >= left {
                return (at, count - left);
            }
            left -= count;
        }
        (0, 0)
    }

    pub(crate) fn show_start(&mut self) {
        self.anchor = Anchor::At { block: 0, row: 0 };
    }

    /// Chooses the next block that shows something in this direction, and brings it into view.
    pub(crate) fn choose(&mut self, step: isize, size: (usize, usize), look: &Theme) {
        let mut at = match self.chosen {
            Some(at) => at.checked_add_signed(step),
            None => self.blocks.len().checked_sub(1),
        };
        while let Some(candidate) = at.filter(|at| *at < self.blocks.len()) {
            // These have no text to open.
            let entry = &self.blocks[candidate].entry;
            let is_line = matches!(entry, Entry::Decided(..) | Entry::Totals(_));
            if !is_line && !self.rows_of(candidate, size.0, look).is_empty() {
                self.chosen = Some(candidate);
                self.show(candidate, size, look);
                return;
            }
            at = candidate.checked_add_signed(if step == 0 { -1 } else { step.signum() });
        }
    }

    pub(crate) fn choose_at(&mut self, block: usize) {
        self.chosen = Some(block).filter(|at| *at < self.blocks.len());
    }

    pub(crate) fn choose_none(&mut self) {
        self.chosen = None;
    }

    /// Brings a block into view.
    fn show(&mut self, at: usize, size: (usize, usize), look: &Theme) {
        let shown = self.view(size, "", &[], look);
        let rows = shown.iter().filter(|(block, _)| *block == Some(at)).count();
        if rows == self.rows_of(at, size.0, look).len() || rows >= size.1 {
            return;
        }
        let first = shown.iter().find_map(|(block, _)| *block);
        match first.is_some_and(|first| at < first) || rows > 0 && first == Some(at) {
            true => self.anchor = Anchor::At { block: at, row: 0 },
            false => {
                let below: usize = (at + 1..self.blocks.len())
                    .map(|at| self.rows_of(at, size.0, look).len())
                    .sum();
                self.show_end();
                self.scroll(-(below as isize), size, look);
            }
        }
    }

    /// Brings the nearest row with these words into view and chooses its block, upwards for a negative step. False if
    /// none has them.
    pub(crate) fn find(
        &mut self,
        words: &str,
        step: isize,
        size: (usize, usize),
        look: &Theme,
    ) -> bool {
        let count = self.blocks.len();
        let Some(last) = count.checked_sub(1) else { return false };
        let start = self.chosen.unwrap_or(last).min(last);
        let before = self.found.take().filter(|(block, _)| Some(*block) == self.chosen);
        let is_beyond = |row: usize| match before {
            Some((_, from)) if step < 0 => row < from,
            Some((_, from)) => row > from,
            None => true,
        };
        // The block of the last place comes first with its rows beyond that, and last with all.
        for distance in 0..=count {
            let moved = step.signum().wrapping_mul(distance as isize);
            let at = (start as isize + moved).rem_euclid(count as isize) as usize;
            let Some(block) = self.blocks.get_mut(at) else { continue };
            let mut rows = block.rows_with(words, size.0, look);
            if distance == 0 {
                rows.retain(|row| is_beyond(*row));
            }
            if let Some(row) = if step < 0 { rows.pop() } else { rows.first().copied() } {
                self.chosen = Some(at);
                self.found = Some((at, row));
                self.show_row((at, row), size, look);
                return true;
            }
        }
        false
    }

    /// Which of the rows with these words was found last, and how many there are.
    pub(crate) fn place_found(
        &mut self,
        words: &str,
        size: (usize, usize),
        look: &Theme,
    ) -> Option<(usize, usize)> {
        let (at, row) = self.found?;
        let (mut before, mut all) = (0, 0);
        for (number, block) in self.blocks.iter_mut().enumerate() {
            let count = match number == at {
                true => {
                    let rows = block.rows_with(words, size.0, look);
                    before = all + rows.iter().filter(|other| **other <= row).count();
                    rows.len()
                }
                false => block.count_of(words, size.0, look),
            };
            all += count;
        }
        Some((before, all))
    }

    /// The next search begins with the chosen block.
    pub(crate) fn search_anew(&mut self) {
        self.found = None;
    }

    /// Brings a row into view, with some before it.
    fn show_row(&mut self, (at, row): (usize, usize), size: (usize, usize), look: &Theme) {
        let top = match self.anchor {
            Anchor::At { block, row } => (block, row),
            Anchor::End => self.top_at_end(size, look),
        };
        let before: usize = (top.0..at).map(|block| self.rows_of(block, size.0, look).len()).sum();
        if (at, row) >= top && before + row < top.1 + size.1 {
            return;
        }
        self.anchor = Anchor::At { block: at, row };
        self.scroll(-((size.1 / 3) as isize), size, look);
    }

    pub(crate) fn placed(&mut self, places: Vec<(u16, usize)>) {
        self.places = places;
    }

    /// The block that the last frame showed in this row of the terminal.
    pub(crate) fn at_place(&self, y: u16) -> Option<usize> {
        self.places.iter().find(|(row, _)| *row == y).map(|(_, block)| *block)
    }
}
