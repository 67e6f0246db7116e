//! Fields of audit records as text.

use client::mark_hidden;
use jiff::Timestamp;
use journal::{
    Basis, Connection, Decided, Decision, Ended, Outcome, Passage, Refusal, RefusalKind,
};
use nix::errno::Errno;
use serde_json::Value;

/// Milliseconds of Unix time as a date and a time, UTC.
pub(crate) fn time(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| format!("{ms} ms"), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// The verdict.
pub(super) fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::Allowed => "allowed",
        Decision::Denied => "denied",
        Decision::Expired => "expired",
    }
}

/// The rule, mode or user that decided, to follow "allowed" or "denied".
pub(super) fn basis(basis: &Basis) -> String {
    match basis {
        Basis::Rule(rule) if rule.line > 0 => {
            format!("by the rule {} in {}, line {}", rule.text, rule.file, rule.line)
        }
        Basis::Rule(rule) => format!("by the rule {} ({})", rule.text, rule.file),
        Basis::Mode { mode } => format!("by the mode {mode}"),
        Basis::Query => "because the tool only reads".to_owned(),
        Basis::Person { who } => format!("by a person at {who}"),
        Basis::NobodyToAsk { why } => {
            format!("because approval is required, but the session is non-interactive: {why}")
        }
        Basis::Unjudgeable { why } => format!("because the call cannot be judged: {why}"),
        Basis::Opaque { mode } => format!(
            "by the mode {mode}; the command runs a program whose name is known only at run \
             time, so no rule about programs could match it"
        ),
    }
}

/// The outcome of a call. A call without an approval was interrupted before it started.
pub(super) fn end(ended: &Ended, decided: Option<&Decided>) -> String {
    let allowed = decided.is_none_or(|decided| decided.decision == Decision::Allowed);
    if ended.outcome == Outcome::Interrupted && !allowed {
        return "interrupted: never started".to_owned();
    }
    outcome(&ended.outcome)
}

pub(crate) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::Failed => "failed".to_owned(),
        Outcome::Exited { code } => format!("exit code {code}"),
        Outcome::Signalled { signal } => format!("ended by signal {signal}"),
        Outcome::TimedOut => "timed out".to_owned(),
        Outcome::Denied => "denied by you".to_owned(),
        Outcome::Refused { rule } => format!("refused ({rule})"),
        Outcome::Confined { what } => format!("stopped by the cage ({what})"),
        Outcome::OutOfMemory => "out of memory".to_owned(),
        Outcome::Crashed => "crashed".to_owned(),
        Outcome::Interrupted => "interrupted: may have run".to_owned(),
        Outcome::Invalid => "invalid call".to_owned(),
    }
}

/// One refusal, in a line.
pub(super) fn refusal(refusal: &Refusal) -> String {
    let sure = match refusal.kind {
        RefusalKind::Refused => "refused",
        RefusalKind::Predicted => "refused by the kernel (predicted from the same grants)",
    };
    let times =
        if refusal.count > 1 { format!(", {} times", refusal.count) } else { String::new() };
    format!(
        "{}({}): {sure} with {}{times}, process {}",
        refusal.syscall,
        refusal.detail,
        Errno::from_raw(refusal.errno),
        refusal.pid
    )
}

/// One decision of the proxy, as a line.
pub(super) fn connection(connection: &Connection) -> String {
    let Connection { place, decision, detail, count, sent, received } = connection;
    let times = if *count > 1 { format!(", {count} times") } else { String::new() };
    match decision {
        Passage::Made => {
            format!("{place}: allowed, at {detail}, {sent} bytes sent, {received} received{times}")
        }
        Passage::Failed => format!("{place}: allowed, and failed: {detail}{times}"),
        Passage::Refused => format!("{place}: refused: {detail}{times}"),
        Passage::SignedIn => format!("{place}: the proxy signed in, at {detail}{times}"),
    }
}

/// The most informative argument of a call, else all of them.
pub(super) fn gist(input: &str) -> String {
    mark_hidden(&telling(input))
}

/// The most informative argument.
fn telling(input: &str) -> String {
    let telling = ["command", "argv", "path", "pattern", "url", "query"];
    let Ok(Value::Object(fields)) = serde_json::from_str(input) else { return input.to_owned() };
    match telling.iter().find_map(|name| fields.get(*name)) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => input.to_owned(),
    }
}
