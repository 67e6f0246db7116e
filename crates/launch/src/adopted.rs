//! Processes of cages whose runner ended before them. They become children of the supervisor, which waits
//! for them: a first process that waits for nothing, as in some containers, would keep each as a zombie, and
//! with it the namespace that the process was in.

use crate::orphans;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

/// How long the last processes may take to end by themselves, and to end once they are killed.
const END: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(2);

/// Has the kernel give this process every descendant whose parent ends.
///
/// # Errors
/// The system refused.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

/// The kernel gives orphans to the first thread of this process, and the spawner's thread starts the others,
/// each of which is waited for by its own task. So a wait of the first thread for its own children finds the
/// orphans alone.
pub struct Adopted(SignalStream);

impl Adopted {
    /// Takes note of each child that ends, from now on.
    ///
    /// # Errors
    /// The system refused.
    pub fn catch() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::child())?))
    }

    /// Waits for orphans as they end, for as long as it is polled. Only the first thread may do that.
    pub async fn reap(&mut self) {
        loop {
            while reaped_one(WaitPidFlag::__WNOTHREAD) == Some(true) {}
            let _ = self.0.recv().await;
        }
    }
}

/// Waits for all children of this process, and kills those that do not end. Its last act: no thread starts
/// or waits for a child any more. Returns those that the kernel cannot end, most likely because they wait for a
/// disk: they are left to the first process of this machine.
#[must_use]
pub fn reap_all() -> Vec<i32> {
    for kills in [false, true] {
        let until = Instant::now() + END;
        while Instant::now() < until {
            match reaped_one(WaitPidFlag::empty()) {
                Some(true) => continue,
                None => return Vec::new(),
                Some(false) => {}
            }
            // A child that ends may leave its own.
            let children = if kills { orphans::living_children() } else { Vec::new() };
            for child in children {
                let _ = kill(Pid::from_raw(child), Signal::SIGKILL);
            }
            std::thread::sleep(POLL);
        }
    }
    orphans::living_children()
}

/// True if a child had ended and was waited for; none if there is no child.
fn reaped_one(of: WaitPidFlag) -> Option<bool> {
    match waitpid(None, Some(WaitPidFlag::WNOHANG | of)) {
        Ok(WaitStatus::StillAlive) => Some(false),
        Err(Errno::EINTR) | Ok(_) => Some(true),
        Err(_) => None,
    }
}
