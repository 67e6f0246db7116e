//! Measures from `/proc` how many processes descend from this one and the memory and CPU time that
//! they use.

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::unistd::{SysconfVar, sysconf};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

/// The cage's own process is among them: PID 1 of the namespace, or the guard.
const OWN: u64 = 1;

/// Resource usage of a call's processes at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcUsage {
    /// Processes and threads.
    pub processes: u64,
    /// Resident bytes. Memory shared by two processes counts twice, so the figure is never too low.
    pub resident: u64,
    /// CPU time in milliseconds, including ended processes.
    pub cpu_ms: u64,
}

/// Memory mapped by processes, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MappedMemory {
    /// Private memory and files on disks.
    pub own: u64,
    /// Shared memory, which may also be found as a file.
    pub shared: u64,
}

/// The descendants of this process at one moment.
#[derive(Debug)]
pub(crate) struct ProcSnapshot {
    pub used: ProcUsage,
    members: Vec<ProcStat>,
}

/// The needed fields of `/proc/PID/stat`. Times in clock ticks, memory in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcStat {
    pid: u32,
    parent: u32,
    ticks: u64,
    threads: u64,
    pages: u64,
}

impl ProcSnapshot {
    /// Reads `/proc` now. A process that starts or ends meanwhile may or may not be included.
    pub(crate) fn now() -> Self {
        let members = descendants(std::process::id(), &all_processes());
        let sum = |of: fn(&ProcStat) -> u64| members.iter().map(of).sum::<u64>();
        let ticks = sum(|entry| entry.ticks);
        let used = ProcUsage {
            processes: sum(|entry| entry.threads).saturating_sub(OWN),
            resident: sum(|entry| entry.pages)
                .saturating_mul(sysconf_or(SysconfVar::PAGE_SIZE, 4096)),
            cpu_ms: ticks * 1000 / sysconf_or(SysconfVar::CLK_TCK, 100) + reaped_ms(),
        };
        Self { used, members }
    }

    /// Bytes in memory, with shared memory counted once. It makes the kernel walk each process's
    /// page tables, so call it only if `resident` is over the limit. A process that hides its
    /// memory counts in full.
    pub(crate) fn mapped(&self) -> MappedMemory {
        let page = sysconf_or(SysconfVar::PAGE_SIZE, 4096);
        let share = |entry: &ProcStat| {
            fs::read_to_string(format!("/proc/{}/smaps_rollup", entry.pid))
                .ok()
                .and_then(|text| mapped(&text))
                .unwrap_or(MappedMemory { own: entry.pages * page, shared: 0 })
        };
        let living = self.members.iter().filter(|entry| entry.pages > 0);
        living.map(share).fold(MappedMemory::default(), |sum, next| MappedMemory {
            own: sum.own + next.own,
            shared: sum.shared + next.shared,
        })
    }

    /// The PIDs of processes that have memory, without the cage's own process.
    pub(crate) fn live_pids(&self, own: Option<u32>) -> Vec<u32> {
        let living = self.members.iter().filter(|entry| entry.pages > 0);
        living.map(|entry| entry.pid).filter(|pid| Some(*pid) != own).collect()
    }
}

/// True if a process has memory; false if it has ended or is about to.
pub(crate) fn has_memory(pid: u32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok();
    stat.and_then(|stat| parse(&stat)).is_some_and(|entry| entry.pages > 0)
}

/// The names of live descendants of this process, without the cage's own process.
pub(crate) fn live_names(own: Option<u32>) -> Vec<String> {
    descendants(std::process::id(), &all_processes())
        .iter()
        .filter(|entry| Some(entry.pid) != own)
        .filter_map(|entry| name(&fs::read(format!("/proc/{}/stat", entry.pid)).ok()?))
        .collect()
}

/// The name of a process, unless it has ended.
fn name(stat: &[u8]) -> Option<String> {
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let has_ended = matches!(stat.get(close + 2), None | Some(b'Z' | b'X'));
    (!has_ended).then(|| String::from_utf8_lossy(&stat[open + 1..close]).into_owned())
}

/// Processes and threads of the whole machine; 0 if `/proc/loadavg` does not say.
pub(crate) fn system_process_count() -> u64 {
    fs::read_to_string("/proc/loadavg").ok().and_then(|text| total(&text)).unwrap_or(0)
}

/// Parses `0.20 0.18 0.12 1/80 11206`: the number after the slash.
fn total(loadavg: &str) -> Option<u64> {
    loadavg.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// Every visible process.
fn all_processes() -> Vec<ProcStat> {
    let Ok(listed) = fs::read_dir("/proc") else { return Vec::new() };
    listed
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| parse(&fs::read(format!("/proc/{pid}/stat")).ok()?))
        .collect()
}

