//! Scrolling: by rows and by the mouse. Earlier events load at the top.

use super::FullScreen;
use crate::frame::Mode;
use crate::places::places;
use crate::selection::MouseRelease;
use client::{KeyPause, MouseInput, Screen, ScreenInput};

/// Rows of a notch of the mouse wheel.
const NOTCH: isize = 3;

impl FullScreen {
    pub(super) fn scroll(&mut self, rows: isize, screen: &Screen) -> Vec<ScreenInput> {
        let (size, look) = (self.state.size, self.state.look);
        match self.state.conversation.scroll(rows, size, &look) {
            true => self.load_earlier(screen),
            false => Vec::new(),
        }
    }

    pub(super) fn load_earlier(&mut self, screen: &Screen) -> Vec<ScreenInput> {
        if self.loading || !screen.has_earlier() {
            return Vec::new();
        }
        self.loading = true;
        vec![ScreenInput::Command(":earlier".to_owned())]
    }

    pub(super) fn mouse(&mut self, mouse: MouseInput, screen: &Screen) -> Vec<ScreenInput> {
        match (mouse, &mut self.state.mode) {
            (MouseInput::Wheel(notches), Mode::Pager(pager)) => {
                pager.scroll(notches as isize * NOTCH)
            }
            (MouseInput::Wheel(notches), _) => {
                self.state.conversation.go_on();
                return self.scroll(notches as isize * NOTCH, screen);
            }
            (MouseInput::Pressed(column, row), mode) => {
                let may_select = !matches!(mode, Mode::Picker(_));
                self.end_selection();
                if may_select {
                    self.state.selection.press((column, row));
                }
            }
            (MouseInput::Dragged(column, row), _) => {
                self.state.selection.drag((column, row));
                if self.state.selection.is_shown() {
                    let (size, look) = (self.state.size, self.state.look);
                    self.state.conversation.stand_still(size, &look);
                }
            }
            (MouseInput::Released(column, row), _) => {
                match self.state.selection.release((column, row)) {
                    MouseRelease::Click => self.click(row),
                    MouseRelease::Selected(text) => self.copy_selected(&text),
                    MouseRelease::Nothing => self.end_selection(),
                }
            }
        }
        Vec::new()
    }

    /// Nothing is selected any more; the conversation goes on where it stood still for it.
    pub(super) fn end_selection(&mut self) {
        self.state.selection.clear();
        self.state.conversation.go_on();
    }

    fn copy_selected(&mut self, text: &str) {
        let lines = text.lines().count();
        let what = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
        self.copy(text);
        let way = self.state.hint.take().unwrap_or_default();
        self.state.hint = Some(format!("{what} {way}"));
    }

    fn click(&mut self, row: u16) {
        match &self.state.mode {
            Mode::Input | Mode::Browse(_) => {
                if let Some(block) = self.state.conversation.at_place(row) {
                    self.state.mode = Mode::Browse(None);
                    self.state.conversation.choose_at(block);
                    if let Some(block) = self.state.conversation.chosen_block() {
                        block.toggle();
                    }
                }
            }
            Mode::Pager(_) | Mode::Picker(_) => {}
        }
    }

    /// Opens the `file:line` at this cell in the person's editor.
    pub(super) fn follow_place(
        &mut self,
        pause: KeyPause,
        cell: (u16, u16),
        screen: &Screen,
    ) -> Vec<ScreenInput> {
        self.end_selection();
        if matches!(self.state.mode, Mode::Picker(_)) {
            return Vec::new();
        }
        let word = self.state.selection.word_at(cell).unwrap_or_default();
        match places(&word, &self.project(screen)).into_iter().next() {
            Some(place) => vec![ScreenInput::OpenEditor(pause, Some(place))],
            None => {
                self.state.hint = Some("no file:line of this project is there".to_owned());
                Vec::new()
            }
        }
    }
}
