//! The listener: answers what the filter notifies, and writes down what was refused.
//! Started by the runner, which is the parent of the confined command and outside its domain.
//!
//! One dedicated thread receives. A refused call gets its errno and a line in the record; a
//! looked-at call is continued before anything is worked out about it, since the kernel decides;
//! a carried `connect` or `truncate` is made here, on copies of address, socket and path. Registers
//! decide, memory never does: another thread of the command could change it after the look.
//!
//! What is recorded as predicted was worked out from the same grants that the kernel was given:
//! true where nothing else moves, but a command that swaps links under its own calls can make the
//! record of its refusals wrong. It cannot make a refusal into a permission. Not predicted: reads,
//! datagrams, abstract sockets where the network is on in tier A, signals
//! to the first process of a tier A cage.
//!
//! Measured as the filter was: a refused call takes 6.5 us in all, an open for writing 15 us more
//! than bare (19 us by a relative path), `kill` 23 us, a carried `connect` 20 to 35 us more, and
//! 0.1 to 0.9 ms more where the socket waits, for which a thread is started. `cargo build` and
//! `git status` took as long in the cage as outside; a shell loop that writes to `/dev/null` took
//! 28 us a turn instead of 7. A shell loop that starts programs takes 45 to 70 us a turn more, of 600;
//! the command's own program is not waited for (`seccomp::mark`).

mod describe;
mod emulated_connect;
mod emulated_git_config;
mod emulated_metadata;
mod emulated_truncate;
mod listening_ports;
mod notify_fd;
mod notify_loop;
mod predicted_connect;
mod predicted_exec;
mod predicted_signal;
mod predicted_write;
mod proc_reader;
mod protected_watch;
mod refusal_log;
mod resolve;
mod shm_observer;
mod socket;
mod socket_address;
#[cfg(test)]
pub(crate) mod tests;
mod wake_cpu;
mod writable;

pub(crate) use emulated_git_config::{GitConfigFile, LockedGitConfig, lock_all};
pub(crate) use listening_ports::ListeningPorts;
pub(crate) use protected_watch::ProtectedWatch;
pub(crate) use refusal_log::RefusalLog;
pub(crate) use writable::RunnablePaths;

use crate::read_only_mounts::ReadOnlyMounter;
use crate::seccomp::FilterSpec;
use crate::shared_memory::SharedShmCreations;
use nix::sys::signal::SigSet;
use notify_loop::NotifyLoop;
use protocol::confinement::{Network, Tier};
use std::ffi::OsStr;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the end waits for the thread. It can hang where the command tricked it into waiting: a
/// socket made to wait right after the look, a file system of its own. Then it is left behind.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// What the listener has to know.
#[derive(Debug)]
pub(crate) struct NotifyConfig {
    /// The plan that the filter was made from.
    pub(crate) plan: FilterSpec,
    /// The tier reached; it decides which errno a refused write gets.
    pub(crate) tier: Tier,
    /// Where what the command makes in `/dev/shm` is noted; nothing where that is a mount of its own.
    pub(crate) shm_creations: Option<SharedShmCreations>,
    /// Off in tier A: connections away from loopback end in an empty namespace.
    pub(crate) network: Network,
    /// Whether the kernel keeps signals within the command's Landlock domain (ABI 6 and later).
    pub(crate) signals: OutsideSignals,
    /// Directories and files the command may write, real paths as it sees them.
    pub(crate) writable: Vec<PathBuf>,
    /// From where it may start programs.
    pub(crate) runnable: RunnablePaths,
    /// Read-only islands within those that it may write.
    pub(crate) read_only: Vec<PathBuf>,
    /// Settings of git that the command may change by what is harmless.
    pub(crate) settings: Vec<LockedGitConfig>,
    /// Names that mounts keep read-only.
    pub(crate) watched: Option<ProtectedWatch>,
    /// Who makes such mounts; in tier A alone.
    pub(crate) seals: Option<ReadOnlyMounter>,
    /// The largest file that the command may make; 0 where there is no bound.
    pub(crate) file_bytes: u64,
    /// Where a carried `connect` may find its socket: the granted roots, real paths.
    pub(crate) sockets: Vec<PathBuf>,
    /// Who listens on the host, where the command gets a network of its own: opened before that
    /// was made.
    pub(crate) host_ports: Option<ListeningPorts>,
    /// The host's root directory, opened with `O_PATH` before any namespace or mount was made.
    pub(crate) host: OwnedFd,
    /// A `/proc` that numbers processes as the runner does, opened before any namespace or mount
    /// was made. The runner's own Landlock layer must let it read below it.
    pub(crate) proc: OwnedFd,
}

/// Whether signals to processes outside are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutsideSignals {
    /// By the domain's scope, or by a process namespace.
    Refused,
    /// They are not.
    Allowed,
}

/// The folders of the PATH that the command is given, once it is.
type SearchPath = Arc<OnceLock<Vec<PathBuf>>>;

/// A running listener. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct NotifySupervisor {
    record: Arc<Mutex<RefusalLog>>,
    set_search_path: SearchPath,
    /// Closing it ends the thread.
    stop: Option<PipeWriter>,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl NotifySupervisor {
    /// Serves `notify` on a thread of its own until nobody is left under the filter.
    ///
    /// # Errors
    /// Where no thread or no pipe can be had, or `watch.proc` is no `/proc` of this process. Then
    /// `notify` is closed, and notified calls fail with ENOSYS: the command must not be run.
    pub(crate) fn start(notify: OwnedFd, watch: NotifyConfig) -> io::Result<Self> {
        let (stopped, stop) = std::io::pipe()?;
        let record = Arc::new(Mutex::new(RefusalLog::default()));
        let searched = SearchPath::default();
        let server =
            NotifyLoop::new(notify, watch, (Arc::clone(&record), Arc::clone(&searched)), stopped)?;
        let (ending, ended) = std::sync::mpsc::channel();
        let serve = move || {
            let _ending: Sender<()> = ending;
            server.serve();
        };
        let thread = without_signals(|| {
            std::thread::Builder::new().name("refusals".to_owned()).spawn(serve)
        })?;
        Ok(Self {
            record,
            set_search_path: searched,
            stop: Some(stop),
            ended,
            thread: Some(thread),
        })
    }

    /// Tells it the PATH that the command is given, before that is let go.
    pub(crate) fn searched(&self, path: &OsStr) {
        let _ = self.set_search_path.set(std::env::split_paths(path).collect());
    }

    /// Ends the thread and hands over the record. Calls that still wait fail with ENOSYS, so the
    /// command's processes should be dead by now.
    pub(crate) fn finish(mut self) -> RefusalLog {
        self.end();
        std::mem::take(&mut *self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the thread is gone, which it is soon after the last process under the filter.
    #[cfg(test)]
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn end(&mut self) {
        drop(self.stop.take());
        let waited = self.ended.recv_timeout(EXIT_TIMEOUT);
        if let (Some(thread), Err(RecvTimeoutError::Disconnected)) = (self.thread.take(), waited) {
            // A panicked thread left what it had recorded before.
            let _ = thread.join();
        }
    }
}

impl Drop for NotifySupervisor {
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
