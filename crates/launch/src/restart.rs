//! Decides if and when a dead worker is restarted. Pure: the clock is an argument.
//!
//! The first restart is immediate; later waits double up to a maximum, with jitter. Two limits stop
//! the restarts: crashes without progress (no message of its work after Hello), and crashes in
//! total. A worker that cannot run on this machine is not retried. Used by the worker actor.

use crate::process::ExitCause;
use std::collections::VecDeque;
use std::time::Duration;

/// Exit code of a worker whose cage cannot be built. Another start would fail the same way.
const NO_CAGE: i32 = 11;

/// Limits and waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartLimits {
    /// The worker has failed after this many crashes without progress within the window.
    pub no_progress: usize,
    /// Window of `no_progress`.
    pub no_progress_window: Duration,
    /// A second limit on crashes without progress: count and window. Only processes that received
    /// input count.
    pub replay: Option<(usize, Duration)>,
    /// The worker has failed after more crashes than this within the window, with progress or
    /// without.
    pub total: usize,
    /// Window of `total`.
    pub total_window: Duration,
    /// The wait before the second restart; the first is at once.
    pub first_wait: Duration,
    /// The maximum wait.
    pub longest_wait: Duration,
}

impl Default for RestartLimits {
    /// 5 in 10 s stops a worker that cannot work at all: five crashes with delays from 100 ms up fit into it. 30 in
    /// 60 s stops a worker that crashes under load. A worker notices a repaired host within ten seconds.
    fn default() -> Self {
        Self {
            no_progress: 5,
            no_progress_window: Duration::from_secs(10),
            replay: None,
            total: 30,
            total_window: Duration::from_secs(60),
            first_wait: Duration::from_millis(100),
            longest_wait: Duration::from_secs(10),
        }
    }
}

/// How a process ended, as far as restarts are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    /// It made progress first.
    Progressed,
    /// It received input and made no progress.
    NoProgress,
    /// It received no input, so its work cannot have crashed it.
    NoInput,
    /// It did not send Hello in time. Such starts are too far apart for a window to hold several,
    /// so they are counted in a row.
    HelloTimeout,
    /// Another build, or no cage on this machine: a retry cannot help.
    Unrecoverable,
}

/// How far a process got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerProgress {
    /// It received no input and sent no message of its work.
    NoInput,
    /// It received input, but sent no message of its work: nothing after Hello, or log lines only.
    NoProgress,
    /// It sent a message of its work.
    Progressed,
}

impl ExitKind {
    /// Classifies a cause. A clean exit counts as a crash too: no worker exits by itself while its
    /// channel is open.
    pub fn of(cause: &ExitCause, said: WorkerProgress) -> Self {
        match cause {
            ExitCause::BuildMismatch(_) | ExitCause::Exited(NO_CAGE) => Self::Unrecoverable,
            ExitCause::NoHello => Self::HelloTimeout,
            ExitCause::Exited(_)
            | ExitCause::Signalled(_)
            | ExitCause::ProtocolBreach(_)
            | ExitCause::SendStalled
            | ExitCause::NoPong
            | ExitCause::Unkillable
            | ExitCause::Unsendable(_)
            | ExitCause::Killed => match said {
                WorkerProgress::Progressed => Self::Progressed,
                WorkerProgress::NoProgress => Self::NoProgress,
                WorkerProgress::NoInput => Self::NoInput,
            },
        }
    }
}

/// The decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestartDecision {
    /// Restart after this wait.
    Restart(Duration),
    /// Do not restart; the worker has failed for this reason.
    Fail(String),
}

/// Recent crashes of one worker.
#[derive(Debug, Clone)]
pub struct RestartHistory {
    limits: RestartLimits,
    no_progress: VecDeque<Duration>,
    replays: VecDeque<Duration>,
    crashes: VecDeque<Duration>,
    consecutive: u32,
    consecutive_hello_timeouts: usize,
}

impl RestartHistory {
    /// An empty history.
    #[must_use]
    pub fn new(limits: RestartLimits) -> Self {
        let (fruitless, replays, any) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self {
            limits,
            no_progress: fruitless,
            replays,
            crashes: any,
            consecutive: 0,
            consecutive_hello_timeouts: 0,
        }
    }

    /// A process ended at `now` (time since any fixed point). `jitter` in 0..=1 spreads the wait
    /// over its upper half, so that workers that died together do not restart together.
    pub fn on_exit(&mut self, life: ExitKind, now: Duration, jitter: f64) -> RestartDecision {
        self.consecutive_hello_timeouts =
            if life == ExitKind::HelloTimeout { self.consecutive_hello_timeouts + 1 } else { 0 };
        match life {
            ExitKind::Unrecoverable => {
                return RestartDecision::Fail(
                    "it cannot run here, and trying again would not help".into(),
                );
            }
            ExitKind::Progressed => self.consecutive = 0,
            ExitKind::NoInput => {
                record_time(&mut self.no_progress, now, self.limits.no_progress_window)
            }
            ExitKind::NoProgress | ExitKind::HelloTimeout => {
                record_time(&mut self.no_progress, now, self.limits.no_progress_window);
                let window = self.limits.replay.map_or(Duration::ZERO, |(_, window)| window);
                record_time(&mut self.replays, now, window);
            }
        }
        record_time(&mut self.crashes, now, self.limits.total_window);
        if let Some(why) = self.exceeded_limit(now) {
            return RestartDecision::Fail(why);
        }
        let wait = wait(&self.limits, self.consecutive, jitter);
        self.consecutive = self.consecutive.saturating_add(1);
        RestartDecision::Restart(wait)
    }

    fn exceeded_limit(&mut self, now: Duration) -> Option<String> {
        // The last crash without progress may be outside its window by now.
        drop_expired(&mut self.no_progress, now, self.limits.no_progress_window);
        let RestartLimits {
            no_progress: fruitless,
            no_progress_window: fruitless_window,
            total: any,
            total_window: any_window,
            ..
        } = self.limits;
        if self.consecutive_hello_timeouts >= fruitless {
            return Some(format!("{} starts in a row timed out", self.consecutive_hello_timeouts));
        }
        if self.no_progress.len() >= fruitless {
            let count = self.no_progress.len();
            return Some(format!("{count} crashes without progress within {fruitless_window:?}"));
        }
        if let Some((most, window)) = self.limits.replay {
            drop_expired(&mut self.replays, now, window);
            let count = self.replays.len();
            if count >= most {
                return Some(format!("{count} crashes without progress within {window:?}"));
            }
        }
        let count = self.crashes.len();
        (count > any).then(|| format!("{count} crashes within {any_window:?}"))
    }

    /// A person asked for another try: forget the history.
    pub fn reset(&mut self) {
        *self = Self::new(self.limits);
    }
}

fn record_time(times: &mut VecDeque<Duration>, now: Duration, window: Duration) {
    times.push_back(now);
    drop_expired(times, now, window);
}

fn drop_expired(times: &mut VecDeque<Duration>, now: Duration, window: Duration) {
    while times.front().is_some_and(|&time| now.saturating_sub(time) >= window) {
        times.pop_front();
    }
}

fn wait(limits: &RestartLimits, in_a_row: u32, jitter: f64) -> Duration {
    let Some(doublings) = in_a_row.checked_sub(1) else { return Duration::ZERO };
    let full = limits.first_wait.saturating_mul(1 << doublings.min(16)).min(limits.longest_wait);
    full.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
#[path = "restart_tests.rs"]
mod tests;
