//! Fields of audit records as text.

use client::{CallState, InterruptedEnd};
use jiff::Timestamp;
use journal::{
    BasisRecord, ConnectionOutcome, DecidedRecord, DecisionRecord, EndedRecord, Outcome,
    ProxyConnection, Refusal, RefusalKind, ToolKind,
};
use nix::errno::Errno;
use protocol::hidden::visible;
use serde_json::Value;

/// Milliseconds of Unix time as a date and a time, UTC.
pub(crate) fn time(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| format!("{ms} ms"), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// The verdict.
pub(super) fn decision(decision: DecisionRecord) -> &'static str {
    match decision {
        DecisionRecord::Allowed => "allowed",
        DecisionRecord::Denied => "denied",
        DecisionRecord::Expired => "expired",
    }
}

/// The verdict with the rule, mode or user that decided.
pub(super) fn decision_line(decided: &DecidedRecord) -> String {
    match (decided.decision, &decided.basis) {
        (DecisionRecord::Expired, BasisRecord::NobodyToAsk { why }) => {
            format!("expired: approval is required, and {why}")
        }
        (verdict, BasisRecord::Query) if decided.tool_kind == ToolKind::Mutation => {
            format!("{} because it changes nothing beyond this session", decision(verdict))
        }
        (verdict, why) => format!("{} {}", decision(verdict), basis(why)),
    }
}

/// The rule, mode or user that decided, to follow "allowed" or "denied".
pub(crate) fn basis(basis: &BasisRecord) -> String {
    match basis {
        BasisRecord::Rule(rule) if rule.line > 0 => {
            format!("by the rule {} in {}, line {}", rule.text, rule.file, rule.line)
        }
        BasisRecord::Rule(rule) => format!("by the rule {} ({})", rule.text, rule.file),
        BasisRecord::Mode { mode } => format!("by the mode {mode}"),
        BasisRecord::Query => "because the tool only reads".to_owned(),
        BasisRecord::Person { who, note: None } => format!("by a person at {who}"),
        BasisRecord::Person { who, note: Some(note) } => {
            format!("by a person at {who}, with the note: {note}")
        }
        BasisRecord::NobodyToAsk { why } => {
            format!("because approval is required, but the session is non-interactive: {why}")
        }
        BasisRecord::Unjudgeable { why } => format!("because the call cannot be judged: {why}"),
        BasisRecord::Typed { who } => format!("as typed by the person at {who}"),
        BasisRecord::Sandboxed { bounded } => format!("by the mode sandboxed: {}", bounded.text()),
        BasisRecord::Opaque { mode } => format!(
            "by the mode {mode}; the command runs a program whose name is known only at run \
             time, so no rule about programs could match it"
        ),
    }
}

/// The outcome of a call. Of a call that was not approved, older builds wrote a bare interruption.
pub(super) fn end(ended: &EndedRecord, decided: Option<&DecidedRecord>) -> String {
    let decision = decided.map_or(DecisionRecord::Allowed, |decided| decided.decision);
    match (&ended.outcome, decision) {
        (Outcome::Interrupted, DecisionRecord::Denied | DecisionRecord::Expired) => {
            client::outcome_words(&Outcome::NeverStarted, InterruptedEnd::Unknown)
        }
        (Outcome::Denied, DecisionRecord::Expired) => "not run: not answered in time".to_owned(),
        (outcome, _) => {
            // Only the report about an ended command has its number.
            let end = match ended.command_pid {
                Some(_) => InterruptedEnd::Stopped,
                None => InterruptedEnd::Unknown,
            };
            client::outcome_words(outcome, end)
        }
    }
}

/// How a call ended, in the words of the screen behind their mark. `summary` is its result's line.
pub(crate) fn end_of(how: &Outcome, summary: &str) -> String {
    let end = InterruptedEnd::of_summary(summary);
    format!("{} {}", CallState::of(how, end).mark(), client::outcome_words(how, end))
}

/// One refusal, to follow the word "refused".
pub(super) fn refusal(refusal: &Refusal) -> String {
    let predicted = match refusal.kind {
        RefusalKind::Refused => "",
        RefusalKind::Predicted => ", predicted",
    };
    let times =
        if refusal.count > 1 { format!(", {} times", refusal.count) } else { String::new() };
    format!(
        "{}({}): {}{predicted}{times}, process {}",
        refusal.syscall,
        visible(&refusal.subject.to_string()),
        Errno::from_raw(refusal.errno),
        refusal.pid
    )
}

/// One decision of the proxy, as a line.
pub(super) fn connection(connection: &ProxyConnection) -> String {
    let ProxyConnection { place, decision, count, sent, received } = connection;
    let times = if *count > 1 { format!(", {count} times") } else { String::new() };
    match decision {
        ConnectionOutcome::Made(detail) => {
            format!("{place}: allowed, at {detail}, {sent} bytes sent, {received} received{times}")
        }
        ConnectionOutcome::Failed(detail) => {
            format!("{place}: allowed, and failed: {detail}{times}")
        }
        ConnectionOutcome::Refused(detail) => format!("{place}: refused: {detail}{times}"),
        ConnectionOutcome::SignedIn(detail) => {
            format!("{place}: the proxy signed in, at {detail}{times}")
        }
    }
}

/// The most informative argument of a call, else all of them.
pub(super) fn gist(input: &str) -> String {
    visible(&telling(input))
}

/// The most informative argument.
fn telling(input: &str) -> String {
    let telling = ["command", "argv", "path", "pattern", "url", "query", "text"];
    let Ok(Value::Object(fields)) = serde_json::from_str(input) else { return input.to_owned() };
    match telling.iter().find_map(|name| fields.get(*name)) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => input.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use journal::Subject;
    use serde_json::json;

    #[test]
    fn a_name_in_a_refusal_stays_on_its_line() {
        let line = refusal(&Refusal {
            kind: RefusalKind::Predicted,
            syscall: "mkdir".to_owned(),
            subject: Subject::UnixSocket("/a\u{2028}refused in s1.9: \u{202e}x".to_owned()),
            errno: Errno::EACCES as i32,
            pid: 7,
            count: 1,
        });
        assert!(line.contains("/a\\u{2028}refused in s1.9: \\u{202e}x"), "{line}");
    }

    #[test]
    fn the_end_of_a_call_says_how_far_it_came_also_in_records_of_older_builds() {
        let end = |outcome: &str, decision: &str, command_pid: Option<u32>| {
            let ended = json!({
                "session": "s", "call": 1, "tool": "bash", "outcome": {"how": outcome}, "ended": 1,
                "command_pid": command_pid,
            });
            let decided = json!({
                "session": "s", "turn": 1, "round": 1, "call": 1, "tool": "bash",
                "tool_kind": "mutation", "input": "{}", "decision": decision,
                "basis": {"by": "person", "who": "tty1"},
            });
            let ended: EndedRecord = serde_json::from_value(ended).unwrap();
            end(&ended, Some(&serde_json::from_value(decided).unwrap()))
        };
        for (outcome, decision, text) in [
            ("never_started", "denied", "not run: never started"),
            ("never_started", "allowed", "not run: never started"),
            ("interrupted", "allowed", "unknown: may have run"),
            // Before there was a word for it.
            ("interrupted", "denied", "not run: never started"),
            ("denied", "denied", "not run: denied"),
            ("denied", "expired", "not run: not answered in time"),
        ] {
            assert_eq!(end(outcome, decision, None), text, "{outcome} {decision}");
        }
        assert_eq!(end("interrupted", "allowed", Some(7)), "failed: stopped");
    }
}
