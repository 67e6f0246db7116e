//! Reads `/proc/PID` of one process: if it lives, its parent, its children, and if it has executed a
//! program.

use nix::unistd::Pid;

/// The kernel sets this flag on a forked process until it executes a program. It clears the flag
/// before it closes close-on-exec descriptors.
const FORKED_ONLY: u64 = 0x40;

/// True if it lives. A zombie does not.
pub(crate) fn lives(pid: i32) -> bool {
    of(pid, |fields| !has_ended(fields)).unwrap_or(false)
}

/// True if an unreaped child of this process has executed a program, even if the child has ended
/// since.
pub(crate) fn became_a_program(pid: Pid) -> bool {
    of(pid.as_raw(), executed).unwrap_or(true)
}

/// All visible processes.
pub(crate) fn all_pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// True if it lives and `parent` is its parent.
pub(crate) fn is_living_child(pid: i32, parent: u32) -> bool {
    let parent = parent.to_string();
    of(pid, |fields| !has_ended(fields) && fields.get(1) == Some(&parent.as_str())).unwrap_or(false)
}

/// The children of all its threads; `None` where the kernel does not list them. Zombies are among them. An
/// empty list is exact. Of a process whose children are reaped meanwhile, a longer one may lack some
/// (proc_pid_tid_children(5)).
pub(crate) fn children(pid: Pid) -> Option<Vec<Pid>> {
    let mut found = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let listed = std::fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        let pids = listed.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
        found.extend(pids.map(Pid::from_raw));
    }
    Some(found)
}

/// Maximum number of steps from a process up to this one.
const GENERATIONS: usize = 4096;

/// True for this process and its descendants. In a runner: for every process of its call.
#[must_use]
pub fn is_own_process(pid: i32) -> bool {
    let own = std::process::id().cast_signed();
    let parent = |pid: &i32| of(*pid, |fields| fields.get(1).and_then(|one| one.parse().ok()))?;
    std::iter::successors(Some(pid), parent)
        .take(GENERATIONS)
        .take_while(|pid| *pid > 1)
        .any(|pid| pid == own)
}

fn of<T>(pid: i32, found: impl FnOnce(&[&str]) -> T) -> Option<T> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    Some(found(&fields(&String::from_utf8_lossy(&stat))))
}

/// The fields after the name, which may contain any character: so the split is at its end.
fn fields(stat: &str) -> Vec<&str> {
    stat.rsplit_once(')').map_or_else(Vec::new, |(_, rest)| rest.split_ascii_whitespace().collect())
}

fn has_ended(fields: &[&str]) -> bool {
    matches!(fields.first(), None | Some(&("Z" | "X")))
}

/// proc(5) numbers fields from 1: the state is the third field, the flags are the ninth.
fn executed(fields: &[&str]) -> bool {
    let flags = fields.get(6).and_then(|flags| flags.parse::<u64>().ok());
    flags.is_none_or(|flags| flags & FORKED_ONLY == 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::sys;
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "42 (a) Z (1 2) S 7 42 42 0 -1 4194368 97 0";
        let fields = fields(stat);
        assert!(!has_ended(&fields) && !executed(&fields));
        assert!(has_ended(&super::fields("42 (sh) Z 7 42 42 0 -1 4194304")));
        assert!(has_ended(&super::fields("nonsense")));
    }

    #[test]
    fn a_copy_that_died_has_executed_nothing_and_a_program_has() {
        let copy = sys::fork(|| 3).unwrap();
        // Ended and not reaped.
        while lives(copy.as_raw()) {
            std::thread::yield_now();
        }
        assert!(!became_a_program(copy));
        assert_eq!(waitpid(copy, Some(WaitPidFlag::empty())), Ok(WaitStatus::Exited(copy, 3)));
        let mut program =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(program.id()).unwrap());
        assert!(is_living_child(pid.as_raw(), std::process::id()) || became_a_program(pid));
        assert!(children(Pid::this()).unwrap().contains(&pid));
        assert_eq!(children(pid), Some(Vec::new()));
        drop(program.stdin.take());
        while lives(pid.as_raw()) {
            std::thread::yield_now();
        }
        assert!(became_a_program(pid) && is_own_process(pid.as_raw()));
        program.wait().unwrap();
        assert!(!lives(pid.as_raw()));
    }

    #[test]
    fn what_does_not_descend_from_this_process_is_not_its_own() {
        assert!(is_own_process(std::process::id().cast_signed()));
        let parent = std::os::unix::process::parent_id().cast_signed();
        for other in [parent, 1, 0, -1, i32::MAX] {
            assert!(!is_own_process(other), "{other}");
        }
    }
}
