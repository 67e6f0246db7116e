//! The overlays of a project, in which its commands change copies of the user's files: who may
//! mount them, and the mounts, which are passed from call to call. The kernel leaves the behaviour
//! of two mounts with one upper directory undefined, so only one supervisor uses them at a time,
//! and one call after the other. Used when a session is opened, and by the call actor.

use protocol::confinement::{Confinement, Profile};
use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Mutex as Turns, OwnedMutexGuard};
use tokio::time::timeout;

/// In the directory that contains the overlays.
const LOCK: &str = "lock";
/// How many copies of the mounts are kept: one for the next call, and one more in case that call is
/// killed.
const MAX_MOUNTS: usize = 2;
/// How long the first call of a session waits for the previous owner of the lock, whose mounts end
/// once their data is on disk.
const LOCK_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a call waits while another builds its cage, which takes milliseconds. A call that is
/// stopped meanwhile must not block this one.
const TURN_TIMEOUT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(10);

/// The overlays of all projects with sessions in this supervisor. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct OverlayRegistry(Arc<Mutex<HashMap<PathBuf, Weak<ProjectOverlays>>>>);

impl OverlayRegistry {
    /// The overlays in this directory.
    pub fn of(&self, directory: &Path) -> Arc<ProjectOverlays> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(overlays) = known.get(directory).and_then(Weak::upgrade) {
            return overlays;
        }
        known.retain(|_, overlays| overlays.strong_count() > 0);
        let state = OverlayState { lock: None, mounted: Vec::new(), lock_wait_left: LOCK_TIMEOUT };
        let overlays = Arc::new(ProjectOverlays {
            directory: directory.to_owned(),
            state: Arc::new(Turns::new(state)),
        });
        known.insert(directory.to_owned(), Arc::downgrade(&overlays));
        overlays
    }
}

/// The overlays of one project.
#[derive(Debug)]
pub struct ProjectOverlays {
    directory: PathBuf,
    state: Arc<Turns<OverlayState>>,
}

#[derive(Debug)]
struct OverlayState {
    mounted: Vec<OwnedFd>,
    /// Held while anything is mounted. Declared after the mounts, so that it is dropped after them.
    lock: Option<File>,
    /// Time left to wait for the lock.
    lock_wait_left: Duration,
}

impl ProjectOverlays {
    /// True if a cage of this confinement mounts overlays.
    pub fn are_mounted_in(wanted: &Confinement) -> bool {
        let runs_commands = matches!(
            wanted.profile,
            Profile::Command
                | Profile::Verify
                | Profile::Format
                | Profile::Hook
                | Profile::GuardHook
        );
        runs_commands && !wanted.private.is_empty()
    }

    /// The directory that contains them.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Waits for this call's turn. `None` if another supervisor has the lock, if the overlays
    /// cannot be created, or if another call does not finish its turn.
    pub async fn turn(&self) -> Option<OverlayTurn> {
        let Ok(mut state) = timeout(TURN_TIMEOUT, self.state.clone().lock_owned()).await else {
            tracing::warn!(place = %self.directory.display(), "a cage takes long; no overlays");
            return None;
        };
        while state.lock.is_none() {
            match lock(&self.directory) {
                Ok(Some(lock)) => state.lock = Some(lock),
                Ok(None) if state.lock_wait_left.is_zero() => return None,
                Ok(None) => {
                    state.lock_wait_left = state.lock_wait_left.saturating_sub(PAUSE);
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => {
                    tracing::warn!(place = %self.directory.display(), %error, "no overlays");
                    return None;
                }
            }
        }
        let lock = state.lock.as_ref()?.try_clone().ok()?.into();
        Some(OverlayTurn { lock: Some(lock), state })
    }
}

impl Drop for ProjectOverlays {
    /// Dropping the last mount blocks until its data is on disk.
    fn drop(&mut self) {
        let state = std::mem::replace(
            &mut self.state,
            Arc::new(Turns::new(OverlayState {
                mounted: Vec::new(),
                lock: None,
                lock_wait_left: Duration::ZERO,
            })),
        );
        let _ = std::thread::Builder::new().spawn(move || drop(state));
    }
}

/// The turn of one call; other calls wait until it is dropped.
pub struct OverlayTurn {
    lock: Option<OwnedFd>,
    state: OwnedMutexGuard<OverlayState>,
}

impl OverlayTurn {
    /// The lock, for the call's runner.
    pub(crate) fn lock(&mut self) -> Option<OwnedFd> {
        self.lock.take()
    }

    /// A mount of an earlier call, which can be attached once.
    pub(crate) fn take_mount(&mut self) -> Option<OwnedFd> {
        self.state.mounted.pop()
    }

    /// Keeps a mount of this call for later ones.
    pub(crate) fn put_mount(&mut self, mounted: OwnedFd) {
        // The newest mount may have changes that the others lack.
        self.state.mounted.insert(0, mounted);
        self.state.mounted.truncate(MAX_MOUNTS);
    }
}

/// Takes the lock; `None` if another process has it.
fn lock(directory: &Path) -> io::Result<Option<File>> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(directory.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn descriptor() -> OwnedFd {
        File::open("/dev/null").unwrap().into()
    }

    #[tokio::test]
    async fn one_call_has_its_turn_and_hands_on_what_it_mounted() {
        let dir = tempfile::tempdir().unwrap();
        let projects = OverlayRegistry::default();
        let (one, same) = (projects.of(dir.path()), projects.of(dir.path()));
        assert!(Arc::ptr_eq(&one, &same));
        let mut first = one.turn().await.unwrap();
        assert!(first.take_mount().is_none() && first.lock().is_some());
        assert!(one.turn().await.is_none(), "one that takes long holds up nobody");
        let second =
            tokio::spawn(async move { same.turn().await.map(|mut turn| turn.take_mount()) });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!second.is_finished());
        first.put_mount(descriptor());
        first.put_mount(descriptor());
        drop(first);
        assert!(second.await.unwrap().unwrap().is_some());
        // That call was killed with its mount; one copy is left.
        assert!(one.turn().await.unwrap().take_mount().is_some());
    }

    #[tokio::test]
    async fn another_supervisor_has_none_until_the_mounts_are_gone() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = (OverlayRegistry::default(), OverlayRegistry::default());
        let one = ours.of(dir.path());
        let mut turn = one.turn().await.unwrap();
        let runner = turn.lock();
        drop(turn);
        let other = theirs.of(dir.path());
        assert!(other.turn().await.is_none());
        drop(one);
        assert!(other.turn().await.is_none(), "a runner lives");
        drop(runner);
        let gone = async {
            while other.turn().await.is_none() {
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
    }
}
