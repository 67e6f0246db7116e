//! Going through the blocks of the conversation: choose, unfold, open, search, copy.

use super::{FullScreen, ListSubject};
use crate::frame::Mode;
use crate::pager::Pager;
use crate::picker::{Picker, PickerAction, PickerItem, PickerKind};
use crate::places::places;
use client::{Direction, FilePlace, KeyPause, KeyPress, Screen, ScreenInput, one_line};

impl FullScreen {
    pub(super) fn browse(&mut self) {
        self.state.mode = Mode::Browse(None);
        self.escaped = false;
        let (size, look) = (self.state.size, self.state.look);
        self.state.conversation.choose_none();
        self.state.conversation.choose(0, size, &look);
    }

    // All other keys do nothing here.
    #[allow(clippy::wildcard_enum_match_arm)]
    pub(super) fn browse_key(&mut self, key: KeyPress, screen: &Screen) -> Vec<ScreenInput> {
        self.state.hint = None;
        if std::mem::take(&mut self.escaped) && key == KeyPress::Escape {
            return self.rewind(screen);
        }
        let (size, look) = (self.state.size, self.state.look);
        if let Mode::Browse(Some(typed)) = &mut self.state.mode {
            match key {
                KeyPress::Char(c) => typed.push(c),
                KeyPress::Erase(..) => drop(typed.pop()),
                KeyPress::Enter => {
                    let words = std::mem::take(typed);
                    self.state.mode = Mode::Browse(None);
                    self.state.search = words;
                    self.state.conversation.search_anew();
                    self.find(-1);
                }
                _ => self.state.mode = Mode::Browse(None),
            }
            return Vec::new();
        }
        let page = size.1.saturating_sub(2).max(1) as isize;
        match key {
            KeyPress::Char('k') | KeyPress::Up => {
                let before = self.state.conversation.chosen();
                self.state.conversation.choose(-1, size, &look);
                if before == self.state.conversation.chosen() {
                    return self.load_earlier(screen);
                }
            }
            KeyPress::Char('j') | KeyPress::Down => self.state.conversation.choose(1, size, &look),
            KeyPress::Page(Direction::Start) => return self.scroll(-page, screen),
            KeyPress::Page(Direction::End) => return self.scroll(page, screen),
            KeyPress::Char('g') => self.state.conversation.show_start(),
            KeyPress::Char('G') => self.state.conversation.show_end(),
            KeyPress::Char('/') => self.state.mode = Mode::Browse(Some(String::new())),
            KeyPress::Char('n') => self.find(-1),
            KeyPress::Char('N') => self.find(1),
            KeyPress::Enter | KeyPress::Char(' ') => {
                if let Some(block) = self.state.conversation.chosen_block() {
                    block.toggle();
                }
            }
            KeyPress::Char('o') => self.open_whole(),
            KeyPress::Char('y') => {
                if let Some(text) = self.state.conversation.chosen_block().map(|block| block.text())
                {
                    self.copy(&text);
                }
            }
            KeyPress::Char('i' | 'q')
            | KeyPress::Escape
            | KeyPress::Interrupt
            | KeyPress::Control('o') => {
                self.state.conversation.choose_none();
                self.state.mode = Mode::Input;
            }
            KeyPress::Leader | KeyPress::EndOfInput | KeyPress::Tab => {
                self.state.conversation.choose_none();
                self.state.mode = Mode::Input;
                return vec![ScreenInput::Key(key)];
            }
            _ => {}
        }
        Vec::new()
    }

    /// Ctrl-G: at a block with places in files the editor is for these, else for the unsent text.
    pub(super) fn open_editor(&mut self, pause: KeyPause, screen: &Screen) -> Vec<ScreenInput> {
        self.state.hint = None;
        if let Mode::Picker(picker) = &mut self.state.mode
            && picker.kind == PickerKind::Places
        {
            let PickerAction::Choose(value, _) = picker.key(KeyPress::Enter) else {
                return Vec::new();
            };
            self.state.mode = Mode::Browse(None);
            let ListSubject::Places(places) = std::mem::take(&mut self.subject) else {
                return Vec::new();
            };
            let place = value.parse().ok().and_then(|at: usize| places.into_iter().nth(at));
            let open = |place| ScreenInput::OpenEditor(pause, Some(place));
            return place.map(open).into_iter().collect();
        }
        let Mode::Browse(None) = self.state.mode else {
            return vec![ScreenInput::OpenEditor(pause, None)];
        };
        let project = self.project(screen);
        let text = self.state.conversation.chosen_block().map(|block| block.text());
        let places = places(&text.unwrap_or_default(), &project);
        let named = |(at, place): (usize, &FilePlace)| {
            let root = project.canonicalize().unwrap_or_default();
            let below = place.path.strip_prefix(&root).unwrap_or(&place.path).display();
            let text = format!("{below}:{}", place.line);
            PickerItem { text, detail: String::new(), value: at.to_string() }
        };
        match places.as_slice() {
            [] => {
                let words = "no file:line of this project is in this block";
                self.state.hint = Some(words.to_owned());
                Vec::new()
            }
            [only] => vec![ScreenInput::OpenEditor(pause, Some(only.clone()))],
            several => {
                let items = several.iter().enumerate().map(named).collect();
                self.state.mode = Mode::Picker(Picker::new(PickerKind::Places, items));
                self.subject = ListSubject::Places(places);
                Vec::new()
            }
        }
    }

    fn open_whole(&mut self) {
        let (width, look) = (usize::from(self.tty.area().width), self.state.look);
        let Some(block) = self.state.conversation.chosen_block() else { return };
        let text = block.text();
        let rows = block.whole(width, &look);
        let title = one_line(text.lines().next().unwrap_or_default(), width);
        self.state.mode = Mode::Pager(Pager::new(title, rows, text));
    }

    fn find(&mut self, step: isize) {
        let (size, look, words) = (self.state.size, self.state.look, self.state.search.clone());
        if words.is_empty() || !self.state.conversation.find(&words, step, size, &look) {
            self.state.hint = Some(format!("not found: {words}"));
            return;
        }
        let place = self.state.conversation.place_found(&words, size, &look);
        self.state.hint =
            place.map(|(at, all)| format!("{at}/{all} {words} · n N go on, / search"));
    }
}
