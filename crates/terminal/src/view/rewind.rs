//! The two pickers of a rewind: the place, then what goes back.

use super::FullScreen;
use crate::choices;
use crate::frame::Mode;
use crate::picker::{Picker, PickerKind};
use client::{Screen, ScreenInput};
use protocol::client::ClientRights;

impl FullScreen {
    /// The picker of places to go back before.
    pub(super) fn rewind(&mut self, screen: &Screen) -> Vec<ScreenInput> {
        self.state.conversation.choose_none();
        self.state.mode = Mode::Input;
        let items = choices::rewind_points(screen);
        // The model says why not.
        if items.is_empty() || screen.options().rights == ClientRights::ReadOnly {
            return vec![ScreenInput::Command(choices::REWIND.to_owned())];
        }
        self.state.mode = Mode::Picker(Picker::new(PickerKind::Rewind, items));
        Vec::new()
    }

    /// The picker of what goes back to a place.
    pub(super) fn rewind_scope(&mut self, place: &str) -> Vec<ScreenInput> {
        let items = choices::rewind_scopes(place);
        self.state.mode = Mode::Picker(Picker::new(PickerKind::RewindScope, items));
        Vec::new()
    }
}
