//! Costs of tokens, and the context that they leave. Unknown prices give no number. Used by the
//! views and the status line.

use protocol::client::{ModelFacts, Prices};
use protocol::content::Usage;

/// Costs of a session's answers so far, each by the price of its model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spent {
    /// No answer yet.
    #[default]
    Nothing,
    /// Millionths of a dollar.
    Micros(u64),
    /// At least so many: one had no price.
    AtLeast(u64),
}

impl Spent {
    /// One more answer.
    pub fn answered(&mut self, usage: Usage, prices: Option<Prices>) {
        let counted = usage.input.is_some() || usage.output.is_some();
        let more = match prices.and_then(|prices| prices.cost(usage)) {
            Some(more) => Self::Micros(more),
            // Where the vendor counted nothing, as of an answer that was stopped, nothing is added.
            None if !counted => Self::Nothing,
            None => Self::AtLeast(0),
        };
        *self = self.and(more);
    }

    /// Both.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, one) | (one, Self::Nothing) => one,
            (Self::Micros(a), Self::Micros(b)) => Self::Micros(a.saturating_add(b)),
            (Self::AtLeast(a), Self::Micros(b) | Self::AtLeast(b))
            | (Self::Micros(a), Self::AtLeast(b)) => Self::AtLeast(a.saturating_add(b)),
        }
    }

    /// For display; `None` where no cost is known.
    #[must_use]
    pub fn in_words(self) -> Option<String> {
        match self {
            Self::Nothing | Self::AtLeast(0) => None,
            Self::Micros(cost) => Some(in_dollars(cost)),
            Self::AtLeast(cost) => Some(format!("at least {}", in_dollars(cost))),
        }
    }
}

/// Tokens left in the model's context after the newest answer.
#[must_use]
pub fn context_left(newest: Usage, facts: ModelFacts) -> Option<u64> {
    let Usage { input, output, cache_read, cache_write } = newest;
    let known = [input, cache_read, cache_write, output].map(Option::unwrap_or_default);
    input.or(output)?;
    let used = known.into_iter().fold(0, u64::saturating_add);
    Some(facts.context?.saturating_sub(used))
}

/// For display: two decimals, or four for less than a cent.
#[must_use]
pub fn in_dollars(micros: u64) -> String {
    match micros {
        0..10_000 => format!("${:.4}", micros as f64 / 1e6),
        _ => format!("${:.2}", micros as f64 / 1e6),
    }
}

/// Tokens, in thousands or millions where there are so many.
pub(crate) fn count(tokens: u64) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        1000..1_000_000 => format!("{:.1}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

/// A sum; a count that only one side has is taken from that side.
#[must_use]
pub fn sum(a: Usage, b: Usage) -> Usage {
    let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (one, other) => one.or(other),
    };
    Usage {
        input: add(a.input, b.input),
        output: add(a.output, b.output),
        cache_read: add(a.cache_read, b.cache_read),
        cache_write: add(a.cache_write, b.cache_write),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: Prices = Prices {
        input: 3_000_000,
        output: 15_000_000,
        cache_read: Some(300_000),
        cache_write: None,
    };

    #[test]
    fn each_kind_of_token_has_its_price_and_what_has_none_leaves_the_cost_out() {
        let usage = Usage {
            input: Some(1_000_000),
            output: Some(100_000),
            cache_read: Some(2_000_000),
            cache_write: Some(0),
        };
        assert_eq!(PRICES.cost(usage), Some(3_000_000 + 1_500_000 + 600_000));
        assert_eq!(PRICES.cost(Usage { cache_write: Some(1), ..usage }), None);
        assert_eq!(PRICES.cost(Usage::default()), None);
    }

    #[test]
    fn room_is_what_the_newest_answer_and_its_request_leave() {
        let facts = ModelFacts { context: Some(1000), ..ModelFacts::default() };
        let usage =
            Usage { input: Some(100), output: Some(50), cache_read: Some(200), cache_write: None };
        assert_eq!(context_left(usage, facts), Some(650));
        assert_eq!(context_left(Usage { input: Some(9999), ..usage }, facts), Some(0));
        assert_eq!(context_left(Usage::default(), facts), None);
        assert_eq!(context_left(usage, ModelFacts::default()), None);
    }

    #[test]
    fn amounts_as_people_say_them() {
        assert_eq!(
            [in_dollars(0), in_dollars(1234), in_dollars(1_234_567)],
            ["$0.0000", "$0.0012", "$1.23"]
        );
    }

    #[test]
    fn each_answer_has_the_price_of_its_model_and_one_without_makes_the_sum_the_least() {
        let usage = Usage { input: Some(1000), output: Some(0), ..Usage::default() };
        let cheap = Prices { input: 1_000_000, ..PRICES };
        let mut spent = Spent::default();
        spent.answered(usage, Some(PRICES));
        assert_eq!(spent, Spent::Micros(3000));
        spent.answered(Usage::default(), None);
        spent.answered(usage, Some(cheap));
        assert_eq!(spent, Spent::Micros(4000));
        assert_eq!(spent.and(Spent::Micros(1000)), Spent::Micros(5000));
        assert_eq!(Spent::Nothing.and(spent), spent);
        assert_eq!(spent.and(Spent::AtLeast(1)), Spent::AtLeast(4001));
        assert_eq!(spent.in_words().as_deref(), Some("$0.0040"));
        spent.answered(usage, None);
        assert_eq!(spent, Spent::AtLeast(4000));
        spent.answered(usage, Some(PRICES));
        assert_eq!(spent.in_words().as_deref(), Some("at least $0.0070"));
        let mut unknown = Spent::default();
        unknown.answered(usage, None);
        assert_eq!((unknown, unknown.in_words()), (Spent::AtLeast(0), None));
    }
}
