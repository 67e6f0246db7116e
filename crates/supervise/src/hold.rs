//! The lock on a session that outlives its supervisor: each runner holds the same descriptor, so it
//! is free only when everything of the session's calls has ended, however the supervisor did. Used
//! by the root when it opens a session, and by the call actor for each runner.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the runners of a dead supervisor may take to end. Their own ladder takes a third of a
/// second; a machine under load takes longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at a lock that is not free.
const PAUSE: Duration = Duration::from_millis(5);

/// The lock, held. Clones are the same lock.
#[derive(Debug, Clone)]
pub(crate) struct Hold(Arc<File>);

impl Hold {
    /// Takes the lock of the session in this directory. Blocks while calls of an earlier supervisor
    /// are ending.
    ///
    /// # Errors
    /// `WouldBlock` when they do not end in time; those of opening the file.
    pub(crate) fn take(session_dir: &Path) -> io::Result<Self> {
        let path = session_dir.join("held");
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let until = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(Arc::new(file))),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(PAUSE)
                }
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// The same lock for another process.
    pub(crate) fn share(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn it_is_free_only_when_the_last_holder_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let hold = Hold::take(place.path()).unwrap();
        let shared = hold.share().unwrap();
        drop(hold);
        let waits = std::thread::spawn({
            let place = place.path().to_owned();
            move || (Hold::take(&place).map(drop), Instant::now())
        });
        std::thread::sleep(Duration::from_millis(100));
        let freed = Instant::now();
        drop(shared);
        let (taken, at) = waits.join().unwrap();
        taken.unwrap();
        assert!(at >= freed, "it was free while somebody held it");
    }
}
