//! The reasons why an attempt failed, in the server's words if it sent any. [`crate::retry`]
//! decides about the consequences.

use crate::body::EncodeError;
use crate::secrets::Secrets;
use crate::server_error::{ErrorMeaning, read_error};
use crate::sse::SseError;
use crate::step::{FormatError, ServerError};
use jiff::Timestamp;
use std::time::Duration;

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFault {
    /// The kind of failure.
    pub cause: FaultCause,
    /// Plain words, for people.
    pub words: String,
    /// How long the server asks us to wait.
    pub wait: Option<Duration>,
    /// The server's instruction about retrying, if it sent one.
    pub try_again: Option<bool>,
    /// The server's number of the request.
    pub request_id: Option<String>,
    /// How far the answer was.
    pub answer: AnswerReached,
}

/// How far an answer was at its fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerReached {
    /// There was none.
    Nothing,
    /// It had begun, and may be paid for.
    Stream,
}

/// Kinds of fault that are treated differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultCause {
    /// No key was given.
    NoKey,
    /// The server does not take the key.
    Key,
    /// The request or the way to the server cannot be made as configured.
    Setup,
    /// No connection.
    Connect,
    /// A connection, but no whole answer over it.
    Broken,
    /// An HTTP status other than success.
    Status(u16),
    /// An error event inside the stream, by the vendor's name for it.
    Event(String),
    /// The account's credit or quota is used up.
    Quota,
    /// The conversation is too long for the model.
    ContextFull,
    /// An answer beyond our limits.
    TooLarge,
    /// The recording and the conversation are not the same.
    Departed,
}

/// An HTTP answer that is no success, as it came.
#[derive(Debug)]
pub struct HttpRefusal<'a> {
    /// Its status.
    pub status: u16,
    /// The headers named in [`HEADERS`], where they are there, in that order.
    pub headers: [Option<&'a str>; 6],
    /// As much of the body as was read.
    pub body: &'a [u8],
    /// When it came.
    pub now: Timestamp,
}

/// The headers of a [`HttpRefusal`] that say something to us.
pub const HEADERS: [&str; 6] =
    ["retry-after-ms", "retry-after", "x-should-retry", "request-id", "location", "x-request-id"];

impl AttemptFault {
    /// A fault of this cause, in these words.
    #[must_use]
    pub fn new(cause: FaultCause, words: impl Into<String>) -> Self {
        Self {
            cause,
            words: words.into(),
            wait: None,
            try_again: None,
            request_id: None,
            answer: AnswerReached::Nothing,
        }
    }

    /// A stream that came to no proper end.
    #[must_use]
    pub fn broken(words: impl Into<String>) -> Self {
        Self::new(FaultCause::Broken, words)
    }

    /// The fault of an HTTP refusal.
    #[must_use]
    pub fn refused(refusal: &HttpRefusal<'_>) -> Self {
        let [wait_ms, wait, should_retry, id, location, other_id] = refusal.headers;
        let (error, said) = body_words(refusal.body);
        let mut words = format!("the server answered {}", refusal.status);
        if !said.is_empty() {
            words = format!("{words}: {said}");
        }
        if let (300..=399, Some(to)) = (refusal.status, location) {
            words = format!("{words}: it points to {to}, and redirects are not followed");
        }
        Self {
            cause: match error.nature() {
                Some(ErrorMeaning::Quota) => FaultCause::Quota,
                // Google answers a bad key like a bad request.
                Some(ErrorMeaning::Key) => FaultCause::Key,
                Some(ErrorMeaning::ContextFull)
                    if matches!(refusal.status, 400 | 413 | 422 | 500) =>
                {
                    FaultCause::ContextFull
                }
                // A conversation that is too large for a server or for a proxy before it.
                Some(_) | None if refusal.status == 413 => FaultCause::ContextFull,
                Some(_) | None => FaultCause::Status(refusal.status),
            },
            words,
            wait: wait_ms
                .and_then(|ms| seconds(ms, 0.001))
                .or_else(|| wait.and_then(|s| seconds(s, 1.0)))
                .or_else(|| wait.and_then(|date| until(date, refusal.now)))
                .or(error.wait),
            try_again: match should_retry {
                Some("true") => Some(true),
                Some("false") => Some(false),
                Some(_) | None => None,
            },
            request_id: id.or(other_id).map(str::to_owned).or(error.request_id),
            answer: AnswerReached::Nothing,
        }
    }

    /// The same with secrets redacted.
    #[must_use]
    pub(crate) fn without(self, secrets: &Secrets) -> Self {
        let request_id = self.request_id.map(|id| secrets.redact(&id));
        Self { words: secrets.redact(&self.words), request_id, ..self }
    }

