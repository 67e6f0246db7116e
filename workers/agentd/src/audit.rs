//! `agentd audit`: reads the audit log, which no tool can reach and the supervisor alone writes.

mod list;
mod record_text;
mod show;

use crate::cli::{AuditCommand, AuditFilter};
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::output::{print, print_json};
use crate::sessions;
use jiff::{SignedDuration, Timestamp};
use journal::{
    AuditedCall, CallFilter, ChainAnchors, ListError, ReadError, RemovedRecord, RetentionBound,
    Verification, WithRefusals,
};

pub(crate) use list::{refusals, table};
pub(crate) use record_text::{basis, end_of, time};
pub(crate) use show::page;

pub(crate) fn main(command: AuditCommand) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let dir = context.audit_dir();
    match command {
        AuditCommand::Ls { filter, json } => {
            let calls = journal::calls(&dir, &meant(&context, &filter)?)
                .map_err(|error| unreadable(&error))?;
            match json {
                true => print_json(&lines(&calls)?),
                false if calls.is_empty() => {
                    eprintln!("agentd: no call in the audit log {} matches", dir.display());
                }
                false => print(&table(&calls)),
            }
            Ok(CliExit::Done)
        }
        AuditCommand::Show { call, json } => {
            let found = one(&context, &call)?;
            match json {
                true => print_json(&lines(&[found])?),
                false => print(&show::page(&dir, &found)),
            }
            Ok(CliExit::Done)
        }
        AuditCommand::Verify => {
            let (text, exit) = verified(&context)?;
            print(&text);
            Ok(exit)
        }
        AuditCommand::Export { filter } => {
            let calls = journal::calls(&dir, &meant(&context, &filter)?)
                .map_err(|error| unreadable(&error))?;
            print_json(&lines(&calls)?);
            Ok(CliExit::Done)
        }
    }
}

/// Verifies the log. Returns the text to print and the exit code.
pub(crate) fn verified(context: &CliContext) -> Result<(String, CliExit), CliError> {
    let ChainAnchors { found: anchors, unreadable: mut gaps } =
        journal::anchors(&context.sessions_dir())
            .map_err(|error| CliError::config(format!("the sessions cannot be listed: {error}")))?;
    let found = journal::verify(&context.audit_dir(), &anchors)
        .map_err(|error| CliError::config(chain(&error)).exit(CliExit::Failed))?;
    gaps.retain(|(session, error)| !never_began(context, session, error));
    let mut text = verdict(&found);
    for (session, error) in &gaps {
        text.push_str(&format!("session {session} cannot be read: {}\n", chain(error)));
    }
    let whole = found.is_whole() && gaps.is_empty();
    Ok((text, if whole { CliExit::Done } else { CliExit::Failed }))
}

/// True if an unreadable session never began. A supervisor that dies while creating a session
/// leaves a directory without a record, and the log then has no call of it.
fn never_began(context: &CliContext, session: &str, error: &ReadError) -> bool {
    let filter = CallFilter { session: Some(session.to_owned()), ..CallFilter::default() };
    matches!(error, ReadError::NoHeader { .. } | ReadError::Missing { .. })
        && journal::calls(&context.audit_dir(), &filter).is_ok_and(|calls| calls.is_empty())
}

fn verdict(found: &Verification) -> String {
    let counts = format!(
        "{} records, {} anchors in session journals, {} stored texts",
        found.lines, found.anchors, found.texts
    );
    let begins =
        found.removed.as_ref().map_or_else(String::new, |removed| begins(removed, found.anchors));
    if found.is_whole() {
        return format!("audit verify: ok ({counts})\n{begins}");
    }
    let faults: String = found.faults.iter().map(|fault| format!("  {fault}\n")).collect();
    format!("audit verify: NOT as written ({counts})\n{faults}{begins}")
}

