//! Watches the limits of a whole call where no cgroup enforces them: the kernel's own limits apply
//! to single processes only. It measures the process tree at intervals. The judging is pure.

use crate::cgroup::{CommandCgroup, Controller};
use crate::usage::limit_exceeded::{LimitExceeded, LimitKind};
use crate::usage::proc_usage::{self, ProcSnapshot, ProcUsage};
use crate::usage::shared_memory::SharedMemory;
use protocol::confinement::Limits;
use std::time::{Duration, Instant};

/// Delay before the first check, and between two checks that only read the machine's process count.
const GLANCE: Duration = Duration::from_millis(25);
/// Shortest time between two measurements of a call.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest time between two measurements, however many processes the machine has.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A measurement may use one part in this many of a CPU, so that many processes cost no more than
/// few.
const SHARE: u32 = 50;
/// Delay before the second measurement when the first found too much memory.
const DOUBT: Duration = Duration::from_millis(10);

/// The limits of one call, and the times of the next checks.
#[derive(Debug)]
pub(crate) struct LimitWatcher {
    /// Without the limits that the call's cgroup enforces: for these only the kernel's counters are
    /// read.
    limits: Limits,
    /// Time of the next check; `next_count` is the time of the next measurement.
    next_check: Option<Instant>,
    next_count: Instant,
    /// Processes of the whole machine when the call began, or when the call was last found within
    /// its limits.
    system_processes: u64,
    /// The last measurement found too much memory.
    memory_suspected: bool,
    /// Memory that the command may use without mapping it.
    shared: SharedMemory,
}

impl LimitWatcher {
    /// Starts watching when the program starts.
    pub(crate) fn new(
        mut limits: Limits,
        group: Option<&CommandCgroup>,
        shared: SharedMemory,
    ) -> Self {
        let any = limits.memory_bytes > 0 || limits.processes > 0 || limits.cpu_seconds > 0;
        let enforced = |controller| group.is_some_and(|group| group.enforces(controller));
        if enforced(Controller::Memory) {
            limits.memory_bytes = 0;
        }
        if enforced(Controller::Processes) {
            limits.processes = 0;
        }
        let now = Instant::now();
        let machine = if limits.processes > 0 { proc_usage::system_process_count() } else { 0 };
        let next = any.then(|| now + GLANCE);
        Self {
            limits,
            next_check: next,
            next_count: now + PAUSE,
            system_processes: machine,
            memory_suspected: false,
            shared,
        }
    }

    /// Removes shared memory that the command left. Call it after all its processes have ended.
    pub(crate) fn remove_shared_memory(&self) {
        self.shared.remove();
    }

    /// Time of the next check; `None` if nothing is limited.
    pub(crate) fn next_check(&self) -> Option<Instant> {
        self.next_check
    }

    /// True if the machine has so many more processes that this call may be a fork bomb. This is
    /// one short read, because a full measurement takes longer than a fork bomb needs to grow. The
    /// next check measures at once.
    pub(crate) fn suspects_fork_bomb(&mut self) -> bool {
        if self.limits.processes == 0 {
            return false;
        }
        let machine = proc_usage::system_process_count();
        let crowded = machine > self.system_processes + self.limits.processes;
        if crowded {
            self.system_processes = machine;
            self.next_count = Instant::now();
        }
        crowded
    }

