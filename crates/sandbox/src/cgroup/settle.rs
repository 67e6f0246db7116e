//! Arranging what was delegated, and clearing what ended in it. For the supervisor only: `settle` at
//! its start, before any thread, and `sweep` after each runner.

use super::delegation::{Controller, Delegation, Reason};
use super::find::{failed, found, processes};
use super::group::{Group, PREFIX};
use super::place::{OWN, Stage};
use nix::sched::CloneFlags;
use nix::sys::wait::waitpid;
use protocol::confinement::Limits;
use std::fs;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the kernel gets to end what was killed.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(1);
/// Somebody of ours may start a process in the moment between two steps.
const TRIES: usize = 3;

/// Arranges what was delegated, if anything was, and tries it with a process. Calls that an earlier
/// supervisor left are ended. What cannot be arranged in full is left as it was found.
#[must_use]
pub fn settle() -> Delegation {
    match found() {
        Ok((stage, Delegation::Here { base, holds })) => match arrange(stage, &base, &holds) {
            Ok(holds) => Delegation::Here { base, holds },
            Err(reason) => Delegation::Not(reason),
        },
        Ok((_, not @ Delegation::Not(_))) => not,
        Err(reason) => Delegation::Not(reason),
    }
}

fn arrange(stage: Stage, base: &Path, offered: &[Controller]) -> Result<Vec<Controller>, Reason> {
    if stage == Stage::Fresh {
        move_down(base)?;
    }
    let mut result = enable(base, offered);
    for _ in 1..TRIES {
        if result.is_ok() || stage == Stage::Settled || move_down(base).is_err() {
            break;
        }
        result = enable(base, offered);
    }
    let arranged = result.and_then(|holds| {
        clear(base);
        attempt(base, &holds)?;
        Ok(holds)
    });
    if arranged.is_err() && stage == Stage::Fresh {
        move_back(base);
    }
    arranged
}

/// Takes all of ours out of `base`, which cannot bound others while it holds processes.
fn move_down(base: &Path) -> Result<(), Reason> {
    let own = base.join(OWN);
    match fs::create_dir(&own) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed(&own, &error));
        }
        Err(_) | Ok(()) => {}
    }
    for (pid, _) in processes(base) {
        match fs::write(own.join("cgroup.procs"), pid.to_string()) {
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                move_back(base);
                return Err(failed(&own, &error));
            }
            Err(_) | Ok(()) => {}
        }
    }
    Ok(())
}

/// As it was. Where that fails too nothing is lost: the leaf bounds nothing.
fn move_back(base: &Path) {
    let _ = fs::write(base.join("cgroup.subtree_control"), "-memory -pids");
    for (pid, _) in processes(&base.join(OWN)) {
        let _ = fs::write(base.join("cgroup.procs"), pid.to_string());
    }
    let _ = fs::remove_dir(base.join(OWN));
}

/// Switches on what can be held of those below; what was switched on before stays.
fn enable(base: &Path, offered: &[Controller]) -> Result<Vec<Controller>, Reason> {
    let control = base.join("cgroup.subtree_control");
    let mut refused = None;
    let mut holds = Vec::new();
    for controller in offered {
        match fs::write(&control, format!("+{}", controller.name())) {
            Ok(()) => holds.push(*controller),
            Err(error) => refused = Some(failed(&control, &error)),
        }
    }
    match refused {
        Some(reason) if holds.is_empty() => Err(reason),
        Some(_) | None => Ok(holds),
    }
}

/// Whether a process can be born in a cgroup of this kind, and be ended with it.
fn attempt(base: &Path, holds: &[Controller]) -> Result<(), Reason> {
    let limits = Limits { processes: 10, memory_bytes: 64 << 20, ..Limits::NONE };
    let tried = |error: &dyn std::error::Error| failed(base, error);
    let group = Group::make(base, &limits).map_err(|error| tried(&error))?;
    let complete = holds.iter().all(|controller| group.holds(*controller));
    // It must be there to be seen: it waits until it is ended.
    let born = group.fork(CloneFlags::empty(), || {
        sleep(PATIENCE);
        0
    });
    let seen = born.is_ok() && !group.is_empty();
    group.kill();
    let ended = born.and_then(|pid| waitpid(pid, None));
    sweep(base, std::process::id());
    match ended {
        Err(error) => Err(tried(&error)),
        Ok(_) if seen && complete => Ok(()),
        Ok(_) => Err(Reason::Failed(format!("{} holds nothing", base.display()))),
    }
}

