//! A command that runs in its cage: its output, its end, and what it leaves behind. For `tools`.

use crate::cgroup::CommandCgroup;
use crate::error::{CageError, CageStep};
use crate::limit_watcher::{LimitExceeded, LimitWatcher};
use crate::notify::NotifySupervisor;
pub use crate::process_tree::CommandExit;
use crate::process_tree::{ProcessTree, StoppedTree};
use crate::protected::Baseline;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{UsageWho, getrusage};
use protocol::call::{ProcessUsage, Tampered};
use protocol::confinement::Refusal;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Between the request to end and the blow: long enough to remove a lock file, short enough that
/// a person who cancels does not wait.
const GRACE: Duration = Duration::from_millis(300);

/// A running command. Dropping it ends all of its processes.
#[derive(Debug)]
pub struct RunningCommand {
    // Ended before the listener, so that no call waits for an answer that never comes.
    pub(crate) tree: ProcessTree,
    pub(crate) notify: Option<NotifySupervisor>,
    pub(crate) pidfd: OwnedFd,
    pub(crate) output: Option<File>,
    pub(crate) errors: Option<File>,
    pub(crate) before: Option<Baseline>,
    pub(crate) limits: LimitWatcher,
}

/// What a command came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// How the command itself ended.
    pub exit: CommandExit,
    /// What the kernel refused, the first ones in order.
    pub refusals: Vec<Refusal>,
    /// How many more were refused after those.
    pub refusals_uncounted: u64,
    /// Protected names that it changed or made, and what was done about each.
    pub tampered: Vec<Tampered>,
    /// What all its processes used.
    pub usage: ProcessUsage,
    /// Its process id, as the runner numbers it.
    pub pid: u32,
    /// Processes that could not be ended; 0 unless the kernel is stuck.
    pub survivors: u32,
}

impl RunningCommand {
    /// The read end of its standard output; `None` the second time. End of file comes when every
    /// process that holds the other end is gone: after `exit_fd` is readable, read what is there,
    /// `kill`, then read to the end, or a process in the background holds up the call.
    pub fn stdout(&mut self) -> Option<File> {
        self.output.take()
    }

    /// The same for standard error.
    pub fn stderr(&mut self) -> Option<File> {
        self.errors.take()
    }

    /// Readable when the command itself has ended. Its last bytes may still be in the pipes.
    #[must_use]
    pub fn exit_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// When to ask `exceeded` next; `None` where the call as a whole has no bound.
    #[must_use]
    pub fn next_check(&self) -> Option<Instant> {
        self.limits.next()
    }

    /// Whether the call as a whole uses more than it may; `kill_at_once` is the answer to that. Looks only
    /// when it is time for it.
    pub fn exceeded(&mut self) -> Option<LimitExceeded> {
        if self.limits.next().is_none_or(|next| Instant::now() < next) {
            return None;
        }
        // Without one the command goes on as well; the next look tries again.
        let _ = self.tree.ensure_guard();
        let stopped =
            if self.limits.suspects_fork_bomb() { self.tree.stop() } else { StoppedTree::No };
        self.tree.reap_orphans();
        let found = self.limits.check(self.tree.group(), self.tree.guard_pid());
        if found.is_none() {
            stopped.resume();
        }
        found
    }

    /// The bound that the kernel ended it for, or held it back at, once the command itself has ended:
    /// it may have been too quick for `exceeded`. Only where it has a cgroup.
    #[must_use]
    pub fn kernel_limit_hit(&self) -> Option<LimitExceeded> {
        self.tree.group().and_then(CommandCgroup::exceeded_limit)
    }

    /// The command's process id, as the runner numbers it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.tree.command().as_raw().unsigned_abs()
    }

    /// The names of its live processes: its background processes once the command itself has ended.
    #[must_use]
    pub fn live_processes(&self) -> Vec<String> {
        self.tree.live_names()
    }

    /// Ends every process of the command: asks its group first where the command still runs, waits
    /// at most 300 ms, then ends all at once. On return none is left, so the pipes have an end.
    pub fn kill(&mut self) {
        if !self.ended_within(Some(Duration::ZERO)) {
            self.tree.terminate();
            self.ended_within(Some(GRACE));
        }
        self.tree.kill_all();
    }

    /// Ends every process of the command without asking it first: what went over a bound would use
    /// the time to go further.
    pub fn kill_now(&mut self) {
        self.tree.kill_all();
    }

    /// Waits for the command itself unless it was killed, ends what it left behind, and says what
    /// happened.
    ///
    /// # Errors
    /// `Step::Handover` where the kernel gave no account of the command: it was killed and cannot end.
    pub fn finish(mut self) -> Result<CommandOutcome, CageError> {
        if !self.tree.was_killed() {
            self.ended_within(None);
        }
        let survivors = self.tree.kill_all();
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
            tampered: self.before.take().map(Baseline::restore).unwrap_or_default(),
            usage: usage(),
            pid: self.pid(),
            survivors,
        })
    }

    /// Whether the command itself ended within `time`; `None` waits as long as it takes.
    fn ended_within(&self, time: Option<Duration>) -> bool {
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

/// What all reaped children of the runner used.
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
