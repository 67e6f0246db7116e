//! Sets a delegated cgroup up, and removes the cgroups of ended commands. Used by the supervisor:
//! once at its start, before any thread, and after each runner.

use super::cgroup_path::{OWN_LEAF, SetupStage};
use super::command_cgroup::CommandCgroup;
use super::delegation::{Controller, Delegation, NoDelegation};
use super::inspect::{failed, inspect_own, processes};
use super::runner_id::RunnerId;
use nix::sched::CloneFlags;
use nix::sys::wait::waitpid;
use protocol::confinement::Limits;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a killed process may take to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(1);
/// Tries to empty the cgroup: a process of agentd may fork between two steps.
const TRIES: usize = 3;

/// Sets the delegated cgroup up, if there is one, and tests it with a process. It kills the calls
/// of an earlier supervisor. If the setup fails, the cgroup is left as it was.
#[must_use]
pub fn set_up_cgroups() -> Delegation {
    match inspect_own() {
        Ok((stage, Delegation::Available { base, controllers })) => {
            match set_up(stage, &base, &controllers) {
                Ok(controllers) => Delegation::Available { base, controllers },
                Err(reason) => Delegation::Unavailable(reason),
            }
        }
        Ok((_, not @ Delegation::Unavailable(_))) => not,
        Err(reason) => Delegation::Unavailable(reason),
    }
}

fn set_up(
    stage: SetupStage,
    base: &Path,
    offered: &[Controller],
) -> Result<Vec<Controller>, NoDelegation> {
    if stage == SetupStage::Fresh {
        move_down(base)?;
    }
    let mut result = enable(base, offered);
    for _ in 1..TRIES {
        if result.is_ok() || stage == SetupStage::SetUp || move_down(base).is_err() {
            break;
        }
        result = enable(base, offered);
    }
    let arranged = result.and_then(|controllers| {
        remove_orphaned(base);
        try_out(base, &controllers)?;
        Ok(controllers)
    });
    if arranged.is_err() && stage == SetupStage::Fresh {
        move_back(base);
    }
    arranged
}

/// Moves agentd's processes out of `base`, which cannot limit others while it holds processes.
fn move_down(base: &Path) -> Result<(), NoDelegation> {
    let own = base.join(OWN_LEAF);
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

/// Undoes `move_down`. A failure does no harm: the leaf has no limits.
fn move_back(base: &Path) {
    let _ = fs::write(base.join("cgroup.subtree_control"), "-memory -pids");
    for (pid, _) in processes(&base.join(OWN_LEAF)) {
        let _ = fs::write(base.join("cgroup.procs"), pid.to_string());
    }
    let _ = fs::remove_dir(base.join(OWN_LEAF));
}

/// Switches the offered controllers on for child cgroups. Controllers that are already on stay on.
fn enable(base: &Path, offered: &[Controller]) -> Result<Vec<Controller>, NoDelegation> {
    let control = base.join("cgroup.subtree_control");
    let mut refused = None;
    let mut controllers = Vec::new();
    for controller in offered {
        match fs::write(&control, format!("+{}", controller.name())) {
            Ok(()) => controllers.push(*controller),
            Err(error) => refused = Some(failed(&control, &error)),
        }
    }
    match refused {
        Some(reason) if controllers.is_empty() => Err(reason),
        Some(_) | None => Ok(controllers),
    }
}

/// Tests the setup: a process is started in such a cgroup and killed with it.
fn try_out(base: &Path, controllers: &[Controller]) -> Result<(), NoDelegation> {
    let limits = Limits { processes: 10, memory_bytes: 64 << 20, ..Limits::NONE };
    let tried = |error: &dyn std::error::Error| failed(base, error);
    let group = CommandCgroup::make(base, &limits).map_err(|error| tried(&error))?;
    let complete = controllers.iter().all(|controller| group.enforces(*controller));
    // The process waits until it is killed, so that it can be seen in the cgroup.
    let born = group.fork(CloneFlags::empty(), || {
        sleep(KILL_TIMEOUT);
        0
    });
    let seen = born.is_ok() && !group.is_empty();
    group.kill();
    let ended = born.and_then(|pid| waitpid(pid, None));
    remove_cgroup_of(base, std::process::id());
    match ended {
        Err(error) => Err(tried(&error)),
        Ok(_) if seen && complete => Ok(()),
        Ok(_) => Err(NoDelegation::Failed(format!("{} enforces no limits", base.display()))),
    }
}

/// Kills the calls of ended runners, and removes their cgroups. The directory name identifies the
/// runner. Once it is gone, no other process is responsible for the call.
fn remove_orphaned(base: &Path) {
    let dead = call_cgroups(base).into_iter().filter(|(_, runner)| runner.is_dead());
    let dead: Vec<_> = dead.map(|(name, _)| base.join(name)).collect();
    // Kill all first, then wait with one timeout for all: several may be blocked on one disk.
    for group in &dead {
        kill_members(group);
    }
    let deadline = Instant::now() + KILL_TIMEOUT;
    for group in &dead {
        remove(group, deadline);
    }
}

/// Kills the leftover processes in the cgroup of a runner's command, if it has one, and removes the
/// cgroup. Call it after the runner has ended and before it is reaped, so that its PID is not
/// reused. Takes up to two seconds if a process is stuck in the kernel.
pub fn remove_cgroup_of(base: &Path, runner: u32) {
    for (name, RunnerId { pid, .. }) in call_cgroups(base) {
        if pid == runner {
            remove(&base.join(name), Instant::now() + KILL_TIMEOUT);
        }
    }
}

/// The cgroups of calls in `base`.
fn call_cgroups(base: &Path) -> Vec<(String, RunnerId)> {
    let Ok(listed) = fs::read_dir(base) else { return Vec::new() };
    let names = listed.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| RunnerId::parse(&name).map(|runner| (name, runner))).collect()
}

/// Kills all members first: a cgroup with processes cannot be removed.
fn remove(group: &Path, deadline: Instant) {
    while let Err(error) = fs::remove_dir(group) {
        match error.raw_os_error() {
            Some(libc::EBUSY | libc::EACCES) if Instant::now() <= deadline => {}
            Some(_) | None => return,
        }
        if error.raw_os_error() == Some(libc::EACCES) {
            restore_modes(group);
        }
        // Repeated, since a process may have been forked after the first kill.
        kill_members(group);
        sleep(PAUSE);
    }
}

/// Kills all members, if there are any.
fn kill_members(group: &Path) {
    let _ = fs::File::options()
        .write(true)
        .open(group.join("cgroup.kill"))
        .and_then(|mut kill| kill.write_all(b"1"));
}

/// Repairs the modes: a command in tier B can change the mode of every file of its user, including
/// these directories.
fn restore_modes(group: &Path) {
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
    fn only_cgroups_of_ended_runners_are_cleared() {
        let base = tempfile::tempdir().unwrap();
        let own = RunnerId::own().unwrap();
        let (living, other) = (own.name(), "agentd-own");
        let ended = RunnerId { pid: own.pid, start: own.start + 1 }.name();
        for name in [living.as_str(), &ended, other] {
            fs::create_dir(base.path().join(name)).unwrap();
        }
        remove_orphaned(base.path());
        let there = |name: &str| base.path().join(name).exists();
        assert!(there(&living) && there(other) && !there(&ended));
        remove_cgroup_of(base.path(), own.pid);
        assert!(!there(&living) && there(other));
    }
}