/// Ends the calls of runners that have ended, and removes their cgroups: their names say whose they
/// are, and where that process is gone nobody else has a right to what runs in them.
fn clear(base: &Path) {
    for (name, runner) in calls(base) {
        if !runner.is_alive() {
            remove(&base.join(name));
        }
    }
}

/// Ends what a runner left in its command's cgroup, if it had one, and removes it. To be called when
/// the runner has ended and is not yet waited for, so that its number is nobody else's. Takes up to two
/// seconds where a process is stuck in the kernel.
pub fn sweep(base: &Path, runner: u32) {
    for (name, Runner { pid, .. }) in calls(base) {
        if pid == runner {
            remove(&base.join(name));
        }
    }
}

/// Whose call it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Runner {
    pub pid: u32,
    /// In clock ticks since the machine started: its number comes again, both together do not.
    pub start: u64,
}

impl Runner {
    /// This process.
    pub(super) fn own() -> Option<Self> {
        let (start, _) = life(&fs::read_to_string("/proc/self/stat").ok()?)?;
        Some(Self { pid: std::process::id(), start })
    }

    /// One that nobody has waited for is not.
    fn is_alive(self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok();
        stat.and_then(|stat| life(&stat)).is_some_and(|(start, alive)| alive && start == self.start)
    }

    /// The name of its command's cgroup.
    pub(super) fn name(self) -> String {
        format!("{PREFIX}{}-{}", self.pid, self.start)
    }

    fn parse(name: &str) -> Option<Self> {
        let (pid, start) = name.strip_prefix(PREFIX)?.split_once('-')?;
        Some(Self { pid: pid.parse().ok()?, start: start.parse().ok()? })
    }
}

/// The start in a line of `/proc/PID/stat`, and whether the process lives. Its name may hold anything.
fn life(stat: &str) -> Option<(u64, bool)> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let alive = !matches!(fields.next()?, "Z" | "X");
    Some((fields.nth(18)?.parse().ok()?, alive))
}

/// The cgroups of calls in `base`.
fn calls(base: &Path) -> Vec<(String, Runner)> {
    let Ok(listed) = fs::read_dir(base) else { return Vec::new() };
    let names = listed.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| Runner::parse(&name).map(|runner| (name, runner))).collect()
}

/// Ends all that is in it first: a cgroup with processes cannot be removed.
fn remove(group: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = fs::remove_dir(group) {
        let busy = error.raw_os_error() == Some(libc::EBUSY);
        if !busy || Instant::now() > deadline {
            return;
        }
        // Again each time: what was just born is not there at the first.
        let _ = fs::write(group.join("cgroup.kill"), "1");
        sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_call_is_its_runners_as_long_as_that_lives() {
        let own = Runner::own().unwrap();
        assert_eq!(Runner::parse(&own.name()), Some(own));
        assert!(own.is_alive());
        assert!(!Runner { start: own.start + 1, ..own }.is_alive(), "another with its number");
        assert!(!Runner { pid: u32::MAX, start: 1 }.is_alive());
        for other in ["agentd-own", "agentd-call-", "agentd-call-x-1", "agentd-call-1", "call-1-2"]
        {
            assert_eq!(Runner::parse(other), None, "{other}");
        }
    }

    #[test]
    fn one_that_was_not_waited_for_does_not_live() {
        let stat =
            |state: &str| format!("7 (a) b) {state} 1 7 7 0 -1 4 97 0 0 0 0 0 0 0 20 0 1 0 4711 9");
        assert_eq!(life(&stat("S")), Some((4711, true)));
        assert_eq!(life(&stat("Z")), Some((4711, false)));
        assert_eq!(life("7 (x) S 1"), None);
    }

    #[test]
    fn only_cgroups_of_ended_runners_are_cleared() {
        let base = tempfile::tempdir().unwrap();
        let own = Runner::own().unwrap();
        let (living, other) = (own.name(), "agentd-own");
        let ended = Runner { pid: own.pid, start: own.start + 1 }.name();
        for name in [living.as_str(), &ended, other] {
            fs::create_dir(base.path().join(name)).unwrap();
        }
        clear(base.path());
        let there = |name: &str| base.path().join(name).exists();
        assert!(there(&living) && there(other) && !there(&ended));
        sweep(base.path(), own.pid);
        assert!(!there(&living) && there(other));
    }
}
