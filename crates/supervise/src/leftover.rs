//! Runners of an earlier supervisor that have not ended: named in a file by pid and start time, and
//! ended by force. Used by the lock on a session when it is not free.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A process that no other is: its number comes again, its number with its start does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pid: u32,
    /// In clock ticks since the machine started.
    start: u64,
}

impl Process {
    /// The living process of this number.
    fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(Self { pid, start: start_in(&stat)? })
    }

    fn parse(line: &str) -> Option<Self> {
        let (pid, start) = line.split_once(' ')?;
        Some(Self { pid: pid.parse().ok()?, start: start.parse().ok()? })
    }

    /// Ends it. Through a descriptor that is opened before the last look, so that a process which
    /// has its number since is never meant.
    fn kill(self) -> bool {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return false };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        Self::of(self.pid) == Some(self) && pidfd_send_signal(&handle, Signal::KILL).is_ok()
    }
}

/// Notes a runner that was started, so that a later supervisor finds it.
pub(crate) fn note(list: &Path, pid: u32) -> io::Result<()> {
    // One that has ended already needs no finding.
    let Some(Process { pid, start }) = Process::of(pid) else { return Ok(()) };
    let mut file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(list)?;
    file.write_all(format!("{pid} {start}\n").as_bytes())
}

/// Forgets all that was noted: none of them lives.
pub(crate) fn forget(list: &Path) -> io::Result<()> {
    match fs::remove_file(list) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) | Ok(()) => Ok(()),
    }
}

/// Ends every process of the list that lives. Lines that say nothing sensible are passed over.
pub(crate) fn end(list: &Path) {
    let text = fs::read_to_string(list).unwrap_or_default();
    for process in text.lines().filter_map(Process::parse) {
        if process.kill() {
            tracing::warn!(
                pid = process.pid,
                "a runner of an earlier supervisor was ended by force"
            );
        }
    }
}

/// The 22nd field; the second is in brackets and may hold anything.
fn start_in(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    #[test]
    fn what_was_noted_is_ended_and_nothing_else_is() {
        let place = tempfile::tempdir().unwrap();
        let list = place.path().join("runners");
        let (mut noted, mut other, mut reused) = (sleeper(), sleeper(), sleeper());
        note(&list, noted.id()).unwrap();
        // A number that belongs to somebody else by now: the start is not the one that was noted.
        let mut text = fs::read_to_string(&list).unwrap();
        text.push_str(&format!("{} 1\n\nnonsense\n-1 5\n4000000000 7\n0 0\n", reused.id()));
        fs::write(&list, text).unwrap();
        end(&list);
        let until = Instant::now() + Duration::from_secs(5);
        let ended = loop {
            if let Some(status) = noted.try_wait().unwrap() {
                break status.signal();
            }
            assert!(Instant::now() < until, "it was not ended");
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(ended, Some(9));
        for child in [&mut other, &mut reused] {
            assert_eq!(child.try_wait().unwrap(), None, "it was none of ours");
            child.kill().unwrap();
            child.wait().unwrap();
        }
        forget(&list).unwrap();
        forget(&list).unwrap();
        end(&list);
    }

    #[test]
    fn a_name_full_of_brackets_hides_no_start() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194304 97 0 0 0 0 0 0 0 20 0 1 0 4711 9 9";
        assert_eq!(start_in(stat), Some(4711));
        assert_eq!(start_in("7 (x) S 1"), None);
        assert_eq!(Process::of(u32::MAX), None);
    }
}
