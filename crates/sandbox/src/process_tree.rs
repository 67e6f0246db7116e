//! The process tree of one command: waits for the command, and kills every process.
//!
//! The runner reaps any child (`waitpid(-1)`). That is safe here, because a runner has one purpose
//! and all its children belong to this tree.

use crate::cgroup::CommandCgroup;
use crate::error::CageError;
use crate::landlock::domain_guard::{DomainGuard, SignalScope};
use crate::proc_stat;
use crate::spawn::pid1::Pid1;
use crate::usage::proc_usage;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use protocol::tool::{Keeper, KeeperKind};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long killed processes may take to end; only a process stuck in a driver needs more.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Shortest and longest pause between two rounds of kills.
const SHORT: Duration = Duration::from_micros(50);
const LONG: Duration = Duration::from_millis(50);

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandExit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it; 31 (SIGSYS) if it used the 32-bit system call interface.
    Signal(i32),
}

/// How all processes of the tree can be reached.
#[derive(Debug)]
pub(crate) enum Containment {
    /// A PID namespace, which ends with its PID 1.
    Namespace { first: Pid1, signal_scope: Option<SignalScope> },
    /// This process as the subreaper, plus the Landlock domain if its signal scope was proven.
    Domain { signal_scope: Option<SignalScope>, guard: Option<DomainGuard> },
}

/// The result of stopping all processes.
#[derive(Debug)]
pub(crate) enum StoppedTree {
    /// Stopped, through this signal scope.
    Yes(SignalScope),
    No,
}

impl StoppedTree {
    /// Continues them.
    pub(crate) fn resume(self) {
        match self {
            Self::Yes(signal_scope) => signal_scope.signal(Signal::SIGCONT),
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
    /// `Some` after it was killed: the number of processes that remain.
    survivors: Option<u32>,
}

impl ProcessTree {
    /// A tree whose root is `command`.
    pub(crate) fn new(
        command: Pid,
        containment: Containment,
        cgroup: Option<CommandCgroup>,
    ) -> Self {
        Self { command, containment, cgroup, exit: None, survivors: None }
    }

    /// The command's cgroup, if it has one.
    pub(crate) fn cgroup(&self) -> Option<&CommandCgroup> {
        self.cgroup.as_ref()
    }

    /// Starts the domain guard if the domain has a signal scope; starts another if the last one was
    /// lost.
    ///
    /// # Errors
    /// `CageStep::Fork`.
    pub(crate) fn ensure_guard(&mut self) -> Result<(), CageError> {
        match &mut self.containment {
            Containment::Domain { signal_scope: Some(signal_scope), guard } => {
                if guard.as_ref().is_none_or(DomainGuard::is_lost) {
                    *guard = Some(DomainGuard::start(*signal_scope)?);
                }
                Ok(())
            }
            Containment::Domain { signal_scope: None, .. } | Containment::Namespace { .. } => {
                Ok(())
            }
        }
    }

    /// True if its processes have a PID namespace, and therefore a root, of their own.
    pub(crate) fn is_namespace(&self) -> bool {
        match &self.containment {
            Containment::Namespace { .. } => true,
            Containment::Domain { .. } => false,
        }
    }

    /// The process that kills the tree if the runner does not; `None` if the kernel supports none.
    pub(crate) fn keeper(&self) -> Option<Keeper> {
        let (pid, kind) = match &self.containment {
            Containment::Namespace { first, .. } => (first.pid(), KeeperKind::FirstProcess),
            Containment::Domain { guard: Some(guard), .. } => (guard.pid(), KeeperKind::Guard),
            Containment::Domain { guard: None, .. } => return None,
        };
        let command = self.command.as_raw().unsigned_abs();
        Some(Keeper { pid: pid.as_raw().unsigned_abs(), kind, command })
    }

    /// The command's process ID as the runner sees it.
    pub(crate) fn command(&self) -> Pid {
        self.command
    }

    /// How the command ended; known after `kill_all`.
    pub(crate) fn exit(&self) -> Option<CommandExit> {
        self.exit
    }

    /// True if `kill_all` was called.
    pub(crate) fn was_killed(&self) -> bool {
        self.survivors.is_some()
    }

    /// Sends SIGTERM to the command's process group.
    pub(crate) fn terminate(&self) {
        let process_group = Pid::from_raw(-self.command.as_raw());
        // ESRCH: the group has no process left. A stopped process must continue to handle the
        // signal.
        let _ = kill(process_group, Signal::SIGTERM);
        let _ = kill(process_group, Signal::SIGCONT);
    }

    /// Kills every process and waits until none is left; returns the number of survivors. Only the
    /// first call does anything.
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
            // A usual end takes the kernel some hundred microseconds. Thousands of processes take
            // long, and each round of kills holds a lock that they need to end.
            sleep(pause);
            pauses += 1;
            if pauses > 20 {
                pause = (pause * 2).min(LONG);
            }
        };
        self.survivors = Some(survivors);
        survivors
    }

