//! The input line: several rows, kill ring, undo, history. Pure. The text itself is in `buffer`.

mod buffer;
mod history;
mod kill_ring;
#[cfg(test)]
mod tests;
mod undo;
mod vim;

use super::key_press::{Direction, Distance, EditKey, KeyPress};
use buffer::Buffer;
use history::History;
use kill_ring::KillRing;
use std::borrow::Cow;
use undo::{Change, UndoStack};
use vim::Vim;

/// An input line.
#[derive(Debug, Clone, Default)]
pub struct Editor {
    buffer: Buffer,
    history: History,
    kills: KillRing,
    undo: UndoStack,
    /// Texts that were put away, the newest last.
    stashed: Vec<Buffer>,
    last: LastKey,
    /// Columns of its rows, once a view has said them.
    room: Option<usize>,
    /// Where the keys of vim were chosen.
    vim: Option<Vim>,
}

/// The keys of an input line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineKeys {
    /// Those of shells: each character is text.
    #[default]
    Emacs,
    /// Those of vim, with an insert mode and a normal mode.
    Vim,
}

/// The last key, if the next one may continue its work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LastKey {
    #[default]
    Other,
    Killed,
    /// Inserted the killed text of this age, from this place on.
    Yanked {
        from: usize,
        age: usize,
    },
    /// Went up or down, for this column.
    Row(usize),
}

