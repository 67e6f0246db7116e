//! `agentd export` to HTML and ATIF: a session with the audit records of its calls.
//!
//! `report` takes the records, with the secrets in every text of them masked, `page` writes the HTML, with
//! `markdown` for the model's answers; `atif` makes a trajectory. Only this file reads anything.

mod atif;
mod html_text;
mod markdown;
mod page;
mod report;

use crate::audit;
use crate::cli::Redact;
use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::output::print;
use crate::sessions;
use atif::Trajectory;
use config::secrets::Redactor;
use journal::{AuditRecord, CallFilter, JournalEntry};
use protocol::client::Prices;
use protocol::hidden::{in_json, on_screen};
use protocol::ids::SessionId;
use report::SessionReport;
use serde_json::Value;

/// Prints the page of a session.
pub(crate) fn html(beginning: &str, redact: Redact) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let session = sessions::named(&context, beginning)?;
    let mut redactor = redactor(redact)?;
    let mut report = SessionReport::default();
    let damage = read(&context, &session, |entry| report.add(entry, &mut redactor, prices))?;
    add_audit(&context, &session.0, &mut report, &mut redactor);
    if let Some(why) = &report.audit_fault {
        eprintln!("agentd: {why}; `agentd audit verify` lists every changed line");
    }
    let words = redacted(&redactor, redact);
    print(&page::page(&report, words.as_deref()));
    if let Some(words) = words {
        eprintln!("agentd: redacted {words}");
    }
    end(damage)
}

/// Prints the trajectory of a session.
pub(crate) fn atif(beginning: &str, redact: Redact) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let session = sessions::named(&context, beginning)?;
    let mut redactor = redactor(redact)?;
    let mut trajectory = Trajectory::default();
    let damage = read(&context, &session, |entry| trajectory.add(entry))?;
    let filter = CallFilter { session: Some(session.0.clone()), ..CallFilter::default() };
    match journal::calls(&context.audit_dir(), &filter) {
        Ok(calls) => {
            for entry in calls.iter().flat_map(|call| &call.entries) {
                if let AuditRecord::Ended(ended) = &entry.record {
                    trajectory.audited(ended);
                }
            }
        }
        Err(error) => eprintln!(
            "agentd: tiers and refusals are missing: {}; `agentd audit verify` lists every changed line",
            chain(&error)
        ),
    }
    let Some(mut trajectory) = trajectory.end() else {
        return Err(CliError::user(format!("session {session} has no step yet")));
    };
    mask(&mut trajectory, &mut redactor);
    print(&format!("{}\n", in_json(&format!("{trajectory:#}"))));
    if let Some(words) = redacted(&redactor, redact) {
        eprintln!("agentd: redacted {words}");
    }
    end(damage)
}

fn redactor(redact: Redact) -> Result<Redactor, CliError> {
    match redact {
        Redact::KnownShapes => Redactor::new()
            .map_err(|error| CliError::internal(format!("a shape of secrets: {error}"))),
        Redact::Nothing => Ok(Redactor::of_nothing()),
    }
}

/// What was masked, for a person.
fn redacted(redactor: &Redactor, redact: Redact) -> Option<String> {
    (redact == Redact::KnownShapes).then(|| {
        format!("{} keys and secrets of known shapes; others may remain", redactor.masked())
    })
}

/// Masks every text.
fn mask(value: &mut Value, redactor: &mut Redactor) {
    match value {
        Value::String(text) => *text = redactor.mask(text),
        Value::Array(list) => list.iter_mut().for_each(|it| mask(it, redactor)),
        Value::Object(fields) => fields.values_mut().for_each(|it| mask(it, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Reads the records up to a damaged one, and returns what is wrong with that.
fn read(
    context: &CliContext,
    session: &SessionId,
    mut add: impl FnMut(&JournalEntry),
) -> Result<Option<String>, CliError> {
    let entries = journal::read(&sessions::directory(context, session))
        .map_err(|error| CliError::config(chain(&error)).exit(CliExit::Failed))?;
    for entry in entries {
        match entry {
            Ok(entry) => add(&entry),
            Err(error) => return Ok(Some(chain(&error))),
        }
    }
    Ok(None)
}

fn end(damage: Option<String>) -> Result<CliExit, CliError> {
    match damage {
        None => Ok(CliExit::Done),
        Some(why) => Err(CliError::config(why).exit(CliExit::Failed).hint(
            "it holds the records before the damage; `agentd fork` starts a new session from them",
        )),
    }
}

/// Adds what the audit log has of each call. A damaged log does not hide the session.
fn add_audit(
    context: &CliContext,
    session: &str,
    report: &mut SessionReport,
    redactor: &mut Redactor,
) {
    let dir = context.audit_dir();
    let filter = CallFilter { session: Some(session.to_owned()), ..CallFilter::default() };
    let calls = match journal::calls(&dir, &filter) {
        Ok(calls) => calls,
        Err(error) => {
            report.audit_fault = Some(format!("no audit record is shown: {}", chain(&error)));
            return;
        }
    };
    for call in calls {
        let Some(known) = report.calls.get_mut(&call.call) else { continue };
        known.audit = on_screen(&redactor.mask(&audit::page(&dir, &call)));
        let refusals = call.entries.iter().map(|entry| match &entry.record {
            AuditRecord::Ended(ended) => {
                let counted: u64 = ended.refusals.iter().map(|refusal| refusal.count).sum();
                counted + ended.refusals_uncounted
            }
            AuditRecord::Decided(_)
            | AuditRecord::Removed(_)
            | AuditRecord::PortOpened(_)
            | AuditRecord::Unknown(_) => 0,
        });
        known.refusals = refusals.sum();
    }
}

/// The list prices of a model, where they are known.
fn prices(model: &str) -> Option<Prices> {
    config::model_facts(model).prices
}
