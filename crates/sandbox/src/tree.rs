//! All processes of one command: waiting for it, and ending every one of them. For `caged` only.
//!
//! The runner waits for any child (`waitpid(-1)`), which is right here alone: it is a process of
//! one purpose, and every child it has belongs to this tree.

use crate::census;
use crate::cgroup::Group;
use crate::error::CageError;
use crate::fence::{Fence, Guard};
use crate::init::First;
use crate::stat;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use protocol::tool::{Keeper, KeeperKind};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the kernel gets to end what was killed; only a process stuck in a driver needs more.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two blows, at first and at last.
const SHORT: Duration = Duration::from_micros(50);
const LONG: Duration = Duration::from_millis(50);

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It returned this.
    Code(i32),
    /// This signal ended it; 31 (SIGSYS) where it used a foreign system call interface.
    Signal(i32),
}

/// What holds the tree together.
#[derive(Debug)]
pub(crate) enum Bond {
    /// A PID namespace, which ends with its first process.
    Namespace { first: First, fence: Option<Fence> },
    /// This process as the subreaper, and the Landlock domain where it is proven.
    Domain { fence: Option<Fence>, guard: Option<Guard> },
}

/// Whether all processes were stopped.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// By this fence.
    Yes(Fence),
    No,
}

impl Stopped {
    /// Lets them go on.
    pub(crate) fn go_on(self) {
        match self {
            Self::Yes(fence) => fence.signal(Signal::SIGCONT),
            Self::No => {}
        }
    }
}

/// The processes of one command.
#[derive(Debug)]
pub(crate) struct Tree {
    command: Pid,
    bond: Bond,
    group: Option<Group>,
    exit: Option<Exit>,
    /// `Some` once it was ended: how many processes are still there.
    survivors: Option<u32>,
}

impl Tree {
    /// A tree that grows from `command`.
    pub(crate) fn new(command: Pid, bond: Bond, group: Option<Group>) -> Self {
        Self { command, bond, group, exit: None, survivors: None }
    }

    /// The cgroup that it is in, where it has one of its own.
    pub(crate) fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// Starts the guard, where the domain is fenced; again where the last one was lost.
    ///
    /// # Errors
    /// `Step::Fork`.
    pub(crate) fn set_guard(&mut self) -> Result<(), CageError> {
        match &mut self.bond {
            Bond::Domain { fence: Some(fence), guard } => {
                if guard.as_ref().is_none_or(Guard::is_lost) {
                    *guard = Some(Guard::start(*fence)?);
                }
                Ok(())
            }
            Bond::Domain { fence: None, .. } | Bond::Namespace { .. } => Ok(()),
        }
    }

    /// Whether its processes have a PID namespace of their own, and with it a root.
    pub(crate) fn is_namespace(&self) -> bool {
        match &self.bond {
            Bond::Namespace { .. } => true,
            Bond::Domain { .. } => false,
        }
    }

    /// The process that ends the tree where the runner does not; `None` where the kernel has no
    /// means for one.
    pub(crate) fn keeper(&self) -> Option<Keeper> {
        let (pid, kind) = match &self.bond {
            Bond::Namespace { first, .. } => (first.pid(), KeeperKind::FirstProcess),
            Bond::Domain { guard: Some(guard), .. } => (guard.pid(), KeeperKind::Guard),
            Bond::Domain { guard: None, .. } => return None,
        };
        let command = self.command.as_raw().unsigned_abs();
        Some(Keeper { pid: pid.as_raw().unsigned_abs(), kind, command })
    }

    /// The command's process, as the runner numbers it.
    pub(crate) fn command(&self) -> Pid {
        self.command
    }

    /// How the command ended; known after `end`.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Whether `end` was called.
    pub(crate) fn was_ended(&self) -> bool {
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
    pub(crate) fn end(&mut self) -> u32 {
        if let Some(survivors) = self.survivors {
            return survivors;
        }
        let deadline = Instant::now() + PATIENCE;
        let mut pause = SHORT;
        let mut pauses = 0;
        let survivors = loop {
            self.strike();
            let empty = self.group.as_ref().is_none_or(Group::is_empty);
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
        match self.bond {
            Bond::Namespace { .. } => {}
            Bond::Domain { .. } => drop(self.reap()),
        }
    }

    /// The names of its processes that live.
    pub(crate) fn living(&self) -> Vec<String> {
        census::living(self.own())
    }

    /// The cage's own process among them.
    pub(crate) fn own(&self) -> Option<u32> {
        let own = match &self.bond {
            Bond::Namespace { first, .. } => Some(first.pid()),
            Bond::Domain { guard, .. } => guard.as_ref().map(Guard::pid),
        };
        own.map(|pid| pid.as_raw().unsigned_abs())
    }

    /// Stops every process, so that a bomb cannot outrun its counting. Not without a fence.
    pub(crate) fn stop(&self) -> Stopped {
        match &self.bond {
            Bond::Domain { fence: Some(fence), guard } => {
                fence.signal(Signal::SIGSTOP);
                if let Some(guard) = guard {
                    guard.go_on();
                }
                Stopped::Yes(*fence)
            }
            Bond::Namespace { fence: Some(fence), .. } => {
                fence.signal(Signal::SIGSTOP);
                Stopped::Yes(*fence)
            }
            Bond::Domain { fence: None, .. } | Bond::Namespace { fence: None, .. } => Stopped::No,
        }
    }

    /// One blow with the strongest means there is.
    fn strike(&mut self) {
        if let Some(group) = &self.group {
            group.kill();
        }
        if self.exit.is_none() {
            let _ = kill(self.command, Signal::SIGKILL);
        }
        match &mut self.bond {
            Bond::Namespace { first, .. } => first.let_go(),
            Bond::Domain { fence: Some(fence), .. } => fence.end_all_inside(),
            Bond::Domain { fence: None, .. } => {
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
                    self.exit = Some(Exit::Code(code));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.command => {
                    self.exit = Some(Exit::Signal(signal as i32));
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

impl Drop for Tree {
    fn drop(&mut self) {
        self.end();
    }
}

/// The children of this process that have not ended; orphans of the command are among them, since
/// the runner is their subreaper.
fn living_children() -> Vec<Pid> {
    let me = std::process::id();
    stat::everybody().filter(|pid| stat::is_living_child(*pid, me)).map(Pid::from_raw).collect()
}