    /// Measures if it is time to. `own` is the cage's own process.
    pub(crate) fn check(
        &mut self,
        group: Option<&CommandCgroup>,
        own: Option<u32>,
    ) -> Option<LimitExceeded> {
        let begun = Instant::now();
        let mut found = group.and_then(CommandCgroup::exceeded_limit);
        if found.is_none() && begun >= self.next_count {
            let spent = proc_usage::thread_cpu_time();
            found = match group {
                // Only CPU time is left to measure, and the cgroup reports it without a scan of all
                // processes.
                Some(group) if self.limits.memory_bytes == 0 && self.limits.processes == 0 => {
                    self.judge(ProcUsage { cpu_ms: group.cpu_ms(), ..ProcUsage::default() }, |_| 0)
                }
                Some(_) | None => {
                    let census = ProcSnapshot::now();
                    let mut used = census.used;
                    if self.limits.memory_bytes > 0 {
                        used.resident += self.shared.grown(|| census.live_pids(own));
                    }
                    self.judge(used, |shared| {
                        let mapped = census.mapped();
                        // Shared memory is found twice: as a mapping and as a file.
                        mapped.own + mapped.shared.max(shared.bytes(&census.live_pids(own)))
                    })
                }
            };
            let pause = if self.memory_suspected {
                DOUBT
            } else {
                (proc_usage::thread_cpu_time().saturating_sub(spent) * SHARE)
                    .clamp(PAUSE, LONGEST_PAUSE)
            };
            self.next_count = Instant::now() + pause;
        }
        self.next_check = self.next_check.map(|_| match (self.limits.processes, group) {
            (0, None) => self.next_count,
            (_, _) => self.next_count.min(Instant::now() + GLANCE),
        });
        found
    }

    /// The limit that this usage exceeds. `exact` measures memory exactly, which is expensive.
    fn judge(
        &mut self,
        used: ProcUsage,
        exact: impl FnOnce(&mut SharedMemory) -> u64,
    ) -> Option<LimitExceeded> {
        let Limits { memory_bytes, processes, cpu_seconds, .. } = self.limits;
        let over = |bound, used, most: u64| {
            (most > 0 && used > most).then_some(LimitExceeded { bound, used, most })
        };
        let found = over(LimitKind::Processes, used.processes, processes)
            .or_else(|| over(LimitKind::CpuTime, used.cpu_ms / 1000, cpu_seconds));
        if found.is_some() {
            return found;
        }
        let memory = over(LimitKind::Memory, used.resident, memory_bytes)
            .and_then(|_| over(LimitKind::Memory, exact(&mut self.shared), memory_bytes));
        // One measurement may fall between vfork and exec, when two processes share one memory.
        let twice = std::mem::replace(&mut self.memory_suspected, memory.is_some());
        memory.filter(|_| twice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds() -> LimitWatcher {
        let limits = Limits { memory_bytes: 100, processes: 10, cpu_seconds: 5, ..Limits::NONE };
        LimitWatcher::new(limits, None, SharedMemory::unobserved())
    }

    fn used(processes: u64, resident: u64, cpu_ms: u64) -> ProcUsage {
        ProcUsage { processes, resident, cpu_ms }
    }

    #[test]
    fn just_below_is_nothing_and_just_above_is_named() {
        assert_eq!(bounds().judge(used(10, 100, 5999), |_| 100), None);
        let found = bounds().judge(used(11, 0, 0), |_| 0);
        assert_eq!(found, Some(LimitExceeded { bound: LimitKind::Processes, used: 11, most: 10 }));
        let found = bounds().judge(used(0, 0, 6000), |_| 0);
        assert_eq!(found, Some(LimitExceeded { bound: LimitKind::CpuTime, used: 6, most: 5 }));
    }

    #[test]
    fn memory_counts_once_where_it_is_shared_and_only_at_the_second_look() {
        let mut bounds = bounds();
        assert_eq!(bounds.judge(used(2, 180, 0), |_| 90), None, "shared");
        assert_eq!(bounds.judge(used(1, 180, 0), |_| 180), None, "perhaps a vfork");
        assert_eq!(bounds.judge(used(1, 90, 0), |_| 90), None, "it was one");
        assert_eq!(bounds.judge(used(1, 101, 0), |_| 101), None);
        let found = bounds.judge(used(1, 120, 0), |_| 120);
        assert_eq!(found, Some(LimitExceeded { bound: LimitKind::Memory, used: 120, most: 100 }));
    }

    #[test]
    fn without_bounds_nobody_looks() {
        let mut bounds = LimitWatcher::new(Limits::NONE, None, SharedMemory::unobserved());
        assert_eq!((bounds.next_check(), bounds.check(None, None)), (None, None));
        assert_eq!(bounds.judge(used(9, 9, 9_000_000), |_| 9), None);
    }
}
