//! The lock for starting the daemon: one starter at a time, and only if no daemon answers.
//!
//! The lock is held while a daemon starts, never while it runs. Only the socket shows whether a
//! daemon runs: a pid in a file may have been reused. Acquired by `agentd-supervisor` before it
//! starts anything; released once its control socket is open.

use crate::control_socket::ControlSocketError;
use config::Dirs;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long another start may hold the lock: it first clears leftovers of an earlier daemon.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two attempts to lock.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The held lock.
#[derive(Debug)]
pub struct DaemonLock {
    _lock: File,
    directory: PathBuf,
}

impl DaemonLock {
    /// Waits for the lock, then removes a stale socket.
    ///
    /// # Errors
    /// [`ControlSocketError::DaemonRunning`] if a daemon answers; other errors if the directory is
    /// not private or the lock does not become free.
    pub fn acquire(directory: &Path) -> Result<Self, ControlSocketError> {
        let failed = |source| ControlSocketError::Io { path: directory.to_owned(), source };
        let socket = Dirs::socket_in(directory)?;
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        check_private(directory)?;
        let lock = lock(directory, TIMEOUT)?;
        match probe_socket(&socket).map_err(failed)? {
            SocketState::Live => return Err(ControlSocketError::DaemonRunning { socket }),
            SocketState::Stale => std::fs::remove_file(&socket).map_err(failed)?,
            SocketState::Missing => {}
        }
        Ok(Self { _lock: lock, directory: directory.to_owned() })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Removes the socket of an ended daemon, unless another daemon has replaced it. `own` is the inode
/// of its socket.
pub(crate) fn remove_own_socket(directory: &Path, own: u64) -> io::Result<()> {
    // If another starter holds the lock, it finds the socket stale and removes it itself.
    let Ok(_lock) = lock(directory, Duration::ZERO) else { return Ok(()) };
    let socket = directory.join("socket");
    if std::fs::symlink_metadata(&socket)?.ino() == own {
        std::fs::remove_file(&socket)?;
        std::fs::remove_file(directory.join("token"))?;
    }
    Ok(())
}

/// Checks that the directory belongs to this user alone.
pub(crate) fn check_private(directory: &Path) -> Result<(), ControlSocketError> {
    let failed = |source| ControlSocketError::Io { path: directory.to_owned(), source };
    let state = std::fs::symlink_metadata(directory).map_err(failed)?;
    let (uid, mode) = (state.uid(), state.mode() & 0o7777);
    if !state.is_dir() || uid != nix::unistd::geteuid().as_raw() || mode & 0o077 != 0 {
        return Err(ControlSocketError::NotPrivate { path: directory.to_owned(), uid, mode });
    }
    Ok(())
}

fn lock(directory: &Path, patience: Duration) -> Result<File, ControlSocketError> {
    let path = directory.join("lock");
    let failed = |source| ControlSocketError::Io { path: directory.to_owned(), source };
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(&path)
        .map_err(failed)?;
    let until = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(POLL_INTERVAL)
            }
            Err(TryLockError::WouldBlock) => {
                return Err(ControlSocketError::DaemonStarting { lock: path });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

/// State of a socket path.
#[derive(Debug, PartialEq, Eq)]
enum SocketState {
    Live,
    Stale,
    Missing,
}

/// Connects without waiting. A full queue means that a process listens there.
fn probe_socket(path: &Path) -> io::Result<SocketState> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let tried = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    match connect(tried.as_raw_fd(), &UnixAddr::new(path)?) {
        Ok(()) | Err(Errno::EAGAIN | Errno::EINPROGRESS) => Ok(SocketState::Live),
        Err(Errno::ECONNREFUSED) => Ok(SocketState::Stale),
        Err(Errno::ENOENT) => Ok(SocketState::Missing),
        Err(other) => Err(other.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_is_taken_away_only_when_nobody_answers() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("agentd");
        drop(DaemonLock::acquire(&directory).unwrap());
        let socket = directory.join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        assert!(matches!(
            DaemonLock::acquire(&directory),
            Err(ControlSocketError::DaemonRunning { .. })
        ));
        drop(listener);
        // A process that another test starts has a copy of it until it executes its program.
        let again = (0..300).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            DaemonLock::acquire(&directory).ok()
        });
        drop(again.unwrap());
        assert!(!socket.exists(), "a socket that nobody answers at is in the way");
    }

    #[test]
    fn failure_2_a_displaced_daemon_leaves_its_successor_s_socket() {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("socket");
        std::fs::write(place.path().join("token"), "x").unwrap();
        drop(UnixListener::bind(&socket).unwrap());
        let own = std::fs::symlink_metadata(&socket).unwrap().ino();
        std::fs::rename(&socket, place.path().join("old")).unwrap();
        let _successor = UnixListener::bind(&socket).unwrap();
        remove_own_socket(place.path(), own).unwrap();
        assert!(socket.exists(), "the successor's socket stays");
        let its_own = std::fs::symlink_metadata(&socket).unwrap().ino();
        remove_own_socket(place.path(), its_own).unwrap();
        assert!(!socket.exists(), "one's own goes");
    }

    #[test]
    fn a_directory_that_others_may_enter_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.path(), open).unwrap();
        assert!(matches!(
            DaemonLock::acquire(place.path()),
            Err(ControlSocketError::NotPrivate { .. })
        ));
    }

    #[test]
    fn failure_1_a_lock_that_nobody_holds_is_no_obstacle() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("agentd");
        std::fs::create_dir(&directory).unwrap();
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700)).unwrap();
        // Another program would write a pid into its lock; here the pid of this running process.
        std::fs::write(directory.join("lock"), std::process::id().to_string()).unwrap();
        drop(DaemonLock::acquire(&directory).unwrap());
    }
}
