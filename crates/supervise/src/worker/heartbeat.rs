//! Whether a worker still answers: pure, over a clock that is handed in. Used by the worker actor,
//! which is asked to look only while somebody waits for the worker, and by the call actor.

use std::time::Duration;

/// How often in a row an answer may be overdue. Once may be our own fault: a supervisor that was
/// stopped itself, or a machine that slept, finds the answer in the socket a moment later.
const MAX_OVERDUE: u32 = 2;

/// What to do at a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PingAction {
    /// Ask it for a sign of life.
    Send,
    /// It was asked, and has time left.
    Wait,
    /// It does not answer: it is stopped or stuck.
    Unresponsive,
}

/// What is known of one life.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heartbeat {
    /// When it was asked last, without a word since.
    pinged_at: Option<Duration>,
    overdue: u32,
}

impl Heartbeat {
    /// Any word is a sign of life.
    pub(crate) fn on_message(&mut self) {
        *self = Self::default();
    }

    /// Looks at `now`, by a clock that does not run while the machine sleeps.
    pub(crate) fn next_action(&mut self, now: Duration, patience: Duration) -> PingAction {
        match self.pinged_at {
            Some(at) if now.saturating_sub(at) < patience => PingAction::Wait,
            Some(_) if self.overdue + 1 >= MAX_OVERDUE => PingAction::Unresponsive,
            Some(_) => {
                self.overdue += 1;
                self.pinged_at = Some(now);
                PingAction::Send
            }
            None => {
                self.pinged_at = Some(now);
                PingAction::Send
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
        let mut pulse = Heartbeat::default();
        for second in (0..1000).step_by(2) {
            assert_eq!(pulse.next_action(at(second), PATIENCE), PingAction::Send);
            pulse.on_message();
        }
    }

    #[test]
    fn one_overdue_answer_is_borne_and_two_are_not() {
        let mut pulse = Heartbeat::default();
        let looks = [0, 2, 4].map(|second| pulse.next_action(at(second), PATIENCE));
        assert_eq!(looks, [PingAction::Send, PingAction::Send, PingAction::Unresponsive]);
        pulse.on_message();
        let looks = [6, 8].map(|second| pulse.next_action(at(second), PATIENCE));
        assert_eq!(looks, [PingAction::Send, PingAction::Send], "a word forgives what was overdue");
    }

    #[test]
    fn many_who_look_at_once_do_not_shorten_the_time() {
        let mut pulse = Heartbeat::default();
        assert_eq!(pulse.next_action(at(10), PATIENCE), PingAction::Send);
        for _ in 0..100 {
            assert_eq!(pulse.next_action(at(11), PATIENCE), PingAction::Wait);
        }
    }
}
