//! The retry policy: whether and when to try again, and which failure to report if not. No IO.

use crate::fault::{AnswerReached, AttemptFault, FaultCause};
use crate::server_error::{ErrorMeaning, nature};
use protocol::provider::{ProviderFailure, ProviderTimeouts};
use std::time::Duration;

/// First wait of our own accord.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Longest wait of our own accord.
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// The same while the server is overloaded, which takes minutes rather than seconds.
const LONGEST_OVERLOAD_WAIT: Duration = Duration::from_secs(60);

/// Longest time from the first try to the last one of an overloaded server.
const OVERLOAD_TIME: Duration = Duration::from_secs(300);

/// The tries of a request so far, each by its fault: one kind does not use up the tries of the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TriesMade {
    /// That an overloaded server refused.
    overloads: u32,
    others: u32,
}

impl TriesMade {
    /// With one more that failed so.
    #[must_use]
    pub fn and(self, fault: &AttemptFault) -> Self {
        let Self { overloads, others } = self;
        match is_overload(fault) {
            true => Self { overloads: overloads.saturating_add(1), others },
            false => Self { overloads, others: others.saturating_add(1) },
        }
    }

    fn all(self) -> u32 {
        self.overloads.saturating_add(self.others)
    }
}

/// The decision after a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryDecision {
    /// Another try after this time.
    Again {
        /// How long to wait.
        wait: Duration,
        /// Most tries, if all others fail so.
        of: u32,
    },
    /// The request has failed.
    GiveUp {
        /// The kind of failure, which determines the exit code.
        kind: ProviderFailure,
        /// The error and a remedy.
        words: String,
    },
}

/// Decides about the fault of the last try, which is one of those `made`, so long after the first one began. `jitter` is
/// a random number from 0 to 1.
#[must_use]
pub fn decide(
    fault: &AttemptFault,
    (made, since_first): (TriesMade, Duration),
    patience: &ProviderTimeouts,
    jitter: f64,
) -> RetryDecision {
    let is_overload = is_overload(fault);
    let (like_it, most, longest) = match is_overload {
        true => {
            (made.overloads, patience.overload_tries.max(patience.tries), LONGEST_OVERLOAD_WAIT)
        }
        false => (made.others, patience.tries, LONGEST_WAIT),
    };
    let give_up = |more: String| {
        let kind = kind(&fault.cause);
        let words = format!("{}{more}{}", fault.message(), next_step(&fault.cause));
        RetryDecision::GiveUp { kind, words }
    };
    if !worth_another(fault) {
        return give_up(String::new());
    }
    if like_it >= most {
        return give_up(match made.all() {
            1 => String::new(),
            all => format!("; gave up after {all} tries"),
        });
    }
    let limit = Duration::from_millis(patience.max_wait_ms);
    let asked = fault.wait.unwrap_or_default();
    if asked > limit {
        return give_up(format!(
            "; it asks for a wait of {}, longer than the limit of {} (provider.max_wait)",
            in_words(asked),
            in_words(limit)
        ));
    }
    let wait = own_wait(like_it, longest, jitter).min(limit).max(asked);
    // The usual tries are made whatever they take.
    if like_it >= patience.tries && since_first + wait > OVERLOAD_TIME {
        return give_up(format!(
            "; gave up after {} tries in {}",
            made.all(),
            in_words(since_first)
        ));
    }
    RetryDecision::Again { wait, of: most.saturating_add(made.all() - like_it) }
}

/// True if an overloaded server refused the request. One that breaks off its answer may be paid for it.
fn is_overload(fault: &AttemptFault) -> bool {
    kind(&fault.cause) == ProviderFailure::Overloaded && fault.answer == AnswerReached::Nothing
}

/// Half a second, doubling to the longest, less up to a quarter so that clients do not come in step.
fn own_wait(made: u32, longest: Duration, jitter: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << made.saturating_sub(1).min(16));
    doubled.min(longest).mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 4.0)
}

