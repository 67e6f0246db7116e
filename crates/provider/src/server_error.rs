//! Parses a server's error in any vendor's shape, and interprets its name. No IO. Used for refusals
//! and for error events, since gateways answer in the shapes of several vendors.

use crate::context_full;
use crate::step::ServerError;
use serde_json::Value;
use std::time::Duration;

/// The meaning of a vendor's error name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorMeaning {
    /// The key is not good for this.
    Key,
    /// The request is at fault.
    Request,
    /// The account's credit or quota is used up.
    Quota,
    /// The conversation is too long for the model.
    ContextFull,
    /// Too many requests, here or altogether.
    Overloaded,
}

impl ServerError {
    /// Name and message.
    pub(crate) fn words(&self) -> String {
        match (self.kind.is_empty(), self.message.is_empty()) {
            (true, _) => self.message.clone(),
            (false, true) => self.kind.clone(),
            (false, false) => format!("{}: {}", self.kind, self.message),
        }
    }

    /// None for names that say nothing but "failed".
    pub(crate) fn nature(&self) -> Option<ErrorMeaning> {
        if context_full::is_message(&self.message) {
            return Some(ErrorMeaning::ContextFull);
        }
        if self.message.starts_with("API key not valid") {
            return Some(ErrorMeaning::Key);
        }
        if self.day_is_used_up {
            return Some(ErrorMeaning::Quota);
        }
        nature(&self.kind)
    }
}

/// By the vendor's name alone.
pub(crate) fn nature(kind: &str) -> Option<ErrorMeaning> {
    Some(match kind {
        // Anthropic and OpenAI, then Google.
        "authentication_error"
        | "permission_error"
        | "invalid_api_key"
        | "UNAUTHENTICATED"
        | "PERMISSION_DENIED" => ErrorMeaning::Key,
        "insufficient_quota"
        | "billing_error"
        | "billing_hard_limit_reached"
        | "billing_not_active" => ErrorMeaning::Quota,
        kind if context_full::is_name(kind) => ErrorMeaning::ContextFull,
        "overloaded_error"
        | "rate_limit_error"
        | "rate_limit_exceeded"
        | "slow_down"
        | "engine_overloaded"
        | "RESOURCE_EXHAUSTED"
        | "UNAVAILABLE" => ErrorMeaning::Overloaded,
        "invalid_request_error"
        | "not_found_error"
        | "request_too_large"
        | "model_not_found"
        | "invalid_prompt"
        | "string_above_max_length"
        | "content_policy_violation"
        | "BadRequestError"
        | "NotFoundError"
        | "INVALID_ARGUMENT"
        | "FAILED_PRECONDITION"
        | "NOT_FOUND"
        | "MISSING_THOUGHT_SIGNATURE" => ErrorMeaning::Request,
        _ => return None,
    })
}

/// The error that this text is, if it is one.
pub(crate) fn read_error(text: &str) -> Option<ServerError> {
    let whole: Value = serde_json::from_str(text).ok()?;
    // Google's stream of one JSON array.
    let whole = match whole.as_array() {
        Some(all) => all.first()?,
        None => &whole,
    };
    let error = match whole.get("error").or_else(|| whole.pointer("/response/error")) {
        Some(Value::String(message)) => {
            return Some(ServerError { message: message.clone(), ..ServerError::default() });
        }
        Some(error) if error.is_object() => error,
        Some(_) | None => whole,
    };
    let text = |field: &str| error.get(field).and_then(Value::as_str).filter(|s| !s.is_empty());
    // OpenAI's code is more exact than its type, and Anthropic's whole body has type "error".
    let kind = text("code").or_else(|| text("status")).or_else(|| text("type"));
    let kind = kind.filter(|kind| *kind != "error").unwrap_or_default();
    let message = text("message").or_else(|| text("detail")).unwrap_or_default();
    if kind.is_empty() && message.is_empty() {
        return None;
    }
    Some(ServerError {
        kind: kind.to_owned(),
        message: message.to_owned(),
        request_id: whole.get("request_id").and_then(Value::as_str).map(str::to_owned),
        wait: retry_delay(error),
        day_is_used_up: day_is_used_up(error),
        status: error
            .get("code")
            .and_then(Value::as_u64)
            .and_then(|code| u16::try_from(code).ok())
            .filter(|code| (400..600).contains(code)),
    })
}

/// Google's wait: a text such as `34.4s` in one of the details.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay"))?.as_str()?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Google names a quota of a day like one of a minute, but for the quota's id in one of the details;
/// the wait beside it is that of a minute and leads nowhere.
fn day_is_used_up(error: &Value) -> bool {
    let details = error.get("details").and_then(Value::as_array).into_iter().flatten();
    let violations = details.filter_map(|detail| detail.get("violations")?.as_array()).flatten();
    let mut ids = violations.filter_map(|violation| violation.get("quotaId")?.as_str());
    ids.any(|id| id.contains("PerDay"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_vendor_s_shape_is_read() {
        let cases = [
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#,
                "overloaded_error: Overloaded",
                Some(ErrorMeaning::Overloaded),
            ),
            (
                r#"{"error":{"message":"You exceeded","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
                "insufficient_quota: You exceeded",
                Some(ErrorMeaning::Quota),
            ),
            (
                r#"{"error":{"message":"This model's maximum context length is 8 tokens","type":"invalid_request_error","code":null}}"#,
                "invalid_request_error: This model's maximum context length is 8 tokens",
                Some(ErrorMeaning::ContextFull),
            ),
            (
                r#"[{"error":{"code":429,"message":"Slow","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x"},{"retryDelay":"34.4s"}]}}]"#,
                "RESOURCE_EXHAUSTED: Slow",
                Some(ErrorMeaning::Overloaded),
            ),
            (
                r#"{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel"}]}]}}"#,
                "RESOURCE_EXHAUSTED: Quota",
                Some(ErrorMeaning::Overloaded),
            ),
            (
                r#"{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"9s"}]}}"#,
                "RESOURCE_EXHAUSTED: Quota",
                Some(ErrorMeaning::Quota),
            ),
            (
                r#"{"type":"error","code":"server_error","message":"Oops","sequence_number":3}"#,
                "server_error: Oops",
                None,
            ),
            (
                r#"{"response":{"error":{"code":"invalid_prompt","message":"No"}}}"#,
                "invalid_prompt: No",
                Some(ErrorMeaning::Request),
            ),
            (r#"{"error":"model not loaded"}"#, "model not loaded", None),
            (
                r#"{"object":"error","message":"bad","type":"BadRequestError","code":400}"#,
                "BadRequestError: bad",
                Some(ErrorMeaning::Request),
            ),
            (r#"{"detail":"Not Found"}"#, "Not Found", None),
            (
                r#"{"error":{"code":"1261","message":"Too long"}}"#,
                "1261: Too long",
                Some(ErrorMeaning::ContextFull),
            ),
        ];
        for (text, words, nature) in cases {
            let error = read_error(text).unwrap();
            assert_eq!((error.words().as_str(), error.nature()), (words, nature), "{text}");
        }
        let google = read_error(cases[3].0).unwrap();
        assert_eq!((google.wait, google.status), (Some(Duration::from_millis(34_400)), Some(429)));
        assert_eq!(read_error(cases[0].0).unwrap().request_id.as_deref(), Some("req_1"));
        for odd in ["", "<html>", "{}", "[]", "7", r#"{"error":{}}"#] {
            assert_eq!(read_error(odd), None, "{odd}");
        }
    }
}
