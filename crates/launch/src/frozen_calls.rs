//! Stops the processes of a call for a while, and lets them go on: of a session whose fleet is not reached.
//! The runner itself goes on. Called by the call actor.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;

/// How often new processes are looked for. A process that forks all the time may have one left.
const PASSES: usize = 8;

/// What becomes of a call's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freeze {
    /// They are stopped.
    Stop,
    /// They go on.
    Continue,
}

/// Stops every process below this runner, or lets them go on. Returns how many.
pub fn apply(runner: u32, freeze: Freeze) -> usize {
    let signal = match freeze {
        Freeze::Stop => Signal::STOP,
        Freeze::Continue => Signal::CONT,
    };
    let mut told = BTreeSet::new();
    for _ in 0..PASSES {
        let found = below(runner, &parents());
        let new: Vec<u32> = found.into_iter().filter(|pid| told.insert(*pid)).collect();
        if new.is_empty() {
            break;
        }
        for pid in new {
            // It may have ended meanwhile.
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            let _ = pid.map(|pid| kill_process(pid, signal));
        }
    }
    told.len()
}

/// Each process of this machine, with its parent.
fn parents() -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may contain any character.
        let (_, fields) = stat.rsplit_once(')')?;
        Some((pid, fields.split_ascii_whitespace().nth(1)?.parse().ok()?))
    })
    .collect()
}

/// The processes below this one.
fn below(root: u32, parents: &[(u32, u32)]) -> BTreeSet<u32> {
    let mut found = BTreeSet::from([root]);
    loop {
        let children = parents.iter().filter(|(_, parent)| found.contains(parent));
        let new: Vec<u32> =
            children.map(|(pid, _)| *pid).filter(|pid| !found.contains(pid)).collect();
        if new.is_empty() {
            found.remove(&root);
            return found;
        }
        found.extend(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_below_the_runner_is_found() {
        let parents = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 5), (2, 4)];
        assert_eq!(below(2, &parents), BTreeSet::from([3, 4]));
        assert_eq!(below(9, &parents), BTreeSet::new());
    }
}
