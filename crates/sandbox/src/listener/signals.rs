//! Calls that reach for another process: predicted to fail where it is not in the cage.

use super::Signals;
use super::notice::Notice;
use super::processes::{Inside, Processes, Status};
use crate::seccomp::{Act, Target};

/// The errno and the words, if the kernel will refuse the call. Asked while the caller waits:
/// afterwards caller and target may be gone.
pub(super) fn predict(
    target: Target,
    act: Act,
    notice: &Notice,
    processes: &Processes,
    signals: Signals,
) -> Option<(i32, String)> {
    let caller = processes.status(notice.tid)?;
    let shown = match target {
        Target::Number(argument) => low(notice.args[argument]),
        Target::Descriptor(argument) => {
            let fd = u32::try_from(low(notice.args[argument])).ok()?;
            i32::try_from(processes.behind(notice.tid, fd)?).ok()?
        }
    };
    let place = match target {
        Target::Number(_) => locate(shown, &caller, processes)?,
        Target::Descriptor(_) => outside(shown.unsigned_abs(), processes, libc::EPERM)?,
    };
    let words = match act {
        Act::Signal(argument) => {
            let signal = low(notice.args[argument]);
            match signals {
                Signals::Scoped => format!("signal {signal} to {}", named(shown)),
                Signals::Open => return None,
            }
        }
        Act::Trace => format!("attaching to {}", named(shown)),
        Act::Memory => format!("memory of {}", named(shown)),
        Act::Descriptor => format!("a descriptor of {}", named(shown)),
    };
    Some((place, words))
}

/// Whose process a number means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// One of the cage.
    Own,
    /// One outside, or one that cannot be looked at.
    Others,
    /// There is none.
    Nobodys,
}

/// Whose process or group the number in the argument means to the caller.
pub(super) fn whose(argument: usize, notice: &Notice, processes: &Processes) -> Whose {
    owner(low(notice.args[argument]).unsigned_abs(), notice.tid, processes)
}

/// Whose process the number means to this caller.
pub(super) fn owner(wanted: u32, tid: u32, processes: &Processes) -> Whose {
    let Some(caller) = processes.status(tid) else { return Whose::Others };
    // In a namespace of its own no number means anything outside.
    let apart = caller.tids.len() > 1;
    if apart || caller.tgids.last() == Some(&wanted) || processes.inside(wanted) {
        Whose::Own
    } else if processes.exists(wanted) {
        Whose::Others
    } else {
        Whose::Nobodys
    }
}

fn named(number: i32) -> String {
    if number < 0 {
        format!("process group {}", number.unsigned_abs())
    } else {
        format!("pid {number}")
    }
}

/// The errno that the number gets, if it is a process outside.
fn locate(number: i32, caller: &Status, processes: &Processes) -> Option<i32> {
    // Own group, every process that may be reached: the kernel leaves out what may not.
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
    // In a namespace of its own the number means nothing outside: it is not found at all.
    match processes.inside_is(wanted, depth) {
        Inside::Alive | Inside::Ended => None,
        Inside::Never => outside(wanted, processes, libc::ESRCH),
    }
}

fn outside(pid: u32, processes: &Processes, errno: i32) -> Option<i32> {
    (processes.exists(pid) && !processes.inside(pid)).then_some(errno)
}

/// Processes, signals and descriptors are 32-bit numbers to the kernel.
#[allow(clippy::cast_possible_truncation)]
fn low(argument: u64) -> i32 {
    argument as i32
}
