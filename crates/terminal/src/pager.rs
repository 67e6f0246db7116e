//! A long text over the whole screen, with a search. Pure.

use crate::row::Row;
use crate::theme::Theme;
use client::{Direction, KeyPress};

/// The text, and what of it is in view.
#[derive(Debug)]
pub(crate) struct Pager {
    pub(crate) title: String,
    rows: Vec<Row>,
    pub(crate) text: String,
    top: usize,
    /// The words of the last search.
    search: String,
    /// Words that are being typed.
    typed: Option<String>,
    hint: String,
    /// From which row on which colon command is about the text, if any.
    pub(crate) commands: Vec<(usize, Option<String>)>,
    /// The call whose output it shows while that comes.
    pub(crate) follows: Option<u32>,
    /// First row of a selection; the row at the top is its end.
    selected: Option<usize>,
}

/// What a key of the pager asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PagerAction {
    Stay,
    Close,
    Copy(String),
    /// Closes it, and puts a command into the input line.
    Propose(String),
}

impl Pager {
    pub(crate) fn new(title: String, rows: Vec<Row>, text: String) -> Self {
        let (search, hint) = (String::new(), String::new());
        let (commands, top) = (Vec::new(), 0);
        let (typed, follows, selected) = (None, None, None);
        Self { title, rows, text, top, search, typed, hint, commands, follows, selected }
    }

    /// Its text goes on. Where its end was in view in so many rows, the new end is.
    pub(crate) fn go_on(&mut self, rows: Vec<Row>, text: String, height: usize) {
        let was_at_end = self.top + height >= self.rows.len();
        (self.rows, self.text) = (rows, text);
        let last = self.rows.len().saturating_sub(1);
        self.top =
            if was_at_end { self.rows.len().saturating_sub(height) } else { self.top.min(last) };
    }

    /// The rows in view, with what was found marked.
    pub(crate) fn view(&self, height: usize, look: &Theme) -> Vec<Row> {
        let marked = |(at, row): (usize, &Row)| {
            let hit = !self.search.is_empty()
                && row.text().to_lowercase().contains(&self.search.to_lowercase());
            let selected = self
                .selected
                .is_some_and(|first| (first.min(self.top)..=first.max(self.top)).contains(&at));
            match (hit, selected) {
                (_, true) => row.clone().behind("▎", look.asks),
                (true, false) if at == self.top => {
                    row.clone().marked(&self.search, look.found_here)
                }
                (true, false) => row.clone().marked(&self.search, look.found()),
                (false, false) => row.clone(),
            }
        };
        self.rows.iter().enumerate().skip(self.top).take(height).map(marked).collect()
    }

    pub(crate) fn status(&self) -> String {
        if let Some(typed) = &self.typed {
            return format!("/{typed}");
        }
        let command = self.command().map(|command| format!("u {command}, ")).unwrap_or_default();
        let keys = format!("{command}q close, / search, n N next, v select, y copy, g G ends");
        match self.hint.is_empty() {
            true => format!("row {} of {} · {keys}", self.top + 1, self.rows.len()),
            false => format!("{} · {keys}", self.hint),
        }
    }

    // All other keys do nothing here.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(crate) fn key(&mut self, key: KeyPress, height: usize) -> PagerAction {
        self.hint.clear();
        if let Some(mut typed) = self.typed.take() {
            match key {
                KeyPress::Char(c) => typed.push(c),
                KeyPress::Erase(..) => drop(typed.pop()),
                KeyPress::Enter => {
                    self.search = typed;
                    self.find(0);
                    return PagerAction::Stay;
                }
                _ => return PagerAction::Stay,
            }
            self.typed = Some(typed);
            return PagerAction::Stay;
        }
        let last = self.rows.len().saturating_sub(1);
        match key {
            KeyPress::Char('q') | KeyPress::Escape | KeyPress::Interrupt => {
                return PagerAction::Close;
            }
            KeyPress::Char('/') => self.typed = Some(String::new()),
            KeyPress::Char('n') => self.find(1),
            KeyPress::Char('N') => self.find(-1),
            KeyPress::Char('v') => {
                self.selected = if self.selected.is_none() { Some(self.top) } else { None };
            }
            KeyPress::Char('y') => return PagerAction::Copy(self.copied()),
            KeyPress::Char('u') => match self.command() {
                Some(command) => return PagerAction::Propose(command.to_owned()),
                None => self.hint = "no command is about this part".to_owned(),
            },
            KeyPress::Char('g') | KeyPress::Move(_, Direction::Start) => self.top = 0,
            KeyPress::Char('G') | KeyPress::Move(_, Direction::End) => {
                self.top = self.rows.len().saturating_sub(height);
            }
            KeyPress::Char('j') | KeyPress::Down | KeyPress::Enter => {
                self.top = (self.top + 1).min(last)
            }
            KeyPress::Char('k') | KeyPress::Up => self.top = self.top.saturating_sub(1),
            KeyPress::Char(' ') | KeyPress::Page(Direction::End) => {
                self.top = (self.top + height).min(last);
            }
            KeyPress::Char('b') | KeyPress::Page(Direction::Start) => {
                self.top = self.top.saturating_sub(height);
            }
            _ => {}
        }
        PagerAction::Stay
    }

    /// The command about the part at the top row.
    fn command(&self) -> Option<&str> {
        let part = self.commands.iter().rev().find(|(row, _)| *row <= self.top);
        part.and_then(|(_, command)| command.as_deref())
    }

    pub(crate) fn scroll(&mut self, rows: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.top = self.top.saturating_add_signed(rows).min(last);
    }

    fn copied(&mut self) -> String {
        let Some(first) = self.selected.take() else { return self.text.clone() };
        let range = first.min(self.top)..=first.max(self.top);
        let text = |row: &Row| row.text().trim_end().to_owned();
        let rows: Vec<String> = self.rows[range].iter().map(text).collect();
        rows.join("\n")
    }

    /// The next row with the words; 0 begins at the top row itself.
    fn find(&mut self, step: isize) {
        let words = self.search.to_lowercase();
        let count = self.rows.len();
        let has = |row: &Row| row.text().to_lowercase().contains(&words);
        for distance in 0..count {
            let moved = if step == 0 { distance as isize } else { step * (distance as isize + 1) };
            let at = (self.top as isize + moved).rem_euclid(count as isize) as usize;
            if has(&self.rows[at]) {
                self.top = at;
                let hits = |rows: &[Row]| rows.iter().filter(|row| has(row)).count();
                self.hint = format!("{}/{}", hits(&self.rows[..=at]), hits(&self.rows));
                return;
            }
        }
        self.hint = format!("not found: {}", self.search);
    }
}
