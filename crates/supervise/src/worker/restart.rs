//! When a worker that died is started again: a pure decision over a clock that is handed in.
//!
//! At once, then after waits that double up to a longest one, with jitter. Two limits end it:
//! crashes without progress (no accepted word after Hello), and crashes of any kind. A worker that
//! cannot work here at all is not tried again. Used by the worker actor.

use crate::worker::process::ExitCause;
use std::collections::VecDeque;
use std::time::Duration;

/// The exit code of a worker whose cage cannot be made: another start finds the same machine.
const NO_CAGE: i32 = 11;

/// The two limits and the waits, from `daemon.restart_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartLimits {
    /// So many crashes without progress within the window, and the slot has failed.
    pub no_progress: usize,
    /// Their window.
    pub no_progress_window: Duration,
    /// So many of them within this time too, of lives that were told something.
    pub replay: Option<(usize, Duration)>,
    /// More crashes of any kind than this within the window, and the slot has failed.
    pub total: usize,
    /// Their window.
    pub total_window: Duration,
    /// The wait before the second restart; the first is at once.
    pub first_wait: Duration,
    /// The longest wait.
    pub longest_wait: Duration,
}

impl Default for RestartLimits {
    /// 5 in 10 s stops a worker that cannot work at all; 30 in 60 s one that dies under load.
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

/// How a life ended, as far as restarting goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    /// It said something useful first.
    Progressed,
    /// It did not.
    NoProgress,
    /// It was told nothing yet, so that what it was to do did not end it.
    NoInput,
    /// It did not even say Hello in time. Starts that hang are far apart, so that no window holds
    /// several; they are counted in a row.
    HelloTimeout,
    /// Another build, no cage on this machine: trying again cannot help.
    Unrecoverable,
}

/// What a worker said in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerProgress {
    /// Nothing that counts, nor was it told anything.
    NoInput,
    /// Nothing that counts: no word after Hello, or lines for the log only.
    NoProgress,
    /// A word of its work.
    Progressed,
}

impl ExitKind {
    /// What a cause means for restarting. An exit without a reason is a crash as any other: no
    /// worker leaves by itself while its channel is open.
    pub(crate) fn of(cause: &ExitCause, said: WorkerProgress) -> Self {
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

/// What to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestartDecision {
    /// Start it again after this wait.
    Restart(Duration),
    /// Leave it; the slot has failed, and why.
    Fail(String),
}

/// The memory of one slot.
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
    /// Nothing has happened yet.
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

    /// A life ended at `now` (time since any fixed point). `jitter` in 0..=1 spreads the wait over
    /// its upper half, so that workers that died together do not come back together.
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
        // A crash of another kind may be long after the last of these.
        drop_expired(&mut self.no_progress, now, self.limits.no_progress_window);
        let RestartLimits {
            no_progress: fruitless,
            no_progress_window: fruitless_window,
            total: any,
            total_window: any_window,
            ..
        } = self.limits;
        if self.consecutive_hello_timeouts >= fruitless {
            return Some(format!("{} starts in a row that hung", self.consecutive_hello_timeouts));
        }
        if self.no_progress.len() >= fruitless {
            let count = self.no_progress.len();
            return Some(format!(
                "{count} crashes without doing anything within {fruitless_window:?}"
            ));
        }
        if let Some((most, window)) = self.limits.replay {
            drop_expired(&mut self.replays, now, window);
            let count = self.replays.len();
            if count >= most {
                return Some(format!("{count} crashes without doing anything within {window:?}"));
            }
        }
        let count = self.crashes.len();
        (count > any).then(|| format!("{count} crashes within {any_window:?}"))
    }

    /// A person asked for another try: the past is forgotten.
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
