//! `agentd export --format html`: a session with the audit records of its calls as one page.
//!
//! `report` takes the records, with the secrets in every text of them masked, `page` writes the HTML, with
//! `markdown` for the model's answers. Only this file reads anything.

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
use config::secrets::Redactor;
use journal::{AuditRecord, CallFilter};
use protocol::client::Prices;
use protocol::hidden::on_screen;
use report::SessionReport;

/// Prints the page of a session.
pub(crate) fn html(beginning: &str, redact: Redact) -> Result<CliExit, CliError> {
    let context = CliContext::of_process()?;
    let session = sessions::named(&context, beginning)?;
    let mut redactor = match redact {
        Redact::KnownShapes => Redactor::new()
            .map_err(|error| CliError::internal(format!("a shape of secrets: {error}")))?,
        Redact::Nothing => Redactor::of_nothing(),
    };
    let reader = journal::read(&sessions::directory(&context, &session));
    let mut report = SessionReport::default();
    let mut damage = None;
    match reader {
        Ok(entries) => {
            for entry in entries {
                match entry {
                    Ok(entry) => report.add(&entry, &mut redactor, prices),
                    Err(error) => {
                        damage = Some(chain(&error));
                        break;
                    }
                }
            }
        }
        Err(error) => return Err(CliError::config(chain(&error)).exit(CliExit::Failed)),
    }
    add_audit(&context, &session.0, &mut report, &mut redactor);
    if let Some(why) = &report.audit_fault {
        eprintln!("agentd: {why}; `agentd audit verify` lists every changed line");
    }
    let words = match redact {
        Redact::Nothing => None,
        Redact::KnownShapes => Some(format!(
            "{} keys and secrets of known shapes; others may remain",
            redactor.masked()
        )),
    };
    print(&page::page(&report, words.as_deref()));
    if let Some(words) = words {
        eprintln!("agentd: redacted {words}");
    }
    match damage {
        None => Ok(CliExit::Done),
        Some(why) => Err(CliError::config(why).exit(CliExit::Failed).hint(
            "the page holds the records before the damage; `agentd fork` starts a new session from them",
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
