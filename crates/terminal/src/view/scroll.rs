//! Scrolling: by rows and by the mouse. Earlier events load at the top.

use super::FullScreen;
use crate::frame::Mode;
use client::{MouseInput, Screen, ScreenInput};

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
                return self.scroll(notches as isize * NOTCH, screen);
            }
            (MouseInput::Pressed(_, row), Mode::Input | Mode::Browse(_)) => {
                if let Some(block) = self.state.conversation.at_place(row) {
                    self.state.mode = Mode::Browse(None);
                    self.state.conversation.choose_at(block);
                    if let Some(block) = self.state.conversation.chosen_block() {
                        block.toggle();
                    }
                }
            }
            (MouseInput::Pressed(..), Mode::Pager(_) | Mode::Picker(_)) => {}
        }
        Vec::new()
    }
}
