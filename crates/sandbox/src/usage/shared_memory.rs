//! Measures and removes memory that no process needs to map: files in `/dev/shm`, files of
//! `memfd_create` and System V segments. The limit watcher measures it; after a command in tier B
//! its leftovers are removed.

mod shm_creations;
mod sysv_segments;

pub(crate) use shm_creations::{SharedShmCreations, ShmCreations};

use crate::sys;
use crate::usage::proc_usage;
use nix::sys::statvfs::fstatvfs;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// The directory where programs share memory by name.
pub(crate) const SHM: &str = "/dev/shm";
/// Bytes per block of `st_blocks`.
const BLOCK: u64 = 512;
/// Longest time for which the growth of the machine's shared memory stands for the command's: another
/// process may have freed as much meanwhile.
const RENEWAL: Duration = Duration::from_secs(1);
/// Maximum number of entries below `/dev/shm` in one measurement.
const ENTRIES: usize = 20_000;

/// The shared memory of one command.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    whose: ShmScope,
    /// The machine's shared memory when the command began, plus the growth since then that was not
    /// the command's.
    machine: u64,
    /// When this was last measured.
    measured: Instant,
}

/// With which processes the command shares its shared memory.
#[derive(Debug)]
enum ShmScope {
    /// With none: `/dev/shm` is a new mount, and the IPC namespace is new (tier A).
    Private(OwnedFd),
    /// With the user's other processes (tier B).
    Shared { seen: SharedShmCreations, segments_before: BTreeSet<u64> },
    /// With the user's other processes, and no notify supervisor observes what the command creates.
    Unobserved,
}

/// A measured amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemorySum {
    /// Everything was measured.
    Whole(u64),
    /// A lower bound: a process hides its files, or there are too many.
    Part(u64),
}

impl SharedMemory {
    /// For a command with this mount at `/dev/shm` and with the runner's own IPC namespace.
    pub(crate) fn private(shm: OwnedFd) -> Self {
        Self::begun(ShmScope::Private(shm))
    }

    /// For a command that shares both with the user's other processes.
    pub(crate) fn shared(seen: SharedShmCreations) -> Self {
        let segments_before = sysv_segments::all().iter().map(|segment| segment.id).collect();
        Self::begun(ShmScope::Shared { seen, segments_before })
    }

    /// The same without a notify supervisor.
    pub(crate) fn unobserved() -> Self {
        Self::begun(ShmScope::Unobserved)
    }

    fn begun(whose: ShmScope) -> Self {
        Self { whose, machine: system_shared_memory(), measured: Instant::now() }
    }

    /// Growth of the machine's shared memory, which the command's share is at most unless another
    /// process freed some within a second. This is one short read; an exact measurement opens the
    /// descriptor list of every process, once a second. `members` are the command's processes.
    pub(crate) fn grown(&mut self, members: impl FnOnce() -> Vec<u32>) -> u64 {
        if self.measured.elapsed() >= RENEWAL {
            self.bytes(&members());
        }
        system_shared_memory().saturating_sub(self.machine)
    }

    /// Bytes of the command's shared memory, mapped or not. `members` are its processes.
    pub(crate) fn bytes(&mut self, members: &[u32]) -> u64 {
        // Read first, so that memory allocated meanwhile does not count as another process's.
        let now = system_shared_memory();
        self.measured = Instant::now();
        match self.sum(members) {
            MemorySum::Whole(bytes) => {
                self.machine = now.saturating_sub(bytes);
                bytes
            }
            MemorySum::Part(bytes) => {
                self.machine = self.machine.min(now.saturating_sub(bytes));
                now.saturating_sub(self.machine)
            }
        }
    }

    fn sum(&self, members: &[u32]) -> MemorySum {
        let mut segments = sysv_segments::all();
        let placed = match &self.whose {
            ShmScope::Private(shm) => mounted(shm),
            ShmScope::Shared { seen, segments_before } => {
                let made = made(seen);
                segments.retain(|segment| {
                    !segments_before.contains(&segment.id)
                        && (members.contains(&segment.creator) || made.has_made(segment.creator))
                });
                named(&made)
            }
            ShmScope::Unobserved => {
                segments.retain(|segment| members.contains(&segment.creator));
                MemorySum::Whole(0)
            }
        };
        let segments: u64 = segments.iter().map(|segment| segment.resident).sum();
        match (placed, open_files(members)) {
            (MemorySum::Whole(one), MemorySum::Whole(other)) => {
                MemorySum::Whole(one + other + segments)
            }
            (
                MemorySum::Whole(one) | MemorySum::Part(one),
                MemorySum::Whole(other) | MemorySum::Part(other),
            ) => MemorySum::Part(one + other + segments),
        }
    }

    /// Removes shared memory that the command left, if it certainly created it. Call it after all
    /// its processes have ended.
    pub(crate) fn remove(&self) {
        let ShmScope::Shared { seen, segments_before } = &self.whose else { return };
        let made = made(seen);
        let user = nix::unistd::getuid().as_raw();
        for segment in sysv_segments::all() {
            let is_new = !segments_before.contains(&segment.id);
            if is_new && segment.user == user && made.has_made(segment.creator) {
                sys::remove_segment(segment.id);
            }
        }
        shm_creations::remove(&made, Path::new(SHM), user);
    }
}

