//! Killing everything in this process's Landlock domain at once, and a guard that does so when the
//! runner dies. For `tree` and `cage` only.
//!
//! `kill(-1)` reaches every process that the caller may signal, under one lock that fork takes
//! too, so nothing slips through by forking. From inside a domain with the signal scope that is
//! the domain itself and what nests in it: the command's tree, wherever it hid. Without the scope
//! it would be every process of the user, so the call needs a proof that only this file makes.

use crate::error::{CageError, Step};
use crate::layer;
use crate::runner::nothing;
use crate::sys;
use landlock::RulesetCreated;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid, setsid};
use std::io::{PipeWriter, Read};
use std::os::fd::AsFd;

/// Proof that this process's signals end at its Landlock domain, which can never grow again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fence(());

impl Fence {
    /// Locks this process, and looks whether the lock really holds signals back: its parent could
    /// be signalled before, and not after. `None` where the kernel cannot do that (before ABI 6)
    /// or where it could not be shown.
    ///
    /// # Errors
    /// `Step::Layer` where the lock itself fails.
    pub(crate) fn raise(rules: RulesetCreated) -> Result<Option<Self>, CageError> {
        let parent = getppid();
        let reached = parent.as_raw() > 0 && kill(parent, None).is_ok();
        layer::enforce(rules)?;
        let stopped = kill(parent, None) == Err(Errno::EPERM);
        let same = getppid() == parent;
        Ok((reached && stopped && same).then_some(Self(())))
    }

    /// Ends every process in the domain but this one.
    pub(crate) fn end_all_inside(self) {
        self.signal(Signal::SIGKILL);
    }

    /// Sends it to every process in the domain but this one.
    pub(crate) fn signal(self, signal: Signal) {
        // ESRCH says that there is none.
        let _ = kill(Pid::from_raw(-1), signal);
    }
}

/// A process inside the domain that outlives the runner just long enough to empty it. The command
/// is in a deeper domain and cannot signal it.
#[derive(Debug)]
pub(crate) struct Guard {
    pid: Pid,
    /// Its end of file is the sign; held by the runner alone.
    _lifeline: PipeWriter,
}

impl Guard {
    /// Starts it. To be called after the command's process was forked, which must not hold the
    /// lifeline, and before any thread.
    ///
    /// # Errors
    /// `Step::Fork`.
    pub(crate) fn start(fence: Fence) -> Result<Self, CageError> {
        let failed = |error| CageError::os(Step::Fork, "the guard", error);
        let (mut sign, lifeline) = std::io::pipe()
            .map_err(|error| CageError::os(Step::Fork, "the guard's pipe", error))?;
        let nothing = nothing()?;
        let pid = sys::fork(move || {
            let _ = setsid();
            // The runner's own streams, its channel above all, must end with the runner.
            for stream in 0..3 {
                if sys::put_at(nothing.as_fd(), stream).is_err() {
                    return 1;
                }
            }
            drop(nothing);
            if sys::close_all_but(sign.as_fd()).is_err() {
                return 1;
            }
            let mut byte = [0];
            // Nothing is ever written, so any answer means that the runner is gone.
            let _ = sign.read(&mut byte);
            fence.end_all_inside();
            0
        })
        .map_err(failed)?;
        Ok(Self { pid, _lifeline: lifeline })
    }

    /// Lets it run on where it was stopped with all others.
    pub(crate) fn go_on(&self) {
        let _ = kill(self.pid, Signal::SIGCONT);
    }
}
