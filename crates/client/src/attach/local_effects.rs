//! Effects of the screen that need the file system or the desktop: the image of the clipboard, and
//! directories to be added. The terminal waits for them.

use super::AttachedTerminal;
use crate::clipboard_image;
use crate::screen::{LeaveReason, ScreenEffect};
use protocol::confinement::FilePath;
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

    /// Performs effects up to the first that leaves.
    pub(super) fn perform_all(&mut self, effects: Vec<ScreenEffect>) -> ControlFlow<LeaveReason> {
        effects.into_iter().try_for_each(|effect| self.perform(effect))
    }
}
