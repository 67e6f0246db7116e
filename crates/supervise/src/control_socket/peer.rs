//! Identifies the process at the other end of the control socket. Only processes of this user are
//! admitted, and none that this supervisor started.
//!
//! A connection belongs to the process that opened it. Because its descriptor may be passed on, the
//! kernel names the sender of each message; and the connection ends with the process that opened
//! it.

use super::place;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::{PassCred, PeerCredentials, PeerPidfd};
use nix::sys::socket::{getsockopt, setsockopt};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// How long messages of a peer are still read after its end.
const LINGER: Duration = Duration::from_secs(1);

/// Why a peer is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerRefused {
    #[error("process {pid} belongs to user {uid}, not to the user of this supervisor")]
    OtherUser { pid: i32, uid: u32 },
    #[error("process {pid} was started by this supervisor: a tool call cannot drive agentd")]
    OwnDescendant { pid: i32 },
    #[error("the process is in another pid namespace")]
    OtherPidNamespace,
    #[error("process {pid} ended before it could be checked")]
    Gone { pid: i32 },
    #[error("the peer cannot be identified: {0}")]
    Unknown(#[from] io::Error),
}

/// The process that opened a connection and was admitted.
#[derive(Debug)]
pub(crate) struct PeerProcess {
    pid: i32,
    /// `None` before Linux 6.5, where a process with a reused pid could pass for it.
    process: Option<AsyncFd<OwnedFd>>,
    /// Where it runs, for records.
    place: String,
}

impl PeerProcess {
    /// True if it sent what was read.
    pub(crate) fn is_writer(&self, writer: Option<i32>) -> bool {
        writer == Some(self.pid)
    }

    /// Where it runs, for records, such as `pts/3, pid 4711`.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Completes after it exited and its last messages had time to be read. A process that holds
    /// the connection now did not open it.
    pub(crate) async fn exited(&self) {
        match &self.process {
            Some(process) => {
                let _ = process.readable().await;
                tokio::time::sleep(LINGER).await;
            }
            None => std::future::pending().await,
        }
    }

    /// This process, for tests that hold both ends.
    #[cfg(test)]
    pub(crate) fn this_process() -> Self {
        let pid = i32::try_from(std::process::id()).unwrap_or(0);
        Self { pid, process: None, place: format!("pid {pid}") }
    }
}

/// Makes the kernel name the sender of all data read from this socket, or from those it accepts.
pub(crate) fn request_credentials(socket: impl AsFd) -> io::Result<()> {
    Ok(setsockopt(&socket, PassCred, &true)?)
}

/// Checks the process that connected.
pub(crate) fn identify(socket: impl AsFd) -> Result<PeerProcess, PeerRefused> {
    let peer = getsockopt(&socket, PeerCredentials).map_err(io::Error::from)?;
    let (pid, uid) = (peer.pid(), peer.uid());
    if uid != nix::unistd::geteuid().as_raw() {
        return Err(PeerRefused::OtherUser { pid, uid });
    }
    if pid == 0 {
        return Err(PeerRefused::OtherPidNamespace);
    }
    // Keeps the pid from being reused while `/proc` is read.
    let process = match getsockopt(&socket, PeerPidfd) {
        Ok(process) => Some(process),
        Err(Errno::ENOPROTOOPT) => None,
        Err(Errno::ESRCH | Errno::EINVAL | Errno::ENODATA) => {
            return Err(PeerRefused::Gone { pid });
        }
        Err(error) => return Err(io::Error::from(error).into()),
    };
    let own = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
    if is_descendant(pid, own, |pid| parent(Path::new("/proc"), pid)) {
        return Err(PeerRefused::OwnDescendant { pid });
    }
    let place = place::of_process(Path::new("/proc"), pid);
    if process.as_ref().is_some_and(has_ended) {
        return Err(PeerRefused::Gone { pid });
    }
    // Deprecated for descriptors that may close early; an `OwnedFd` inside it cannot.
    #[allow(deprecated)]
    let watch = |process| AsyncFd::with_interest(process, Interest::READABLE);
    Ok(PeerProcess { pid, process: process.map(watch).transpose()?, place })
}

fn has_ended(process: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    !matches!(poll(&mut polled, PollTimeout::ZERO), Ok(0))
}

/// True if `pid` is `ancestor` or descends from it. An ancestry that cannot be read to its end
/// counts as a descendant: fail closed.
fn is_descendant(pid: i32, ancestor: i32, parent: impl Fn(i32) -> Option<i32>) -> bool {
    let mut at = pid;
    // Ancestries are short; the bound stops a loop caused by reused pids.
    for _ in 0..1024 {
        if at == ancestor {
            return true;
        }
        match parent(at) {
            Some(up) if up <= 1 => return false,
            Some(up) => at = up,
            None => return true,
        }
    }
    true
}

fn parent(proc: &Path, pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(proc.join(format!("{pid}/stat"))).ok()?;
    // The name in parentheses may hold anything, spaces and parentheses too.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tree(pid: i32) -> Option<i32> {
        [(1, 0), (10, 1), (20, 10), (30, 20), (40, 99)]
            .into_iter()
            .find(|(child, _)| *child == pid)
            .map(|(_, parent)| parent)
    }

    fn own() -> i32 {
        i32::try_from(std::process::id()).unwrap()
    }

    #[test]
    fn what_the_supervisor_started_is_told_from_what_started_it() {
        assert!(is_descendant(30, 20, tree) && is_descendant(20, 20, tree));
        assert!(
            !is_descendant(10, 20, tree),
            "the terminal that started the supervisor may come in"
        );
    }

    #[test]
    fn an_ancestry_that_cannot_be_read_is_refused() {
        assert!(is_descendant(40, 20, tree));
    }

    #[test]
    fn the_parent_is_read_past_any_name() {
        let parent = parent(Path::new("/proc"), own()).unwrap();
        assert_eq!(parent, nix::unistd::getppid().as_raw());
    }

    #[test]
    fn this_process_s_own_child_is_refused_and_an_outsider_is_not() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(matches!(identify(&ours), Err(PeerRefused::OwnDescendant { .. })));
        assert!(
            PeerProcess::this_process().is_writer(Some(own()))
                && !PeerProcess::this_process().is_writer(None)
        );
    }
}
