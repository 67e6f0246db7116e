//! Killing everything in this process's Landlock domain at once, and a guard that does so when the
//! runner dies. For `tree` and `cage` only.
//!
//! `kill(-1)` reaches every process that the caller may signal, under one lock that fork takes
//! too, so nothing slips through by forking. From inside a domain with the signal scope that is
//! the domain itself and what nests in it: the command's tree, wherever it hid. Without the scope
//! it would be every process of the user, so the call needs a proof that only this file makes.

use crate::error::{CageError, CageStep};
use crate::launch::open_dev_null;
use crate::proc_stat;
use crate::ruleset;
use crate::sys;
use landlock::RulesetCreated;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, getppid, setsid};
use std::io::{PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the kernel gets to end what the guard killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two looks at what is left.
const PAUSE: Duration = Duration::from_millis(1);

/// Proof that this process's signals end at its Landlock domain, which can never grow again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SignalScope(());

impl SignalScope {
    /// Locks this process, and looks whether the lock really holds signals back: its parent could
    /// be signalled before, and not after. `None` where the kernel cannot do that (before ABI 6)
    /// or where it could not be shown.
    ///
    /// # Errors
    /// `Step::Layer` where the lock itself fails.
    pub(crate) fn enter(rules: RulesetCreated) -> Result<Option<Self>, CageError> {
        let parent = getppid();
        let reached = parent.as_raw() > 0 && kill(parent, None).is_ok();
        ruleset::enforce(rules)?;
        let stopped = kill(parent, None) == Err(Errno::EPERM);
        let same = getppid() == parent;
        Ok((reached && stopped && same).then_some(Self(())))
    }

    /// Ends every process in the domain but this one.
    pub(crate) fn kill_all(self) {
        self.signal(Signal::SIGKILL);
    }

    /// Ends every process in the domain but this one, and waits until none is left. Not for ever: a
    /// process stuck in a driver does not end. Whether none is left.
    fn kill_until_empty(self) -> bool {
        let until = Instant::now() + KILL_TIMEOUT;
        loop {
            self.kill_all();
            if !others_inside() {
                return true;
            }
            if Instant::now() > until {
                return false;
            }
            sleep(PAUSE);
        }
    }

    /// Sends it to every process in the domain but this one.
    pub(crate) fn signal(self, signal: Signal) {
        // ESRCH says that there is none.
        let _ = kill(Pid::from_raw(-1), signal);
    }
}

/// Whether another process of this domain lives. Only those can be signalled from here.
fn others_inside() -> bool {
    let me = getpid().as_raw();
    proc_stat::all_pids()
        .filter(|pid| *pid != me)
        .any(|pid| kill(Pid::from_raw(pid), None).is_ok() && proc_stat::lives(pid))
}

/// A process inside the domain that outlives the runner just long enough to empty it. The command
/// is in a deeper domain and cannot signal it.
#[derive(Debug)]
pub(crate) struct DomainGuard {
    pid: Pid,
    /// Its end of file is the sign; held by the runner alone.
    _lifeline: PipeWriter,
}

impl DomainGuard {
    /// Starts it. To be called after the command's process was forked, which must not hold the
    /// lifeline. Where this process has threads, the C library keeps its allocator usable in the
    /// copy, which takes no other lock.
    ///
    /// # Errors
    /// `Step::Fork`.
    pub(crate) fn start(fence: SignalScope) -> Result<Self, CageError> {
        let failed = |error| CageError::os(CageStep::Fork, "the guard", error);
        let (sign, lifeline) = std::io::pipe()
            .map_err(|error| CageError::os(CageStep::Fork, "the guard's pipe", error))?;
        let nothing = open_dev_null()?;
        let pid = sys::fork(move || match wait_for_runner(sign, nothing) {
            Ok(()) => i32::from(!fence.kill_until_empty()),
            Err(_) => 1,
        })
        .map_err(failed)?;
        Ok(Self { pid, _lifeline: lifeline })
    }

    /// Its number, as the runner sees it.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether it has ended, which it does before the runner only where somebody killed it.
    pub(crate) fn is_lost(&self) -> bool {
        // ECHILD: it was reaped with the command's processes.
        waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) != Ok(WaitStatus::StillAlive)
    }

    /// Lets it run on where it was stopped with all others.
    pub(crate) fn resume(&self) {
        let _ = kill(self.pid, Signal::SIGCONT);
    }
}

/// Returns when the runner is gone. A guard that was stopped meanwhile is continued by that.
fn wait_for_runner(mut sign: PipeReader, nothing: OwnedFd) -> Result<(), Errno> {
    let _ = setsid();
    sys::continue_at_event(sign.as_fd())?;
    // The runner's own streams, its channel above all, must end with the runner.
    for stream in 0..3 {
        sys::put_at(nothing.as_fd(), stream)?;
    }
    drop(nothing);
    sys::close_all_but(&[sign.as_fd()])?;
    // Nothing is ever written, so any answer means that the runner is gone.
    let _ = sign.read(&mut [0]);
    Ok(())
}
