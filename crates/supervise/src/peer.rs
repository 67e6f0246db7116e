//! Who is at the other end of the control socket: only this user, and nothing that this
//! supervisor started. Used by the door.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Why a peer is not let in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stranger {
    #[error("process {pid} belongs to user {uid}, not to the user of this supervisor")]
    OtherUser { pid: i32, uid: u32 },
    #[error("process {pid} was started by this supervisor: a tool call cannot drive agentd")]
    OurOwn { pid: i32 },
    #[error("the process cannot be seen from here: it sits in another pid namespace")]
    Unseen,
    #[error("the peer cannot be identified: {0}")]
    Unknown(#[from] io::Error),
}

/// Checks the process that connected.
pub(crate) fn check(socket: impl AsFd) -> Result<(), Stranger> {
    let peer = nix::sys::socket::getsockopt(&socket, nix::sys::socket::sockopt::PeerCredentials)
        .map_err(io::Error::from)?;
    let (pid, uid) = (peer.pid(), peer.uid());
    if uid != nix::unistd::geteuid().as_raw() {
        return Err(Stranger::OtherUser { pid, uid });
    }
    if pid == 0 {
        return Err(Stranger::Unseen);
    }
    let own = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
    match descends(pid, own, |pid| parent(Path::new("/proc"), pid)) {
        true => Err(Stranger::OurOwn { pid }),
        false => Ok(()),
    }
}

/// Whether `pid` is `ancestor` or was started by it, by itself or through others. An ancestry that
/// cannot be read to its end counts as ours: fail closed.
fn descends(pid: i32, ancestor: i32, parent: impl Fn(i32) -> Option<i32>) -> bool {
    let mut at = pid;
    // Ancestries are short; the bound stops a loop made by reused numbers.
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

    #[test]
    fn what_the_supervisor_started_is_told_from_what_started_it() {
        assert!(descends(30, 20, tree) && descends(20, 20, tree));
        assert!(!descends(10, 20, tree), "the terminal that started the supervisor may come in");
    }

    #[test]
    fn an_ancestry_that_cannot_be_read_is_refused() {
        assert!(descends(40, 20, tree));
    }

    #[test]
    fn the_parent_is_read_past_any_name() {
        let own = i32::try_from(std::process::id()).unwrap();
        let parent = parent(Path::new("/proc"), own).unwrap();
        assert_eq!(parent, nix::unistd::getppid().as_raw());
    }

    #[test]
    fn this_process_s_own_child_is_refused_and_an_outsider_is_not() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(matches!(check(&ours), Err(Stranger::OurOwn { .. })));
    }
}
