//! Arranging what was delegated, and clearing what ended in it. For the supervisor only: `settle` at
//! its start, before any thread, and `sweep` after each runner.

use super::delegation::{Controller, Delegation, Reason};
use super::find::{failed, found, processes};
use super::group::{Group, PREFIX};
use super::place::{OWN, Stage};
use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::sys::signal::kill;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use protocol::confinement::Limits;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
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
    let dead = calls(base).into_iter().filter(|(_, runner)| runner.is_dead());
    let dead: Vec<_> = dead.map(|(name, _)| base.join(name)).collect();
    // All at once, and then one patience for all: several may be stuck on one disk.
    for group in &dead {
        end_all(group);
    }
    let deadline = Instant::now() + PATIENCE;
    for group in &dead {
        remove(group, deadline);
    }
}

/// Ends what a runner left in its command's cgroup, if it had one, and removes it. To be called when
/// the runner has ended and is not yet waited for, so that its number is nobody else's. Takes up to two
/// seconds where a process is stuck in the kernel.
pub fn sweep(base: &Path, runner: u32) {
    for (name, Runner { pid, .. }) in calls(base) {
        if pid == runner {
            remove(&base.join(name), Instant::now() + PATIENCE);
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

    /// Whether it is known to have ended: one that nobody has waited for has. A `/proc` that hides it
    /// proves nothing.
    fn is_dead(self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok();
        match stat.and_then(|stat| life(&stat)) {
            Some((start, alive)) => !alive || start != self.start,
            // A number that no process can have is nobody's.
            None => i32::try_from(self.pid)
                .map_or(true, |pid| kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH)),
        }
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
fn remove(group: &Path, deadline: Instant) {
    while let Err(error) = fs::remove_dir(group) {
        match error.raw_os_error() {
            Some(libc::EBUSY | libc::EACCES) if Instant::now() <= deadline => {}
            Some(_) | None => return,
        }
        if error.raw_os_error() == Some(libc::EACCES) {
            open_again(group);
        }
        // Again each time: what was just born is not there at the first.
        end_all(group);
        sleep(PAUSE);
    }
}

/// Kills what is in it, as far as there is anything.
fn end_all(group: &Path) {
    let _ = fs::File::options()
        .write(true)
        .open(group.join("cgroup.kill"))
        .and_then(|mut kill| kill.write_all(b"1"));
}

/// A command in tier B can change the modes of what belongs to its user, these directories too.
fn open_again(group: &Path) {
    for directory in group.parent().into_iter().chain([group]) {
        let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o755));
    }
    let kill = fs::Permissions::from_mode(0o200);
    let _ = fs::set_permissions(group.join("cgroup.kill"), kill);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_call_is_its_runners_as_long_as_that_lives() {
        let own = Runner::own().unwrap();
        assert_eq!(Runner::parse(&own.name()), Some(own));
        assert!(!own.is_dead());
        assert!(Runner { start: own.start + 1, ..own }.is_dead(), "another with its number");
        assert!(Runner { pid: u32::MAX, start: 1 }.is_dead());
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
