//! Giving privileges away for good, and what every process of ours does at its start.

use crate::error::{CageError, CageStep};
use crate::proc_usage;
use crate::sys;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use protocol::confinement::Limits;
use std::io;

const CAP_SETPCAP: u32 = 8;
const CAP_SYS_ADMIN: u32 = 21;

/// Every secure bit but KEEP_CAPS itself, each with its lock: uid 0 is no reason for a capability,
/// not at exec either, and ambient ones cannot be raised.
const SECURE_BITS: u64 = 0b1110_1111;

/// Hardens this process against others of the same user: not traceable, no core file, and dead
/// when the thread that started it ends. For the first lines of every worker.
///
/// # Errors
/// What the kernel answers; a worker must not go on without it.
pub fn harden() -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    prctl::set_dumpable(false)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    Ok(())
}

/// Lets go of every descriptor but the standard three. The first line of a process that outlives
/// its starter: a pipe or a lock that it inherited would be held for as long as it lives. Nothing
/// may have been opened before.
///
/// # Errors
/// What the kernel answers.
pub fn close_inherited_fds() -> io::Result<()> {
    Ok(sys::close_inherited()?)
}

/// Whether this process may make namespaces without a user namespace.
pub(crate) fn may_administer() -> bool {
    holds(CAP_SYS_ADMIN) && holds(CAP_SETPCAP)
}

fn holds(capability: u32) -> bool {
    sys::capabilities().is_ok_and(|[low, _]| low.effective & (1 << capability) != 0)
}

/// Gives every capability away, so that neither this process nor what it executes has one again.
///
/// # Errors
/// `Step::Privileges` where the kernel refuses, or where one is left.
pub(crate) fn drop_all() -> Result<(), CageError> {
    keep(0)
}

/// The same but for mounting in the namespaces of this process, which nobody of the same user may trace
/// from here on. What it executes has none.
///
/// # Errors
/// As above.
pub(crate) fn keep_mounting() -> Result<(), CageError> {
    let failed = |error| CageError::os(CageStep::Privileges, "not to be traced", error);
    prctl::set_dumpable(false).map_err(failed)?;
    keep(1 << CAP_SYS_ADMIN)
}

/// Gives away all but these of the first 32.
fn keep(kept: u32) -> Result<(), CageError> {
    let failed =
        |what: &'static str| move |error: Errno| CageError::os(CageStep::Privileges, what, error);
    prctl::set_no_new_privs().map_err(failed("no_new_privs"))?;
    if holds(CAP_SETPCAP) {
        for capability in 0..64 {
            // EINVAL: the kernel knows no more of them.
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
            "capabilities are left after they were given away",
        ));
    }
    Ok(())
}

/// Whether RLIMIT_NPROC counts this cage's processes alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NprocScope {
    /// It counts in a user namespace of the cage's own.
    Own,
    /// It counts all of the user's processes, and does not bind root.
    Shared,
}

/// What the kernel allows above the wanted number: the runner's own threads count too, and who
/// goes over the number is to be seen above it and ended, not only held back.
const SPARE_PROCESSES: u64 = 32;

/// Sets the bounds of a command on this process.
///
/// # Errors
/// `Step::Limits` with the name of the bound.
pub(crate) fn set_limits(limits: &Limits, counting: NprocScope) -> Result<(), CageError> {
    lower(Resource::RLIMIT_CORE, "core file", 0)?;
    if limits.file_bytes > 0 {
        lower(Resource::RLIMIT_FSIZE, "file size", limits.file_bytes)?;
    }
    if limits.open_files > 0 {
        lower(Resource::RLIMIT_NOFILE, "open files", limits.open_files)?;
    }
    if limits.processes > 0 {
        // No more of them can be this user's than the machine has. That leaves room for what the
        // person starts meanwhile, and still ends a bomb that outruns its counting.
        let others = match counting {
            NprocScope::Own => 0,
            NprocScope::Shared => proc_usage::system_process_count(),
        };
        lower(Resource::RLIMIT_NPROC, "processes", others + limits.processes + SPARE_PROCESSES)?;
    }
    Ok(())
}

/// Sets a bound, never above the one that holds already.
fn lower(resource: Resource, name: &'static str, most: u64) -> Result<(), CageError> {
    let failed = |error| CageError::os(CageStep::Limits, name, error);
    let (_, hard) = getrlimit(resource).map_err(failed)?;
    let most = most.min(hard);
    setrlimit(resource, most, most).map_err(failed)
}
