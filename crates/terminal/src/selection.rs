//! The text that the mouse selects: what is in view of a conversation or of a text over the whole screen. Pure.

use crate::row::{Joint, Row};
use std::ops::Range;

/// A row of text where the last frame drew it.
#[derive(Debug, Clone)]
pub(crate) struct PlacedRow {
    /// Its first column, and its row in the terminal.
    pub(crate) at: (u16, u16),
    /// The columns of its place.
    pub(crate) width: u16,
    pub(crate) row: Row,
}

impl PlacedRow {
    /// True for a cell of its place, or of the margin before it.
    fn has(&self, (x, y): Cell) -> bool {
        self.at.1 == y && x < self.at.0.saturating_add(self.width)
    }
}

/// A cell of the terminal: its column and its row.
type Cell = (u16, u16);

/// Where a button was pressed, and where the mouse is since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Drag {
    from: Cell,
    to: Cell,
}

impl Drag {
    /// The same so many rows further down. None if it would leave the terminal.
    fn moved(self, rows: i32) -> Option<Self> {
        let cell = |(x, y): Cell| Some((x, u16::try_from(i32::from(y) + rows).ok()?));
        Some(Self { from: cell(self.from)?, to: cell(self.to)? })
    }
}

/// What the release of the button ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MouseRelease {
    /// A click: the mouse did not move.
    Click,
    /// This text is selected.
    Selected(String),
    /// Nothing that counts.
    Nothing,
}

/// The rows in view, and what of them is selected. It is about what the person sees: where other text comes to its
/// place, it is over.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    rows: Vec<PlacedRow>,
    drag: Option<Drag>,
    /// The text as it was when the mouse moved last.
    text: String,
}

impl Selection {
    /// The rows of a new frame, from the top. A row that came below moves them all: the selection goes along.
    pub(crate) fn placed(&mut self, rows: Vec<PlacedRow>) {
        let ends = |rows: &[PlacedRow]| Some((rows.first()?.at.1, rows.last()?.at.1));
        let (before, after) = (ends(&self.rows), ends(&rows));
        self.rows = rows;
        let Some(drag) = self.drag.filter(|_| self.is_shown()) else { return };
        let by = |from: u16, to: u16| i32::from(to) - i32::from(from);
        let moved =
            before.zip(after).map(|(before, after)| [by(before.0, after.0), by(before.1, after.1)]);
        let ways = [0].into_iter().chain(moved.into_iter().flatten());
        let moved = ways.filter_map(|rows| drag.moved(rows));
        self.drag = moved.into_iter().find(|drag| self.selected_by(*drag).0 == self.text);
    }

    /// True if something is selected.
    pub(crate) fn is_shown(&self) -> bool {
        self.drag.is_some_and(|drag| drag.from != drag.to)
    }

    /// The button goes down; what was selected is not any more.
    pub(crate) fn press(&mut self, cell: Cell) {
        let is_text = self.rows.iter().any(|placed| placed.has(cell));
        self.drag = is_text.then_some(Drag { from: cell, to: cell });
    }

    /// The mouse moves with the button down.
    pub(crate) fn drag(&mut self, cell: Cell) {
        if let Some(drag) = &mut self.drag {
            drag.to = cell;
            self.text = self.selected().0;
        }
    }

    /// The button goes up.
    pub(crate) fn release(&mut self, cell: Cell) -> MouseRelease {
        let Some(Drag { from, to }) = self.drag else { return MouseRelease::Nothing };
        if from == to && cell == from {
            self.drag = None;
            return MouseRelease::Click;
        }
        self.drag(cell);
        match self.text.trim().is_empty() {
            true => {
                self.drag = None;
                MouseRelease::Nothing
            }
            false => MouseRelease::Selected(self.text.clone()),
        }
    }

    /// Nothing is selected any more.
    pub(crate) fn clear(&mut self) {
        self.drag = None;
    }

    /// The marked columns of each row in the terminal.
    pub(crate) fn marked(&self) -> Vec<(u16, Range<u16>)> {
        self.selected().1
    }

    /// The word of the text at this cell, as far as it has no blank.
    pub(crate) fn word_at(&self, cell: Cell) -> Option<String> {
        let placed = self.rows.iter().find(|placed| placed.has(cell))?;
        let column = usize::from(cell.0.checked_sub(placed.at.0)?);
        let (before, _) = placed.row.part(0..column + 1);
        let (behind, _) = placed.row.part(column + 1..usize::MAX);
        let start = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let end = behind.split(char::is_whitespace).next().unwrap_or_default();
        let word = format!("{start}{end}");
        (!start.is_empty()).then_some(word)
    }

    /// The selected text, and its columns in each row.
    fn selected(&self) -> (String, Vec<(u16, Range<u16>)>) {
        let drag = self.drag.filter(|drag| drag.from != drag.to);
        drag.map(|drag| self.selected_by(drag)).unwrap_or_default()
    }

