//! A command that runs in its cage: its output, its exit, and its leftovers. Used by `tools`.

use crate::cgroup::CommandCgroup;
use crate::error::{CageError, CageStep};
use crate::notify::NotifySupervisor;
pub use crate::process_tree::CommandExit;
use crate::process_tree::{ProcessTree, StoppedTree};
use crate::protected::{Guarded, ProtectedReport};
use crate::sys;
use crate::usage::limit_exceeded::LimitExceeded;
use crate::usage::limit_watcher::LimitWatcher;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{UsageWho, getrusage};
use protocol::call::{ProcessUsage, TamperedFile};
use protocol::confinement::Refusal;
use protocol::tool::ProtectedOrder;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL: long enough to remove a lock file, short enough that a user
/// who cancels does not wait.
const GRACE: Duration = Duration::from_millis(300);

/// A running command. Dropping it kills all its processes.
#[derive(Debug)]
pub struct RunningCommand {
    // Dropped before the notify supervisor, so that no call waits for an answer that never comes.
    pub(crate) tree: ProcessTree,
    pub(crate) notify: Option<NotifySupervisor>,
    pub(crate) pidfd: OwnedFd,
    pub(crate) input: Option<File>,
    pub(crate) output: Option<File>,
    pub(crate) errors: Option<File>,
    pub(crate) guarded: Guarded,
    pub(crate) limits: LimitWatcher,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// How the command itself ended.
    pub exit: CommandExit,
    /// The first refused system calls, in order.
    pub refusals: Vec<Refusal>,
    /// Number of refused calls after those.
    pub refusals_uncounted: u64,
    /// Protected files that it changed or created, and how each was handled.
    pub tampered: Vec<TamperedFile>,
    /// Resources used by all its processes.
    pub usage: ProcessUsage,
    /// Its process ID as the runner sees it.
    pub pid: u32,
    /// Processes that could not be killed; 0 unless the kernel is stuck.
    pub survivors: u32,
}

impl RunningCommand {
    /// The write end of its standard input; `None` at the second call, and without one. A write
    /// blocks while the command reads nothing.
    pub fn stdin(&mut self) -> Option<File> {
        self.input.take()
    }

    /// The read end of its standard output; `None` at the second call. End of file comes when every
    /// process with the write end is gone. So, once `exit_fd` is readable, read the available
    /// bytes, call `kill`, then read to the end. Otherwise a background process would block the
    /// call.
    pub fn stdout(&mut self) -> Option<File> {
        self.output.take()
    }

    /// The read end of its standard error; see `stdout`.
    pub fn stderr(&mut self) -> Option<File> {
        self.errors.take()
    }

    /// Readable once the command itself has ended. Its last bytes may still be in the pipes.
    #[must_use]
    pub fn exit_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// When to call `exceeded` next; `None` if the call as a whole has no limit.
    #[must_use]
    pub fn next_check(&self) -> Option<Instant> {
        self.limits.next_check()
    }

    /// The limit that the call as a whole exceeds; then call `kill_now`. It measures only when it
    /// is time to.
    pub fn exceeded(&mut self) -> Option<LimitExceeded> {
        if self.limits.next_check().is_none_or(|next| Instant::now() < next) {
            return None;
        }
        // The command also runs without a guard; the next check tries again.
        let _ = self.tree.ensure_guard();
        let stopped =
            if self.limits.suspects_fork_bomb() { self.tree.stop() } else { StoppedTree::No };
        self.tree.reap_orphans();
        let found = self.limits.check(self.tree.cgroup(), self.tree.guard_pid());
        if found.is_none() {
            stopped.resume();
        }
        found
    }

    /// The limit that the kernel enforced, known once the command itself has ended: it may have
    /// ended before `exceeded` was called. Only with a cgroup.
    #[must_use]
    pub fn kernel_limit_hit(&self) -> Option<LimitExceeded> {
        self.tree.cgroup().and_then(CommandCgroup::exceeded_limit)
    }

    /// The command's process ID as the runner sees it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.tree.command().as_raw().unsigned_abs()
    }

    /// Puts protected files right from now on, while the command runs: for a command that a person does
    /// not wait for.
    pub fn guard_while_running(&mut self, report: ProtectedReport) {
        self.guarded.begin(report);
    }

    /// Passes on what the supervisor says about protected files.
    pub fn order(&mut self, order: ProtectedOrder) {
        self.guarded.order(order);
    }

    /// The names of its live processes. Once the command itself has ended, these are its background
    /// processes.
    #[must_use]
    pub fn live_processes(&self) -> Vec<String> {
        self.tree.live_names()
    }

    /// Ends every process of the command. If the command still runs, it sends SIGTERM to its
    /// process group and waits up to 300 ms; then it kills all. No process is left on return, so
    /// the pipes reach end of file.
    pub fn kill(&mut self) {
        if !self.ended_within(Some(Duration::ZERO)) {
            self.tree.terminate();
            self.ended_within(Some(GRACE));
        }
        self.tree.kill_all();
    }

    /// Kills every process of the command without SIGTERM first: a command over its limit would use
    /// the time to grow further.
    pub fn kill_now(&mut self) {
        self.tree.kill_all();
    }

    /// Waits for the command itself unless it was killed, kills its leftover processes, and returns
    /// the result.
    ///
    /// # Errors
    /// `CageStep::Handover` if the command was killed and cannot end, so the kernel reports no exit
    /// status.
    pub fn finish(mut self) -> Result<CommandOutcome, CageError> {
        if !self.tree.was_killed() {
            self.ended_within(None);
        }
        let survivors = self.tree.kill_all();
        // Nothing is left to be counted, and the search for protected names may take seconds.
        sys::schedule_as_usual();
        let exit = self.tree.exit().ok_or_else(|| {
            CageError::new(
                CageStep::Handover,
                "it was killed and cannot end; it waits for a disk that does not answer",
            )
        })?;
        let record = self.notify.take().map(NotifySupervisor::finish).unwrap_or_default();
        self.limits.remove_shared_memory();
        Ok(CommandOutcome {
            exit,
            refusals: record.refusals,
            refusals_uncounted: record.uncounted,
            tampered: std::mem::replace(&mut self.guarded, Guarded::Nothing).end(),
            usage: usage(),
            pid: self.pid(),
            survivors,
        })
    }

    /// True if the command itself ended within `time`; `None` waits without a limit.
    pub(crate) fn ended_within(&self, time: Option<Duration>) -> bool {
        let timeout = time.map_or(PollTimeout::NONE, |time| {
            PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX)
        });
        loop {
            let mut wait = [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
            match poll(&mut wait, timeout) {
                Ok(ready) => return ready > 0,
                Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
    }
}

/// Resources used by all reaped children of the runner.
fn usage() -> ProcessUsage {
    let Ok(used) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return ProcessUsage::default();
    };
    let micros = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or(0)
    };
    ProcessUsage {
        cpu_ms: (micros(used.user_time()) + micros(used.system_time())) / 1000,
        peak_kib: u64::try_from(used.max_rss()).unwrap_or(0),
        written_bytes: u64::try_from(used.block_writes()).unwrap_or(0) * 512,
    }
}