    /// The words, with the server's number of the request.
    #[must_use]
    pub fn message(&self) -> String {
        match &self.request_id {
            Some(id) => format!("{} (request id {id})", self.words),
            None => self.words.clone(),
        }
    }
}

impl From<SseError> for AttemptFault {
    fn from(error: SseError) -> Self {
        Self::new(FaultCause::TooLarge, error.to_string())
    }
}

impl From<FormatError> for AttemptFault {
    fn from(format_error: FormatError) -> Self {
        let cause = match format_error {
            FormatError::TooLarge => FaultCause::TooLarge,
            FormatError::Format { .. }
            | FormatError::Lacks { .. }
            | FormatError::OutOfPlace { .. }
            | FormatError::NoReason => FaultCause::Broken,
        };
        Self::new(cause, format_error.to_string())
    }
}

impl From<ServerError> for AttemptFault {
    fn from(error: ServerError) -> Self {
        let words = format!("the server broke off its answer: {}", error.words());
        let cause = match (error.nature(), error.status) {
            (Some(ErrorMeaning::Quota), _) => FaultCause::Quota,
            (Some(ErrorMeaning::ContextFull), _) => FaultCause::ContextFull,
            (Some(_), _) | (None, None) => FaultCause::Event(error.kind),
            (None, Some(status)) => FaultCause::Status(status),
        };
        Self { request_id: error.request_id, wait: error.wait, ..Self::new(cause, words) }
    }
}

impl From<EncodeError> for AttemptFault {
    fn from(error: EncodeError) -> Self {
        Self::new(FaultCause::Setup, error.to_string())
    }
}

/// An error body, and its words for people.
fn body_words(body: &[u8]) -> (ServerError, String) {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if let Some(error) = read_error(text) {
        let words = error.words();
        return (error, words);
    }
    let words = match text.starts_with('<') {
        true => "an HTML page (is the base URL right?)".to_owned(),
        false => {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.join(" ").chars().take(300).collect()
        }
    };
    (ServerError::default(), words)
}

fn seconds(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = text.trim().parse().ok()?;
    Duration::try_from_secs_f64(number * unit).ok()
}

/// The time until an HTTP date, such as `Sun, 06 Nov 1994 08:49:37 GMT`; none if it is past.
fn until(date: &str, now: Timestamp) -> Option<Duration> {
    let then = jiff::fmt::rfc2822::parse(date.trim()).ok()?.timestamp();
    Some(Duration::try_from(then.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(status: u16, header: (usize, &str), body: &str) -> AttemptFault {
        let mut headers = [None; 6];
        headers[header.0] = Some(header.1);
        AttemptFault::refused(&HttpRefusal {
            status,
            headers,
            body: body.as_bytes(),
            now: "1994-11-06T08:49:30Z".parse().unwrap(),
        })
    }

    #[test]
    fn the_words_are_the_servers() {
        let vendor = r#"{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: required"},"request_id":"req_1"}"#;
        let cases = [
            (
                400,
                vendor,
                "the server answered 400: invalid_request_error: max_tokens: required (request id req_1)",
            ),
            (
                502,
                "<html>Bad gateway",
                "the server answered 502: an HTML page (is the base URL right?)",
            ),
            (500, " two\n words ", "the server answered 500: two words"),
            (500, "", "the server answered 500"),
        ];
        for (status, body, told) in cases {
            assert_eq!(refused(status, (4, ""), body).message(), told);
        }
        let moved = refused(308, (4, "https://b/"), "");
        assert_eq!(
            moved.message(),
            "the server answered 308: it points to https://b/, and redirects are not followed"
        );
        let header = refused(400, (3, "req_h"), vendor);
        assert_eq!(header.request_id.as_deref(), Some("req_h"));
    }

    #[test]
    fn waits_in_every_form() {
        let wait = |header, text| refused(429, (header, text), "").wait;
        assert_eq!(wait(0, "1500"), Some(Duration::from_millis(1500)));
        assert_eq!(wait(1, "2"), Some(Duration::from_secs(2)));
        assert_eq!(wait(1, "0.25"), Some(Duration::from_millis(250)));
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(wait(1, date), Some(Duration::from_secs(7)));
        assert_eq!(wait(1, "Sun, 06 Nov 1994 08:49:29 GMT"), Some(Duration::ZERO));
        for odd in ["-1", "NaN", "inf", "1e99", "soon", ""] {
            assert_eq!(wait(1, odd), None, "{odd}");
        }
    }

    #[test]
    fn the_server_may_decide_about_another_try() {
        let says = |text| refused(500, (2, text), "").try_again;
        assert_eq!(says("true"), Some(true));
        assert_eq!(says("false"), Some(false));
        assert_eq!(says("maybe"), None);
    }
}