/// A copy of the creations observed so far.
fn made(seen: &SharedShmCreations) -> ShmCreations {
    seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Shared memory of the whole machine, in bytes; 0 if `/proc/meminfo` does not say.
fn system_shared_memory() -> u64 {
    fs::read_to_string("/proc/meminfo").ok().and_then(|text| shared(&text)).unwrap_or(0)
}

/// Parses the line `Shmem:` of `/proc/meminfo`, in bytes.
fn shared(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("Shmem:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Bytes used in a mount, including deleted files that are still open.
fn mounted(mount: &OwnedFd) -> MemorySum {
    match fstatvfs(mount.as_fd()) {
        Ok(it) => {
            MemorySum::Whole(it.blocks().saturating_sub(it.blocks_free()) * it.fragment_size())
        }
        Err(_) => MemorySum::Part(0),
    }
}

/// Bytes below the names in `/dev/shm` that the command created.
fn named(made: &ShmCreations) -> MemorySum {
    let mut waiting: Vec<PathBuf> = made.names().map(|name| Path::new(SHM).join(name)).collect();
    let (mut bytes, mut seen) = (0, 0);
    let mut is_whole = !made.is_cut();
    while let Some(path) = waiting.pop() {
        seen += 1;
        if seen > ENTRIES {
            return MemorySum::Part(bytes);
        }
        let Ok(status) = path.symlink_metadata() else { continue };
        bytes += status.blocks() * BLOCK;
        if status.is_dir() {
            match fs::read_dir(&path) {
                Ok(entries) => waiting.extend(entries.flatten().map(|entry| entry.path())),
                Err(_) => is_whole = false,
            }
        }
    }
    if is_whole { MemorySum::Whole(bytes) } else { MemorySum::Part(bytes) }
}

/// Bytes of nameless files in memory that these processes have open: files of `memfd_create`, and
/// deleted files of `/dev/shm`.
fn open_files(members: &[u32]) -> MemorySum {
    let shm = fs::metadata(SHM).map(|status| status.dev()).ok();
    let mut files = HashSet::new();
    let (mut bytes, mut is_whole) = (0, true);
    for pid in members {
        match nameless_of(*pid, shm) {
            Some(found) => {
                for (identity, size) in found {
                    if files.insert(identity) {
                        bytes += size;
                    }
                }
            }
            None => is_whole &= !proc_usage::has_memory(*pid),
        }
    }
    if is_whole { MemorySum::Whole(bytes) } else { MemorySum::Part(bytes) }
}

/// Device and inode of a file, and its bytes.
type NamelessFile = ((u64, u64), u64);

/// The nameless files in memory that a process has open; `None` if it hides them or has ended.
fn nameless_of(pid: u32, shm: Option<u64>) -> Option<Vec<NamelessFile>> {
    let mut found = Vec::new();
    for file in fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten() {
        match fs::read_link(file.path()) {
            Ok(leads_to) => found.extend(nameless(&file.path(), &leads_to, shm)),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return None,
            // The descriptor was closed meanwhile.
            Err(_) => {}
        }
    }
    Some(found)
}

/// Identity and size, if the descriptor is such a file.
fn nameless(file: &Path, leads_to: &Path, shm: Option<u64>) -> Option<NamelessFile> {
    let leads_to = leads_to.as_os_str().as_bytes();
    let by_memfd = leads_to.starts_with(b"/memfd:");
    if !by_memfd && !leads_to.ends_with(b" (deleted)") {
        return None;
    }
    let status = fs::metadata(file).ok()?;
    let in_shm = status.nlink() == 0 && Some(status.dev()) == shm;
    (by_memfd || in_shm).then(|| ((status.dev(), status.ino()), status.blocks() * BLOCK))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn the_machine_says_how_much_is_shared() {
        assert_eq!(shared("MemFree: 9 kB\nShmem:      12 kB\nShmemHugePages: 7 kB\n"), Some(12288));
        assert_eq!(shared("MemFree: 9 kB\n"), None);
        assert!(fs::read_to_string("/proc/meminfo").unwrap().contains("\nShmem:"));
    }

    #[test]
    fn a_file_that_is_open_twice_and_not_mapped_counts_once() {
        let made = memfd_create(c"counted", MFdFlags::MFD_CLOEXEC).unwrap();
        let mut file = File::from(made);
        let before = open_files(&[std::process::id()]);
        file.write_all(&vec![1; 1 << 20]).unwrap();
        let _again = file.try_clone().unwrap();
        let (MemorySum::Whole(before), MemorySum::Whole(after)) =
            (before, open_files(&[std::process::id()]))
        else {
            panic!("this process hides nothing");
        };
        assert_eq!(after - before, 1 << 20);
    }

    #[test]
    fn a_process_that_ended_hides_nothing() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(open_files(&[child.id()]), MemorySum::Whole(0));
    }

    /// The machine's shared memory does not grow while a command takes what another process frees.
    #[test]
    fn what_another_process_frees_hides_no_growth() {
        const MIB: usize = 1 << 20;
        let others = Path::new(SHM).join(format!("agentd-test-{}", std::process::id()));
        fs::write(&others, vec![1; 64 * MIB]).unwrap();
        let mut shared = SharedMemory::unobserved();
        fs::remove_file(&others).unwrap();
        let mut own = File::from(memfd_create(c"own", MFdFlags::empty()).unwrap());
        own.write_all(&vec![1; 64 * MIB]).unwrap();
        std::thread::sleep(RENEWAL);
        let grown = shared.grown(|| vec![std::process::id()]);
        assert!(grown >= 60 * MIB as u64, "{grown}");
    }
}
