//! Recorded state of a protected path: enough to notice a change and to undo it.

use super::bounded_read::{self, Symlinks};
use super::persist::persist;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most bytes of one file and of one call, and most names. Protected files are small in any
/// project.
pub(super) const FILE_BYTES: u64 = 256 * 1024;
const ALL_BYTES: u64 = 4 * 1024 * 1024;
const ALL_NAMES: usize = 20_000;
const DEEP: usize = 16;
/// Bytes of a usual disk block. Each file counts one more for its metadata.
const BLOCK: u64 = 4096;

/// Remaining limits of a recording.
#[derive(Debug)]
pub(super) struct CaptureBudget {
    bytes: u64,
    names: usize,
    /// Disk blocks that the recorded files take.
    blocks: u64,
    /// Something was left out.
    exhausted: bool,
}

impl CaptureBudget {
    pub(super) fn new() -> Self {
        Self { bytes: ALL_BYTES, names: ALL_NAMES, blocks: 0, exhausted: false }
    }

    /// Disk space of the recorded files, in bytes.
    pub(super) fn disk_bytes(&self) -> u64 {
        self.blocks * BLOCK
    }

    /// True if a file exceeded a limit.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }
}

/// State of a path.
#[derive(Debug)]
pub(super) enum FileState {
    File {
        stamp: InodeStamp,
        bytes: Option<Vec<u8>>,
    },
    /// Without git's sample hooks, which are never run.
    Folder {
        mode: u32,
        names: BTreeMap<OsString, FileState>,
    },
    Link(PathBuf),
    /// A FIFO or something else without a content of its own.
    Special {
        device: u64,
        number: u64,
    },
    /// Held by a mount, or more than can be kept.
    Unrecorded,
}

/// Metadata that every change of a file alters, except writes through a memory mapping on tmpfs.
/// The change time is set by the kernel: no unprivileged program can set it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InodeStamp {
    device: u64,
    number: u64,
    bytes: u64,
    pub(super) mode: u32,
    changed: (i64, i64),
}

impl InodeStamp {
    pub(super) fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            number: found.ino(),
            bytes: found.len(),
            mode: found.mode() & 0o7777,
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

impl FileState {
    /// How many files and directories in it are not recorded.
    pub(super) fn gaps(&self) -> usize {
        match self {
            Self::File { bytes: Some(_), .. } | Self::Link(_) | Self::Special { .. } => 0,
            Self::File { bytes: None, .. } | Self::Unrecorded => 1,
            Self::Folder { names, .. } => names.values().map(Self::gaps).sum(),
        }
    }

    /// True if everything in it is also in the other one with the same content, regardless of path and time.
    /// A checkout lacks the files of a directory that git ignores.
    pub(super) fn is_part_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Folder { names: own, .. }, Self::Folder { names: others, .. }) => own
                .iter()
                .all(|(name, seen)| others.get(name).is_some_and(|other| seen.is_part_of(other))),
            (
                Self::File { .. }
                | Self::Folder { .. }
                | Self::Link(_)
                | Self::Special { .. }
                | Self::Unrecorded,
                _,
            ) => self.is_same(other),
        }
    }

    /// True if both have the same content, regardless of path and time.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { bytes: Some(one), .. }, Self::File { bytes: Some(two), .. }) => {
                one == two
            }
            (Self::Folder { names: one, .. }, Self::Folder { names: two, .. }) => {
                one.len() == two.len()
                    && one
                        .iter()
                        .all(|(name, seen)| two.get(name).is_some_and(|it| seen.is_same(it)))
            }
            (Self::Link(one), Self::Link(two)) => one == two,
            (
                Self::File { .. }
                | Self::Folder { .. }
                | Self::Link(_)
                | Self::Special { .. }
                | Self::Unrecorded,
                _,
            ) => false,
        }
    }
}

/// Records the state of a path; `None` if it does not exist.
pub(super) fn capture(path: &Path, room: &mut CaptureBudget) -> Option<FileState> {
    capture_within(path, room, DEEP)
}