fn worth_another(fault: &AttemptFault) -> bool {
    match &fault.cause {
        FaultCause::NoKey
        | FaultCause::Key
        | FaultCause::Setup
        | FaultCause::TooLarge
        | FaultCause::Departed
        | FaultCause::Quota
        | FaultCause::ContextFull => false,
        FaultCause::Connect | FaultCause::Broken => true,
        FaultCause::Status(status) => {
            fault.try_again.unwrap_or(matches!(status, 408 | 409 | 429 | 500..))
        }
        FaultCause::Event(name) => match nature(name) {
            Some(
                ErrorMeaning::Key
                | ErrorMeaning::Request
                | ErrorMeaning::Quota
                | ErrorMeaning::ContextFull,
            ) => false,
            Some(ErrorMeaning::Overloaded) | None => true,
        },
    }
}

fn kind(cause: &FaultCause) -> ProviderFailure {
    match cause {
        FaultCause::NoKey => ProviderFailure::NoKey,
        FaultCause::Connect | FaultCause::Broken => ProviderFailure::Unreachable,
        FaultCause::Setup | FaultCause::TooLarge => ProviderFailure::Rejected,
        FaultCause::Departed => ProviderFailure::RecordingDeparted,
        FaultCause::Quota => ProviderFailure::Rejected,
        FaultCause::ContextFull => ProviderFailure::ContextFull,
        FaultCause::Key | FaultCause::Status(401 | 403) => ProviderFailure::KeyRefused,
        FaultCause::Status(429 | 503 | 529) => ProviderFailure::Overloaded,
        FaultCause::Status(400 | 413 | 422) => ProviderFailure::BadRequest,
        FaultCause::Status(408 | 409 | 500..) => ProviderFailure::Unreachable,
        FaultCause::Status(_) => ProviderFailure::Rejected,
        FaultCause::Event(name) => match nature(name) {
            Some(ErrorMeaning::Key) => ProviderFailure::KeyRefused,
            Some(ErrorMeaning::Overloaded) => ProviderFailure::Overloaded,
            Some(ErrorMeaning::Request | ErrorMeaning::Quota) => ProviderFailure::Rejected,
            Some(ErrorMeaning::ContextFull) => ProviderFailure::ContextFull,
            None => ProviderFailure::Unreachable,
        },
    }
}

fn next_step(cause: &FaultCause) -> &'static str {
    match kind(cause) {
        ProviderFailure::Rejected if *cause == FaultCause::Quota => {
            ". Raise the limit or add credit with the vendor, or use another key"
        }
        ProviderFailure::KeyRefused => ". Check that the key is valid for this server and model",
        ProviderFailure::NoKey => ". Set the variable that holds this vendor's key",
        ProviderFailure::Unreachable => {
            ". Check the network, the proxy and the base URL, then ask again"
        }
        ProviderFailure::Overloaded => ". Ask again later",
        ProviderFailure::RecordingDeparted => ". Record the conversation anew",
        ProviderFailure::ContextFull => {
            ". Begin a new session, or ask a model with a larger context"
        }
        ProviderFailure::Rejected | ProviderFailure::BadRequest => "",
    }
}

