//! Drops privileges for good, and hardens every process of agentd at its start.

use crate::cgroup::{CommandCgroup, Controller};
use crate::error::{CageError, CageStep};
use crate::sys;
use crate::usage::proc_usage;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::{AccessFlags, Gid, Uid, access, getgroups};
use protocol::confinement::Limits;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const CAP_SETPCAP: u32 = 8;
const CAP_SYS_ADMIN: u32 = 21;

/// Every secure bit except KEEP_CAPS itself, each with its lock: user ID 0 gains no capability, not
/// at exec either, and ambient capabilities cannot be raised.
const SECURE_BITS: u64 = 0b1110_1111;

/// Hardens this process against other processes of the same user: it cannot be traced, writes no
/// core file, and dies when the thread that started it ends. Every worker calls this first.
///
/// # Errors
/// The error from the kernel; a worker must not continue after one.
pub fn harden() -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    prctl::set_dumpable(false)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    Ok(())
}

/// Closes every descriptor except the standard three. A process that outlives its starter calls
/// this first, since it would keep inherited pipes and locks as long as it lives. Call it before
/// anything is opened.
///
/// # Errors
/// The error from the kernel.
pub fn close_inherited_fds() -> io::Result<()> {
    Ok(sys::close_inherited()?)
}

/// The owner of a directory in which calls can write nothing: another user's, whose bits give them no
/// right. Root's calls lose root's right to write everywhere. Lists of further rights (ACL) are not read
/// for root.
#[must_use]
pub fn unwritable_for_calls(dir: &Path) -> Option<u32> {
    let found = dir.metadata().ok()?;
    let (user, owner) = (Uid::effective(), found.uid());
    if owner == user.as_raw() {
        return None;
    }
    let writes = if user.is_root() {
        let group = Gid::effective();
        let is_member = group.as_raw() == found.gid()
            || getgroups().is_ok_and(|all| all.iter().any(|it| it.as_raw() == found.gid()));
        found.mode() & if is_member { 0o020 } else { 0o002 } != 0
    } else {
        access(dir, AccessFlags::W_OK).is_ok()
    };
    (!writes).then_some(owner)
}

/// True if this process may create namespaces without a user namespace.
pub(crate) fn may_administer() -> bool {
    holds(CAP_SYS_ADMIN) && holds(CAP_SETPCAP)
}

fn holds(capability: u32) -> bool {
    sys::capabilities().is_ok_and(|[low, _]| low.effective & (1 << capability) != 0)
}

/// Drops every capability. Neither this process nor a program that it executes can regain one.
///
/// # Errors
/// `CageStep::Privileges` if the kernel refuses, or if a capability is left.
pub(crate) fn drop_all() -> Result<(), CageError> {
    keep(0)
}

/// Drops every capability except the one for mounting in this process's namespaces, and makes the
/// process untraceable for its user. Programs that it executes get none.
///
/// # Errors
/// As for [`drop_all`].
pub(crate) fn keep_mounting() -> Result<(), CageError> {
    let failed = |error| CageError::os(CageStep::Privileges, "not to be traced", error);
    prctl::set_dumpable(false).map_err(failed)?;
    keep(1 << CAP_SYS_ADMIN)
}

/// Drops every capability except these of the first 32.
fn keep(kept: u32) -> Result<(), CageError> {
    let failed =
        |what: &'static str| move |error: Errno| CageError::os(CageStep::Privileges, what, error);
    prctl::set_no_new_privs().map_err(failed("no_new_privs"))?;
    if holds(CAP_SETPCAP) {
        for capability in 0..64 {
            // EINVAL: the kernel knows no capability with this number.
            if sys::prctl(libc::PR_CAPBSET_DROP, capability, 0) == Err(Errno::EINVAL) {
                break;
            }
        }
        sys::prctl(libc::PR_SET_SECUREBITS, SECURE_BITS, 0).map_err(failed("secure bits"))?;
    }
    sys::keep_capabilities(kept).map_err(failed("capset"))?;
    let [low, high] = sys::capabilities().map_err(failed("capget"))?;
    let left = [low.effective & !kept, low.permitted & !kept, low.inheritable];
    let left = left.into_iter().chain([high.effective, high.permitted, high.inheritable]);
    if left.fold(0, |all, one| all | one) != 0 {
        return Err(CageError::new(
            CageStep::Privileges,
            "capabilities remain after they were dropped",
        ));
    }
    Ok(())
}

/// Which processes RLIMIT_NPROC counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NprocScope {
    /// Those of the cage, which has its own user namespace.
    Own,
    /// All of the user's; it does not bind root.
    Shared,
}

/// Added to the limit for RLIMIT_NPROC: the runner's own threads count too. It also lets a command
/// exceed its limit by a little, so that the runner sees it and kills the command.
const SPARE_PROCESSES: u64 = 32;

/// Sets the resource limits of a command on this process.
///
/// # Errors
/// `CageStep::Limits` with the name of the limit.
pub(crate) fn set_limits(limits: &Limits, counting: NprocScope) -> Result<(), CageError> {
    lower(Resource::RLIMIT_CORE, "core file", 0)?;
    if limits.file_bytes > 0 {
        lower(Resource::RLIMIT_FSIZE, "file size", limits.file_bytes)?;
    }
    if limits.open_files > 0 {
        lower(Resource::RLIMIT_NOFILE, "open files", limits.open_files)?;
    }
    if limits.processes > 0 {
        // The user cannot have more processes than the machine has. This leaves room for processes
        // that the user starts meanwhile, and still stops a fork bomb that grows faster than the
        // runner counts.
        let others = match counting {
            NprocScope::Own => 0,
            NprocScope::Shared => proc_usage::system_process_count(),
        };
        lower(Resource::RLIMIT_NPROC, "processes", others + limits.processes + SPARE_PROCESSES)?;
    }
    Ok(())
}

/// Lets this runner count root's processes while they multiply: without a cgroup or a PID namespace no limit of
/// the kernel binds root, and each process of a fork bomb would take the same share of a CPU as the runner.
/// Where the host refuses it, or the person gave agentd another priority, which the command must keep, the
/// runner counts as fast as it gets its turn.
pub(crate) fn outrun_fork_bombs(limits: &Limits, group: Option<&CommandCgroup>) {
    let bound = group.is_some_and(|group| group.enforces(Controller::Processes));
    if limits.processes > 0 && !bound && Uid::effective().is_root() && sys::is_scheduled_as_usual()
    {
        let _ = sys::schedule_ahead();
    }
}

/// Sets a limit, never above the present hard limit.
fn lower(resource: Resource, name: &'static str, most: u64) -> Result<(), CageError> {
    let failed = |error| CageError::os(CageStep::Limits, name, error);
    let (_, hard) = getrlimit(resource).map_err(failed)?;
    let most = most.min(hard);
    setrlimit(resource, most, most).map_err(failed)
}