    /// Reaps ended processes, so that their PIDs are free and they no longer count. In tier A, PID
    /// 1 of the namespace does this.
    pub(crate) fn reap_orphans(&mut self) {
        match self.containment {
            Containment::Namespace { .. } => {}
            Containment::Domain { .. } => drop(self.reap()),
        }
    }

    /// The names of its live processes, once the command itself has ended.
    pub(crate) fn live_names(&self) -> Vec<String> {
        match self.may_have_orphans() {
            true => proc_usage::live_names(self.guard_pid()),
            false => Vec::new(),
        }
    }

    /// False if the command has ended and none of its processes is left. Its orphans are children of the
    /// namespace's PID 1, and those that it started beside itself (`CLONE_PARENT`) of this process, as
    /// all are without a namespace. No other thread reaps these now.
    fn may_have_orphans(&self) -> bool {
        let guard = self.guard_pid().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
        let own = |pid: &Pid| *pid == self.command || Some(*pid) == guard;
        let of_first = match &self.containment {
            Containment::Namespace { first, .. } => proc_stat::children(first.pid()),
            Containment::Domain { .. } => Some(Vec::new()),
        };
        let all = of_first.zip(proc_stat::children(Pid::this()));
        all.is_none_or(|(first, runner)| !first.iter().chain(&runner).all(own))
    }

    /// The cage's own process in the tree.
    pub(crate) fn guard_pid(&self) -> Option<u32> {
        let own = match &self.containment {
            Containment::Namespace { first, .. } => Some(first.pid()),
            Containment::Domain { guard, .. } => guard.as_ref().map(DomainGuard::pid),
        };
        own.map(|pid| pid.as_raw().unsigned_abs())
    }

    /// Stops every process, so that a fork bomb cannot outrun the measurement. Impossible without a
    /// signal scope.
    pub(crate) fn stop(&self) -> StoppedTree {
        match &self.containment {
            Containment::Domain { signal_scope: Some(signal_scope), guard } => {
                signal_scope.signal(Signal::SIGSTOP);
                if let Some(guard) = guard {
                    guard.resume();
                }
                StoppedTree::Yes(*signal_scope)
            }
            Containment::Namespace { signal_scope: Some(signal_scope), .. } => {
                signal_scope.signal(Signal::SIGSTOP);
                StoppedTree::Yes(*signal_scope)
            }
            Containment::Domain { signal_scope: None, .. }
            | Containment::Namespace { signal_scope: None, .. } => StoppedTree::No,
        }
    }

    /// One round of kills with the strongest available means.
    fn kill_once(&mut self) {
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        if self.exit.is_none() {
            let _ = kill(self.command, Signal::SIGKILL);
        }
        match &mut self.containment {
            Containment::Namespace { first, .. } => first.shut_down(),
            Containment::Domain { signal_scope: Some(signal_scope), .. } => signal_scope.kill_all(),
            Containment::Domain { signal_scope: None, .. } => {
                for child in living_children() {
                    let _ = kill(child, Signal::SIGKILL);
                }
            }
        }
    }

    /// Reaps ended children; true once no child is left.
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

/// The live children of this process. Orphans of the command are among them, since the runner is
/// their subreaper.
fn living_children() -> Vec<Pid> {
    let me = std::process::id();
    proc_stat::all_pids()
        .filter(|pid| proc_stat::is_living_child(*pid, me))
        .map(Pid::from_raw)
        .collect()
}
