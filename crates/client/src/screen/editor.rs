//! The input line: UTF-8, wide characters, several rows, history. Pure.

use unicode_width::UnicodeWidthChar;

/// Lines remembered for the arrows.
const HISTORY: usize = 200;

/// Which way the cursor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the beginning.
    Start,
    /// To the end.
    End,
}

/// How far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distance {
    /// One character, with the marks that belong to it.
    Character,
    /// One word.
    Word,
    /// All.
    All,
}

/// Text with a cursor.
#[derive(Debug, Clone, Default)]
pub struct Editor {
    text: String,
    /// In bytes, at a character's beginning.
    cursor: usize,
    history: Vec<String>,
    /// Index in the history, and the text that was typed before.
    recalled: Option<(usize, String)>,
}

/// The rows of a text in a terminal, and the position of the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// At least one.
    pub rows: Vec<String>,
    /// Row and column, counted from 0.
    pub cursor: (usize, usize),
}

impl Editor {
    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor.
    #[must_use]
    pub fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Lines that were taken out, the newest last.
    #[must_use]
    pub fn history(&self) -> &[String] {
        &self.history
    }

    /// True if there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Puts text at the cursor. Line ends of any kind become one; other control codes are left out.
    pub fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text: String =
            text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    /// Replaces the text; the cursor moves to its end.
    pub fn set(&mut self, text: &str) {
        self.text.clear();
        self.cursor = 0;
        self.recalled = None;
        self.insert(text);
    }

