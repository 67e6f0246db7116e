//! Budgets of a turn and of a session: counting, and the warnings to the model before a limit is
//! reached. `history` counts recorded calls; the conversation asks for the remainder.

use protocol::session::{CallSpan, TaskUse};

/// The most there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BudgetLimits {
    /// Requests of one turn.
    pub rounds: u32,
    /// Calls of one turn.
    pub calls: u32,
    /// Calls of the session, where they are bounded.
    pub session_calls: Option<u32>,
    /// Cost of the session in millionths of a dollar, where it is bounded.
    pub cost: Option<u64>,
    /// The use of sub-agents, which counts to the session.
    pub used: TaskUse,
}

/// The limit of the session's cost holds no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CostReached {
    /// The cost so far. `None` if an answer has no known cost.
    pub spent: Option<u64>,
    /// The limit.
    pub most: u64,
}

/// The exhausted budget because of which a call did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortage {
    Rounds,
    Calls(CallSpan),
}

/// Calls that are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoCalls {
    /// How many there were.
    pub most: u32,
    /// Whose they were.
    pub of: CallSpan,
}

/// Calls that were refused in the running turn.
#[derive(Debug, Clone, Copy)]
struct RefusedCalls {
    of: CallSpan,
    /// Answers that asked for them.
    answers: u32,
    /// The newest of those.
    round: u32,
}

/// Usage so far. A call refused for an exhausted budget counts as unused.
#[derive(Debug)]
pub(crate) struct TurnBudget {
    most: BudgetLimits,
    rounds: u32,
    calls: u32,
    session_calls: u32,
    /// The cost of the session. `None` if an answer has no known cost.
    spent: Option<u64>,
    refused: Option<RefusedCalls>,
}

impl TurnBudget {
    pub(crate) fn new(most: BudgetLimits) -> Self {
        Self { most, rounds: 0, calls: 0, session_calls: 0, spent: Some(0), refused: None }
    }

    /// Sets new limits; usage stays.
    pub(crate) fn set(&mut self, most: BudgetLimits) {
        self.most = most;
    }

    /// A turn begins.
    pub(crate) fn begin_turn(&mut self) {
        self.rounds = 0;
        self.calls = 0;
        self.refused = None;
    }

    /// A request was answered.
    pub(crate) fn answered(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
    }

    /// An answer cost this.
    pub(crate) fn cost(&mut self, cost: Option<u64>) {
        self.spent = self.spent.zip(cost).map(|(spent, cost)| spent.saturating_add(cost));
    }

    /// Why no further request may be sent, if the limit of the cost forbids it. After an answer of
    /// unknown cost the limit cannot be compared, so it forbids every request.
    pub(crate) fn cost_reached(&self) -> Option<CostReached> {
        let most = self.most.cost?;
        let spent = self.spent.zip(self.most.used.cost);
        let spent = spent.map(|(own, of_tasks)| own.saturating_add(of_tasks));
        let holds = spent.is_some_and(|spent| spent < most);
        (!holds).then_some(CostReached { spent, most })
    }

    /// The model asked for a call.
    pub(crate) fn called(&mut self) {
        self.calls = self.calls.saturating_add(1);
        self.session_calls = self.session_calls.saturating_add(1);
    }

    /// A call did not run because this was used up.
    pub(crate) fn not_run(&mut self, for_want: Shortage) {
        self.calls = self.calls.saturating_sub(1);
        self.session_calls = self.session_calls.saturating_sub(1);
        let Shortage::Calls(of) = for_want else { return };
        let (before, round) = self.refused.map_or((0, 0), |told| (told.answers, told.round));
        let answers = if before > 0 && round == self.rounds { before } else { before + 1 };
        self.refused = Some(RefusedCalls { of, answers, round: self.rounds });
    }

    /// Requests of the running turn that were answered.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Calls of the running turn.
    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    /// How many of the newest `named` calls may run, and the limit that stops the others: the
    /// narrower one, if both belong to the turn.
    pub(crate) fn within(&self, named: u32) -> (u32, NoCalls) {
        let turn = self.most.calls.saturating_sub(self.calls.saturating_sub(named));
        let none = NoCalls { most: self.most.calls, of: CallSpan::Turn };
        let Some(most) = self.most.session_calls else { return (turn, none) };
        let used = self.session_calls.saturating_sub(named).saturating_add(self.most.used.calls);
        let session = most.saturating_sub(used);
        match session < turn {
            true => (session, NoCalls { most, of: CallSpan::Session }),
            false => (turn, none),
        }
    }

