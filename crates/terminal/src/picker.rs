//! A list with a fuzzy search: sessions, files, commands, slash commands, earlier prompts. Pure.

use crate::conversation::Conversation;
use crate::row::{Row, wrap_text};
use crate::theme::Theme;
use client::{KeyPress, ScreenItems, display_width};
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use protocol::client::NumberedEvent;
use protocol::did_you_mean::nearest;

/// Rows that are shown.
const SHOWN: usize = 10;
/// Rows of the preview.
const PREVIEWED: usize = 10;
/// Columns of the first column: what is longer shifts what stands behind it.
const COLUMN: usize = 24;

/// What is chosen from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PickerKind {
    Sessions,
    Files,
    /// Slash commands, skills and colon commands, behind a colon.
    Commands,
    /// The same list, behind the other sign.
    Slash,
    History,
    /// Prompts and rounds to go back before.
    Rewind,
    /// What goes back.
    RewindScope,
    /// Places in files, for an editor.
    Places,
    /// Values of this command.
    Values(&'static str),
    /// What runs and what waits.
    Running,
    /// What can be done with a row of that.
    Actions,
    /// Ports of this call; another one may be typed.
    Ports(u32),
    /// The end of this call, once more.
    StopCall(u32),
    /// What becomes of a line behind `#`.
    Note,
}

impl PickerKind {
    /// True for the list of commands, whichever sign opened it.
    fn is_of_commands(self) -> bool {
        self.sign().is_some()
    }

    /// True for a list that completes the line: its words go back there.
    fn is_of_line(self) -> bool {
        self == Self::Files || self.is_of_commands()
    }

    /// The sign that opened the list of commands.
    fn sign(self) -> Option<char> {
        match self {
            Self::Commands => Some(':'),
            Self::Slash => Some('/'),
            Self::Sessions
            | Self::Files
            | Self::History
            | Self::Rewind
            | Self::RewindScope
            | Self::Places
            | Self::Running
            | Self::Actions
            | Self::Ports(_)
            | Self::StopCall(_)
            | Self::Note
            | Self::Values(_) => None,
        }
    }
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
    /// What the choice is about; may be empty.
    subject: String,
    pub(crate) query: String,
    items: Vec<PickerItem>,
    /// Other names of items; shown to who types them.
    other_names: Vec<PickerItem>,
    /// The items that match, the best first: indexes, those of other names behind those of items.
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
    /// This value goes to the input line, and what was typed; nothing is done.
    Fill(String, String),
}

impl Picker {
    pub(crate) fn new(kind: PickerKind, items: Vec<PickerItem>) -> Self {
        let (query, matches) = (String::new(), Vec::new());
        let other_names = Vec::new();
        let subject = String::new();
        let preview = None;
        let mut picker = Self { kind, subject, query, items, other_names, matches, at: 0, preview };
        picker.search();
        picker
    }

    /// With a subject in its title.
    pub(crate) fn about(mut self, subject: &str) -> Self {
        subject.clone_into(&mut self.subject);
        self
    }

    /// With other names of its items.
    pub(crate) fn and_names(mut self, other_names: Vec<PickerItem>) -> Self {
        self.other_names = other_names;
        self
    }

    /// Replaces the list; what is chosen stays where it is still there.
    pub(crate) fn set_items(&mut self, items: Vec<PickerItem>) {
        if self.items == items {
            return;
        }
        // Nobody chose the first command of a list that is still being read.
        let is_chosen = !(self.kind.is_of_commands() && self.at == 0);
        let chosen = self.chosen().filter(|_| is_chosen).map(|item| item.value.clone());
        self.items = items;
        self.search();
        let place = |at: &usize| chosen.as_ref() == self.item(*at).map(|item| &item.value);
        self.at = self.matches.iter().position(place).unwrap_or(0);
    }

    fn chosen(&self) -> Option<&PickerItem> {
        self.matches.get(self.at).and_then(|at| self.item(*at))
    }

