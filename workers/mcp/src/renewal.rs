//! Why the tokens of a log-in could not be renewed, as the authorization server said it. The library's errors
//! lose it on their way. Used by the transport over HTTP, the answers of calls, and `--token`.

use protocol::hidden::line_for_model;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// Most characters of an error's code and of its description.
const CODE: usize = 60;
const DESCRIPTION: usize = 300;

/// The last renewal of one log-in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Renewal(Arc<Mutex<Option<RenewalFailure>>>);

/// Why it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RenewalFailure {
    /// The server's code, and its description; or why there was no answer.
    pub(crate) why: String,
    pub(crate) kind: RenewalFailureKind,
}

/// Whether the same tokens may be renewed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenewalFailureKind {
    /// The authorization server refused: only another log-in helps.
    Refused,
    /// No answer, or one that says nothing about the tokens.
    Other,
}

impl Renewal {
    pub(crate) fn note(&self, failure: Option<RenewalFailure>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Why the last one failed, if it did.
    pub(crate) fn failure(&self) -> Option<RenewalFailure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl RenewalFailure {
    /// The failure in an answer of the authorization server; none in a good one.
    pub(crate) fn of_answer(status: u16, body: &[u8]) -> Option<Self> {
        if (200..300).contains(&status) {
            return None;
        }
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let field = |name: &str, most: usize| {
            let text = body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.map(|text| line_for_model(text).chars().take(most).collect::<String>())
        };
        let kind = match field("error", CODE).as_deref() {
            // RFC 6749, 5.2. Others, such as `temporarily_unavailable`, say nothing about the tokens.
            Some(
                "invalid_grant"
                | "invalid_client"
                | "unauthorized_client"
                | "invalid_scope"
                | "unsupported_grant_type"
                | "invalid_target",
            ) => RenewalFailureKind::Refused,
            Some(_) | None => RenewalFailureKind::Other,
        };
        let why = match (field("error", CODE), field("error_description", DESCRIPTION)) {
            (Some(code), Some(text)) => format!("{code}: {text}"),
            (Some(code), None) => code,
            (None, _) => format!("HTTP {status}"),
        };
        Some(Self { why, kind })
    }

    /// No answer came.
    pub(crate) fn without_answer(why: &str) -> Self {
        Self {
            why: line_for_model(why).chars().take(DESCRIPTION).collect(),
            kind: RenewalFailureKind::Other,
        }
    }

    /// The failure and the way on, for a person.
    pub(crate) fn advice(&self, server: &str) -> String {
        let Self { why, kind } = self;
        match kind {
            RenewalFailureKind::Refused => format!(
                "the server did not renew the log-in ({why}); run `agentd mcp login {server}`"
            ),
            RenewalFailureKind::Other => format!(
                "the log-in could not be renewed ({why}); try again later, and run `agentd mcp login \
                 {server}` if it stays so"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_refusal_has_its_code_and_leads_to_the_log_in() {
        let body = br#"{"error": "invalid_grant", "error_description": "expired\nlong ago"}"#;
        let failure = RenewalFailure::of_answer(400, body).unwrap();
        assert_eq!(failure.kind, RenewalFailureKind::Refused);
        let advice = failure.advice("far");
        assert!(advice.contains("(invalid_grant: expired\u{240a}long ago)"), "{advice}");
        assert!(advice.ends_with("run `agentd mcp login far`"), "{advice}");
    }

    #[test]
    fn what_says_nothing_about_the_tokens_may_pass() {
        for (status, body, why) in [
            (503, &b"<html>"[..], "HTTP 503"),
            (400, br#"{"error": "temporarily_unavailable"}"#, "temporarily_unavailable"),
            (400, br#"{"error": 7}"#, "HTTP 400"),
        ] {
            let failure = RenewalFailure::of_answer(status, body).unwrap();
            assert_eq!((failure.why.as_str(), failure.kind), (why, RenewalFailureKind::Other));
            assert!(failure.advice("far").contains("try again later"));
        }
        assert_eq!(RenewalFailure::of_answer(200, b"{}"), None, "the control");
    }
}
