//! Ctrl-Z: the terminal goes to the shell until it continues this process.

use super::AttachedTerminal;
use crate::screen::{KeyPause, LeaveReason};
use crate::screen_items::ScreenItem;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp, getppid, getsid};
use std::ops::ControlFlow;

impl AttachedTerminal<'_> {
    /// Stops this process, and reads the keys again once it continues. The view is painted anew.
    pub(super) fn suspend(&mut self, pause: KeyPause) -> ControlFlow<LeaveReason> {
        // The group that leads its terminal, and one whose shell is gone, have no shell: the kernel stops no such group.
        let own = getsid(None);
        if own == Ok(getpgrp()) || getsid(Some(getppid())) != own {
            let none = "no shell started agentd here that could continue it";
            self.view.show(ScreenItem::Error(none.to_owned()));
            return ControlFlow::Continue(());
        }
        self.save_draft();
        let continued = self.view.lend_terminal(&mut || {
            // The shell waits for all programs of the command line.
            let stopped = kill(Pid::from_raw(0), Signal::SIGTSTP);
            stopped.map_err(|error| error.to_string()).map(|()| String::new())
        });
        drop(pause);
        match continued {
            Ok(Ok(_)) => {}
            Ok(Err(why)) => self.view.show(ScreenItem::Error(format!("not suspended: {why}"))),
            // Nothing can be painted any more.
            Err(_) => return ControlFlow::Break(LeaveReason::Detached(None)),
        }
        ControlFlow::Continue(())
    }
}