    /// Of an index of `matches`.
    fn item(&self, at: usize) -> Option<&PickerItem> {
        let other = || self.other_names.get(at - self.items.len());
        self.items.get(at).or_else(other)
    }

    /// The folder that is chosen and that the search is not in yet.
    fn chosen_folder(&self) -> Option<String> {
        let item = self.chosen().filter(|_| self.kind == PickerKind::Files)?;
        (item.text.ends_with('/') && item.text != self.query).then(|| item.text.clone())
    }

    /// The port that was typed.
    fn typed_port(&self) -> Option<u16> {
        self.query.trim().parse().ok().filter(|port| *port > 0)
    }

    /// The names that what was typed is near to, where nothing matches.
    fn nearest(&self) -> Vec<String> {
        if !self.kind.is_of_commands() || !self.matches.is_empty() {
            return Vec::new();
        }
        let all = self.items.iter().chain(&self.other_names).map(|item| name(&item.text));
        nearest(&self.query, all).into_iter().map(str::to_owned).collect()
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
            | PickerKind::RewindScope
            | PickerKind::Places
            | PickerKind::Running
            | PickerKind::Actions
            | PickerKind::Ports(_)
            | PickerKind::StopCall(_)
            | PickerKind::Note
            | PickerKind::Values(_) => &self.query,
        };
        if words.is_empty() {
            self.matches = (0..self.items.len()).collect();
            return;
        }
        // A port that is typed is this one, and none that is like it.
        if let PickerKind::Ports(_) = self.kind {
            self.matches =
                (0..self.items.len()).filter(|at| self.items[*at].text == *words).collect();
            return;
        }
        let config = match self.kind {
            PickerKind::Files => Config::DEFAULT.match_paths(),
            PickerKind::Sessions
            | PickerKind::Commands
            | PickerKind::Slash
            | PickerKind::History
            | PickerKind::Rewind
            | PickerKind::RewindScope
            | PickerKind::Places
            | PickerKind::Running
            | PickerKind::Actions
            | PickerKind::Ports(_)
            | PickerKind::StopCall(_)
            | PickerKind::Note
            | PickerKind::Values(_) => Config::DEFAULT,
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
        found.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
        self.matches = found.into_iter().map(|(_, at)| at).collect();
        let is_begun = |item: &PickerItem| name(&item.text).starts_with(words);
        let named = self.other_names.iter().enumerate().filter(|(_, item)| is_begun(item));
        self.matches.extend(named.map(|(at, _)| self.items.len() + at));
        // What lies in a folder that is typed whole comes before what is only like it.
        if self.kind == PickerKind::Files && words.ends_with('/') {
            let mut matches = std::mem::take(&mut self.matches);
            let place = |at: &usize| self.item(*at).and_then(|it| place_in(&it.text, words));
            matches.sort_by_key(|at| place(at).unwrap_or(Place::Elsewhere));
            self.matches = matches;
            return;
        }
        // What is typed whole comes before what is only like it; so no file of a project hides a
        // colon command, that with its sign comes first.
        let Some(sign) = self.kind.sign() else { return };
        let mut matches = std::mem::take(&mut self.matches);
        matches.sort_by_key(|at| {
            let text = self.item(*at).map_or("", |item| &item.text);
            let is_part = name(text) != words;
            (is_part, !is_part && !text.starts_with(sign))
        });
        self.matches = matches;
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
            KeyPress::Tab if !self.nearest().is_empty() => {
                self.query = self.nearest().swap_remove(0);
                self.search();
            }
            // What Enter would do has no words for the line.
            KeyPress::Tab
                if matches!(
                    self.kind,
                    PickerKind::Sessions
                        | PickerKind::Rewind
                        | PickerKind::Running
                        | PickerKind::Actions
                        | PickerKind::Ports(_)
                        | PickerKind::StopCall(_)
                ) => {}
            KeyPress::Tab if self.chosen_folder().is_some() => {
                self.query = self.chosen_folder().unwrap_or_default();
                self.search();
            }
            KeyPress::Tab => {
                if let Some(item) = self.chosen() {
                    return PickerAction::Fill(item.value.clone(), self.query.clone());
                }
            }
            KeyPress::Enter => {
                return match self.chosen() {
                    Some(item) => PickerAction::Choose(item.value.clone(), self.query.clone()),
                    // The screen names the fault of an unknown command.
                    None if self.kind == PickerKind::Commands && !self.query.is_empty() => {
                        PickerAction::Choose(format!(":{}", self.query), self.query.clone())
                    }
                    None if matches!(self.kind, PickerKind::Ports(_)) => match self.typed_port() {
                        Some(port) => PickerAction::Choose(port.to_string(), self.query.clone()),
                        None => return PickerAction::Stay,
                    },
                    // The person goes on in the line.
                    None if self.kind.is_of_line() => PickerAction::Close(self.query.clone()),
                    // An Esc that closes the list would stop the turn if Enter had closed it.
                    None => PickerAction::Stay,
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
            PickerKind::Places => "Ctrl-G opens the file",
            PickerKind::Values(command) => command,
            PickerKind::Running => "runs and waits",
            PickerKind::Actions => "do with",
            PickerKind::Ports(_) => "port of",
            PickerKind::StopCall(_) => "stop",
            PickerKind::Note => "do with this line",
        };
        let counts = format!("{} of {}", self.matches.len(), self.items.len());
        let subject = if self.subject.is_empty() { "" } else { " " };
        let title = format!("{title}{subject}{} ", self.subject);
        let mut rows = vec![
            Row::new(&title, look.asks)
                .with(&self.query, look.bold())
                .with("▏ ", look.asks)
                .with(&counts, look.dim)
                .cut(width),
        ];
        let matched = self.matches.iter().filter_map(|at| self.item(*at));
        let with_detail = matched.filter(|item| !item.detail.is_empty());
        let column = with_detail.map(|item| display_width(&item.text)).max().unwrap_or(0);
        // The rows of the table are as wide as they are to be.
        let most = if self.kind == PickerKind::Running { usize::MAX } else { COLUMN };
        let column = column.min(most);
        let first = (self.at + 1).saturating_sub(SHOWN);
        for (number, at) in self.matches.iter().enumerate().skip(first).take(SHOWN) {
            let Some(item) = self.item(*at) else { continue };
            let gap = column.saturating_sub(display_width(&item.text)) + 2;
            let mark = if number == self.at { "▸ " } else { "  " };
            let row = Row::new(mark, look.asks)
                .with(&item.text, look.text)
                .with(&format!("{:gap$}{}", "", item.detail), look.dim)
                .cut(width);
            rows.push(if number == self.at { row.patched(look.bold()) } else { row });
        }
        if self.matches.is_empty() {
            let words = match (self.kind, &*self.nearest()) {
                (PickerKind::Ports(_), _) => match self.typed_port() {
                    Some(port) => format!("  Enter opens port {port}; Esc closes"),
                    None => "  type the number of the port; Esc closes".to_owned(),
                },
                (_, []) => "  nothing matches; Esc closes".to_owned(),
                (_, near) => {
                    let near = near.join(" or ");
                    format!("  nothing matches; did you mean {near}? Tab takes it, Esc closes")
                }
            };
            rows.push(Row::new(&words, look.dim).cut(width));
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

/// Where a file stands to a folder that was typed, in the order of the list.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Itself,
    Child,
    Below,
    Elsewhere,
}

fn place_in(file: &str, folder: &str) -> Option<Place> {
    let below = file.strip_prefix(folder)?;
    Some(match below.trim_end_matches('/') {
        "" => Place::Itself,
        child if !child.contains('/') => Place::Child,
        _ => Place::Below,
    })
}

/// The name of a command, without its sign and its arguments.
fn name(text: &str) -> &str {
    let text = text.trim_start_matches([':', '/']);
    text.split([' ', ',']).next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices;

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

    fn with_commands(kind: PickerKind) -> Picker {
        let mut picker = Picker::new(kind, choices::commands());
        picker = picker.and_names(kind.sign().map(choices::other_names).unwrap_or_default());
        picker.set_items(choices::leave_last(vec![item("/usual FILE"), item("/sql-query")]));
        picker
    }

    fn typed(mut picker: Picker, words: &str) -> PickerAction {
        words.chars().for_each(|c| assert_eq!(picker.key(KeyPress::Char(c)), PickerAction::Stay));
        picker.key(KeyPress::Enter)
    }

    #[test]
    fn both_signs_open_one_list_in_which_nothing_leaves_by_accident() {
        let first = PickerAction::Choose("/usual FILE".to_owned(), String::new());
        for kind in [PickerKind::Slash, PickerKind::Commands] {
            assert_eq!(typed(with_commands(kind), ""), first);
            let mut picker = with_commands(kind);
            let last = picker.items.last().map(|item| item.value.clone());
            assert_eq!(last.as_deref(), Some(":q"));
            let all = picker.items.len();
            assert_eq!(picker.matches.len(), all, "other names are shown to who types them");
            // What is typed whole comes first.
            let leaves = |query: &str| PickerAction::Choose(":q".to_owned(), query.to_owned());
            for query in ["q", "exit", "quit"] {
                assert_eq!(typed(with_commands(kind), query), leaves(query));
            }
            let mode = PickerAction::Choose(":mode MODE".to_owned(), "mode".to_owned());
            assert_eq!(typed(with_commands(kind), "mode"), mode);
            let said = PickerAction::Choose(":cost".to_owned(), "cost".to_owned());
            assert_eq!(typed(with_commands(kind), "cost"), said);
            picker.set_items(vec![item("/quit-test FILE"), item("/exit-test")]);
            assert_eq!(typed(picker, "quit"), leaves("quit"), "it matches, and is another command");
            let mut picker = with_commands(kind);
            picker.set_items(vec![item("/exit")]);
            let own = PickerAction::Choose("/exit".to_owned(), "exit".to_owned());
            let chosen = if kind == PickerKind::Slash { own } else { leaves("exit") };
            assert_eq!(typed(picker, "exit"), chosen, "a file goes before, behind its sign");
        }
    }

    #[test]
    fn of_two_commands_of_one_name_the_sign_that_opened_the_list_chooses() {
        let files = ["/q", "/mode", "/undo", "/clear", "/help WHAT"];
        for (kind, sign) in [(PickerKind::Slash, '/'), (PickerKind::Commands, ':')] {
            for word in ["q", "mode", "undo", "clear", "help"] {
                let mut picker = with_commands(kind);
                picker.set_items(choices::leave_last(files.map(item).to_vec()));
                let PickerAction::Choose(value, _) = typed(picker, word) else { panic!("{word}") };
                assert_eq!((value.chars().next(), name(&value)), (Some(sign), word));
            }
        }
    }

    #[test]
    fn of_parts_of_names_the_nearest_is_chosen_whatever_its_sign() {
        let mut picker = with_commands(PickerKind::Slash);
        picker.set_items(choices::leave_last(vec![item("/c-l-e-a")]));
        let clear = PickerAction::Choose(":clear".to_owned(), "clea".to_owned());
        assert_eq!(typed(picker, "clea"), clear);
    }

    #[test]
    fn tab_fills_the_line_and_only_enter_acts() {
        let tabbed = |mut picker: Picker, words: &str| {
            words.chars().for_each(|c| drop(picker.key(KeyPress::Char(c))));
            picker.key(KeyPress::Tab)
        };
        for kind in [PickerKind::Slash, PickerKind::Commands] {
            let fill = PickerAction::Fill(":clear".to_owned(), "cl".to_owned());
            assert_eq!(tabbed(with_commands(kind), "cl"), fill);
            assert_eq!(tabbed(with_commands(kind), "zzzzzzz"), PickerAction::Stay);
        }
        for kind in [PickerKind::Sessions, PickerKind::Rewind] {
            assert_eq!(tabbed(Picker::new(kind, vec![item("7")]), ""), PickerAction::Stay);
            let chosen = PickerAction::Choose("7".to_owned(), String::new());
            assert_eq!(typed(Picker::new(kind, vec![item("7")]), ""), chosen);
        }
    }

    #[test]
    fn a_list_without_a_match_offers_the_nearest_and_its_columns_are_aligned() {
        let (mut picker, look) = (with_commands(PickerKind::Slash), Theme::plain());
        let rows = |picker: &mut Picker| -> Vec<String> {
            picker.view((80, 24), &look).iter().map(Row::text).collect()
        };
        let shown = rows(&mut picker);
        let place = |words: &str| shown.iter().find_map(|row| row.find(words)).unwrap_or_default();
        assert_eq!(place("start a new"), place("show what fills"), "{shown:?}");
        assert!(place("start a new") > 0, "{shown:?}");
        "claer".chars().for_each(|c| drop(picker.key(KeyPress::Char(c))));
        let shown = rows(&mut picker);
        assert!(
            shown[0].contains("0 of ") && shown[1].contains("did you mean clear?"),
            "{shown:?}"
        );
        assert_eq!(picker.key(KeyPress::Tab), PickerAction::Stay, "only Enter acts");
        let fill = PickerAction::Fill(":clear".to_owned(), "clear".to_owned());
        assert_eq!(picker.key(KeyPress::Tab), fill, "nor does the second one");
        let clear = PickerAction::Choose(":clear".to_owned(), "clear".to_owned());
        assert_eq!(picker.key(KeyPress::Enter), clear);
        let mut picker = with_commands(PickerKind::Slash);
        "zzzzzzz".chars().for_each(|c| drop(picker.key(KeyPress::Char(c))));
        assert!(rows(&mut picker)[1].contains("nothing matches; Esc"), "the control");
        assert_eq!(picker.key(KeyPress::Enter), PickerAction::Close("zzzzzzz".to_owned()));
    }

    fn item(text: &str) -> PickerItem {
        PickerItem { text: text.to_owned(), detail: String::new(), value: text.to_owned() }
    }

    #[test]
    fn tab_goes_into_a_folder_and_from_there_takes_it() {
        let files = ["a/src/x.rs", "docs/", "src/", "src/in/", "src/in/y.rs", "src/z.rs"].map(item);
        let mut picker = Picker::new(PickerKind::Files, files.to_vec());
        let named = |picker: &Picker| -> Vec<String> {
            let items = picker.matches.iter().filter_map(|at| picker.item(*at));
            items.map(|item| item.text.clone()).collect()
        };
        "src".chars().for_each(|c| drop(picker.key(KeyPress::Char(c))));
        while picker.chosen().is_some_and(|item| item.text != "src/") {
            picker.key(KeyPress::Down);
        }
        assert_eq!(picker.key(KeyPress::Tab), PickerAction::Stay);
        assert_eq!(picker.query, "src/");
        let mut below = named(&picker);
        assert_eq!(below.remove(0), "src/");
        assert_eq!(below.pop().as_deref(), Some("a/src/x.rs"), "the others come last");
        assert_eq!(below.pop().as_deref(), Some("src/in/y.rs"));
        below.sort();
        assert_eq!(below, ["src/in/", "src/z.rs"]);
        let fill = PickerAction::Fill("src/".to_owned(), "src/".to_owned());
        assert_eq!(picker.key(KeyPress::Tab), fill, "the second one takes it");
        picker.key(KeyPress::Down);
        let enter = PickerAction::Choose(named(&picker)[1].clone(), "src/".to_owned());
        assert_eq!(picker.key(KeyPress::Enter), enter);
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
