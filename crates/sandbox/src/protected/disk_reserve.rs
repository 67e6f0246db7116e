//! Space reserved on the project's disk while a command runs: if the command fills the disk,
//! protected files can still be restored.

use super::persist::Persist;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

/// Files without a name, one on each disk.
#[derive(Debug, Default)]
pub(super) struct DiskReserve {
    files: Vec<File>,
    /// Disks on which no room was taken.
    without: usize,
    /// Bytes on each.
    room: i64,
}

/// Room for the new name of a file that is moved aside, where its directory has to grow.
const LEAST: i64 = 64 << 10;

impl DiskReserve {
    /// Takes this much room on the disk of each folder, and some for new names. A file system that keeps
    /// no room for a file without a name, or takes nothing new at all, has none taken.
    ///
    /// # Errors
    /// Where a disk is full, and there are files to be put back.
    pub(super) fn of<'a>(
        folders: impl Iterator<Item = &'a PathBuf>,
        bytes: u64,
    ) -> io::Result<Self> {
        let files = i64::try_from(bytes).unwrap_or(i64::MAX);
        let bytes = files.max(LEAST);
        let mut kept = Self { room: bytes, ..Self::default() };
        let mut disks = BTreeSet::new();
        for folder in folders {
            let Ok(found) = folder.metadata() else { continue };
            if !disks.insert(found.dev()) {
                continue;
            }
            let file = File::options()
                .write(true)
                .mode(0o600)
                .custom_flags(libc::O_TMPFILE | libc::O_CLOEXEC)
                .open(folder);
            let taken = file.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)));
            let taken = taken.and_then(|file| {
                fallocate(&file, FallocateFlags::empty(), 0, bytes).map(|()| file)
            });
            match taken {
                Ok(file) => kept.files.push(file),
                Err(_) if files == 0 => {}
                Err(full @ (Errno::ENOSPC | Errno::EDQUOT)) => return Err(full.into()),
                Err(_) => kept.without += 1,
            }
        }
        Ok(kept)
    }

    /// Disks on which no room was taken.
    pub(super) fn gaps(&self) -> usize {
        self.without
    }

    /// Gives it back, to be used; false if there is none.
    pub(super) fn release(&mut self) -> bool {
        !std::mem::take(&mut self.files).is_empty()
    }

    /// Takes it again where it was given back, as far as the disk has room.
    pub(super) fn take_again<'a>(&mut self, folders: impl Iterator<Item = &'a PathBuf>) {
        let bytes = u64::try_from(self.room).unwrap_or_default();
        if self.files.is_empty()
            && bytes > 0
            && let Ok(again) = Self::of(folders, bytes)
        {
            *self = again;
        }
    }
}

/// Room on a disk is its runner's, and gone with it.
impl Persist for DiskReserve {
    fn save(&self, _: &mut Vec<u8>) {}

    fn load(_: &mut &[u8]) -> Option<Self> {
        Some(Self::default())
    }
}
