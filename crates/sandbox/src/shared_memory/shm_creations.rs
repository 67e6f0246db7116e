//! What the listener saw a command make in `/dev/shm`, and removing it.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Names and processes that are kept of one command.
const KEPT: usize = 4096;
/// Entries that one removal takes away.
const ENTRIES: usize = 200_000;

/// Shared with the listener, which adds to it.
pub(crate) type SharedShmCreations = Arc<Mutex<ShmCreations>>;

/// Names in `/dev/shm` that were not there when the command made them, and the command's processes that
/// asked for System V segments.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShmCreations {
    names: BTreeSet<OsString>,
    processes: BTreeSet<u32>,
    cut: bool,
}

impl ShmCreations {
    /// The command is about to make a name at this path, absolute and as it said it.
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

    /// This process of the command asks for a segment.
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

    /// Whether it made more than is kept here.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }
}

/// Removes the names that belong to this user, with all that lies below them. Folders within folders are
/// moved up first: so neither their depth nor the length of their paths counts.
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
        // Not asked again where something in it stays: then it stays too.
        let _ = fs::remove_dir(&path);
    }
}

/// Removes a folder's files and moves its folders up; where those are now. Nothing where it is no folder or
/// cannot be read.
fn empty(folder: &Path, shm: &Path, left: &mut usize) -> Option<Vec<PathBuf>> {
    // No process of the command is left that could put a link here meanwhile.
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
        // A folder that may not be written cannot be moved.
        let again = |_| make_readable(&path).and_then(|()| fs::rename(&path, &up));
        if fs::rename(&path, &up).or_else(again).is_ok() {
            moved.push(up);
        }
    }
    Some(moved)
}

/// Gives its owner all rights to a folder that the command made.
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