    /// Takes the text out and remembers it.
    pub fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        self.cursor = 0;
        self.recalled = None;
        if !text.trim().is_empty() && self.history.last() != Some(&text) {
            self.history.push(text.clone());
            let surplus = self.history.len().saturating_sub(HISTORY);
            self.history.drain(..surplus);
        }
        text
    }

    /// Moves the cursor.
    pub fn move_cursor(&mut self, reach: Distance, toward: Direction) {
        self.cursor = self.target(reach, toward);
    }

    /// Erases the text between the cursor and that position.
    pub fn erase(&mut self, reach: Distance, toward: Direction) {
        let there = self.target(reach, toward);
        let (from, to) = (self.cursor.min(there), self.cursor.max(there));
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    /// Moves the cursor to the end of the line before, or of the next one.
    pub fn move_line(&mut self, toward: Direction) {
        let line_end = |at: usize| self.text[at..].find('\n').map(|behind| at + behind);
        self.cursor = match toward {
            Direction::Start => self.text[..self.cursor].rfind('\n').unwrap_or(0),
            Direction::End => {
                let next = line_end(self.cursor).map(|end| end + 1);
                next.map_or(self.text.len(), |next| line_end(next).unwrap_or(self.text.len()))
            }
        };
    }

    /// The line before, from the history.
    pub fn earlier(&mut self) {
        let at = self.recalled.as_ref().map_or(self.history.len(), |(at, _)| *at);
        let Some(before) = at.checked_sub(1) else { return };
        let draft = self.recalled.take().map_or_else(|| self.text.clone(), |(_, draft)| draft);
        let text = self.history[before].clone();
        self.set(&text);
        self.recalled = Some((before, draft));
    }

    /// The next line of the history; after its last, the text that was typed.
    pub fn later(&mut self) {
        let Some((at, draft)) = self.recalled.take() else { return };
        match self.history.get(at + 1).cloned() {
            Some(text) => {
                self.set(&text);
                self.recalled = Some((at + 1, draft));
            }
            None => self.set(&draft),
        }
    }

    fn target(&self, reach: Distance, toward: Direction) -> usize {
        let (before, behind) = self.text.split_at(self.cursor);
        match (reach, toward) {
            (Distance::All, Direction::Start) => 0,
            (Distance::All, Direction::End) => self.text.len(),
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

    /// The text in rows of `width` columns, the first `indent` of each left free.
    #[must_use]
    pub fn layout(&self, indent: usize, width: usize) -> Layout {
        let room = width.saturating_sub(indent).max(2);
        let (mut rows, mut row, mut column) = (Vec::new(), String::new(), 0);
        let mut cursor = (0, 0);
        for (at, c) in self.text.char_indices() {
            let wide = columns(c);
            // The last column stays free for the cursor.
            if c != '\n' && column + wide > room - 1 {
                rows.push(std::mem::take(&mut row));
                column = 0;
            }
            if at == self.cursor {
                cursor = (rows.len(), indent + column);
            }
            if c == '\n' {
                rows.push(std::mem::take(&mut row));
                column = 0;
                continue;
            }
            row.push(if c == '\t' { '⇥' } else { c });
            column += wide;
        }
        if self.cursor == self.text.len() {
            cursor = (rows.len(), indent + column);
        }
        rows.push(row);
        Layout { rows, cursor }
    }
}

/// Columns that a character takes.
fn columns(c: char) -> usize {
    match c {
        '\t' | '\n' => 1,
        c => c.width().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn the_cursor_goes_by_characters_words_and_to_the_ends() {
        let mut editor = typed("ein größeres  Wört");
        editor.move_cursor(Distance::Word, Direction::Start);
        editor.move_cursor(Distance::Word, Direction::Start);
        editor.insert("x");
        assert_eq!(editor.text(), "ein xgrößeres  Wört");
        editor.move_cursor(Distance::Character, Direction::End);
        editor.move_cursor(Distance::Character, Direction::End);
        editor.move_cursor(Distance::Character, Direction::End);
        editor.erase(Distance::Character, Direction::Start);
        assert_eq!(editor.text(), "ein xgrßeres  Wört");
        editor.erase(Distance::Word, Direction::Start);
        assert_eq!(editor.text(), "ein ßeres  Wört");
        editor.move_cursor(Distance::Word, Direction::End);
        editor.erase(Distance::All, Direction::End);
        assert_eq!(editor.text(), "ein ßeres");
        editor.erase(Distance::All, Direction::Start);
        assert!(editor.is_empty());
        editor.erase(Distance::Character, Direction::Start);
        editor.erase(Distance::Word, Direction::End);
        assert!(editor.is_empty());
    }

    #[test]
    fn a_mark_without_width_goes_with_its_character() {
        let mut editor = typed("ae\u{301}b");
        editor.move_cursor(Distance::Character, Direction::Start);
        editor.erase(Distance::Character, Direction::Start);
        assert_eq!(editor.text(), "ab");
    }

    #[test]
    fn history_comes_back_and_so_does_what_was_typed() {
        let mut editor = typed("one");
        assert_eq!(editor.take(), "one");
        editor.insert("two");
        editor.take();
        editor.insert("dra");
        editor.earlier();
        assert_eq!(editor.text(), "two");
        editor.earlier();
        editor.earlier();
        assert_eq!(editor.text(), "one");
        editor.later();
        editor.later();
        assert_eq!(editor.text(), "dra");
        editor.later();
        assert_eq!(editor.text(), "dra");
    }

    #[test]
    fn a_paste_keeps_its_lines_and_no_control_codes() {
        let editor = typed("a\r\nb\rc\u{1b}[2J\td");
        assert_eq!(editor.text(), "a\nb\nc[2J\td");
        assert_eq!(editor.layout(2, 20).rows, ["a", "b", "c[2J⇥d"]);
    }

    #[test]
    fn rows_are_cut_by_columns_and_not_by_characters() {
        let mut editor = typed("日本語日本語");
        let layout = editor.layout(2, 9);
        assert_eq!(layout.rows, ["日本語", "日本語"]);
        assert_eq!(layout.cursor, (1, 8));
        editor.move_cursor(Distance::All, Direction::Start);
        assert_eq!(editor.layout(2, 9).cursor, (0, 2));
        assert_eq!(
            Editor::default().layout(2, 9),
            Layout { rows: vec![String::new()], cursor: (0, 2) }
        );
    }
}
