//! What a turn and a session may still ask for: counting, and what the model is told before an end
//! is near. For `history`, which counts what happened, and the conversation, which asks what is left.

use protocol::session::Span;

/// The most there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    /// Requests of one turn.
    pub rounds: u32,
    /// Calls of one turn.
    pub calls: u32,
    /// Calls of the session, where they are bounded.
    pub session_calls: Option<u32>,
}

/// Calls that are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoCalls {
    /// How many there were.
    pub most: u32,
    /// Whose they were.
    pub of: Span,
}

/// What is used so far.
#[derive(Debug)]
pub(crate) struct Budget {
    most: Most,
    rounds: u32,
    calls: u32,
    session_calls: u32,
}

impl Budget {
    pub(crate) fn new(most: Most) -> Self {
        Self { most, rounds: 0, calls: 0, session_calls: 0 }
    }

    /// Other bounds; what is used stays used.
    pub(crate) fn set(&mut self, most: Most) {
        self.most = most;
    }

    /// A turn begins.
    pub(crate) fn begin_turn(&mut self) {
        self.rounds = 0;
        self.calls = 0;
    }

    /// A request was answered.
    pub(crate) fn answered(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
    }

    /// The model asked for a call.
    pub(crate) fn called(&mut self) {
        self.calls = self.calls.saturating_add(1);
        self.session_calls = self.session_calls.saturating_add(1);
    }

    /// A call was refused because none was left: of the session's it used none, so that a higher bound
    /// gives all that it promises.
    pub(crate) fn refused(&mut self) {
        self.session_calls = self.session_calls.saturating_sub(1);
    }

    /// Requests of the running turn that were answered.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Calls of the running turn.
    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    /// Whether one more call may run; the turn's bound is named first.
    pub(crate) fn no_calls(&self) -> Option<NoCalls> {
        if self.calls >= self.most.calls {
            return Some(NoCalls { most: self.most.calls, of: Span::Turn });
        }
        let most = self.most.session_calls.filter(|most| self.session_calls >= *most)?;
        Some(NoCalls { most, of: Span::Session })
    }

    /// What the model is told when this batch of `calls` brought a bound near.
    pub(crate) fn notice(&self, calls: u32) -> Option<String> {
        let mut notices = Vec::new();
        let mut near_calls = |used: u32, most: u32, of: &str| {
            let left = most.saturating_sub(used);
            let before = used.saturating_sub(calls);
            if left > 0 && before < near(most) && used >= near(most) {
                notices.push(format!("{left} of {most} tool calls are left in this {of}."));
            }
        };
        near_calls(self.calls, self.most.calls, "turn");
        if let Some(most) = self.most.session_calls {
            near_calls(self.session_calls, most, "session");
        }
        let rounds = self.most.rounds;
        let rounds_left = rounds.saturating_sub(self.rounds);
        if rounds_left > 0 && self.rounds == near(rounds) {
            notices.push(format!("{rounds_left} of {rounds} rounds are left in this turn."));
        }
        if rounds_left == 0 {
            notices.push(format!(
                "The {rounds} rounds of this turn are used up: no more tools can be called."
            ));
        }
        if notices.is_empty() {
            return None;
        }
        Some(format!("[Budget: {} Finish, or say what is left to do.]", notices.join(" ")))
    }
}

/// The count at which nine tenths of a bound are used.
fn near(most: u32) -> u32 {
    most - most / 10
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(calls: u32, session_calls: Option<u32>) -> Budget {
        Budget::new(Most { rounds: 25, calls, session_calls })
    }

    #[test]
    fn nine_tenths_of_the_usual_bounds() {
        assert_eq!([near(25), near(300), near(1), near(10)], [23, 270, 1, 9]);
    }

    #[test]
    fn a_sessions_calls_outlive_its_turns() {
        let mut budget = of(3, Some(4));
        for _ in 0..3 {
            assert_eq!(budget.no_calls(), None);
            budget.called();
        }
        assert_eq!(budget.no_calls(), Some(NoCalls { most: 3, of: Span::Turn }));
        budget.begin_turn();
        budget.called();
        assert_eq!(budget.no_calls(), Some(NoCalls { most: 4, of: Span::Session }));
        // What was refused is not used.
        budget.called();
        budget.refused();
        budget.set(Most { rounds: 25, calls: 30, session_calls: Some(5) });
        assert_eq!(budget.no_calls(), None);
        budget.called();
        assert_eq!(budget.no_calls(), Some(NoCalls { most: 5, of: Span::Session }));
        budget.set(Most { rounds: 25, calls: 30, session_calls: None });
        assert_eq!(budget.no_calls(), None, "without a bound");
    }

    #[test]
    fn each_bound_is_told_of_once_when_it_is_near() {
        let mut budget = of(300, Some(10));
        let mut told = Vec::new();
        for _ in 0..10 {
            budget.called();
            told.extend(budget.notice(1));
        }
        assert_eq!(
            told,
            [
                "[Budget: 1 of 10 tool calls are left in this session. Finish, or say what is left to do.]"
            ]
        );
        assert_eq!(of(300, None).notice(0), None);
    }
}
