//! Chooses the CPU on which callers are woken: the notify supervisor's own, or any. Pure.
//!
//! A caller woken on the supervisor's CPU continues at once. If one thread makes all calls, an open
//! for writing then takes a third of the time. If several threads work, this would draw them all to
//! one CPU: `make -j2` on two CPUs took 1.25 times as long, with one CPU idle.

/// Number of consecutive calls after which a thread counts as the only caller. A search of PATH for
/// a program takes ten calls.
const ALONE: u32 = 32;

/// The CPU on which a caller continues.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum WakeCpu {
    #[default]
    AnyCpu,
    OurCpu,
}

/// The latest caller and its consecutive calls.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct CallRun {
    tid: u32,
    /// Number of calls of this thread since the last call of another one.
    run: u32,
}

impl CallRun {
    /// Counts one more call of this thread.
    pub(super) fn after(self, tid: u32) -> Self {
        let run = if tid == self.tid { self.run.saturating_add(1) } else { 1 };
        Self { tid, run }
    }

    /// Where its caller is to be woken.
    pub(super) fn wake(self) -> WakeCpu {
        if self.run >= ALONE { WakeCpu::OurCpu } else { WakeCpu::AnyCpu }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_calls_alone_is_woken_here() {
        let wake = |tids: &[u32]| {
            tids.iter().fold(CallRun::default(), |pace, tid| pace.after(*tid)).wake()
        };
        assert_eq!(wake(&[]), WakeCpu::AnyCpu);
        assert_eq!(wake(&[7; 31]), WakeCpu::AnyCpu);
        assert_eq!(wake(&[7; 32]), WakeCpu::OurCpu);
        let turns: Vec<u32> = (0..100).map(|turn| turn % 2).collect();
        assert_eq!(wake(&turns), WakeCpu::AnyCpu);
        let other: Vec<u32> = [7; 40].into_iter().chain([8]).collect();
        assert_eq!(wake(&other), WakeCpu::AnyCpu);
    }
}