/// A time as people say it.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) if s < 10 && time.subsec_millis() > 0 => format!("{:.1} s", time.as_secs_f64()),
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PATIENCE: ProviderTimeouts = ProviderTimeouts {
        tries: 5,
        overload_tries: 10,
        max_wait_ms: 60_000,
        byte_timeout_ms: 0,
        progress_timeout_ms: 0,
        connect_timeout_ms: 0,
    };

    fn again(ms: u64, of: u32) -> RetryDecision {
        RetryDecision::Again { wait: Duration::from_millis(ms), of }
    }

    /// So many tries that failed so.
    fn tries(fault: &AttemptFault, made: u32) -> TriesMade {
        (0..made).fold(TriesMade::default(), |tries, _| tries.and(fault))
    }

    /// The decision after so many tries without a wait between them.
    fn after(
        fault: &AttemptFault,
        made: u32,
        patience: &ProviderTimeouts,
        jitter: f64,
    ) -> RetryDecision {
        decide(fault, (tries(fault, made), Duration::ZERO), patience, jitter)
    }

    fn kind_of(decision: RetryDecision) -> Option<ProviderFailure> {
        match decision {
            RetryDecision::Again { .. } => None,
            RetryDecision::GiveUp { kind, .. } => Some(kind),
        }
    }

    #[test]
    fn every_cause_on_its_first_and_on_its_last_try() {
        use ProviderFailure::{
            BadRequest, KeyRefused, NoKey, Overloaded, RecordingDeparted, Rejected, Unreachable,
        };
        let event = |name: &str| FaultCause::Event(name.into());
        // The failure on the first try (none: tried again), and on the last.
        let table = [
            (FaultCause::NoKey, Some(NoKey), NoKey),
            (FaultCause::Setup, Some(Rejected), Rejected),
            (FaultCause::TooLarge, Some(Rejected), Rejected),
            (FaultCause::Departed, Some(RecordingDeparted), RecordingDeparted),
            (FaultCause::Connect, None, Unreachable),
            (FaultCause::Broken, None, Unreachable),
            (FaultCause::Status(308), Some(Rejected), Rejected),
            (FaultCause::Status(400), Some(BadRequest), BadRequest),
            (FaultCause::Status(401), Some(KeyRefused), KeyRefused),
            (FaultCause::Status(402), Some(Rejected), Rejected),
            (FaultCause::Status(403), Some(KeyRefused), KeyRefused),
            (FaultCause::Status(404), Some(Rejected), Rejected),
            (FaultCause::Status(408), None, Unreachable),
            (FaultCause::Status(409), None, Unreachable),
            (FaultCause::Status(413), Some(BadRequest), BadRequest),
            (FaultCause::Status(422), Some(BadRequest), BadRequest),
            (FaultCause::Status(429), None, Overloaded),
            (FaultCause::Status(500), None, Unreachable),
            (FaultCause::Status(503), None, Overloaded),
            (FaultCause::Status(504), None, Unreachable),
            (FaultCause::Status(529), None, Overloaded),
            (event("overloaded_error"), None, Overloaded),
            (event("rate_limit_error"), None, Overloaded),
            (event("api_error"), None, Unreachable),
            (event("timeout_error"), None, Unreachable),
            (event(""), None, Unreachable),
            (event("invalid_request_error"), Some(Rejected), Rejected),
            (event("authentication_error"), Some(KeyRefused), KeyRefused),
            (event("permission_error"), Some(KeyRefused), KeyRefused),
            (event("billing_error"), Some(Rejected), Rejected),
            (event("request_too_large"), Some(Rejected), Rejected),
        ];
        for (cause, first, last) in table {
            let fault = AttemptFault::new(cause.clone(), "x");
            let decided = |made| kind_of(after(&fault, made, &PATIENCE, 0.0));
            assert_eq!(decided(1), first, "{cause:?}");
            let is_overload = first.is_none() && last == Overloaded;
            assert_eq!(decided(5), (!is_overload).then_some(last), "{cause:?}");
            assert_eq!(decided(10), Some(last), "{cause:?}");
        }
    }

    #[test]
    fn waits_double_with_jitter_up_to_the_longest() {
        let fault = AttemptFault::broken("x");
        let patience = ProviderTimeouts { tries: 99, ..PATIENCE };
        let waits = [(1, 500), (2, 1000), (3, 2000), (4, 4000), (5, 8000), (6, 8000), (98, 8000)];
        for (made, ms) in waits {
            assert_eq!(after(&fault, made, &patience, 0.0), again(ms, 99));
            assert_eq!(after(&fault, made, &patience, 1.0), again(ms * 3 / 4, 99));
        }
        let hurried = ProviderTimeouts { max_wait_ms: 20, ..PATIENCE };
        assert_eq!(after(&fault, 1, &hurried, 0.0), again(20, 5));
    }

    #[test]
    fn an_overloaded_server_gets_twice_the_tries_within_five_minutes() {
        let mut fault = AttemptFault::new(FaultCause::Status(529), "the server answered 529");
        let (mut made, mut since_first) = (tries(&fault, 1), Duration::ZERO);
        let mut waits = Vec::new();
        while let RetryDecision::Again { wait, of } =
            decide(&fault, (made, since_first), &PATIENCE, 0.0)
        {
            assert_eq!(of, 10);
            waits.push(wait.as_secs_f64());
            (made, since_first) = (made.and(&fault), since_first + wait);
        }
        assert_eq!(waits, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
        // It asks for more: the time is over before the tries are.
        fault.wait = Some(Duration::from_secs(60));
        let decided = |seconds| {
            let since_first = Duration::from_secs(seconds);
            decide(&fault, (tries(&fault, 6), since_first), &PATIENCE, 0.0)
        };
        assert_eq!(decided(240), again(60_000, 10));
        assert_eq!(
            decided(241),
            RetryDecision::GiveUp {
                kind: ProviderFailure::Overloaded,
                words: "the server answered 529; gave up after 6 tries in 4 min 1 s. Ask again \
                        later"
                    .into()
            }
        );
    }

    #[test]
    fn each_kind_of_fault_has_its_own_tries() {
        let busy = AttemptFault::new(FaultCause::Status(529), "busy");
        let broken = AttemptFault::new(FaultCause::Status(500), "broken");
        let mut made = tries(&busy, 5).and(&broken);
        let decided = |fault, made| decide(fault, (made, Duration::ZERO), &PATIENCE, 0.0);
        assert_eq!(decided(&broken, made), again(500, 10));
        made = made.and(&busy);
        assert_eq!(decided(&busy, made), again(16_000, 11));
        made = (0..4).fold(made, |made, _| made.and(&broken));
        let words = "broken; gave up after 11 tries. Check the network, the proxy and the base URL, \
                     then ask again";
        let kind = ProviderFailure::Unreachable;
        assert_eq!(decided(&broken, made), RetryDecision::GiveUp { kind, words: words.into() });
    }

    #[test]
    fn an_answer_that_an_overload_breaks_off_may_be_paid_for_and_gets_no_more_tries() {
        let name = || FaultCause::Event("overloaded_error".into());
        let refused = AttemptFault::new(name(), "x");
        let broken_off = AttemptFault { answer: AnswerReached::Stream, ..refused.clone() };
        assert_eq!(after(&refused, 5, &PATIENCE, 0.0), again(8_000, 10));
        assert_eq!(after(&broken_off, 4, &PATIENCE, 0.0), again(4_000, 5));
        let last = after(&broken_off, 5, &PATIENCE, 0.0);
        assert_eq!(kind_of(last), Some(ProviderFailure::Overloaded));
    }

    #[test]
    fn the_servers_wait_is_the_floor_up_to_the_limit() {
        let mut fault = AttemptFault::new(FaultCause::Status(429), "the server answered 429");
        for (asked, got) in [(1, 500), (700, 700), (60_000, 60_000)] {
            fault.wait = Some(Duration::from_millis(asked));
            assert_eq!(after(&fault, 1, &PATIENCE, 0.0), again(got, 10));
        }
        fault.wait = Some(Duration::from_secs(3600));
        fault.request_id = Some("req_1".into());
        assert_eq!(
            after(&fault, 1, &PATIENCE, 0.0),
            RetryDecision::GiveUp {
                kind: ProviderFailure::Overloaded,
                words: "the server answered 429 (request id req_1); it asks for a wait of 1 h, \
                        longer than the limit of 1 min (provider.max_wait). Ask again later"
                    .into()
            }
        );
    }

    #[test]
    fn the_servers_word_about_another_try_wins() {
        let mut fault = AttemptFault::new(FaultCause::Status(429), "x");
        fault.try_again = Some(false);
        assert_eq!(kind_of(after(&fault, 1, &PATIENCE, 0.0)), Some(ProviderFailure::Overloaded));
        let mut fault = AttemptFault::new(FaultCause::Status(400), "x");
        fault.try_again = Some(true);
        assert_eq!(after(&fault, 1, &PATIENCE, 0.0), again(500, 5));
        // But not over the number of tries.
        assert_eq!(kind_of(after(&fault, 5, &PATIENCE, 0.0)), Some(ProviderFailure::BadRequest));
    }

    #[test]
    fn times_in_words() {
        let cases = [
            (20, "0.0 s"),
            (1500, "1.5 s"),
            (42_000, "42 s"),
            (61_000, "1 min 1 s"),
            (120_000, "2 min"),
            (3_600_000, "1 h"),
            (5_400_000, "1 h 30 min"),
        ];
        for (ms, words) in cases {
            assert_eq!(in_words(Duration::from_millis(ms)), words);
        }
    }
}
