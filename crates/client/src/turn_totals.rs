//! The line at the end of a turn: its time, calls, tokens and cost. Pure.

use crate::cost::{Spent, count, sum};
use crate::lines::in_time;
use protocol::call::Call;
use protocol::content::Usage;
use protocol::session::{TaskSpent, TurnEnd};
use std::time::Duration;

/// What a turn took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnTotals {
    calls: u32,
    usage: Usage,
    cost: Spent,
    took: Option<Duration>,
    /// How it ended.
    end: Option<TurnEnd>,
}

impl TurnTotals {
    pub(crate) fn answered(&mut self, usage: Usage) {
        self.usage = sum(self.usage, usage);
    }

    /// The model asked for a call.
    pub(crate) fn called(&mut self, call: &Call) {
        self.calls = self.calls.saturating_add(u32::from(call.origin.is_model()));
    }

    /// A sub-agent ended, which used so much.
    pub(crate) fn spent(&mut self, spent: &TaskSpent) {
        self.usage = sum(self.usage, spent.usage);
        self.cost = self.cost.and(spent.cost.map_or(Spent::AtLeast(0), Spent::Micros));
    }

    /// With its end.
    #[must_use]
    pub(crate) fn ending(self, end: TurnEnd) -> Self {
        Self { end: Some(end), ..self }
    }

    /// With the cost of the turn's own answers.
    #[must_use]
    pub(crate) fn costing(self, own: Spent) -> Self {
        Self { cost: self.cost.and(own), ..self }
    }

    /// With the time it took, where this terminal saw its beginning.
    #[must_use]
    pub fn lasting(self, took: Option<Duration>) -> Self {
        Self { took, ..self }
    }

    /// One line; empty where nothing is known.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Usage { input, output, cache_read, cache_write } = self.usage;
        let sent =
            [input, cache_read, cache_write].into_iter().flatten().reduce(u64::saturating_add);
        let calls = match self.calls {
            0 => None,
            1 => Some("1 call".to_owned()),
            calls => Some(format!("{calls} calls")),
        };
        let words = [
            self.took.map(time),
            calls,
            sent.map(|tokens| format!("{} in", count(tokens))),
            output.map(|tokens| format!("{} out", count(tokens))),
            self.cost.in_words(),
        ];
        let words = words.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        match self.end {
            Some(TurnEnd::Done) if !words.is_empty() => format!("✓ {words}"),
            Some(_) | None => words,
        }
    }
}

fn time(took: Duration) -> String {
    match took.as_secs() {
        0..10 => format!("{:.1} s", took.as_secs_f64()),
        seconds => in_time(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::call::CallOrigin;
    use protocol::ids::{CallId, SessionId};

    fn call(tool: &str, origin: CallOrigin) -> Call {
        let id = CallId { session: SessionId("s".to_owned()), number: 1 };
        let tool = tool.to_owned();
        Call { id, origin, tool, input: "{}".to_owned() }
    }

    #[test]
    fn the_line_has_what_is_known_of_the_turn() {
        let mut totals = TurnTotals::default();
        assert_eq!(totals.in_words(), "");
        let usage = Usage {
            input: Some(3_000),
            cache_read: Some(80_000),
            output: Some(1_200),
            ..Usage::default()
        };
        totals.answered(usage);
        totals.called(&call("edit", CallOrigin::model("u")));
        totals.called(&call("bash", CallOrigin::model("u")));
        // The model did not ask for this one.
        totals.called(&call("read", CallOrigin::PinnedRead));
        let totals = totals.costing(Spent::Micros(150_000)).lasting(Some(Duration::from_secs(48)));
        let words = "48 s · 2 calls · 83.0k in · 1.2k out · $0.15";
        assert_eq!(totals.clone().ending(TurnEnd::Interrupted).in_words(), words);
        assert_eq!(totals.ending(TurnEnd::Done).in_words(), format!("✓ {words}"));
        assert_eq!(TurnTotals::default().ending(TurnEnd::Done).in_words(), "");
        let short = TurnTotals::default().lasting(Some(Duration::from_millis(440)));
        assert_eq!(short.in_words(), "0.4 s");
    }

    #[test]
    fn a_sub_agent_counts_and_one_of_unknown_cost_makes_the_cost_the_least() {
        for (cost, words) in
            [(Some(50_000), "1 call · 7 out · $0.15"), (None, "1 call · 7 out · at least $0.10")]
        {
            let mut totals = TurnTotals::default();
            let usage = Usage { output: Some(7), ..Usage::default() };
            let session = SessionId("t".to_owned());
            let spent = TaskSpent { session, rounds: 1, calls: 2, usage, cost };
            totals.called(&call("task", CallOrigin::model("u")));
            totals.spent(&spent);
            assert_eq!(totals.costing(Spent::Micros(100_000)).in_words(), words);
        }
    }
}