fn capture_within(path: &Path, room: &mut CaptureBudget, deep: usize) -> Option<FileState> {
    let found = path.symlink_metadata().ok()?;
    let Some(names) = room.names.checked_sub(1) else {
        room.exhausted = true;
        return Some(FileState::Unrecorded);
    };
    room.names = names;
    if found.is_symlink() {
        return Some(std::fs::read_link(path).map_or(FileState::Unrecorded, FileState::Link));
    }
    if found.is_file() {
        let stamp = InodeStamp::of(&found);
        let room_left = found.len() <= FILE_BYTES && found.len() <= room.bytes;
        room.exhausted |= !room_left;
        let bytes = if room_left {
            bounded_read::bytes(path, FILE_BYTES, Symlinks::Refuse).ok()
        } else {
            None
        };
        if let Some(bytes) = &bytes {
            let bytes = bytes.len() as u64;
            room.bytes -= bytes.min(room.bytes);
            room.blocks += bytes.div_ceil(BLOCK) + 1;
        }
        return Some(FileState::File { stamp, bytes });
    }
    if !found.is_dir() {
        return Some(FileState::Special { device: found.dev(), number: found.ino() });
    }
    let Some(deep) = deep.checked_sub(1) else {
        room.exhausted = true;
        return Some(FileState::Unrecorded);
    };
    let Ok(entries) = std::fs::read_dir(path) else { return Some(FileState::Unrecorded) };
    let mut names = BTreeMap::new();
    for entry in entries.flatten().filter(|entry| !is_sample(&entry.path())) {
        if let Some(seen) = capture_within(&entry.path(), room, deep) {
            names.insert(entry.file_name(), seen);
        }
    }
    Some(FileState::Folder { mode: found.mode() & 0o7777, names })
}

/// Paths that differ from their recorded state.
pub(super) fn changed_paths(path: &Path, seen: Option<&FileState>) -> Vec<PathBuf> {
    changed_paths_between(path, seen, capture(path, &mut CaptureBudget::new()).as_ref())
}

fn changed_paths_between(
    path: &Path,
    before: Option<&FileState>,
    after: Option<&FileState>,
) -> Vec<PathBuf> {
    let differs = match (before, after) {
        (
            Some(FileState::Folder { mode, names }),
            Some(FileState::Folder { mode: now, names: there }),
        ) => {
            let all: BTreeSet<_> = names.keys().chain(there.keys()).collect();
            let within = all.into_iter().flat_map(|name| {
                changed_paths_between(&path.join(name), names.get(name), there.get(name))
            });
            let own = (mode != now).then(|| path.to_owned());
            return own.into_iter().chain(within).collect();
        }
        (
            Some(FileState::File { stamp, bytes }),
            Some(FileState::File { stamp: now, bytes: there }),
        ) => {
            // A touched file with the same bytes counts as unchanged, if its bytes were recorded. A
            // write through a memory mapping on tmpfs leaves no trace in the times.
            match bytes {
                Some(_) => bytes != there || stamp.mode != now.mode,
                None => stamp != now,
            }
        }
        (Some(FileState::Link(to)), Some(FileState::Link(now))) => to != now,
        (
            Some(FileState::Special { device, number }),
            Some(FileState::Special { device: its_device, number: its_number }),
        ) => (device, number) != (its_device, its_number),
        (None, None) => false,
        // Another file type, or a file that exceeded the limits.
        (Some(_) | None, _) => true,
    };
    if differs { vec![path.to_owned()] } else { Vec::new() }
}

/// True for git's sample hooks. A folder of that name does not count: an instruction folder is read
/// by any name.
pub(super) fn is_sample(path: &Path) -> bool {
    is_sample_by_name(path) && path.symlink_metadata().is_ok_and(|found| found.is_file())
}

/// The same by the name alone, for a path that may not exist.
pub(super) fn is_sample_by_name(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "sample")
        && path.parent().is_some_and(|folder| folder.ends_with("hooks"))
}

persist!(struct InodeStamp { device, number, bytes, mode, changed });
persist!(enum FileState {
    0 => File { stamp, bytes },
    1 => Folder { mode, names },
    2 => Link(to),
    3 => Special { device, number },
    4 => Unrecorded,
});
