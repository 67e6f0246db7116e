//! Whether a worker still answers: pure, over a clock that is handed in. Used by the worker actor,
//! which is asked to look only while somebody waits for the worker, and by the call actor.

use std::time::Duration;

/// How often in a row an answer may be overdue. Once may be our own fault: a supervisor that was
/// stopped itself, or a machine that slept, finds the answer in the socket a moment later.
const OVERDUE: u32 = 2;

/// What to do at a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Ask it for a sign of life.
    Ask,
    /// It was asked, and has time left.
    Wait,
    /// It does not answer: it is stopped or stuck.
    Dead,
}

/// What is known of one life.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pulse {
    /// When it was asked last, without a word since.
    asked: Option<Duration>,
    overdue: u32,
}

impl Pulse {
    /// Any word is a sign of life.
    pub(crate) fn heard(&mut self) {
        *self = Self::default();
    }

    /// Looks at `now`, by a clock that does not run while the machine sleeps.
    pub(crate) fn look(&mut self, now: Duration, patience: Duration) -> Look {
        match self.asked {
            Some(at) if now.saturating_sub(at) < patience => Look::Wait,
            Some(_) if self.overdue + 1 >= OVERDUE => Look::Dead,
            Some(_) => {
                self.overdue += 1;
                self.asked = Some(now);
                Look::Ask
            }
            None => {
                self.asked = Some(now);
                Look::Ask
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(2);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_worker_that_answers_lives_for_ever() {
        let mut pulse = Pulse::default();
        for second in (0..1000).step_by(2) {
            assert_eq!(pulse.look(at(second), PATIENCE), Look::Ask);
            pulse.heard();
        }
    }

    #[test]
    fn one_overdue_answer_is_borne_and_two_are_not() {
        let mut pulse = Pulse::default();
        let looks = [0, 2, 4].map(|second| pulse.look(at(second), PATIENCE));
        assert_eq!(looks, [Look::Ask, Look::Ask, Look::Dead]);
        pulse.heard();
        let looks = [6, 8].map(|second| pulse.look(at(second), PATIENCE));
        assert_eq!(looks, [Look::Ask, Look::Ask], "a word forgives what was overdue");
    }

    #[test]
    fn many_who_look_at_once_do_not_shorten_the_time() {
        let mut pulse = Pulse::default();
        assert_eq!(pulse.look(at(10), PATIENCE), Look::Ask);
        for _ in 0..100 {
            assert_eq!(pulse.look(at(11), PATIENCE), Look::Wait);
        }
    }
}
