//! Kills every process in this process's Landlock domain at once, and provides a guard process that
//! does so when the runner dies.
//!
//! `kill(-1)` reaches every process that the caller may signal. The kernel holds a lock that fork
//! takes too, so a process that forks cannot escape. In a domain with Landlock's signal scope,
//! `kill(-1)` reaches only this domain and the domains nested in it: the command's process tree.
//! Without the scope it would reach every process of the user. So the call requires a
//! [`SignalScope`], which only this file can create.

use crate::error::{CageError, CageStep};
use crate::landlock::ruleset;
use crate::proc_stat;
use crate::spawn::stdio::open_dev_null;
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

/// How long the processes killed by the guard may take to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of the check for remaining processes.
const PAUSE: Duration = Duration::from_millis(1);

/// Proof that this process's signals end at its Landlock domain. A domain can never grow again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SignalScope(());

impl SignalScope {
    /// Locks this process, and tests that the lock confines signals: it could signal its parent
    /// before, and cannot after. `None` before Landlock ABI 6, or if the test was not conclusive.
    ///
    /// # Errors
    /// `CageStep::Layer` if the lock itself fails.
    pub(crate) fn enter(rules: RulesetCreated) -> Result<Option<Self>, CageError> {
        let parent = getppid();
        let reached = parent.as_raw() > 0 && kill(parent, None).is_ok();
        ruleset::enforce(rules)?;
        let stopped = kill(parent, None) == Err(Errno::EPERM);
        let same = getppid() == parent;
        Ok((reached && stopped && same).then_some(Self(())))
    }

    /// Kills every other process in the domain.
    pub(crate) fn kill_all(self) {
        self.signal(Signal::SIGKILL);
    }

    /// Kills every other process in the domain, and waits up to [`KILL_TIMEOUT`] until none is
    /// left: a process stuck in a driver may never end. True if none is left.
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

    /// Sends a signal to every other process in the domain.
    pub(crate) fn signal(self, signal: Signal) {
        // ESRCH: there is no other process.
        let _ = kill(Pid::from_raw(-1), signal);
    }
}

/// True if another process of this domain lives. Only those can be signalled from here.
fn others_inside() -> bool {
    let me = getpid().as_raw();
    proc_stat::all_pids()
        .filter(|pid| *pid != me)
        .any(|pid| kill(Pid::from_raw(pid), None).is_ok() && proc_stat::lives(pid))
}

/// A process in the domain that outlives the runner just long enough to kill all others. The
/// command is in a nested domain and cannot signal it.
#[derive(Debug)]
pub(crate) struct DomainGuard {
    pid: Pid,
    /// Only the runner holds this write end: end of file tells the guard that the runner is gone.
    _lifeline: PipeWriter,
}

impl DomainGuard {
    /// Starts the guard. Call it after the command's process was forked, which must not hold the
    /// lifeline. If this process has threads, the C library keeps the allocator usable in the
    /// forked copy, which takes no other lock.
    ///
    /// # Errors
    /// `CageStep::Fork`.
    pub(crate) fn start(signal_scope: SignalScope) -> Result<Self, CageError> {
        let failed = |error| CageError::os(CageStep::Fork, "the guard", error);
        let (sign, lifeline) = std::io::pipe()
            .map_err(|error| CageError::os(CageStep::Fork, "the guard's pipe", error))?;
        let nothing = open_dev_null()?;
        let pid = sys::fork(move || match wait_for_runner(sign, nothing) {
            Ok(()) => i32::from(!signal_scope.kill_until_empty()),
            Err(_) => 1,
        })
        .map_err(failed)?;
        Ok(Self { pid, _lifeline: lifeline })
    }

    /// Its process ID as the runner sees it.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// True if it has ended. It ends before the runner only if another process killed it.
    pub(crate) fn is_lost(&self) -> bool {
        // ECHILD: it was reaped with the command's processes.
        waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) != Ok(WaitStatus::StillAlive)
    }

    /// Continues the guard after all processes of the domain were stopped.
    pub(crate) fn resume(&self) {
        let _ = kill(self.pid, Signal::SIGCONT);
    }
}

/// Returns when the runner is gone. The same event continues a stopped guard.
fn wait_for_runner(mut sign: PipeReader, nothing: OwnedFd) -> Result<(), Errno> {
    let _ = setsid();
    sys::continue_at_event(sign.as_fd())?;
    // The guard must not hold the runner's own streams open, above all its channel, once the runner
    // has ended.
    for stream in 0..3 {
        sys::put_at(nothing.as_fd(), stream)?;
    }
    drop(nothing);
    sys::close_all_but(&[sign.as_fd()])?;
    // The runner never writes, so any result means that it is gone.
    let _ = sign.read(&mut [0]);
    Ok(())
}
