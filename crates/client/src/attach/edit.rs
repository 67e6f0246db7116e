//! The unsent text in the person's own editor. The view gives the terminal away meanwhile, and the
//! supervisor's messages wait.

use super::AttachLoop;
use crate::screen::{Focus, KeyPause, LeaveReason, ScreenInput};
use crate::screen_items::ScreenItem;
use crate::terminal_use::TerminalUse;
use protocol::client::ClientRights;
use std::io;

impl AttachLoop<'_> {
    /// Edits the unsent text, and reads the keys again.
    pub(super) fn edit(&mut self, pause: KeyPause) -> Option<LeaveReason> {
        let session = self.screen.session().cloned()?;
        if self.screen.focus() != Focus::Line || self.visit.options.rights == ClientRights::ReadOnly
        {
            return None;
        }
        let edited =
            self.view.lend_terminal(&mut || self.services.edit(&session, self.screen.draft()));
        drop(pause);
        match edited {
            Ok(Ok(text)) => drop(self.screen.update(ScreenInput::Edited(text))),
            Ok(Err(why)) => self.view.show(ScreenItem::Error(why)),
            // Nothing can be painted any more.
            Err(_) => return Some(LeaveReason::Detached(None)),
        }
        // Ctrl-C in an editor is for the editor.
        let waiting: Vec<_> = self.inputs.try_iter().collect();
        let meant = |it: &ScreenInput| !matches!(it, ScreenInput::Signal(nix::libc::SIGINT));
        waiting.into_iter().filter(meant).find_map(|input| self.take_all(input))
    }

    /// Handles an input that the view may replace.
    pub(super) fn take_all(&mut self, input: ScreenInput) -> Option<LeaveReason> {
        let inputs = self.view.take(input, &self.screen);
        inputs.into_iter().find_map(|input| self.take(input))
    }
}

/// For a view that keeps no mode of the terminal.
pub(super) fn lend_as_is(run: TerminalUse<'_>) -> io::Result<Result<String, String>> {
    Ok(run())
}
