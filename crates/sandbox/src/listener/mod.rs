//! The listener: answers what the filter notifies, and writes down what was refused.
//! Started by the runner, which is the parent of the confined command and outside its domain.
//!
//! One dedicated thread receives. A refused call gets its errno and a line in the record; a
//! looked-at call is continued before anything is worked out about it, since the kernel decides;
//! a carried `connect` is made here, on copies of address and socket. Registers decide, memory
//! never does: another thread of the command could change it after the look.

mod detail;
mod ledger;
mod notice;
mod processes;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use ledger::Record;

use crate::seccomp::{Arch, Plan, Policy, Rule, Then};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use notice::{Answer, Notice, Notices};
use processes::Processes;
use protocol::confinement::{Network, Refusal, RefusalKind, Tier};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What the listener has to know.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The plan that the filter was made from.
    pub(crate) plan: Plan,
    /// The tier reached; it decides which errno a refused write gets.
    pub(crate) tier: Tier,
    /// Off in tier A: connections away from loopback end in an empty namespace.
    pub(crate) network: Network,
    /// Whether the kernel keeps signals within the command's Landlock domain (ABI 6 and later).
    pub(crate) signals: Signals,
    /// Directories and files the command may write, real paths as it sees them.
    pub(crate) writable: Vec<PathBuf>,
    /// Read-only islands within those.
    pub(crate) read_only: Vec<PathBuf>,
    /// Where a carried `connect` may find its socket: the granted roots, real paths.
    pub(crate) sockets: Vec<PathBuf>,
    /// The host's root directory, opened with `O_PATH` before any namespace or mount was made.
    pub(crate) host: OwnedFd,
    /// A `/proc` that numbers processes as the runner does, opened before any namespace or mount
    /// was made. The runner's own Landlock layer must let it read below it.
    pub(crate) proc: OwnedFd,
}

/// Whether signals to processes outside are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signals {
    /// By the domain's scope, or by a process namespace.
    Scoped,
    /// They are not.
    Open,
}

/// A running listener. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Listener {
    record: Arc<Mutex<Record>>,
    /// Closing it ends the thread.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Serves `notify` on a thread of its own until nobody is left under the filter.
    ///
    /// # Errors
    /// Where no thread or no pipe can be had. Then `notify` is closed, and notified
    /// calls fail with ENOSYS: the command must not be run.
    pub(crate) fn start(notify: OwnedFd, watch: Watch) -> io::Result<Self> {
        let (stopped, stop) = std::io::pipe()?;
        let record = Arc::new(Mutex::new(Record::default()));
        let server = Server {
            notices: Arc::new(Notices::new(notify)),
            policy: Policy::new(&watch.plan, Arch::HOST),
            processes: Processes::new(watch.proc),
            record: Arc::clone(&record),
            stop: stopped,
        };
        let thread = without_signals(|| {
            std::thread::Builder::new().name("refusals".to_owned()).spawn(move || server.serve())
        })?;
        Ok(Self { record, stop: Some(stop), thread: Some(thread) })
    }

    /// Ends the thread and hands over the record. Calls that still wait fail with ENOSYS, so the
    /// command's processes should be dead by now.
    pub(crate) fn finish(mut self) -> Record {
        self.end();
        std::mem::take(&mut *self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panicked thread left what it had recorded before.
            let _ = thread.join();
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end();
    }
}

/// Handlers of this process run elsewhere: the thread that `make` starts takes no signals.
fn without_signals<T>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = SigSet::thread_get_mask()?;
    SigSet::all().thread_block()?;
    let made = make();
    before.thread_set_mask()?;
    made
}

/// What the thread owns.
struct Server {
    notices: Arc<Notices>,
    policy: Policy,
    processes: Processes,
    record: Arc<Mutex<Record>>,
    stop: PipeReader,
}

impl Server {
    fn serve(&self) {
        while self.wait() {
            match self.notices.receive() {
                Ok(Some(notice)) => self.handle(&notice),
                Ok(None) => {}
                // Nothing more can arrive; closing the descriptor fails what still waits.
                Err(_) => return,
            }
        }
    }

    /// Waits for a call; false when all who were under the filter are gone, or at `finish`.
    fn wait(&self) -> bool {
        loop {
            let mut both = [
                PollFd::new(self.notices.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.stop.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut both, PollTimeout::NONE) {
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(_) => return false,
            }
            let [calls, stop] = both.map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
            if calls.contains(PollFlags::POLLIN) {
                return true;
            }
            if !stop.is_empty() || !calls.is_empty() {
                return false;
            }
        }
    }

    fn handle(&self, notice: &Notice) {
        let Some(rule) = self.policy.judge(notice.nr, &notice.args) else {
            // Filter and policy come from one plan, so this is a fault of ours: stay closed.
            return self.notices.answer(notice.id, Answer::Errno(libc::EPERM));
        };
        match rule.then {
            Then::Refuse(errno) | Then::Fallback(errno) => self.refuse(notice, rule, errno),
            Then::RefuseOthers(argument, errno) => {
                if self.names_itself(notice, argument) {
                    self.notices.answer(notice.id, Answer::Continue);
                } else {
                    self.refuse(notice, rule, errno);
                }
            }
            Then::Look(_) => self.notices.answer(notice.id, Answer::Continue),
            Then::Carry => self.refuse(notice, rule, libc::EACCES),
        }
    }

    fn refuse(&self, notice: &Notice, rule: &Rule, errno: i32) {
        let detail = detail::words(rule, &notice.args, notice.tid, &self.processes);
        if !self.notices.waits(notice.id) {
            return;
        }
        self.note(notice, rule.call, RefusalKind::Refused, errno, detail);
        self.notices.answer(notice.id, Answer::Errno(errno));
    }

    /// Whether the process number in the argument is the caller's own. Continuing is sound then:
    /// the number is in a register, and it stays the caller's while the caller waits.
    #[allow(clippy::cast_possible_truncation)]
    fn names_itself(&self, notice: &Notice, argument: usize) -> bool {
        let named = notice.args[argument] as u32;
        self.processes.status(notice.tid).is_some_and(|status| {
            status.tgids.last() == Some(&named) || status.tids.last() == Some(&named)
        })
    }

    fn note(&self, notice: &Notice, call: &str, kind: RefusalKind, errno: i32, detail: String) {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.add(Refusal {
            kind,
            syscall: call.to_owned(),
            detail,
            errno,
            pid: notice.tid,
            count: 1,
        });
    }
}
