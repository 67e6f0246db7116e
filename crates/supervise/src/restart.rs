//! When a worker that died is started again: a pure decision over a clock that is handed in.
//!
//! At once, then after waits that double up to a longest one, with jitter. Two limits end it:
//! crashes without progress (no accepted word after Hello), and crashes of any kind. A worker that
//! cannot work here at all is not tried again. Used by the worker actor.

use crate::life::Cause;
use std::collections::VecDeque;
use std::time::Duration;

/// The exit code of a worker whose cage cannot be made: another start finds the same machine.
const NO_CAGE: i32 = 11;

/// The two limits and the waits, from `daemon.restart_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartLimits {
    /// So many crashes without progress within the window, and the slot has failed.
    pub fruitless: usize,
    /// Their window.
    pub fruitless_window: Duration,
    /// So many of them within this time too, of lives that were told something.
    pub replay: Option<(usize, Duration)>,
    /// More crashes of any kind than this within the window, and the slot has failed.
    pub any: usize,
    /// Their window.
    pub any_window: Duration,
    /// The wait before the second restart; the first is at once.
    pub first_wait: Duration,
    /// The longest wait.
    pub longest_wait: Duration,
}

impl Default for RestartLimits {
    /// 5 in 10 s stops a worker that cannot work at all; 30 in 60 s one that dies under load.
    fn default() -> Self {
        Self {
            fruitless: 5,
            fruitless_window: Duration::from_secs(10),
            replay: None,
            any: 30,
            any_window: Duration::from_secs(60),
            first_wait: Duration::from_millis(100),
            longest_wait: Duration::from_secs(10),
        }
    }
}

/// How a life ended, as far as restarting goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It said something useful first.
    Progressed,
    /// It did not.
    Fruitless,
    /// It was told nothing yet, so that what it was to do did not end it.
    Untold,
    /// It did not even say Hello in time. Starts that hang are far apart, so that no window holds
    /// several; they are counted in a row.
    Hung,
    /// Another build, no cage on this machine: trying again cannot help.
    Permanent,
}

/// What a worker said in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// Nothing that counts, nor was it told anything.
    Untold,
    /// Nothing that counts: no word after Hello, or lines for the log only.
    Nothing,
    /// A word of its work.
    Something,
}

impl Life {
    /// What a cause means for restarting. An exit without a reason is a crash as any other: no
    /// worker leaves by itself while its channel is open.
    pub(crate) fn of(cause: &Cause, said: Said) -> Self {
        match cause {
            Cause::OtherBuild(_) | Cause::Exited(NO_CAGE) => Self::Permanent,
            Cause::Silent => Self::Hung,
            Cause::Exited(_)
            | Cause::Signalled(_)
            | Cause::Breach(_)
            | Cause::Stuck
            | Cause::NoAnswer
            | Cause::Held
            | Cause::Unsayable(_)
            | Cause::Ended => match said {
                Said::Something => Self::Progressed,
                Said::Nothing => Self::Fruitless,
                Said::Untold => Self::Untold,
            },
        }
    }
}

/// What to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Start it again after this wait.
    Restart(Duration),
    /// Leave it; the slot has failed, and why.
    Fail(String),
}

/// The memory of one slot.
#[derive(Debug, Clone)]
pub struct Restarts {
    limits: RestartLimits,
    fruitless: VecDeque<Duration>,
    replays: VecDeque<Duration>,
    any: VecDeque<Duration>,
    in_a_row: u32,
    hung_in_a_row: usize,
}

impl Restarts {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(limits: RestartLimits) -> Self {
        let (fruitless, replays, any) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self { limits, fruitless, replays, any, in_a_row: 0, hung_in_a_row: 0 }
    }

    /// A life ended at `now` (time since any fixed point). `jitter` in 0..=1 spreads the wait over
    /// its upper half, so that workers that died together do not come back together.
    pub fn ended(&mut self, life: Life, now: Duration, jitter: f64) -> Decision {
        self.hung_in_a_row = if life == Life::Hung { self.hung_in_a_row + 1 } else { 0 };
        match life {
            Life::Permanent => {
                return Decision::Fail(
                    "it cannot run here, and trying again would not help".into(),
                );
            }
            Life::Progressed => self.in_a_row = 0,
            Life::Untold => remember(&mut self.fruitless, now, self.limits.fruitless_window),
            Life::Fruitless | Life::Hung => {
                remember(&mut self.fruitless, now, self.limits.fruitless_window);
                let window = self.limits.replay.map_or(Duration::ZERO, |(_, window)| window);
                remember(&mut self.replays, now, window);
            }
        }
        remember(&mut self.any, now, self.limits.any_window);
        if let Some(why) = self.over_a_limit(now) {
            return Decision::Fail(why);
        }
        let wait = wait(&self.limits, self.in_a_row, jitter);
        self.in_a_row = self.in_a_row.saturating_add(1);
        Decision::Restart(wait)
    }

    fn over_a_limit(&mut self, now: Duration) -> Option<String> {
        // A crash of another kind may be long after the last of these.
        forget(&mut self.fruitless, now, self.limits.fruitless_window);
        let RestartLimits { fruitless, fruitless_window, any, any_window, .. } = self.limits;
        if self.hung_in_a_row >= fruitless {
            return Some(format!("{} starts in a row that hung", self.hung_in_a_row));
        }
        if self.fruitless.len() >= fruitless {
            let count = self.fruitless.len();
            return Some(format!(
                "{count} crashes without doing anything within {fruitless_window:?}"
            ));
        }
        if let Some((most, window)) = self.limits.replay {
            forget(&mut self.replays, now, window);
            let count = self.replays.len();
            if count >= most {
                return Some(format!("{count} crashes without doing anything within {window:?}"));
            }
        }
        let count = self.any.len();
        (count > any).then(|| format!("{count} crashes within {any_window:?}"))
    }

    /// A person asked for another try: the past is forgotten.
    pub fn forgive(&mut self) {
        *self = Self::new(self.limits);
    }
}

fn remember(times: &mut VecDeque<Duration>, now: Duration, window: Duration) {
    times.push_back(now);
    forget(times, now, window);
}

fn forget(times: &mut VecDeque<Duration>, now: Duration, window: Duration) {
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