/// The first record of a log whose oldest records were removed by retention.
fn begins(removed: &RemovedRecord, anchors: usize) -> String {
    format!(
        "the log begins at record {}: earlier records, all older than {} UTC, were removed \
         because {}, as the log itself records{}\n",
        removed.to + 1,
        record_text::time(removed.before),
        match removed.bound {
            RetentionBound::Size => "it was full",
            RetentionBound::Age => "of their age",
        },
        match anchors {
            0 => "; no session is left that could confirm it",
            _ => " and a session confirms",
        }
    )
}

fn meant(context: &CliContext, filter: &AuditFilter) -> Result<CallFilter, CliError> {
    Ok(CallFilter {
        session: filter.session.as_deref().map(|text| session_of(context, text)).transpose()?,
        call: None,
        tool: filter.tool.clone(),
        which: if filter.denied { WithRefusals::Denied } else { WithRefusals::All },
        since: filter.since.as_deref().map(|text| since(text, Timestamp::now())).transpose()?,
    })
}

/// The ID of a session by its name, or the beginning of an ID. The log also has sessions that were removed.
fn session_of(context: &CliContext, text: &str) -> Result<String, CliError> {
    let named = sessions::by_name(context, text)?;
    Ok(named.map_or_else(|| text.to_owned(), |session| session.0))
}

/// Milliseconds of Unix time of `2h` before `now`, or of a time that is written out.
fn since(text: &str, now: Timestamp) -> Result<u64, CliError> {
    let ago = || {
        let (number, unit) = text.split_at(text.len().checked_sub(1)?);
        let number: i64 = number.parse().ok().filter(|number| *number >= 0)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            "w" => 604_800,
            _ => return None,
        };
        now.checked_sub(SignedDuration::from_secs(number.checked_mul(seconds)?)).ok()
    };
    let time = text.is_ascii().then(ago).flatten().or_else(|| text.parse::<Timestamp>().ok());
    time.and_then(|time| u64::try_from(time.as_millisecond()).ok()).ok_or_else(|| {
        CliError::user(format!("--since {text:?} is not a time"))
            .hint("write a span such as 30m, 2h or 7d, or a time such as 2026-11-01T08:00:00Z")
    })
}

/// The one call of that name.
fn one(context: &CliContext, name: &str) -> Result<AuditedCall, CliError> {
    let unknown = |message: String| {
        CliError::user(message)
            .hint("write a call as <session>.<number>; `agentd audit ls` lists them")
    };
    let parts = name
        .rsplit_once('.')
        .and_then(|(session, number)| Some((session.to_owned(), number.parse::<u32>().ok()?)));
    let Some((session, number)) = parts else {
        return Err(unknown(format!("{name:?} is not a call")));
    };
    let session = Some(session_of(context, &session)?);
    let filter = CallFilter { session, call: Some(number), ..CallFilter::default() };
    let mut found =
        journal::calls(&context.audit_dir(), &filter).map_err(|error| unreadable(&error))?;
    match (found.pop(), found.len()) {
        (Some(call), 0) => Ok(call),
        (Some(_), more) => Err(unknown(format!("{} calls match", more + 1))),
        (None, _) => Err(unknown(format!("there is no call {name} in the audit log"))),
    }
}

fn lines(calls: &[AuditedCall]) -> Result<String, CliError> {
    let mut text = String::new();
    for entry in calls.iter().flat_map(|call| &call.entries) {
        let line = serde_json::to_string(entry)
            .map_err(|error| CliError::internal(format!("a record cannot be written: {error}")))?;
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}

fn unreadable(error: &ListError) -> CliError {
    CliError::config(chain(error))
        .exit(CliExit::Failed)
        .hint("`agentd audit verify` lists every changed line")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn spans_and_times_are_understood() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let at = |text: &str| since(text, now).ok();
        let two_hours_ago = at("2026-11-21T10:00:00Z");
        assert!(two_hours_ago.is_some());
        assert_eq!(at("2h"), two_hours_ago);
        assert_eq!(at("120m"), two_hours_ago);
        assert_eq!(at("7d"), at("1w"));
        for wrong in ["", "2", "h", "-2h", "soon", "2y", "9999999999999999999d", "9é"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}
