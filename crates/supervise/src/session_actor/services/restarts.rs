//! When an MCP server that ended starts again: after growing pauses, and not at all once it has ended five
//! times without progress. An answer to a call is progress, and so is a long life. Pure. Used by the servers of
//! a session.

use std::time::Duration;

/// The pauses before a server starts again.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
];
/// A server that ran so long made progress.
const LONG_LIFE: Duration = Duration::from_secs(300);
/// A person who looks at the servers has a stopped one tried once more, but only this long after its end: a
/// screen may look often.
const LOOKED_AT: Duration = Duration::from_secs(30);

/// The ends of one server without progress.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::session_actor) struct ServerRestarts {
    ends: usize,
}

impl ServerRestarts {
    /// It answered a call.
    pub(super) fn progressed(&mut self) {
        self.ends = 0;
    }

    /// It ended after this life. Returns the pause before it starts again, if it does.
    pub(super) fn ended(&mut self, life: Duration) -> Option<Duration> {
        if life >= LONG_LIFE {
            self.ends = 0;
        }
        let pause = PAUSES.get(self.ends).copied();
        self.ends = self.ends.saturating_add(1).min(PAUSES.len() + 1);
        pause
    }

    /// True if it has not ended since its last progress.
    pub(in crate::session_actor) fn is_fresh(self) -> bool {
        self.ends == 0
    }

    /// How often it has ended without progress.
    pub(super) fn count(self) -> usize {
        self.ends
    }

    /// True if a look at it has it tried once more: it stopped so long ago. Its next end stops it again.
    pub(super) fn is_tried_again(self, since_end: Duration) -> bool {
        self.ends > PAUSES.len() && since_end >= LOOKED_AT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_secs(1);

    fn ended(restarts: &mut ServerRestarts, times: usize) -> Vec<Option<Duration>> {
        (0..times).map(|_| restarts.ended(SHORT)).collect()
    }

    #[test]
    fn pauses_grow_and_the_fifth_end_without_progress_is_the_last() {
        let mut restarts = ServerRestarts::default();
        let pauses = ended(&mut restarts, 7);
        assert_eq!(pauses[..4], PAUSES.map(Some));
        assert_eq!(pauses[4..], [None; 3]);
        assert_eq!(restarts.count(), 5);
    }

    #[test]
    fn an_answer_and_a_long_life_are_progress() {
        let mut restarts = ServerRestarts::default();
        let _ = ended(&mut restarts, 4);
        restarts.progressed();
        assert!(restarts.is_fresh());
        assert_eq!(restarts.ended(SHORT), Some(PAUSES[0]));
        let _ = ended(&mut restarts, 3);
        assert_eq!(restarts.ended(LONG_LIFE), Some(PAUSES[0]));
        assert_eq!(restarts.ended(SHORT), Some(PAUSES[1]));
    }

    #[test]
    fn a_look_tries_a_stopped_server_once_and_not_at_each_look() {
        let mut restarts = ServerRestarts::default();
        let _ = ended(&mut restarts, 4);
        assert!(!restarts.is_tried_again(LOOKED_AT), "it starts again by itself");
        let _ = restarts.ended(SHORT);
        assert!(!restarts.is_tried_again(SHORT));
        assert!(restarts.is_tried_again(LOOKED_AT));
        assert_eq!(restarts.ended(SHORT), None, "one more end stops it again");
    }
}
