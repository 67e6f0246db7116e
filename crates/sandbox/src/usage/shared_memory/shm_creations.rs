//! The names that a command created in `/dev/shm`, as the notify supervisor observed them, and
//! their removal.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Maximum number of names and of processes stored per command.
const KEPT: usize = 4096;
/// Maximum number of entries that one removal deletes.
const ENTRIES: usize = 200_000;

/// Shared with the notify supervisor, which adds to it.
pub(crate) type SharedShmCreations = Arc<Mutex<ShmCreations>>;

/// Names in `/dev/shm` that did not exist when the command created them, and the command's
/// processes that requested System V segments.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShmCreations {
    names: BTreeSet<OsString>,
    processes: BTreeSet<u32>,
    cut: bool,
}

impl ShmCreations {
    /// Called before the command creates a name at this path, which is absolute and not resolved.
    pub(crate) fn add_name(&mut self, path: &Path, shm: &Path) {
        let Some(Component::Normal(first)) =
            path.strip_prefix(shm).ok().and_then(|rest| rest.components().next())
        else {
            return;
        };
        if self.names.contains(first) || shm.join(first).symlink_metadata().is_ok() {
            return;
        }
        if self.names.len() < KEPT {
            self.names.insert(first.to_owned());
        } else {
            self.cut = true;
        }
    }

    /// Called when this process of the command requests a segment.
    pub(crate) fn add_process(&mut self, pid: u32) {
        if self.processes.len() < KEPT {
            self.processes.insert(pid);
        } else {
            self.cut = true;
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.names.iter().map(OsString::as_os_str)
    }

    pub(super) fn has_made(&self, creator: u32) -> bool {
        self.processes.contains(&creator)
    }

    /// True if it created more than is stored here.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }
}

/// Removes the names that belong to this user, with everything below them. Nested directories are
/// moved up first, so that neither their depth nor the length of their paths matters.
pub(super) fn remove(made: &ShmCreations, shm: &Path, user: u32) {
    let is_ours = |path: &PathBuf| path.symlink_metadata().is_ok_and(|status| status.uid() == user);
    let mut waiting: VecDeque<PathBuf> =
        made.names().map(|name| shm.join(name)).filter(is_ours).collect();
    let mut left = ENTRIES;
    while let Some(path) = waiting.pop_front() {
        left = left.saturating_sub(1);
        if left == 0 {
            return;
        }
        if fs::remove_file(&path).is_ok() || fs::remove_dir(&path).is_ok() {
            continue;
        }
        let Some(inner) = empty(&path, shm, &mut left) else { continue };
        waiting.extend(inner);
        // Not tried again if an entry cannot be removed: then the directory cannot be either.
        let _ = fs::remove_dir(&path);
    }
}

/// Removes the files of a directory and moves its subdirectories up; returns their new paths.
/// `None` if it is not a directory or cannot be read.
fn empty(folder: &Path, shm: &Path, left: &mut usize) -> Option<Vec<PathBuf>> {
    // No process of the command lives that could put a link here meanwhile.
    if !folder.symlink_metadata().is_ok_and(|status| status.is_dir()) {
        return None;
    }
    let entries = fs::read_dir(folder).or_else(|_| {
        make_readable(folder)?;
        fs::read_dir(folder)
    });
    let mut moved = Vec::new();
    for entry in entries.ok()?.flatten() {
        *left = left.saturating_sub(1);
        if *left == 0 {
            break;
        }
        let path = entry.path();
        let removed = fs::remove_file(&path).or_else(|_| {
            make_readable(folder)?;
            fs::remove_file(&path)
        });
        if removed.is_ok() || fs::remove_dir(&path).is_ok() {
            continue;
        }
        let up = shm.join(format!(".agentd-{}-{}", std::process::id(), *left));
        // A directory without write permission cannot be moved.
        let again = |_| make_readable(&path).and_then(|()| fs::rename(&path, &up));
        if fs::rename(&path, &up).or_else(again).is_ok() {
            moved.push(up);
        }
    }
    Some(moved)
}

/// Gives its owner all rights to a directory that the command created.
fn make_readable(folder: &Path) -> std::io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_new_names_right_below_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let shm = place.path();
        fs::create_dir(shm.join("theirs")).unwrap();
        let mut made = ShmCreations::default();
        for path in ["theirs", "theirs/x", "mine/deep", "..", "../mine", ""] {
            made.add_name(&shm.join(path), shm);
        }
        made.add_name(Path::new("/elsewhere/mine"), shm);
        assert_eq!(made.names().collect::<Vec<_>>(), ["mine"]);
    }

    #[test]
    fn depth_and_modes_keep_nothing() {
        let place = tempfile::tempdir().unwrap();
        let shm = place.path();
        let mut made = ShmCreations::default();
        made.add_name(&shm.join("mine"), shm);
        made.add_name(&shm.join("file"), shm);
        fs::create_dir(shm.join("theirs")).unwrap();
        fs::write(shm.join("file"), "x").unwrap();
        let chain = "d/".repeat(300);
        fs::create_dir_all(shm.join("mine").join(chain)).unwrap();
        fs::write(shm.join("mine/d/x"), "x").unwrap();
        fs::create_dir_all(shm.join("mine/shut/in")).unwrap();
        fs::set_permissions(shm.join("mine/shut"), fs::Permissions::from_mode(0o000)).unwrap();
        remove(&made, shm, nix::unistd::getuid().as_raw());
        let left: Vec<_> = fs::read_dir(shm).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, ["theirs"]);
    }
}
