//! The cgroup of one command: it sets limits, starts the command in it, reports exceeded limits,
//! and kills all members.
//!
//! All its files are opened before the runner locks itself, since afterwards the runner may not
//! open them. The command has no grant for them either.

use super::cgroup_syscalls::fork_within;
use super::delegation::Controller;
use super::runner_id::RunnerId;
use crate::error::{CageError, CageStep};
use crate::usage::limit_exceeded::{LimitExceeded, LimitKind};
use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::unistd::Pid;
use protocol::confinement::{Confinement, Limits};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A command's cgroup. Dropping it does not remove the directory; the supervisor removes it.
#[derive(Debug)]
pub(crate) struct CommandCgroup {
    directory: File,
    kill: File,
    events: File,
    /// `cpu.stat`, which every cgroup has.
    time: File,
    memory: Option<KernelLimit>,
    processes: Option<KernelLimit>,
}

/// A limit that the kernel enforces, and the file that counts how often it did.
#[derive(Debug)]
struct KernelLimit {
    events: File,
    /// The highest value so far, where the kernel records it.
    peak: Option<File>,
    most: u64,
}

impl KernelLimit {
    /// True if usage ever reached this limit. Some kernels also count a refusal here that a parent
    /// cgroup's limit caused.
    fn was_reached(&self) -> bool {
        let peak = self.peak.as_ref().and_then(text).and_then(|text| text.trim().parse().ok());
        peak.is_none_or(|peak: u64| peak >= self.most)
    }
}

impl CommandCgroup {
    /// Creates the command's cgroup if one was delegated; else returns a sentence about the
    /// failure. Without a cgroup the runner watches the limits itself. Call it before this process
    /// locks itself.
    pub(crate) fn for_command(wanted: &Confinement) -> (Option<Self>, Option<String>) {
        let Some(base) = &wanted.cgroup else { return (None, None) };
        match Self::make(&base.to_path(), &wanted.limits) {
            Ok(group) => (Some(group), None),
            Err(error) => (None, Some(format!("Lost: the command has no cgroup ({error})."))),
        }
    }

    /// Creates the cgroup of this process's command and sets the limits that it can enforce.
    ///
    /// # Errors
    /// `CageStep::Limits`; then no directory is left.
    pub(crate) fn make(base: &Path, limits: &Limits) -> Result<Self, CageError> {
        let failed = |error| CageError::os(CageStep::Limits, "its cgroup", error);
        let runner = RunnerId::own().ok_or_else(|| {
            CageError::new(CageStep::Limits, "its cgroup has no name: /proc is not readable")
        })?;
        let path = base.join(runner.name());
        fs::create_dir(&path).map_err(failed)?;
        Self::open(&path, limits).map_err(|error| {
            let _ = fs::remove_dir(&path);
            failed(error)
        })
    }

    fn open(path: &Path, limits: &Limits) -> io::Result<Self> {
        let write = |name: &str| File::options().write(true).open(path.join(name));
        let read = |name: &str| File::open(path.join(name));
        let held = |bound: &str, (events, peak): (&str, &str), most: u64| match write(bound) {
            // Its controller is not switched on.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            _ if most == 0 => Ok(None),
            Err(error) => Err(error),
            Ok(file) => {
                file.write_at(most.to_string().as_bytes(), 0)?;
                Ok(Some(KernelLimit { events: read(events)?, peak: read(peak).ok(), most }))
            }
        };
        let memory = held("memory.max", ("memory.events", "memory.peak"), limits.memory_bytes)?;
        let processes = held("pids.max", ("pids.events", "pids.peak"), limits.processes)?;
        if memory.is_some() {
            // The kernel kills all members or none: half a command is of no use.
            write("memory.oom.group")?.write_at(b"1", 0)?;
            match write("memory.swap.max") {
                Ok(file) => drop(file.write_at(b"0", 0)?),
                // A kernel without swap has no such file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            directory: File::open(path)?,
            kill: write("cgroup.kill")?,
            events: read("cgroup.events")?,
            time: read("cpu.stat")?,
            memory,
            processes,
        })
    }

    /// The limits that the kernel enforces, for the record.
    pub(crate) fn enforced_limits(&self) -> Vec<String> {
        let held = Controller::ALL.into_iter().filter(|controller| self.enforces(*controller));
        held.map(|controller| controller.label().to_owned()).collect()
    }

    /// True if the kernel enforces this limit.
    pub(crate) fn enforces(&self, controller: Controller) -> bool {
        match controller {
            Controller::Memory => self.memory.is_some(),
            Controller::Processes => self.processes.is_some(),
        }
    }

    /// Forks this process into the cgroup.
    ///
    /// # Errors
    /// The errno of clone3.
    pub(crate) fn fork(&self, flags: CloneFlags, body: impl FnOnce() -> i32) -> Result<Pid, Errno> {
        fork_within(flags, self.directory.as_fd(), body)
    }

    /// The directory, for `sys::fork_in`.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The limit that the command reached, as far as the kernel counted it.
    pub(crate) fn exceeded_limit(&self) -> Option<LimitExceeded> {
        let over = |held: &Option<KernelLimit>, bound, word: &str| {
            let held = held.as_ref()?;
            let times = number(&text(&held.events)?, word)?;
            (times > 0).then_some(LimitExceeded { bound, used: held.most, most: held.most })
        };
        // `oom` counts this cgroup's limit; `oom_kill` alone may mean that the whole machine ran
        // out of memory.
        over(&self.memory, LimitKind::Memory, "oom").or_else(|| {
            let reached = self.processes.as_ref().is_some_and(KernelLimit::was_reached);
            over(&self.processes, LimitKind::Processes, "max").filter(|_| reached)
        })
    }

    /// CPU time of all present and former members.
    pub(crate) fn cpu_ms(&self) -> u64 {
        text(&self.time).and_then(|text| number(&text, "usage_usec")).unwrap_or(0) / 1000
    }

    /// Kills all members at once. A process that forks meanwhile cannot escape.
    pub(crate) fn kill(&self) {
        // The write only fails if the cgroup is gone.
        let _ = self.kill.write_at(b"1", 0);
    }

    /// True if no process lives in it.
    pub(crate) fn is_empty(&self) -> bool {
        // ENODEV: the cgroup was removed, so it was empty.
        text(&self.events).and_then(|text| number(&text, "populated")).unwrap_or(0) == 0
    }
}

/// Reads a whole kernel file, which the kernel generates at each read.
fn text(file: &File) -> Option<String> {
    let mut bytes = [0; 1024];
    let length = file.read_at(&mut bytes, 0).ok()?;
    Some(String::from_utf8_lossy(bytes.get(..length)?).into_owned())
}

/// The number after `word` at the beginning of a line.
fn number(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' ')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_told_from_a_longer_one() {
        let events = "low 0\nhigh 0\nmax 33\noom 2\noom_kill 1\noom_group_kill 1\n";
        assert_eq!(number(events, "oom"), Some(2));
        assert_eq!(number(events, "oom_kill"), Some(1));
        assert_eq!(number(events, "max"), Some(33));
        assert_eq!(number("populated 0\nfrozen 0\n", "populated"), Some(0));
        for nonsense in ["", "oom", "oom x", "oom_kill 7"] {
            assert_eq!(number(nonsense, "oom"), None, "{nonsense}");
        }
    }
}