    fn selected_by(&self, Drag { from, to }: Drag) -> (String, Vec<(u16, Range<u16>)>) {
        let (mut text, mut marked) = (String::new(), Vec::new());
        let ((first_x, first), (last_x, last)) = match (from.1, from.0) <= (to.1, to.0) {
            true => (from, to),
            false => (to, from),
        };
        let inside = |placed: &&PlacedRow| (first..=last).contains(&placed.at.1);
        for (number, PlacedRow { at: (x, y), width: _, row }) in
            self.rows.iter().filter(inside).enumerate()
        {
            let column = |cell: u16| usize::from(cell.saturating_sub(*x));
            let start = if *y == first { column(first_x) } else { 0 };
            let end = if *y == last && last_x < *x {
                0
            } else if *y == last {
                column(last_x) + 1
            } else {
                usize::MAX
            };
            let (part, columns) = row.part(start..end);
            match row.joint {
                _ if number == 0 => {}
                Joint::LineEnd => {
                    text.truncate(text.trim_end_matches(' ').len());
                    text.push('\n');
                }
                Joint::Blanks(count) => text.push_str(&" ".repeat(count)),
            }
            text.push_str(&part);
            let cell = |column: usize| x.saturating_add(u16::try_from(column).unwrap_or(u16::MAX));
            if !columns.is_empty() {
                marked.push((*y, cell(columns.start)..cell(columns.end)));
            }
        }
        (text, marked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Piece, wrap};
    use proptest::prelude::*;
    use ratatui_core::style::Style;

    fn placed(rows: Vec<Row>) -> Vec<PlacedRow> {
        (3..).zip(rows).map(|(y, row)| PlacedRow { at: (2, y), width: 80, row }).collect()
    }

    fn wrapped(text: &str, width: usize) -> Vec<PlacedRow> {
        let line = |line: &str| {
            let under = Piece::new("  ", Style::new());
            let rows = wrap(&[Piece::new(line, Style::new())], width, &under);
            rows.into_iter().map(|row| row.behind("▌ ", Style::new())).collect::<Vec<_>>()
        };
        placed(text.split('\n').flat_map(line).collect())
    }

    fn dragged(rows: Vec<PlacedRow>, from: Cell, to: Cell) -> (Selection, MouseRelease) {
        let mut selection = Selection::default();
        selection.placed(rows);
        selection.press(from);
        selection.drag(to);
        let released = selection.release(to);
        (selection, released)
    }

    #[test]
    fn wrapped_rows_are_joined_and_marks_and_indents_are_no_text() {
        let rows = || wrapped("one two three\nfour", 8);
        // "▌ one two" and "▌   three" and "▌ four", from column 2 on.
        let all = MouseRelease::Selected("one two three\nfour".to_owned());
        for (from, to) in [((0, 3), (70, 5)), ((70, 5), (0, 3))] {
            let (selection, released) = dragged(rows(), from, to);
            assert_eq!(released, all);
            assert_eq!(selection.marked(), [(3, 4..11), (4, 6..11), (5, 4..8)]);
        }
        let (_, released) = dragged(rows(), (8, 3), (7, 4));
        assert_eq!(released, MouseRelease::Selected("two th".to_owned()));
        let (_, released) = dragged(wrapped("abcdefghij", 4), (0, 3), (99, 9));
        assert_eq!(released, MouseRelease::Selected("abcdefghij".to_owned()));
    }

    #[test]
    fn a_click_selects_nothing_and_a_press_beside_the_text_begins_nothing() {
        let (selection, released) = dragged(wrapped("one", 8), (4, 3), (4, 3));
        assert_eq!((released, selection.is_shown()), (MouseRelease::Click, false));
        let (selection, released) = dragged(wrapped("one", 8), (4, 0), (9, 3));
        assert_eq!((released, selection.is_shown()), (MouseRelease::Nothing, false));
        let (selection, released) = dragged(wrapped("one", 8), (90, 3), (4, 3));
        assert_eq!((released, selection.is_shown()), (MouseRelease::Nothing, false));
    }

    #[test]
    fn other_text_in_its_place_ends_it_and_the_same_does_not() {
        let (mut selection, _) = dragged(wrapped("one\ntwo", 8), (0, 3), (99, 4));
        selection.placed(wrapped("one\ntwo", 8));
        assert!(selection.is_shown());
        // A row below them came, and went.
        let up = |by: u16| {
            let moved = |mut placed: PlacedRow| {
                placed.at.1 -= by;
                placed
            };
            wrapped("one\ntwo", 8).into_iter().map(moved).collect::<Vec<_>>()
        };
        selection.placed(up(1));
        assert_eq!(selection.marked(), [(2, 4..7), (3, 4..7)]);
        selection.placed(up(0));
        assert_eq!(selection.marked(), [(3, 4..7), (4, 4..7)]);
        selection.placed(wrapped("two\nthree", 8));
        assert!(!selection.is_shown());
    }

    #[test]
    fn the_word_at_a_cell_ends_at_blanks() {
        let mut selection = Selection::default();
        selection.placed(wrapped("at src/a.rs:12, end", 30));
        assert_eq!(selection.word_at((9, 3)).as_deref(), Some("src/a.rs:12,"));
        assert_eq!(selection.word_at((4, 3)).as_deref(), Some("at"));
        assert_eq!(selection.word_at((6, 3)), None);
        assert_eq!(selection.word_at((60, 3)).as_deref(), Some("end"));
        assert_eq!(selection.word_at((4, 9)), None);
    }

    proptest! {
        #[test]
        fn all_of_a_text_is_selected_as_it_was_wrapped(
            text in "([a-z日é]{1,12} {1,3}){0,9}[a-z日]{1,12}", width in 4..40_usize
        ) {
            let rows = wrapped(&text, width);
            let (_, released) = dragged(rows, (0, 3), (200, 999));
            prop_assert_eq!(released, MouseRelease::Selected(text));
        }

        #[test]
        fn what_is_selected_is_a_part_of_the_text(
            text in "([a-z日é]{1,12} ){0,9}[a-z]{1,12}", width in 4..40_usize,
            from in (0..40_u16, 3..12_u16), to in (0..40_u16, 3..12_u16)
        ) {
            let (_, released) = dragged(wrapped(&text, width), from, to);
            if let MouseRelease::Selected(part) = released {
                prop_assert!(text.contains(part.trim_end()), "{:?} in {:?}", part, text);
            }
        }
    }
}
