//! A list with a fuzzy search: sessions, files, commands, slash commands, earlier prompts. Pure.

use crate::conversation::Conversation;
use crate::row::{Row, wrap_text};
use crate::theme::Theme;
use client::{KeyPress, ScreenItems};
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use protocol::client::NumberedEvent;

/// Rows that are shown.
const SHOWN: usize = 10;
/// Rows of the preview.
const PREVIEWED: usize = 10;

/// What is chosen from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PickerKind {
    Sessions,
    Files,
    Commands,
    /// Slash commands, skills and colon commands.
    Slash,
    History,
    /// Prompts and rounds to go back before.
    Rewind,
    /// What goes back.
    RewindScope,
}

/// One row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickerItem {
    /// What is searched and shown.
    pub(crate) text: String,
    /// Shown behind it.
    pub(crate) detail: String,
    /// What is chosen with it.
    pub(crate) value: String,
}

/// The list and the search.
#[derive(Debug)]
pub(crate) struct Picker {
    pub(crate) kind: PickerKind,
    pub(crate) query: String,
    items: Vec<PickerItem>,
    /// Indexes of the items that match, the best first.
    matches: Vec<usize>,
    at: usize,
    /// The value that the preview is of, and the end of what it holds.
    preview: Option<(String, Conversation)>,
}

/// What a key of a picker asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PickerAction {
    Stay,
    /// Closed without a choice; these words were typed.
    Close(String),
    /// This value, and what was typed.
    Choose(String, String),
}

impl Picker {
    pub(crate) fn new(kind: PickerKind, items: Vec<PickerItem>) -> Self {
        let (query, matches) = (String::new(), Vec::new());
        let mut picker = Self { kind, query, items, matches, at: 0, preview: None };
        picker.search();
        picker
    }

    /// Replaces the list; what is chosen stays where it is still there.
    pub(crate) fn set_items(&mut self, items: Vec<PickerItem>) {
        if self.items == items {
            return;
        }
        let chosen = self.chosen().map(|item| item.value.clone());
        self.items = items;
        self.search();
        let place = |at: &usize| chosen.as_ref() == Some(&self.items[*at].value);
        self.at = self.matches.iter().position(place).unwrap_or(0);
    }

    fn chosen(&self) -> Option<&PickerItem> {
        self.matches.get(self.at).map(|at| &self.items[*at])
    }

    /// The chosen value, once, if it has no preview yet.
    pub(crate) fn awaits_preview(&mut self) -> Option<String> {
        let chosen = self.chosen()?.value.clone();
        if self.preview.as_ref().is_some_and(|(of, _)| *of == chosen) {
            return None;
        }
        self.preview = Some((chosen.clone(), Conversation::default()));
        Some(chosen)
    }

    /// The preview of a value, unless another one was chosen meanwhile.
    pub(crate) fn set_preview(&mut self, value: &str, events: &[NumberedEvent]) {
        if let Some((of, conversation)) = &mut self.preview
            && of == value
        {
            let mut items = ScreenItems::default();
            *conversation = Conversation::default();
            events.iter().flat_map(|it| items.take(&it.event)).for_each(|it| conversation.push(it));
        }
    }

    fn search(&mut self) {
        self.at = 0;
        // A range of lines behind a file is no part of its name.
        let words = match self.kind {
            PickerKind::Files => self.query.split(':').next().unwrap_or_default(),
            PickerKind::Sessions
            | PickerKind::Commands
            | PickerKind::Slash
            | PickerKind::History
            | PickerKind::Rewind
            | PickerKind::RewindScope => &self.query,
        };
        if words.is_empty() {
            self.matches = (0..self.items.len()).collect();
            return;
        }
        let config = match self.kind {
            PickerKind::Files => Config::DEFAULT.match_paths(),
            PickerKind::Sessions
            | PickerKind::Commands
            | PickerKind::Slash
            | PickerKind::History
            | PickerKind::Rewind
            | PickerKind::RewindScope => Config::DEFAULT,
        };
        let mut matcher = Matcher::new(config);
        let pattern = Pattern::parse(words, CaseMatching::Smart, Normalization::Smart);
        let mut buffer = Vec::new();
        let mut found: Vec<(u32, usize)> = Vec::new();
        for (at, item) in self.items.iter().enumerate() {
            let text = Utf32Str::new(&item.text, &mut buffer);
            if let Some(score) = pattern.score(text, &mut matcher) {
                found.push((score, at));
            }
        }
        found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        self.matches = found.into_iter().map(|(_, at)| at).collect();
    }

