//! Identifies the runner of a call by PID and start time, which also name the call's cgroup.

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use std::fs;

/// Prefix of the directory name; PID and start time of the runner follow.
const PREFIX: &str = "agentd-call-";

/// Identifies the runner of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunnerId {
    pub pid: u32,
    /// Start time in clock ticks since boot. PIDs are reused; the pair of PID and start time is
    /// not.
    pub start: u64,
}

impl RunnerId {
    /// This process.
    pub(super) fn own() -> Option<Self> {
        let (start, _) = start_and_liveness(&fs::read_to_string("/proc/self/stat").ok()?)?;
        Some(Self { pid: std::process::id(), start })
    }

    /// True if the runner is known to have ended; a zombie has. If `/proc` hides the process,
    /// nothing is known.
    pub(super) fn is_dead(self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok();
        match stat.and_then(|stat| start_and_liveness(&stat)) {
            Some((start, alive)) => !alive || start != self.start,
            // No process can have this PID.
            None => i32::try_from(self.pid)
                .map_or(true, |pid| kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH)),
        }
    }

    /// The directory name of its command's cgroup.
    pub(super) fn name(self) -> String {
        format!("{PREFIX}{}-{}", self.pid, self.start)
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        let (pid, start) = name.strip_prefix(PREFIX)?.split_once('-')?;
        Some(Self { pid: pid.parse().ok()?, start: start.parse().ok()? })
    }
}

/// Start time from a line of `/proc/PID/stat`, and true if the process lives. The process name may
/// contain any byte.
fn start_and_liveness(stat: &str) -> Option<(u64, bool)> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let alive = !matches!(fields.next()?, "Z" | "X");
    Some((fields.nth(18)?.parse().ok()?, alive))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_call_is_its_runners_as_long_as_that_lives() {
        let own = RunnerId::own().unwrap();
        assert_eq!(RunnerId::parse(&own.name()), Some(own));
        assert!(!own.is_dead());
        assert!(RunnerId { start: own.start + 1, ..own }.is_dead(), "another with its number");
        assert!(RunnerId { pid: u32::MAX, start: 1 }.is_dead());
        for other in ["agentd-own", "agentd-call-", "agentd-call-x-1", "agentd-call-1", "call-1-2"]
        {
            assert_eq!(RunnerId::parse(other), None, "{other}");
        }
    }

    #[test]
    fn one_that_was_not_waited_for_does_not_live() {
        let stat =
            |state: &str| format!("7 (a) b) {state} 1 7 7 0 -1 4 97 0 0 0 0 0 0 0 20 0 1 0 4711 9");
        assert_eq!(start_and_liveness(&stat("S")), Some((4711, true)));
        assert_eq!(start_and_liveness(&stat("Z")), Some((4711, false)));
        assert_eq!(start_and_liveness("7 (x) S 1"), None);
    }
}
