//! Package caches of a project: downloads of its commands are reused by its later sessions, and by
//! no other project or program. Used when a session is opened, and by the root, which
//! removes caches that are unused for long or too large.

use crate::remover::Remover;
use launch::project_overlays::{OverlayRegistry, ProjectOverlays};
use setup::cache_paths::{CACHE, OVERLAYS, caches_dir};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// In each overlay.
const UPPER: &str = "upper";
/// Locked shared by each session of the project, and exclusively for a removal.
const LOCK: &str = "lock";
/// Its modification time is the time of the last measurement.
const MEASURED: &str = "measured";
/// Prefix of caches renamed for removal. No project's name has it: those end in a digest.
const REMOVED_PREFIX: &str = "removed-";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long unused caches are kept.
const UNUSED_LIMIT: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Limit for the caches of one project when a supervisor starts, in bytes.
const MAX_BYTES: u64 = 16 << 30;

/// Keeps the caches while a session uses them.
#[derive(Debug)]
pub(crate) struct CacheLease {
    _lock: File,
    /// The overlays with its commands' changes.
    pub(crate) overlays: Arc<ProjectOverlays>,
}

/// Makes the directory of all projects' caches and returns its path.
///
/// # Errors
/// If it cannot be made.
pub(crate) fn make_caches_dir(state: &Path) -> io::Result<PathBuf> {
    private(state)?;
    let all = caches_dir(state);
    private(&all).map(|()| all)
}

/// Makes the cache and keeps it while the returned lease lives.
///
/// # Errors
/// If it cannot be made.
pub(crate) fn lease(kept: &Path, projects: &OverlayRegistry) -> io::Result<CacheLease> {
    let project = kept.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let lock = lock(project)?;
    lock.lock_shared()?;
    // Its modification time is the time of the last use.
    lock.set_modified(SystemTime::now())?;
    private(kept)?;
    Ok(CacheLease { _lock: lock, overlays: projects.of(&project.join(OVERLAYS)) })
}

fn lock(project: &Path) -> io::Result<File> {
    private(project)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).open(project.join(LOCK))
}

fn private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes caches that were unused for long or are too large, unless a session uses them now. Each
/// project is measured once a day.
pub(crate) fn remove_unused(all: &Path, remover: &Remover) {
    sweep_above(all, MAX_BYTES, remover);
}

fn sweep_above(all: &Path, largest: u64, remover: &Remover) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let project = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(REMOVED_PREFIX.as_bytes()) {
            remover.remove(project);
            continue;
        }
        let unused = age(&project.join(LOCK)).is_some_and(|age| age > UNUSED_LIMIT);
        let measured = age(&project.join(MEASURED)).is_some_and(|age| age < DAY);
        if unused || (!measured && is_above(written(&project), largest)) {
            remove(&project, remover);
        } else if !measured {
            let _ = std::fs::write(project.join(MEASURED), "");
        }
    }
}

fn age(file: &Path) -> Option<Duration> {
    SystemTime::now().duration_since(file.metadata().ok()?.modified().ok()?).ok()
}

/// The directories that commands wrote. The kernel's work directories beside them cannot be listed.
fn written(project: &Path) -> Vec<PathBuf> {
    let overlays = std::fs::read_dir(project.join(OVERLAYS)).into_iter().flatten().flatten();
    let uppers = overlays.map(|overlay| overlay.path().join(UPPER)).filter(|upper| upper.is_dir());
    uppers.chain([project.join(CACHE)]).collect()
}

/// A directory that its owner cannot list counts as too large: a command changed its mode.
fn is_above(mut waiting: Vec<PathBuf>, largest: u64) -> bool {
    let mut bytes = 0;
    while let Some(directory) = waiting.pop() {
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => return true,
        };
        for entry in entries.flatten() {
            let Ok(found) = entry.metadata() else { continue };
            // In blocks of 512 bytes on every file system (stat(2)).
            bytes += found.blocks() * 512;
            if found.is_dir() {
                waiting.push(entry.path());
            }
        }
        if bytes > largest {
            return true;
        }
    }
    false
}

fn remove(project: &Path, remover: &Remover) {
    // No session uses them while the lock is held.
    let Ok(held) = lock(project) else { return };
    if held.try_lock().is_err() {
        return;
    }
    for name in [CACHE, OVERLAYS] {
        let mut number = [0; 4];
        if getrandom::fill(&mut number).is_err() {
            return;
        }
        let aside = format!("{REMOVED_PREFIX}{:08x}", u32::from_ne_bytes(number));
        let aside = project.with_file_name(aside);
        match std::fs::rename(project.join(name), &aside) {
            Ok(()) => {
                tracing::info!(project = %project.display(), name, "removed");
                remover.remove(aside);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(project = %project.display(), name, %error, "stays"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use setup::cache_paths::project_cache_dir;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn caches_go_when_they_are_too_large_or_unused_and_nobody_uses_them() {
        let state = tempfile::tempdir().unwrap();
        let all = caches_dir(state.path());
        std::fs::create_dir(&all).unwrap();
        let remover = Remover::start(std::slice::from_ref(&all)).unwrap();
        let names = ["kept", "large", "old", "closed", "in-use"];
        let places = names.map(|name| project_cache_dir(state.path(), &Path::new("/p").join(name)));
        let [kept, large, old, closed, in_use] = &places;
        for place in &places {
            drop(lease(place, &OverlayRegistry::default()).unwrap());
            std::fs::write(place.join("file"), "x").unwrap();
        }
        for place in [large, in_use] {
            std::fs::write(place.join("large"), vec![1; 64 << 10]).unwrap();
        }
        let lock = File::options().write(true).open(old.with_file_name(LOCK)).unwrap();
        lock.set_modified(SystemTime::now() - UNUSED_LIMIT - DAY).unwrap();
        std::fs::create_dir(closed.join("shut")).unwrap();
        std::fs::set_permissions(closed.join("shut"), PermissionsExt::from_mode(0o000)).unwrap();
        let used = lease(in_use, &OverlayRegistry::default()).unwrap();
        sweep_above(&all, 32 << 10, &remover);
        assert!(kept.join("file").exists() && in_use.join("file").exists());
        assert!(!large.exists() && !old.exists());
        // Root can list directories regardless of their mode.
        assert_eq!(closed.exists(), nix::unistd::geteuid().is_root());
        // A cache that was measured today is not measured again.
        std::fs::write(kept.join("large"), vec![1; 64 << 10]).unwrap();
        drop(used);
        sweep_above(&all, 32 << 10, &remover);
        assert!(kept.exists());
        assert!(!in_use.exists());
        remover.finish(Duration::from_secs(60)).await;
        let aside = std::fs::read_dir(&all).unwrap().flatten();
        assert_eq!(
            aside
                .filter(|entry| entry.file_name().to_str().unwrap().starts_with(REMOVED_PREFIX))
                .count(),
            0
        );
    }
}
