//! Predicts calls on another process: the kernel refuses them if that process is not in the cage.

use super::notify_fd::Notification;
use super::proc_reader::{NsPid, ProcReader, ProcStatus};
use crate::seccomp::{ProcessAct, ProcessArg};
use protocol::confinement::{self, Subject};

/// The treatment of signals to processes outside the cage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutsideSignals {
    /// Refused, by Landlock's signal scope or by a PID namespace.
    Refused,
    /// Allowed.
    Allowed,
}

/// Errno and subject, if the kernel will refuse the call. Call it while the caller waits:
/// afterwards caller and target may be gone.
pub(super) fn predict(
    target: ProcessArg,
    act: ProcessAct,
    notice: &Notification,
    processes: &ProcReader,
    signals: OutsideSignals,
) -> Option<(i32, Subject)> {
    let caller = processes.status(notice.tid)?;
    let shown = match target {
        ProcessArg::Number(argument) => low(notice.args[argument]),
        ProcessArg::Descriptor(argument) => {
            let fd = u32::try_from(low(notice.args[argument])).ok()?;
            i32::try_from(processes.pidfd_target(notice.tid, fd)?).ok()?
        }
    };
    let place = match target {
        ProcessArg::Number(_) => locate(shown, &caller, processes)?,
        ProcessArg::Descriptor(_) => outside(shown.unsigned_abs(), processes, libc::EPERM)?,
    };
    let process = |act| Subject::Process { act, pid: shown };
    let subject = match act {
        ProcessAct::Signal(argument) => match signals {
            OutsideSignals::Refused => {
                Subject::Signal { signal: low(notice.args[argument]), pid: shown }
            }
            OutsideSignals::Allowed => return None,
        },
        ProcessAct::Trace => process(confinement::ProcessAct::Trace),
        ProcessAct::Memory => process(confinement::ProcessAct::Memory),
        ProcessAct::Descriptor => process(confinement::ProcessAct::Descriptor),
    };
    Some((place, subject))
}

/// The side of the cage on which a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessOwner {
    /// In the cage.
    Cage,
    /// Outside, or it cannot be inspected.
    Outside,
    /// There is no such process.
    NoProcess,
}

/// The owner of the process or group whose ID is in the argument, as the caller numbers it.
pub(super) fn owner_of_argument(
    argument: usize,
    notice: &Notification,
    processes: &ProcReader,
) -> ProcessOwner {
    owner(low(notice.args[argument]).unsigned_abs(), notice.tid, processes)
}

/// The owner of the process with this ID, as the caller numbers it.
pub(super) fn owner(wanted: u32, tid: u32, processes: &ProcReader) -> ProcessOwner {
    let Some(caller) = processes.status(tid) else { return ProcessOwner::Outside };
    // In a PID namespace of the cage no ID refers to a process outside.
    let apart = caller.tids.len() > 1;
    if apart || caller.tgids.last() == Some(&wanted) || processes.is_in_cage(wanted) {
        ProcessOwner::Cage
    } else if processes.exists(wanted) {
        ProcessOwner::Outside
    } else {
        ProcessOwner::NoProcess
    }
}

/// The errno for this process ID, if the process is outside.
fn locate(number: i32, caller: &ProcStatus, processes: &ProcReader) -> Option<i32> {
    // The caller's group, or every process in reach: the kernel skips processes that may not be
    // signalled.
    if number == 0 || number == -1 {
        return None;
    }
    let wanted = number.unsigned_abs();
    if caller.tgids.last() == Some(&wanted) || caller.tids.last() == Some(&wanted) {
        return None;
    }
    let depth = caller.tids.len();
    if depth <= 1 {
        return outside(wanted, processes, libc::EPERM);
    }
    // In a PID namespace of the cage the ID of an outside process is not found at all.
    match processes.ns_pid(wanted, depth) {
        NsPid::Alive | NsPid::Ended => None,
        NsPid::NeverUsed => outside(wanted, processes, libc::ESRCH),
    }
}

fn outside(pid: u32, processes: &ProcReader, errno: i32) -> Option<i32> {
    (processes.exists(pid) && !processes.is_in_cage(pid)).then_some(errno)
}

/// The kernel takes process IDs, signals and descriptors as 32-bit numbers.
#[allow(clippy::cast_possible_truncation)]
fn low(argument: u64) -> i32 {
    argument as i32
}
