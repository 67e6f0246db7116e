//! All processes of one command: waiting for it, and ending every one of them. For `caged` only.
//!
//! The runner waits for any child (`waitpid(-1)`), which is right here alone: it is a process of
//! one purpose, and every child it has belongs to this tree.

use crate::cgroup::CommandCgroup;
use crate::domain_guard::{DomainGuard, SignalScope};
use crate::error::CageError;
use crate::pid1::Pid1;
use crate::proc_stat;
use crate::proc_usage;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use protocol::tool::{Keeper, KeeperKind};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the kernel gets to end what was killed; only a process stuck in a driver needs more.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Between two blows, at first and at last.
const SHORT: Duration = Duration::from_micros(50);
const LONG: Duration = Duration::from_millis(50);

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandExit {
    /// It returned this.
    Code(i32),
    /// This signal ended it; 31 (SIGSYS) where it used a foreign system call interface.
    Signal(i32),
}

/// What holds the tree together.
#[derive(Debug)]
pub(crate) enum Containment {
    /// A PID namespace, which ends with its first process.
    Namespace { first: Pid1, fence: Option<SignalScope> },
    /// This process as the subreaper, and the Landlock domain where it is proven.
    Domain { fence: Option<SignalScope>, guard: Option<DomainGuard> },
}

/// Whether all processes were stopped.
#[derive(Debug)]
pub(crate) enum StoppedTree {
    /// By this fence.
    Yes(SignalScope),
    No,
}

impl StoppedTree {
    /// Lets them go on.
    pub(crate) fn resume(self) {
        match self {
            Self::Yes(fence) => fence.signal(Signal::SIGCONT),
            Self::No => {}
        }
    }
}

/// The processes of one command.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    command: Pid,
    containment: Containment,
    cgroup: Option<CommandCgroup>,
    exit: Option<CommandExit>,
    /// `Some` once it was ended: how many processes are still there.
    survivors: Option<u32>,
}

impl ProcessTree {
    /// A tree that grows from `command`.
    pub(crate) fn new(command: Pid, bond: Containment, group: Option<CommandCgroup>) -> Self {
        Self { command, containment: bond, cgroup: group, exit: None, survivors: None }
    }

    /// The cgroup that it is in, where it has one of its own.
    pub(crate) fn group(&self) -> Option<&CommandCgroup> {
        self.cgroup.as_ref()
    }

    /// Starts the guard, where the domain is fenced; again where the last one was lost.
    ///
    /// # Errors
    /// `Step::Fork`.
    pub(crate) fn ensure_guard(&mut self) -> Result<(), CageError> {
        match &mut self.containment {
            Containment::Domain { fence: Some(fence), guard } => {
                if guard.as_ref().is_none_or(DomainGuard::is_lost) {
                    *guard = Some(DomainGuard::start(*fence)?);
                }
                Ok(())
            }
            Containment::Domain { fence: None, .. } | Containment::Namespace { .. } => Ok(()),
        }
    }

    /// Whether its processes have a PID namespace of their own, and with it a root.
    pub(crate) fn is_namespace(&self) -> bool {
        match &self.containment {
            Containment::Namespace { .. } => true,
            Containment::Domain { .. } => false,
        }
    }

    /// The process that ends the tree where the runner does not; `None` where the kernel has no
    /// means for one.
    pub(crate) fn keeper(&self) -> Option<Keeper> {
        let (pid, kind) = match &self.containment {
            Containment::Namespace { first, .. } => (first.pid(), KeeperKind::FirstProcess),
            Containment::Domain { guard: Some(guard), .. } => (guard.pid(), KeeperKind::Guard),
            Containment::Domain { guard: None, .. } => return None,
        };
        let command = self.command.as_raw().unsigned_abs();
        Some(Keeper { pid: pid.as_raw().unsigned_abs(), kind, command })
    }

    /// The command's process, as the runner numbers it.
    pub(crate) fn command(&self) -> Pid {
        self.command
    }

    /// How the command ended; known after `end`.
    pub(crate) fn exit(&self) -> Option<CommandExit> {
        self.exit
    }

    /// Whether `end` was called.
    pub(crate) fn was_killed(&self) -> bool {
        self.survivors.is_some()
    }