/// Fields are counted from the closing parenthesis, since the name may contain any byte.
fn parse(stat: &[u8]) -> Option<ProcStat> {
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = stat.split(|byte| *byte == b' ').next()?;
    let fields: Vec<&str> =
        std::str::from_utf8(&stat[close + 1..]).ok()?.split_ascii_whitespace().collect();
    // proc(5) numbers fields from 1; the state after the name is the third.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(ProcStat {
        pid: std::str::from_utf8(pid).ok()?.parse().ok()?,
        parent: u32::try_from(number(4)?).ok()?,
        ticks: number(14)? + number(15)? + number(16)? + number(17)?,
        threads: number(20)?.max(1),
        pages: number(24)?,
    })
}

/// All descendants of `root`, without it.
fn descendants(root: u32, all: &[ProcStat]) -> Vec<ProcStat> {
    let mut children: HashMap<u32, Vec<ProcStat>> = HashMap::new();
    for entry in all {
        children.entry(entry.parent).or_default().push(*entry);
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    // A PID that was reused between two reads could form a cycle.
    let mut seen = HashSet::from([root]);
    while let Some(parent) = parents.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if seen.insert(child.pid) {
                parents.push(child.pid);
                found.push(*child);
            }
        }
    }
    found
}

/// Parses the lines `Pss:` and `Pss_Shmem:` of `smaps_rollup`, in bytes.
fn mapped(text: &str) -> Option<MappedMemory> {
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    let shared = bytes("Pss_Shmem:").unwrap_or(0);
    Some(MappedMemory { own: bytes("Pss:")?.saturating_sub(shared), shared })
}

/// CPU time of this thread: the cost of a measurement, independent of the machine's load.
pub(crate) fn thread_cpu_time() -> Duration {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(Duration::ZERO, |used| time(&used))
}

/// CPU time of children that were already reaped.
fn reaped_ms() -> u64 {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).map_or(Duration::ZERO, |used| time(&used));
    u64::try_from(used.as_millis()).unwrap_or(u64::MAX)
}

fn time(used: &Usage) -> Duration {
    let micros = |time: TimeVal| u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec());
    let sum = micros(used.user_time()).unwrap_or(0) + micros(used.system_time()).unwrap_or(0);
    Duration::from_micros(sum)
}

fn sysconf_or(name: SysconfVar, usual: u64) -> u64 {
    sysconf(name).ok().flatten().and_then(|value| u64::try_from(value).ok()).unwrap_or(usual)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Write};
    use std::process::Stdio;

    fn entry(pid: u32, parent: u32) -> ProcStat {
        ProcStat { pid, parent, ticks: 0, threads: 1, pages: 0 }
    }

    #[test]
    fn only_what_lives_has_a_name() {
        for (stat, expected) in [
            (&b"42 (a) b (x) S 7 42"[..], Some("a) b (x")),
            (b"42 (sleep) R 7", Some("sleep")),
            (b"42 (sleep) Z 7", None),
            (b"42 (sleep)", None),
            (b"", None),
        ] {
            assert_eq!(name(stat).as_deref(), expected);
        }
    }

    #[test]
    fn a_name_may_hold_anything() {
        let line =
            b"42 (a) b (\xff 1 2) S 7 42 42 0 -1 0 1 2 3 4 10 20 30 40 20 0 5 0 99 1000 250 18";
        let read = parse(line).unwrap();
        assert_eq!(read, ProcStat { pid: 42, parent: 7, ticks: 100, threads: 5, pages: 250 });
        for broken in [&b""[..], b"42", b"42 (x", b"42 (x) S", b"x (x) S 7 1 1"] {
            assert_eq!(parse(broken), None);
        }
    }

    #[test]
    fn only_descendants_are_members_and_a_circle_ends() {
        let all = [entry(2, 1), entry(3, 2), entry(4, 3), entry(5, 1), entry(6, 7), entry(7, 6)];
        let mut found: Vec<u32> = descendants(2, &all).iter().map(|entry| entry.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 4]);
        assert_eq!(descendants(6, &all).len(), 1, "a circle through the root");
    }

    #[test]
    fn what_is_shared_is_read_from_its_own_line() {
        assert_eq!(
            mapped("55 [rollup]\nRss:  100 kB\nPss:   40 kB\nPss_Dirty: 8 kB\nPss_Shmem:  3 kB\n"),
            Some(MappedMemory { own: 37 << 10, shared: 3 << 10 })
        );
        assert_eq!(mapped("Pss: 4 kB\n"), Some(MappedMemory { own: 4 << 10, shared: 0 }));
        assert_eq!(mapped("Rss: 100 kB\n"), None);
        assert_eq!(total("0.20 0.18 0.12 1/80 11206\n"), Some(80));
        assert_eq!(total("0.20 0.18"), None);
    }

    #[test]
    fn this_process_has_its_child() {
        let mut command = std::process::Command::new("cat");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // The echo proves that the program runs: between fork and exec it has no memory of its own.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let census = ProcSnapshot::now();
        assert!(census.members.iter().any(|entry| entry.pid == child.id()));
        assert!(census.used.resident > 0 && census.mapped().own > 0);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