    /// Two words behind a slash leave, without a row of their own, unless a command has that very name.
    fn leaves(&self) -> bool {
        let name =
            |item: &PickerItem| item.text.split(' ').next() == Some(&format!("/{}", self.query));
        self.kind == PickerKind::Slash
            && matches!(&*self.query, "exit" | "quit")
            && !self.items.iter().any(name)
    }

    // All other keys do nothing here.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(crate) fn key(&mut self, key: KeyPress) -> PickerAction {
        match key {
            KeyPress::Char(' ') if self.kind == PickerKind::Commands => {
                return PickerAction::Close(format!("{} ", self.query));
            }
            // Arguments follow, or it is a path.
            KeyPress::Char(c @ (' ' | '/')) if self.kind == PickerKind::Slash => {
                return PickerAction::Close(format!("{}{c}", self.query));
            }
            KeyPress::Char(c) => {
                self.query.push(c);
                self.search();
            }
            KeyPress::Erase(..) if self.query.is_empty() => {
                return PickerAction::Close(String::new());
            }
            KeyPress::Erase(..) => {
                self.query.pop();
                self.search();
            }
            KeyPress::Up => self.at = self.at.saturating_sub(1),
            KeyPress::Down => self.at = (self.at + 1).min(self.matches.len().saturating_sub(1)),
            KeyPress::Enter if self.leaves() => {
                return PickerAction::Choose(":q".to_owned(), self.query.clone());
            }
            KeyPress::Enter | KeyPress::Tab => {
                return match self.chosen() {
                    Some(item) => PickerAction::Choose(item.value.clone(), self.query.clone()),
                    // The screen names the fault of an unknown command.
                    None if self.kind == PickerKind::Commands && !self.query.is_empty() => {
                        PickerAction::Choose(format!(":{}", self.query), self.query.clone())
                    }
                    None => PickerAction::Close(self.query.clone()),
                };
            }
            KeyPress::Escape | KeyPress::Interrupt => {
                return PickerAction::Close(self.query.clone());
            }
            _ => {}
        }
        PickerAction::Stay
    }

    /// Its rows: the search, then the best matches.
    pub(crate) fn view(&mut self, (width, height): (usize, usize), look: &Theme) -> Vec<Row> {
        let title = match self.kind {
            PickerKind::Sessions => "session",
            PickerKind::Files => "file @",
            PickerKind::Commands => "command :",
            PickerKind::Slash => "command /",
            PickerKind::History => "earlier prompt",
            PickerKind::Rewind => "rewind to the moment before",
            PickerKind::RewindScope => "rewind what",
        };
        let counts = format!("{} of {}", self.matches.len(), self.items.len());
        let mut rows = vec![
            Row::new(&format!("{title} "), look.asks)
                .with(&self.query, look.bold)
                .with("▏ ", look.asks)
                .with(&counts, look.dim)
                .cut(width),
        ];
        let first = (self.at + 1).saturating_sub(SHOWN);
        for (number, at) in self.matches.iter().enumerate().skip(first).take(SHOWN) {
            let item = &self.items[*at];
            let mark = if number == self.at { "▸ " } else { "  " };
            let row = Row::new(mark, look.asks)
                .with(&item.text, look.text)
                .with(&format!("  {}", item.detail), look.dim)
                .cut(width);
            rows.push(if number == self.at { row.patched(look.bold) } else { row });
        }
        if self.matches.is_empty() {
            rows.push(Row::new("  nothing matches; Esc closes", look.dim));
        }
        let room = height.saturating_sub(rows.len() + 1).min(PREVIEWED);
        let chosen = self.chosen().map(|item| item.value.clone());
        if let (PickerKind::History, Some(prompt)) = (self.kind, &chosen)
            && prompt.contains('\n')
            && room > 1
        {
            let mut shown = wrap_text(prompt, look.text, width.saturating_sub(4), "");
            if shown.len() > room {
                let more = format!("… {} more lines", shown.len() + 1 - room);
                shown.truncate(room - 1);
                shown.push(Row::new(&more, look.dim));
            }
            rows.push(Row::new(&"─".repeat(width), look.dim));
            rows.extend(shown.into_iter().map(|row| row.behind("  │ ", look.dim)));
        }
        if let Some((of, conversation)) = &mut self.preview
            && chosen.as_ref() == Some(of)
            && room > 0
        {
            let mut shown = conversation.view((width.saturating_sub(4), room), "", &[], look);
            while shown.last().is_some_and(|(_, row)| row.text().trim().is_empty()) {
                shown.pop();
            }
            rows.push(Row::new(&"─".repeat(width), look.dim));
            rows.extend(shown.into_iter().map(|(_, row)| row.behind("  │ ", look.dim)));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_slash_arguments_and_paths_go_back_to_the_line() {
        for (end, typed) in [(' ', "usr "), ('/', "usr/")] {
            let mut picker = Picker::new(PickerKind::Slash, vec![item("/usual FILE")]);
            for c in "usr".chars() {
                assert_eq!(picker.key(KeyPress::Char(c)), PickerAction::Stay);
            }
            assert_eq!(picker.key(KeyPress::Char(end)), PickerAction::Close(typed.to_owned()));
        }
    }

    #[test]
    fn behind_a_slash_exit_and_quit_leave_unless_a_command_has_that_name() {
        let typed = |items: Vec<PickerItem>, words: &str| {
            let mut picker = Picker::new(PickerKind::Slash, items);
            words
                .chars()
                .for_each(|c| assert_eq!(picker.key(KeyPress::Char(c)), PickerAction::Stay));
            picker.key(KeyPress::Enter)
        };
        for word in ["exit", "quit"] {
            let leaves = PickerAction::Choose(":q".to_owned(), word.to_owned());
            assert_eq!(typed(vec![item("/usual FILE")], word), leaves);
            // It matches, and is another command.
            assert_eq!(typed(vec![item(&format!("/{word}-test FILE"))], word), leaves);
        }
        let own = PickerAction::Choose("/exit".to_owned(), "exit".to_owned());
        assert_eq!(typed(vec![item("/exit")], "exit"), own);
        let own = PickerAction::Choose("/quit NOW".to_owned(), "quit".to_owned());
        assert_eq!(typed(vec![item("/quit NOW")], "quit"), own);
        assert_eq!(typed(vec![], "exits"), PickerAction::Close("exits".to_owned()));
    }

    fn item(text: &str) -> PickerItem {
        PickerItem { text: text.to_owned(), detail: String::new(), value: text.to_owned() }
    }

    #[test]
    fn the_best_match_comes_first_and_a_range_stays_behind_the_file() {
        let files = ["src/lib.rs", "src/main.rs", "tests/main.rs"].map(item).to_vec();
        let mut picker = Picker::new(PickerKind::Files, files);
        for c in "smain:10-40".chars() {
            assert_eq!(picker.key(KeyPress::Char(c)), PickerAction::Stay);
        }
        let chosen = picker.key(KeyPress::Enter);
        assert_eq!(
            chosen,
            PickerAction::Choose("src/main.rs".to_owned(), "smain:10-40".to_owned())
        );
        picker.key(KeyPress::Char('ß'));
        picker.query = "no such file".to_owned();
        picker.search();
        assert_eq!(picker.key(KeyPress::Enter), PickerAction::Close("no such file".to_owned()));
    }
}
