//! A text with a cursor, and its rows in a terminal. A long paste is one character of it. Pure.

use super::Layout;
use crate::screen::key_press::{Direction, Distance};
use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use unicode_width::UnicodeWidthChar;

/// Lines and bytes of a paste that is shown as it is.
const PASTED_LINES: usize = 10;
const PASTED_BYTES: usize = 2000;

/// Stand for the folded pastes. Unicode leaves these to programs; no text has them.
const FOLDS: RangeInclusive<char> = '\u{fdd0}'..='\u{fdef}';

/// Text with a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Buffer {
    /// With a character of [`FOLDS`] for each folded paste.
    text: String,
    /// In bytes, at a character's beginning.
    cursor: usize,
    folded: Vec<Arc<str>>,
}

/// A place of the cursor, and where it is shown.
#[derive(Debug, Clone, Copy)]
struct Spot {
    at: usize,
    row: usize,
    column: usize,
}

impl Buffer {
    /// This text, with the cursor at its end. A long one is folded: its rows would be made for each frame.
    pub(super) fn of(text: &str) -> Self {
        let mut buffer = Self::default();
        buffer.paste(text);
        buffer
    }

    /// The whole text, pastes too.
    pub(super) fn text(&self) -> Cow<'_, str> {
        self.unfolded(&self.text)
    }

    /// Bytes that it takes beside pastes, which its copies share.
    pub(super) fn size(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// The text with one character in the place of each folded paste.
    pub(super) fn shown(&self) -> &str {
        &self.text
    }

    /// Puts the cursor at the beginning of this character, or at the end.
    pub(super) fn go_to(&mut self, at: usize) {
        let at = at.min(self.text.len());
        if self.text.is_char_boundary(at) {
            self.cursor = at;
        }
    }

    /// A part of the shown text, pastes in full.
    pub(super) fn between(&self, range: &Range<usize>) -> String {
        self.unfolded(&self.text[range.clone()]).into_owned()
    }

    pub(super) fn before_cursor(&self) -> Cow<'_, str> {
        self.unfolded(&self.text[..self.cursor])
    }

    /// True if this character stands before the cursor, and not at the end of a folded paste.
    pub(super) fn is_behind(&self, c: char) -> bool {
        self.text[..self.cursor].ends_with(c)
    }

    /// Puts text at the cursor. Line ends of any kind become one; other control codes are left out.
    pub(super) fn insert(&mut self, text: &str) {
        let text = plain(text);
        self.put(&text);
    }

    /// The same, with a long text folded.
    pub(super) fn paste(&mut self, text: &str) {
        let text = plain(text);
        let is_long = text.len() > PASTED_BYTES || text.lines().nth(PASTED_LINES).is_some();
        match FOLDS.clone().nth(self.folded.len()).filter(|_| is_long) {
            Some(fold) => {
                self.folded.push(Arc::from(text));
                self.put(fold.encode_utf8(&mut [0; 4]));
            }
            None => self.put(&text),
        }
    }

    fn put(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn folded(&self, c: char) -> Option<&str> {
        let number = FOLDS.contains(&c).then(|| u32::from(c) - u32::from(*FOLDS.start()))?;
        self.folded.get(usize::try_from(number).ok()?).map(|text| &**text)
    }

    /// A part of the text, pastes in full.
    fn unfolded<'a>(&self, part: &'a str) -> Cow<'a, str> {
        if self.folded.is_empty() {
            return Cow::Borrowed(part);
        }
        let mut whole = String::new();
        for c in part.chars() {
            match self.folded(c) {
                Some(text) => whole.push_str(text),
                None => whole.push(c),
            }
        }
        Cow::Owned(whole)
    }

    pub(super) fn move_cursor(&mut self, reach: Distance, toward: Direction) {
        self.cursor = self.target(reach, toward);
    }

    /// Takes out the text between the cursor and that position. At the end of a line, the rest of it is the line's end.
    pub(super) fn remove(&mut self, reach: Distance, toward: Direction) -> String {
        let there = match (reach, self.target(reach, toward)) {
            (Distance::Line, there) if there == self.cursor => {
                self.target(Distance::Character, toward)
            }
            (_, there) => there,
        };
        self.remove_to(there)
    }

    /// Takes out the text between the cursor and this place.
    pub(super) fn remove_to(&mut self, there: usize) -> String {
        let (from, to) = (self.cursor.min(there), self.cursor.max(there));
        self.cursor = from;
        let removed = self.unfolded(&self.text[from..to]).into_owned();
        self.text.replace_range(from..to, "");
        removed
    }

    fn target(&self, reach: Distance, toward: Direction) -> usize {
        let (before, behind) = self.text.split_at(self.cursor);
        match (reach, toward) {
            (Distance::All, Direction::Start) => 0,
            (Distance::All, Direction::End) => self.text.len(),
            (Distance::Line, Direction::Start) => before.rfind('\n').map_or(0, |end| end + 1),
            (Distance::Line, Direction::End) => {
                self.cursor + behind.find('\n').unwrap_or(behind.len())
            }
            (Distance::Character, Direction::Start) => {
                // A mark of no width belongs to the character before it.
                let mut chars = before.char_indices().rev();
                chars.find(|(_, c)| columns(*c) > 0).map_or(0, |(at, _)| at)
            }
            (Distance::Character, Direction::End) => {
                let mut chars = behind.char_indices().skip(1);
                chars
                    .find(|(_, c)| columns(*c) > 0)
                    .map_or(self.text.len(), |(at, _)| self.cursor + at)
            }
            (Distance::Word, Direction::Start) => {
                let word = before.trim_end_matches(char::is_whitespace);
                word.rfind(char::is_whitespace)
                    .map_or(0, |at| at + word[at..].chars().next().map_or(1, char::len_utf8))
            }
            (Distance::Word, Direction::End) => {
                let word = behind.trim_start_matches(char::is_whitespace);
                let skipped = behind.len() - word.len();
                let length = word.find(char::is_whitespace).unwrap_or(word.len());
                self.cursor + skipped + length
            }
        }
    }

    /// Moves the cursor to the next row that way, to `goal` or as near before it as the row is long. Where the label of a
    /// folded paste is there, it goes behind it, or on beyond the row. Returns the column to go on with; none where
    /// there is no such row.
    pub(super) fn move_row(
        &mut self,
        toward: Direction,
        goal: Option<usize>,
        room: usize,
    ) -> Option<usize> {
        let (rows, spots) = self.rows(room);
        let here = spots.iter().find(|spot| spot.at == self.cursor)?;
        let row = match toward {
            Direction::Start => here.row.checked_sub(1)?,
            Direction::End => Some(here.row + 1).filter(|row| *row < rows.len())?,
        };
        let goal = goal.unwrap_or(here.column);
        let of_row = || spots.iter().filter(|spot| spot.row == row);
        let near = of_row().take_while(|spot| spot.column <= goal).last();
        let beyond = || match toward {
            Direction::Start => spots.iter().rev().find(|spot| spot.row < row),
            Direction::End => spots.iter().find(|spot| spot.row > row),
        };
        self.cursor = near.or_else(|| of_row().next()).or_else(beyond)?.at;
        Some(goal)
    }

    /// The text in rows of `width` columns, the first `indent` of each left free.
    pub(super) fn layout(&self, indent: usize, width: usize) -> Layout {
        let (rows, spots) = self.rows(width.saturating_sub(indent));
        let cursor = spots.iter().find(|spot| spot.at == self.cursor);
        let cursor = cursor.map_or((0, 0), |spot| (spot.row, spot.column));
        Layout { rows, cursor: (cursor.0, indent + cursor.1) }
    }

    /// Its rows of so many columns, and each place that the cursor can have.
    fn rows(&self, room: usize) -> (Vec<String>, Vec<Spot>) {
        let room = room.max(2);
        let (mut rows, mut row, mut column) = (Vec::new(), String::new(), 0);
        let mut spots = Vec::new();
        for (at, c) in self.text.char_indices() {
            let label = self.folded(c).map(label);
            let own = [c].into_iter().filter(|_| label.is_none());
            let shown = label.iter().flat_map(|label| label.chars()).chain(own);
            for (nth, c) in shown.enumerate() {
                let wide = columns(c);
                // The last column stays free for the cursor.
                if c != '\n' && column + wide > room - 1 {
                    rows.push(std::mem::take(&mut row));
                    column = 0;
                }
                if nth == 0 {
                    spots.push(Spot { at, row: rows.len(), column });
                }
                if c == '\n' {
                    rows.push(std::mem::take(&mut row));
                    column = 0;
                    continue;
                }
                row.push(if c == '\t' { '⇥' } else { c });
                column += wide;
            }
        }
        spots.push(Spot { at: self.text.len(), row: rows.len(), column });
        rows.push(row);
        (rows, spots)
    }
}

/// Text as a buffer keeps it.
fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let is_text = |c: &char| matches!(c, '\n' | '\t') || !c.is_control() && !FOLDS.contains(c);
    text.chars().filter(is_text).collect()
}

/// A folded paste as it is shown.
fn label(text: &str) -> String {
    let lines = match text.lines().count() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    };
    let size = match text.len() {
        bytes @ ..1000 => format!("{bytes} bytes"),
        bytes @ ..1_000_000 => format!("{} KB", bytes.div_ceil(1000)),
        bytes => format!("{} MB", bytes.div_ceil(1_000_000)),
    };
    format!("[pasted {lines}, {size}]")
}

/// True for a character that stands for a folded paste.
pub(super) fn is_fold(c: char) -> bool {
    FOLDS.contains(&c)
}

/// Columns that a character takes.
pub(super) fn columns(c: char) -> usize {
    match c {
        '\t' | '\n' => 1,
        c if FOLDS.contains(&c) => 1,
        c => c.width().unwrap_or(0),
    }
}
