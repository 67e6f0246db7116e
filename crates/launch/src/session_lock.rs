//! The lock on a session, which can outlive the supervisor: each runner holds a copy of the
//! descriptor, so the lock is free only after all runners of the session have ended. Processes in a
//! runner's cage end a moment after it, so the keepers of the cages are recorded in a file, and the
//! lock is acquired only when none of them runs. Processes that were stopped and therefore do not
//! end are killed when a supervisor waits for the lock. Used by the root when it opens a session,
//! and by the call actor for each runner.

use crate::orphans::{self, NotRunnersChild, RecordedProcess};
use protocol::tool::Keeper;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long leftover processes of a dead supervisor's calls may take to end. The runners' own kill
/// sequence takes a third of a second; a machine under load takes longer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long they may take before they are killed, and the time between two attempts.
const KILL_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two attempts to lock.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The held lock. Clones share it.
#[derive(Debug, Clone)]
pub struct SessionLock {
    lock: Arc<File>,
    /// File that lists the runners and the keepers of their cages, by pid and start time.
    runners: PathBuf,
}

impl SessionLock {
    /// Acquires the lock of the session in this directory. Blocks while calls of an earlier
    /// supervisor end.
    ///
    /// # Errors
    /// `WouldBlock` if they do not end in time; errors of opening the file.
    pub fn acquire(session_dir: &Path) -> io::Result<Self> {
        let runners = session_dir.join("runners");
        let file = open(session_dir)?;
        let (began, mut grace) = (Instant::now(), KILL_INTERVAL);
        loop {
            match file.try_lock() {
                Ok(()) if !orphans::any_alive(&runners) => return Self::acquired(file, runners),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if began.elapsed() > TIMEOUT {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            if began.elapsed() > grace {
                orphans::kill_all(&runners);
                grace += KILL_INTERVAL;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Acquires the lock if it is free.
    ///
    /// # Errors
    /// `WouldBlock` if it is held; errors of opening the file.
    pub fn try_acquire(session_dir: &Path) -> io::Result<Self> {
        let file = open(session_dir)?;
        let runners = session_dir.join("runners");
        match file.try_lock() {
            Ok(()) if !orphans::any_alive(&runners) => Self::acquired(file, runners),
            Ok(()) | Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn acquired(lock: File, runners: PathBuf) -> io::Result<Self> {
        orphans::clear(&runners)?;
        Ok(Self { lock: Arc::new(lock), runners })
    }

    /// A copy of the lock for the runner of this pid, which is recorded.
    pub(crate) fn share(&self, pid: u32) -> io::Result<OwnedFd> {
        orphans::record(&self.runners, pid)?;
        Ok(self.lock.try_clone()?.into())
    }

    /// Records the processes of that runner's cage. Returns the running ones.
    pub(crate) fn record_cage(
        &self,
        runner: u32,
        keeper: Keeper,
    ) -> io::Result<Result<Vec<RecordedProcess>, NotRunnersChild>> {
        orphans::record_cage(&self.runners, runner, keeper)
    }
}

fn open(session_dir: &Path) -> io::Result<File> {
    let path = session_dir.join("held");
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn it_is_free_only_when_the_last_holder_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let hold = SessionLock::acquire(place.path()).unwrap();
        // A pid that no process has: recorded processes would be killed.
        let shared = hold.share(u32::MAX).unwrap();
        drop(hold);
        let waits = std::thread::spawn({
            let place = place.path().to_owned();
            move || (SessionLock::acquire(&place).map(drop), Instant::now())
        });
        std::thread::sleep(Duration::from_millis(100));
        let busy = SessionLock::try_acquire(place.path()).map(drop).unwrap_err();
        assert_eq!(busy.kind(), io::ErrorKind::WouldBlock);
        let freed = Instant::now();
        drop(shared);
        let (taken, at) = waits.join().unwrap();
        taken.unwrap();
        assert!(at >= freed, "it was free while somebody held it");
        // A process that another test is starting may share it until its program begins.
        SessionLock::acquire(place.path()).unwrap();
    }

    /// The lock is free, but a process of the cage may still run.
    #[test]
    fn it_is_taken_only_when_the_keeper_of_a_cage_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let hold = SessionLock::acquire(place.path()).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (pid, kind) = (child.id(), protocol::tool::KeeperKind::FirstProcess);
        let keeper = Keeper { pid, kind, command: pid };
        assert_eq!(hold.record_cage(std::process::id(), keeper).unwrap().unwrap().len(), 2);
        drop(hold);
        let busy = SessionLock::try_acquire(place.path()).map(drop).unwrap_err();
        assert_eq!(busy.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(child.try_wait().unwrap(), None, "only a look");
        SessionLock::acquire(place.path()).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
        SessionLock::try_acquire(place.path()).unwrap();
    }
}