    /// The limits that stopped calls of this turn, and the number of answers with such calls.
    pub(crate) fn over(&self) -> Option<(NoCalls, u32)> {
        self.refused.map(|RefusedCalls { of, answers, .. }| {
            let most = match of {
                CallSpan::Turn => self.most.calls,
                CallSpan::Session => self.most.session_calls.unwrap_or(u32::MAX),
            };
            (NoCalls { most, of }, answers)
        })
    }

    /// The warning for the model when this batch of `calls` came near a limit.
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
            near_calls(self.session_calls.saturating_add(self.most.used.calls), most, "session");
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

    fn of(calls: u32, session_calls: Option<u32>) -> TurnBudget {
        let used = TaskUse::default();
        TurnBudget::new(BudgetLimits { rounds: 25, calls, session_calls, cost: None, used })
    }

    #[test]
    fn nine_tenths_of_the_usual_bounds() {
        assert_eq!([near(25), near(300), near(1), near(10)], [23, 270, 1, 9]);
    }

    #[test]
    fn a_sessions_calls_outlive_its_turns() {
        let turn = NoCalls { most: 3, of: CallSpan::Turn };
        let session = |most| NoCalls { most, of: CallSpan::Session };
        let mut budget = of(3, Some(4));
        for _ in 0..5 {
            budget.called();
        }
        assert_eq!(budget.within(5), (3, turn), "the turn's is the narrower");
        budget.not_run(Shortage::Calls(CallSpan::Turn));
        budget.not_run(Shortage::Calls(CallSpan::Turn));
        assert_eq!(budget.over(), Some((turn, 1)), "one answer asked for both");
        assert_eq!(budget.within(3), (3, turn), "what was refused is not used");
        budget.begin_turn();
        assert_eq!(budget.over(), None);
        for answers in 1..=2 {
            budget.answered();
            budget.called();
            budget.called();
            assert_eq!(budget.within(2), (2 - answers, session(4)));
            budget.not_run(Shortage::Calls(CallSpan::Session));
            if answers == 2 {
                budget.not_run(Shortage::Calls(CallSpan::Session));
            }
            assert_eq!(budget.over(), Some((session(4), answers)));
        }
        budget.set(BudgetLimits { calls: 30, session_calls: Some(6), ..budget.most });
        budget.called();
        assert_eq!(budget.within(1), (2, session(6)), "a higher bound gives all that it promises");
        budget.set(BudgetLimits { session_calls: None, ..budget.most });
        assert_eq!(budget.within(1).0, 29);
    }

    #[test]
    fn a_cost_is_known_or_forbids_the_next_request() {
        let mut budget = of(3, None);
        budget.cost(None);
        assert_eq!(budget.cost_reached(), None, "there is no limit");
        let most = 100;
        let limited = || TurnBudget::new(BudgetLimits { cost: Some(most), ..of(3, None).most });
        let mut budget = limited();
        budget.cost(Some(99));
        assert_eq!(budget.cost_reached(), None);
        budget.cost(Some(2));
        assert_eq!(budget.cost_reached(), Some(CostReached { spent: Some(101), most }));
        budget.begin_turn();
        assert!(budget.cost_reached().is_some(), "it is the session's");
        let mut budget = limited();
        budget.cost(None);
        budget.cost(Some(1));
        assert_eq!(budget.cost_reached(), Some(CostReached { spent: None, most }));
    }

    #[test]
    fn sub_agents_use_up_the_sessions_calls_and_cost() {
        let mut budget = of(30, Some(6));
        budget.called();
        assert_eq!(budget.within(1).0, 6);
        let used = TaskUse { calls: 4, cost: Some(70) };
        budget.set(BudgetLimits { used, cost: Some(100), ..budget.most });
        assert_eq!(budget.within(1).0, 2);
        assert_eq!(budget.cost_reached(), None);
        budget.cost(Some(30));
        assert_eq!(budget.cost_reached(), Some(CostReached { spent: Some(100), most: 100 }));
        let used = TaskUse { calls: 4, cost: None };
        budget.set(BudgetLimits { used, cost: Some(1000), ..budget.most });
        assert_eq!(budget.cost_reached(), Some(CostReached { spent: None, most: 1000 }));
    }

    #[test]
    fn rounds_that_are_used_up_are_no_refusal_of_calls() {
        let mut budget = of(3, None);
        budget.called();
        budget.not_run(Shortage::Rounds);
        assert_eq!((budget.over(), budget.calls()), (None, 0));
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
