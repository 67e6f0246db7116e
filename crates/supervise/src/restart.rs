//! When a worker that died is started again: a pure decision over a clock that is handed in.
//!
//! At once, then after waits that double up to a longest one, with jitter. Two limits end it:
//! crashes without progress (no accepted word after Hello), and crashes of any kind. Used by the
//! worker actor.

use std::collections::VecDeque;
use std::time::Duration;

/// The two limits and the waits, from `daemon.restart_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartLimits {
    /// So many crashes without progress within the window, and the slot has failed.
    pub fruitless: usize,
    /// Their window.
    pub fruitless_window: Duration,
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
    /// Another build, a bad configuration: trying again cannot help.
    Permanent,
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
    any: VecDeque<Duration>,
    in_a_row: u32,
}

impl Restarts {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(limits: RestartLimits) -> Self {
        Self { limits, fruitless: VecDeque::new(), any: VecDeque::new(), in_a_row: 0 }
    }

    /// A life ended at `now` (time since any fixed point). `jitter` in 0..=1 spreads the wait over
    /// its upper half, so that workers that died together do not come back together.
    pub fn ended(&mut self, life: Life, now: Duration, jitter: f64) -> Decision {
        match life {
            Life::Permanent => {
                return Decision::Fail(
                    "it cannot run here, and trying again would not help".into(),
                );
            }
            Life::Progressed => self.in_a_row = 0,
            Life::Fruitless => remember(&mut self.fruitless, now, self.limits.fruitless_window),
        }
        remember(&mut self.any, now, self.limits.any_window);
        if self.fruitless.len() >= self.limits.fruitless {
            return Decision::Fail(format!(
                "{} crashes without doing anything within {:?}",
                self.fruitless.len(),
                self.limits.fruitless_window
            ));
        }
        if self.any.len() > self.limits.any {
            let (count, window) = (self.any.len(), self.limits.any_window);
            return Decision::Fail(format!("{count} crashes within {window:?}"));
        }
        let wait = wait(&self.limits, self.in_a_row, jitter);
        self.in_a_row = self.in_a_row.saturating_add(1);
        Decision::Restart(wait)
    }

    /// A person asked for another try: the past is forgotten.
    pub fn forgive(&mut self) {
        *self = Self::new(self.limits);
    }
}

fn remember(times: &mut VecDeque<Duration>, now: Duration, window: Duration) {
    times.push_back(now);
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
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn restarts(decision: &Decision) -> bool {
        matches!(decision, Decision::Restart(_))
    }

    #[test]
    fn the_first_restart_is_at_once_and_the_waits_double_to_ten_seconds() {
        let mut slot =
            Restarts::new(RestartLimits { fruitless: 100, any: 100, ..RestartLimits::default() });
        let waits: Vec<_> = (0..10).map(|n| slot.ended(Life::Fruitless, at(n), 1.0)).collect();
        let millis = [0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000];
        assert_eq!(waits, millis.map(|ms| Decision::Restart(at(ms))));
    }

    #[test]
    fn jitter_takes_away_at_most_half() {
        let mut slot = Restarts::new(RestartLimits::default());
        slot.ended(Life::Fruitless, at(0), 0.0);
        assert_eq!(slot.ended(Life::Fruitless, at(1), 0.0), Decision::Restart(at(50)));
    }

    #[test]
    fn four_fruitless_crashes_are_borne_and_the_fifth_fails() {
        let mut slot = Restarts::new(RestartLimits::default());
        for n in 0..4 {
            assert!(restarts(&slot.ended(Life::Fruitless, at(n * 2499), 0.0)));
        }
        assert!(!restarts(&slot.ended(Life::Fruitless, at(9_999), 0.0)));
    }

    #[test]
    fn the_window_slides() {
        let mut slot = Restarts::new(RestartLimits::default());
        for n in 0..50 {
            assert!(restarts(&slot.ended(Life::Fruitless, at(n * 2_501), 0.0)), "crash {n}");
        }
    }

    #[test]
    fn thirty_crashes_with_progress_are_borne_and_one_more_fails() {
        let mut slot = Restarts::new(RestartLimits::default());
        for n in 0..30 {
            let decision = slot.ended(Life::Progressed, at(n * 1_000), 0.0);
            assert_eq!(decision, Decision::Restart(Duration::ZERO));
        }
        assert!(!restarts(&slot.ended(Life::Progressed, at(30_000), 0.0)));
    }

    #[test]
    fn a_permanent_failure_is_not_tried_again_and_forgiveness_starts_over() {
        let mut slot = Restarts::new(RestartLimits::default());
        assert!(!restarts(&slot.ended(Life::Permanent, at(0), 0.0)));
        for n in 0..6 {
            slot.ended(Life::Fruitless, at(n), 0.0);
        }
        slot.forgive();
        assert_eq!(slot.ended(Life::Fruitless, at(7), 0.0), Decision::Restart(Duration::ZERO));
    }
}
