//! Effects of the screen that need the file system or the desktop: the image of the clipboard, directories to be
//! added, and notes. The terminal waits for them.

use super::AttachedTerminal;
use crate::clipboard_image;
use crate::screen::{LeaveReason, NotePlace, ScreenEffect, ScreenInput};
use crate::screen_items::ScreenItem;
use protocol::confinement::FilePath;
use protocol::ids::SessionId;
use std::ops::ControlFlow;
use std::path::PathBuf;

impl AttachedTerminal<'_> {
    /// Saves it in a directory of the session's calls, and puts its name into the input line.
    pub(super) fn paste_image(&mut self, dir: &FilePath) -> ControlFlow<LeaveReason> {
        let effects = self.screen.pasted_image(clipboard_image::save(&dir.to_path()));
        self.perform_all(effects)
    }

    /// Adds a real directory to the session.
    pub(super) fn add_directory(&mut self, real: PathBuf) -> ControlFlow<LeaveReason> {
        let effects = self.screen.add_directory(FilePath::from(real));
        self.perform_all(effects)
    }

    /// Writes a note; its text comes back into the line where it was not written.
    pub(super) fn write_note(
        &mut self,
        session: &SessionId,
        place: NotePlace,
        text: &str,
    ) -> ControlFlow<LeaveReason> {
        match self.services.write_note(session, place, text) {
            Ok(written) => {
                self.view.show(ScreenItem::Note(written));
                ControlFlow::Continue(())
            }
            Err(why) => {
                self.view.show(ScreenItem::Error(why));
                let effects = self.screen.update(ScreenInput::Draft(format!("#{text}")));
                self.perform_all(effects)
            }
        }
    }

    /// Performs effects up to the first that leaves.
    pub(super) fn perform_all(&mut self, effects: Vec<ScreenEffect>) -> ControlFlow<LeaveReason> {
        effects.into_iter().try_for_each(|effect| self.perform(effect))
    }
}
