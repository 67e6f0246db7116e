//! One line a call.

use super::record_text;
use crate::table::table as columns_of;
use client::one_line;
use journal::{AuditRecord, AuditedCall, DecidedRecord, EndedRecord};

/// Widest name of a tool, in characters: a server's has its server in front.
const TOOL: usize = 40;
/// Widest gist of a call, in characters.
const GIST: usize = 48;

/// The table of `agentd audit ls`.
pub(crate) fn table(calls: &[AuditedCall]) -> String {
    let mut rows =
        vec![["CALL", "TIME", "TOOL", "DECIDED", "END", "REFUSED", "WHAT"].map(str::to_owned)];
    rows.extend(calls.iter().map(row));
    columns_of(&rows)
}

/// The kernel's refusals of each call, one line each.
pub(crate) fn refusals(calls: &[AuditedCall]) -> String {
    let mut text = String::new();
    for call in calls {
        let refused = records(call).1.map(|ended| ended.refusals.as_slice()).unwrap_or_default();
        for refusal in refused {
            let line = format!(
                "refused in {}.{}: {}",
                call.session,
                call.call,
                record_text::refusal(refusal)
            );
            text.push_str(&protocol::hidden::on_screen(&line));
            text.push('\n');
        }
    }
    text
}

fn row(call: &AuditedCall) -> [String; 7] {
    let (decided, ended) = records(call);
    let refused = ended.map_or(0, |ended| {
        let counted: u64 = ended.refusals.iter().map(|refusal| refusal.count).sum();
        counted.saturating_add(ended.refusals_uncounted)
    });
    [
        format!("{}.{}", call.session, call.call),
        call.entries.first().map(|entry| record_text::time(entry.time)).unwrap_or_default(),
        one_line(call.tool().as_deref().unwrap_or("?"), TOOL),
        decided.map_or("-", |decided| record_text::decision(decided.decision)).to_owned(),
        ended.map_or_else(
            || "open".to_owned(),
            |ended| one_line(&record_text::end(ended, decided), 32),
        ),
        if refused == 0 { "-".to_owned() } else { refused.to_string() },
        decided
            .map(|decided| match decided.server_call() {
                Some(call) => one_line(&record_text::gist(&call.arguments), GIST),
                None => one_line(&record_text::gist(&decided.input), GIST),
            })
            .unwrap_or_default(),
    ]
}

/// The two records of a call.
pub(super) fn records(call: &AuditedCall) -> (Option<&DecidedRecord>, Option<&EndedRecord>) {
    let mut decided = None;
    let mut ended = None;
    for entry in &call.entries {
        match &entry.record {
            AuditRecord::Decided(record) => decided = Some(record),
            AuditRecord::Ended(record) => ended = Some(record),
            AuditRecord::Removed(_) | AuditRecord::PortOpened(_) | AuditRecord::Unknown(_) => {}
        }
    }
    (decided, ended)
}