    /// Asks the command's group to end.
    pub(crate) fn terminate(&self) {
        let group = Pid::from_raw(-self.command.as_raw());
        // ESRCH: none is left in the group. A stopped process must run on to hear the request.
        let _ = kill(group, Signal::SIGTERM);
        let _ = kill(group, Signal::SIGCONT);
    }

    /// Ends every process and waits until none is left; returns how many are. Does so once.
    pub(crate) fn kill_all(&mut self) -> u32 {
        if let Some(survivors) = self.survivors {
            return survivors;
        }
        let deadline = Instant::now() + KILL_TIMEOUT;
        let mut pause = SHORT;
        let mut pauses = 0;
        let survivors = loop {
            self.kill_once();
            let empty = self.cgroup.as_ref().is_none_or(CommandCgroup::is_empty);
            if self.reap() && empty {
                break 0;
            }
            if Instant::now() > deadline {
                break u32::try_from(living_children().len()).unwrap_or(u32::MAX).max(1);
            }
            // The usual end takes the kernel some hundred microseconds. Thousands take long, and
            // each blow holds a lock that they need to end.
            sleep(pause);
            pauses += 1;
            if pauses > 20 {
                pause = (pause * 2).min(LONG);
            }
        };
        self.survivors = Some(survivors);
        survivors
    }

    /// Collects what ended, so that its number is free and it counts no more. In tier A the
    /// namespace's first process does.
    pub(crate) fn reap_orphans(&mut self) {
        match self.containment {
            Containment::Namespace { .. } => {}
            Containment::Domain { .. } => drop(self.reap()),
        }
    }

    /// The names of its processes that live.
    pub(crate) fn live_names(&self) -> Vec<String> {
        proc_usage::live_names(self.guard_pid())
    }

    /// The cage's own process among them.
    pub(crate) fn guard_pid(&self) -> Option<u32> {
        let own = match &self.containment {
            Containment::Namespace { first, .. } => Some(first.pid()),
            Containment::Domain { guard, .. } => guard.as_ref().map(DomainGuard::pid),
        };
        own.map(|pid| pid.as_raw().unsigned_abs())
    }

    /// Stops every process, so that a bomb cannot outrun its counting. Not without a fence.
    pub(crate) fn stop(&self) -> StoppedTree {
        match &self.containment {
            Containment::Domain { fence: Some(fence), guard } => {
                fence.signal(Signal::SIGSTOP);
                if let Some(guard) = guard {
                    guard.resume();
                }
                StoppedTree::Yes(*fence)
            }
            Containment::Namespace { fence: Some(fence), .. } => {
                fence.signal(Signal::SIGSTOP);
                StoppedTree::Yes(*fence)
            }
            Containment::Domain { fence: None, .. }
            | Containment::Namespace { fence: None, .. } => StoppedTree::No,
        }
    }

    /// One blow with the strongest means there is.
    fn kill_once(&mut self) {
        if let Some(group) = &self.cgroup {
            group.kill();
        }
        if self.exit.is_none() {
            let _ = kill(self.command, Signal::SIGKILL);
        }
        match &mut self.containment {
            Containment::Namespace { first, .. } => first.shut_down(),
            Containment::Domain { fence: Some(fence), .. } => fence.kill_all(),
            Containment::Domain { fence: None, .. } => {
                for child in living_children() {
                    let _ = kill(child, Signal::SIGKILL);
                }
            }
        }
    }

    /// Collects what ended; true once no child is left.
    fn reap(&mut self) -> bool {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == self.command => {
                    self.exit = Some(CommandExit::Code(code));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.command => {
                    self.exit = Some(CommandExit::Signal(signal as i32));
                }
                Ok(WaitStatus::StillAlive) => return false,
                Err(Errno::ECHILD) => return true,
                Ok(
                    WaitStatus::Exited(..)
                    | WaitStatus::Signaled(..)
                    | WaitStatus::Stopped(..)
                    | WaitStatus::PtraceEvent(..)
                    | WaitStatus::PtraceSyscall(..)
                    | WaitStatus::Continued(..),
                )
                | Err(_) => {}
            }
        }
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        self.kill_all();
    }
}

/// The children of this process that have not ended; orphans of the command are among them, since
/// the runner is their subreaper.
fn living_children() -> Vec<Pid> {
    let me = std::process::id();
    proc_stat::all_pids()
        .filter(|pid| proc_stat::is_living_child(*pid, me))
        .map(Pid::from_raw)
        .collect()
}
