//! Reads processes for the notify supervisor: status, links and memory, through a `/proc` with this
//! process's PID numbering.

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::Mode;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSliceMut, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Longest path that the kernel accepts, in bytes.
const PATH_MAX: usize = 4096;
/// The smallest page size: no mapping ends within a page.
const PAGE: u64 = 4096;
/// Maximum number of steps up to the runner; beyond it a process counts as outside.
const DEPTH: usize = 4096;

/// A namespace assigns PIDs in sequence. PIDs up to this number above the newest live one may have
/// belonged to processes that have ended.
const UNSEEN: u32 = 32;

/// The state of a PID in the cage's own namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NsPid {
    /// A live process has it.
    Alive,
    /// A process may have had it.
    Ended,
    /// No process has had it so far.
    NeverUsed,
}

/// A `/proc`, and the process whose descendants are in the cage.
#[derive(Debug)]
pub(super) struct ProcReader {
    proc: OwnedFd,
    /// The directory `self/fd` in it.
    own: OwnedFd,
    /// The runner: its descendants are in the cage.
    root: u32,
}

/// Fields of `/proc/PID/status`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ProcStatus {
    /// Process ID.
    pub(super) tgid: u32,
    /// Process ID of the parent.
    pub(super) parent: u32,
    /// Thread ID in each namespace, from the reader's down to the thread's own.
    pub(super) tids: Vec<u32>,
    /// Process ID in each namespace, from the reader's down to the process's own.
    pub(super) tgids: Vec<u32>,
}

impl ProcStatus {
    /// Parses the text; `None` if a line is missing.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let numbers = |name: &str| -> Option<Vec<u32>> {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().map(|word| word.parse().ok()).collect()
        };
        Some(Self {
            tgid: *numbers("Tgid:")?.first()?,
            parent: *numbers("PPid:")?.first()?,
            tids: numbers("NSpid:")?,
            tgids: numbers("NStgid:")?,
        })
    }
}

impl ProcReader {
    /// Reads through `proc`; this process is the runner.
    ///
    /// # Errors
    /// The directory is not a `/proc` that contains this process.
    pub(super) fn new(proc: OwnedFd) -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let own = openat(&proc, "self/fd", flags, Mode::empty())?;
        Ok(Self { proc, own, root: std::process::id() })
    }

    /// The `/proc` that everything is read from.
    pub(super) fn proc(&self) -> BorrowedFd<'_> {
        self.proc.as_fd()
    }

    /// The status of a process or thread, if it exists.
    pub(super) fn status(&self, pid: u32) -> Option<ProcStatus> {
        ProcStatus::parse(&self.text(&format!("{pid}/status"))?)
    }

    /// The target of a link of the process (`cwd`, `fd/3`), as the kernel prints it.
    pub(super) fn link(&self, pid: u32, name: &str) -> Option<PathBuf> {
        let path = readlinkat(&self.proc, format!("{pid}/{name}").as_str()).ok()?;
        Some(PathBuf::from(path))
    }

    /// Opens the target directory of a link of the process (`cwd`, `root`), without read
    /// permission.
    pub(super) fn directory(&self, pid: u32, name: &str) -> Option<OwnedFd> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        openat(&self.proc, format!("{pid}/{name}").as_str(), flags, Mode::empty()).ok()
    }

    /// Opens the mount namespace of the process, so that its mounts outlive it.
    pub(super) fn mounts(&self, pid: u32) -> Option<OwnedFd> {
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
        openat(&self.proc, format!("{pid}/ns/mnt").as_str(), flags, Mode::empty()).ok()
    }

    /// The path of a descriptor of this process, as the kernel prints it.
    pub(super) fn path_of(&self, fd: BorrowedFd<'_>) -> Option<PathBuf> {
        let path = readlinkat(&self.own, fd.as_raw_fd().to_string().as_str()).ok()?;
        Some(PathBuf::from(path))
    }

    /// Opens a file for writing that this process holds with `O_PATH`.
    ///
    /// # Errors
    /// The errno from the kernel: this process's permissions and its own Landlock ruleset apply.
    pub(super) fn reopen_for_writing(&self, fd: BorrowedFd<'_>) -> Result<File, Errno> {
        // Do not wait for a device or a lease.
        let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let name = fd.as_raw_fd().to_string();
        openat(&self.own, name.as_str(), flags, Mode::empty()).map(File::from)
    }

    /// The directory with a link for each descriptor of this process.
    pub(super) fn own(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }

    /// The process behind a pidfd of `pid`.
    pub(super) fn pidfd_target(&self, pid: u32, fd: u32) -> Option<u32> {
        let text = self.text(&format!("{pid}/fdinfo/{fd}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
        line.trim().parse().ok()
    }

    /// True if the process exists.
    pub(super) fn exists(&self, pid: u32) -> bool {
        self.text(&format!("{pid}/status")).is_some()
    }

    /// True if the process descends from the runner. Orphans do too, since the runner is their
    /// reaper.
    pub(super) fn is_in_cage(&self, pid: u32) -> bool {
        let mut at = pid;
        for _ in 0..DEPTH {
            match self.status(at) {
                Some(status) if status.parent == self.root => return true,
                Some(status) if status.parent > 1 => at = status.parent,
                Some(_) | None => return false,
            }
        }
        false
    }

    /// The state of a PID for processes in the cage, in a namespace `depth` levels down.
    pub(super) fn ns_pid(&self, number: u32, depth: usize) -> NsPid {
        let mut newest = 0;
        for pid in self.all() {
            let Some(status) = self.status(pid) else { continue };
            let Some(&last) = status.tids.last() else { continue };
            if status.tids.len() == depth && self.is_in_cage(pid) {
                if last == number {
                    return NsPid::Alive;
                }
                newest = newest.max(last);
            }
        }
        if number <= newest + UNSEEN { NsPid::Ended } else { NsPid::NeverUsed }
    }

    /// All PIDs; none if they cannot be listed.
    fn all(&self) -> Vec<u32> {
        let listing = openat(&self.proc, ".", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty());
        let Some(mut listing) = listing.ok().and_then(|it| nix::dir::Dir::from_fd(it).ok()) else {
            return Vec::new();
        };
        let number = |entry: nix::Result<nix::dir::Entry>| {
            entry.ok()?.file_name().to_str().ok()?.parse::<u32>().ok()
        };
        listing.iter().filter_map(number).collect()
    }

    /// Copies `length` bytes of the process's memory; `None` unless all are readable.
    pub(super) fn memory(&self, pid: u32, at: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        (read(pid, at, &mut bytes)? == length).then_some(bytes)
    }

    /// Copies a path up to its NUL byte.
    pub(super) fn path(&self, pid: u32, at: u64) -> Option<PathBuf> {
        let mut bytes = Vec::new();
        let mut next = at;
        while bytes.len() < PATH_MAX {
            // Do not read past the end of the page: the next page may not exist. Most paths are
            // short.
            let page_left = PAGE - next % PAGE;
            let mut chunk = vec![0; usize::try_from(page_left.min(256)).ok()?];
            let got = read(pid, next, &mut chunk)?;
            chunk.truncate(got);
            if let Some(end) = chunk.iter().position(|&byte| byte == 0) {
                bytes.extend_from_slice(&chunk[..end]);
                return Some(PathBuf::from(OsString::from_vec(bytes)));
            }
            bytes.extend_from_slice(&chunk);
            next = next.checked_add(got as u64)?;
        }
        None
    }

    fn text(&self, path: &str) -> Option<String> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(&self.proc, path, flags, Mode::empty()).ok()?);
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        Some(text)
    }
}