/// The effect of [`Editor::stash`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stashed {
    /// It was put away.
    Away,
    /// The one that was put away last is in the line.
    Back,
    /// The line is empty, and so is the place for such texts.
    Nothing,
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
    /// An empty line with these keys.
    #[must_use]
    pub fn with_keys(keys: LineKeys) -> Self {
        let vim = match keys {
            LineKeys::Emacs => None,
            LineKeys::Vim => Some(Vim::default()),
        };
        Self { vim, ..Self::default() }
    }

    /// The text, folded pastes too.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        self.buffer.text()
    }

    /// The text before the cursor.
    #[must_use]
    pub fn before_cursor(&self) -> Cow<'_, str> {
        self.buffer.before_cursor()
    }

    /// Lines that were taken out, the newest last.
    #[must_use]
    pub fn history(&self) -> &[String] {
        self.history.lines()
    }

    /// These lines are recalled instead, the newest last.
    pub fn set_history(&mut self, lines: Vec<String>) {
        self.history = History::of(lines);
    }

    /// A line that was sent from elsewhere is recalled too.
    pub fn remember(&mut self, line: &str) {
        self.history.push(line);
    }

    /// True if there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// True for a line that Enter runs as a command of the person.
    #[must_use]
    pub fn is_command(&self) -> bool {
        let shown = self.buffer.shown();
        shown.starts_with('!') && !shown.contains('\n') && !shown.contains(buffer::is_fold)
    }

    /// Another use begins: nothing comes back but the lines of the history.
    pub fn start_over(&mut self) {
        let lines = self.history.lines().to_vec();
        let (room, vim) = (self.room, self.vim.as_ref().map(|_| Vim::default()));
        *self = Self { history: History::of(lines), room, vim, ..Self::default() };
    }

    /// A text that stood elsewhere can be yanked.
    pub fn keep_killed(&mut self, text: String) {
        self.kills.push(text);
    }

    /// The text in rows of `width` columns, the first `indent` of each left free.
    #[must_use]
    pub fn layout(&self, indent: usize, width: usize) -> Layout {
        self.buffer.layout(indent, width)
    }

    /// Its rows have so many columns.
    pub fn fit(&mut self, room: usize) {
        self.room = Some(room);
    }

    /// Puts text at the cursor. Line ends of any kind become one; other control codes are left out.
    pub fn insert(&mut self, text: &str) {
        self.before(Change::Whole);
        self.buffer.insert(text);
    }

    /// The same. A long text is shown as one word and goes as one character.
    pub fn paste(&mut self, text: &str) {
        self.before(Change::Whole);
        self.buffer.paste(text);
    }

    /// Replaces the text; the cursor moves to its end.
    pub fn set(&mut self, text: &str) {
        self.before(Change::Whole);
        self.buffer = Buffer::of(text);
    }

    /// Takes the text out and remembers it. Where it was recalled, the text that was typed before is in the line again.
    pub fn take(&mut self) -> String {
        let text = self.take_shown().text().into_owned();
        self.last = LastKey::Other;
        self.undo.clear();
        self.history.push(&text);
        text
    }

    /// The same, and keeps the text for [`KeyPress::Up`] and for undo.
    pub fn clear(&mut self) {
        self.before(Change::Whole);
        let text = self.take_shown();
        self.history.push(&text.text());
    }

    fn take_shown(&mut self) -> Buffer {
        // The next text is typed.
        self.insert_mode();
        let before = self.history.rest().unwrap_or_default();
        std::mem::replace(&mut self.buffer, before)
    }

    /// Puts the text away; an empty line gets the one back that was put away last, or typed before a recalled one.
    pub fn stash(&mut self) -> Stashed {
        self.moves();
        if !self.is_empty() {
            self.undo.clear();
            let shown = self.take_shown();
            self.stashed.push(shown);
            return Stashed::Away;
        }
        let typed = self.history.rest().filter(|typed| !typed.is_empty());
        let Some(text) = typed.or_else(|| self.stashed.pop()) else { return Stashed::Nothing };
        self.undo.clear();
        self.buffer = text;
        Stashed::Back
    }

    /// The text, behind those that were put away and the one that was typed before a recalled one.
    #[must_use]
    pub fn unsent(&self) -> Cow<'_, str> {
        let typed = self.history.draft();
        if self.stashed.is_empty() && typed.is_none() {
            return self.text();
        }
        let all = self.stashed.iter().chain(typed).chain([&self.buffer]).map(Buffer::text);
        Cow::Owned(all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"))
    }

    /// A `\` right before the cursor becomes a new line. False where there is none.
    pub fn continue_line(&mut self) -> bool {
        let continues = self.buffer.is_behind('\\');
        if continues {
            self.before(Change::Whole);
            self.buffer.remove(Distance::Character, Direction::Start);
            self.buffer.insert("\n");
        }
        continues
    }

    /// Handles a key of the line; others do nothing.
    pub fn key(&mut self, key: KeyPress) {
        match key {
            KeyPress::Char(c) => {
                self.before(Change::Typed(c));
                self.buffer.insert(c.encode_utf8(&mut [0; 4]));
            }
            KeyPress::NewLine => self.insert("\n"),
            KeyPress::Move(reach, toward) => {
                self.moves();
                self.buffer.move_cursor(reach, toward);
            }
            KeyPress::Erase(reach, toward) => self.erase(reach, toward),
            KeyPress::EndOfInput => self.erase(Distance::Character, Direction::End),
            KeyPress::Up => {
                if !self.move_row(Direction::Start) {
                    self.recall(Direction::Start);
                }
            }
            KeyPress::Down => {
                if !self.move_row(Direction::End) {
                    self.recall(Direction::End);
                }
            }
            KeyPress::Edit(EditKey::Yank) => self.yank(self.buffer.cursor(), 0),
            KeyPress::Edit(EditKey::YankEarlier) => {
                if let LastKey::Yanked { from, age } = self.last {
                    self.yank(from, age + 1);
                }
            }
            KeyPress::Edit(EditKey::Undo) => {
                let other = self.undo.undo(&self.buffer);
                self.go_back_to(other);
            }
            KeyPress::Edit(EditKey::Redo) => {
                let other = self.undo.redo(&self.buffer);
                self.go_back_to(other);
            }
            KeyPress::Enter
            | KeyPress::Escape
            | KeyPress::Interrupt
            | KeyPress::Tab
            | KeyPress::BackTab
            | KeyPress::Page(_)
            | KeyPress::Control(_)
            | KeyPress::Redraw
            | KeyPress::Leader => {}
        }
    }

    /// Moves the cursor by a row. False where there is none that way.
    pub fn move_row(&mut self, toward: Direction) -> bool {
        let goal = match self.last {
            LastKey::Row(column) => Some(column),
            LastKey::Other | LastKey::Killed | LastKey::Yanked { .. } => None,
        };
        let room = self.room.unwrap_or(usize::MAX);
        let Some(column) = self.buffer.move_row(toward, goal, room) else { return false };
        self.moves();
        self.last = LastKey::Row(column);
        true
    }

    /// A line of the history, or the text that was typed before.
    fn recall(&mut self, toward: Direction) {
        let line = match toward {
            Direction::Start => self.history.earlier(&self.buffer),
            Direction::End => self.history.later(),
        };
        if let Some(line) = line {
            self.before(Change::Whole);
            self.buffer = line;
        }
    }

    /// Erases to that position. More than a character can be yanked.
    fn erase(&mut self, reach: Distance, toward: Direction) {
        if reach == Distance::Character {
            self.before(Change::Erased);
            self.buffer.remove(reach, toward);
            return;
        }
        let was_killed = self.last == LastKey::Killed;
        self.before(Change::Whole);
        let text = self.buffer.remove(reach, toward);
        match was_killed {
            true => self.kills.extend(&text, toward),
            false => self.kills.push(text),
        }
        self.last = LastKey::Killed;
    }

    /// Replaces the text between `from` and the cursor by the killed text of this age.
    fn yank(&mut self, from: usize, age: usize) {
        let Some(text) = self.kills.get(age).map(str::to_owned) else { return };
        self.before(Change::Whole);
        self.buffer.remove_to(from);
        self.buffer.paste(&text);
        self.last = LastKey::Yanked { from, age };
    }

    fn go_back_to(&mut self, other: Option<Buffer>) {
        self.last = LastKey::Other;
        if let Some(other) = other {
            if self.history.draft() == Some(&other) {
                self.history.rest();
            }
            self.buffer = other;
        }
    }

    /// The text is about to change.
    fn before(&mut self, change: Change) {
        self.last = LastKey::Other;
        self.undo.note(&self.buffer, change);
    }

    /// The cursor is about to move.
    fn moves(&mut self) {
        self.last = LastKey::Other;
        self.undo.close();
    }
}
