//! Where callers are woken, decided from who calls: on the listener's processor, or on any. Pure.
//!
//! A caller that is woken on the listener's processor goes on at once, which takes a third of the time of an open
//! for writing where one thread makes them all. Where several threads work, it draws them to one processor:
//! `make -j2` on two took 1.25 times as long, with the other processor idle.

/// From how many calls on a thread counts as the only one: a search of PATH for a program takes ten.
const ALONE: u32 = 32;

/// On which processor a caller goes on.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum WakeCpu {
    #[default]
    AnyCpu,
    OurCpu,
}

/// The calls so far.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct CallRun {
    tid: u32,
    /// How many calls this thread made since another one made any.
    run: u32,
}

impl CallRun {
    /// After one more call, of this thread.
    pub(super) fn after(self, tid: u32) -> Self {
        let run = if tid == self.tid { self.run.saturating_add(1) } else { 1 };
        Self { tid, run }
    }

    /// Where its caller is woken.
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