fn read(pid: u32, at: u64, into: &mut [u8]) -> Option<usize> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?);
    let remote = RemoteIoVec { base: usize::try_from(at).ok()?, len: into.len() };
    let got = process_vm_readv(pid, &mut [IoSliceMut::new(into)], &[remote]).ok()?;
    (got > 0).then_some(got)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn here() -> ProcReader {
        ProcReader::new(File::open("/proc").unwrap().into()).unwrap()
    }

    #[test]
    fn a_status_is_read_through_two_namespaces() {
        let text = "Name:\tsh\nTgid:\t40\nPid:\t41\nPPid:\t12\nNStgid:\t40\t3\nNSpid:\t41\t4\n";
        let expected = ProcStatus { tgid: 40, parent: 12, tids: vec![41, 4], tgids: vec![40, 3] };
        assert_eq!(ProcStatus::parse(text), Some(expected));
        assert_eq!(ProcStatus::parse("Tgid:\tx\n"), None);
        assert_eq!(ProcStatus::parse(""), None);
    }

    #[test]
    fn own_children_are_inside_and_parents_are_not() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
        assert!(here().is_in_cage(child.id()));
        assert!(!here().is_in_cage(own));
        assert!(!here().is_in_cage(parent));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!here().is_in_cage(child.id()));
    }

    #[test]
    fn a_number_below_the_newest_was_somebody_s() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (number, depth) = (child.id(), here().status(child.id()).unwrap().tids.len());
        let is = |number| here().ns_pid(number, depth);
        assert_eq!([number, u32::MAX].map(is), [NsPid::Alive, NsPid::NeverUsed]);
        // A child of another test may have these PIDs.
        assert!([number - 1, number + UNSEEN].map(is).iter().all(|it| *it != NsPid::NeverUsed));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn paths_end_at_their_zero_byte_or_are_none() {
        let own = std::process::id();
        let text = b"/some/where\0rest";
        let at = text.as_ptr() as u64;
        assert_eq!(here().path(own, at), Some(PathBuf::from("/some/where")));
        assert_eq!(here().memory(own, at, 5), Some(b"/some".to_vec()));
        assert_eq!(here().path(own, 8), None);
        let endless = vec![b'a'; 2 * PATH_MAX];
        assert_eq!(here().path(own, endless.as_ptr() as u64), None);
    }

    #[test]
    fn a_long_path_crosses_pages() {
        let own = std::process::id();
        let mut long = vec![b'b'; 4000];
        long.push(0);
        let read = here().path(own, long.as_ptr() as u64).unwrap();
        assert_eq!(read.as_os_str().len(), 4000);
    }
}
