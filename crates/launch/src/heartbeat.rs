//! Heartbeat of a worker: decides when to ping and when to give up. Pure: the clock is an argument.
//! Used by `runner`, and by the supervisor's worker actor, which pings only while work depends on the
//! worker.

use std::time::Duration;

/// How many pongs in a row may be overdue. One may be the supervisor's own fault: after it was
/// stopped or the machine slept, the pong is found in the socket a moment later.
const MAX_OVERDUE: u32 = 2;

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PingAction {
    /// Send a ping.
    Send,
    /// A ping is pending and has time left.
    Wait,
    /// The worker does not answer: it is stopped or stuck.
    Unresponsive,
}

/// Heartbeat state of one process.
#[derive(Debug, Clone, Default)]
pub struct Heartbeat {
    /// When the pending ping was sent; `None` after any message.
    pinged_at: Option<Duration>,
    overdue: u32,
}

impl Heartbeat {
    /// Any message counts as an answer.
    pub fn on_message(&mut self) {
        *self = Self::default();
    }

    /// Decides at `now`, by a clock that stops while the machine sleeps.
    pub fn next_action(&mut self, now: Duration, patience: Duration) -> PingAction {
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
