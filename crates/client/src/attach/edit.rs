//! The unsent text, or a file, in the person's own editor. The view gives the terminal away meanwhile, and the
//! supervisor's messages wait.

use super::AttachedTerminal;
use crate::screen::{FilePlace, Focus, KeyPause, LeaveReason, ScreenInput};
use crate::screen_items::ScreenItem;
use crate::session_loop::SessionUser;
use crate::spawn::edit_place;
use crate::terminal_use::TerminalUse;
use protocol::client::ClientRights;
use std::io;
use std::ops::ControlFlow;

impl AttachedTerminal<'_> {
    /// Edits the unsent text, and reads the keys again.
    pub(super) fn edit(&mut self, pause: KeyPause) -> ControlFlow<LeaveReason> {
        let Some(session) = self.screen.session().cloned() else {
            return ControlFlow::Continue(());
        };
        if self.screen.focus() != Focus::Line
            || self.screen.options().rights == ClientRights::ReadOnly
        {
            return ControlFlow::Continue(());
        }
        let edited =
            self.view.lend_terminal(&mut || self.services.edit(&session, &self.screen.draft()));
        drop(pause);
        match edited {
            Ok(Ok(text)) => drop(self.screen.update(ScreenInput::Edited(text))),
            Ok(Err(why)) => self.view.show(ScreenItem::Error(why)),
            // Nothing can be painted any more.
            Err(_) => return ControlFlow::Break(LeaveReason::Detached(None)),
        }
        self.take_waiting()
    }

    /// Opens a file at a line of it, and reads the keys again.
    pub(super) fn open_place(
        &mut self,
        pause: KeyPause,
        place: &FilePlace,
    ) -> ControlFlow<LeaveReason> {
        let opened = self.view.lend_terminal(&mut || {
            let failed = |error| format!("cannot open {}: {error}", place.path.display());
            edit_place(place).map(|()| String::new()).map_err(failed)
        });
        drop(pause);
        match opened {
            Ok(Ok(_)) => {}
            Ok(Err(why)) => self.view.show(ScreenItem::Error(why)),
            Err(_) => return ControlFlow::Break(LeaveReason::Detached(None)),
        }
        self.take_waiting()
    }

    /// Takes what came while the editor had the terminal.
    fn take_waiting(&mut self) -> ControlFlow<LeaveReason> {
        // Ctrl-C in an editor is for the editor.
        let waiting: Vec<_> = std::iter::from_fn(|| self.connection.try_next()).collect();
        let meant = |it: &ScreenInput| !matches!(it, ScreenInput::Signal(nix::libc::SIGINT));
        waiting.into_iter().filter(meant).try_for_each(|input| self.take(input))
    }
}

/// For a view that keeps no mode of the terminal.
pub(super) fn lend_as_is(run: TerminalUse<'_>) -> io::Result<Result<String, String>> {
    Ok(run())
}
