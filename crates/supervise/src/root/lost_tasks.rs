//! Calls of sub-agents that were lost with the supervisor, in a turn that does not go on: the records of the
//! sub-agent's session give their results. Used where a journal is opened.

use crate::records::encode;
use crate::session_spec::{TASK, session_of, tool_kind};
use crate::task_outcome::TaskOutcome;
use journal::{JournalRecord, OpenCall};
use protocol::ids::{CallId, SessionId};
use protocol::session::SessionEvent;
use std::path::Path;

/// Replaces the records that end these calls by results, where the sub-agents have sessions. Returns the
/// records of what the sub-agents used.
pub(super) fn answer(
    sessions: &Path,
    parent: &SessionId,
    lost: &[OpenCall],
    records: &mut [JournalRecord],
    max_chars: u32,
) -> Vec<JournalRecord> {
    let mut spent = Vec::new();
    for (call, record) in lost.iter().zip(records) {
        if call.tool != TASK || call.refused.is_some() {
            continue;
        }
        let child = session_of(parent, call.number);
        let Some((agent, outcome)) = read(&sessions.join(&child.0)) else { continue };
        let event = SessionEvent::Result {
            call: CallId { session: parent.clone(), number: call.number },
            use_id: call.use_id.clone(),
            result: outcome.result(&agent, &child.0, max_chars),
        };
        *record = encode::session_event(event, tool_kind);
        spent.push(outcome.spent(call.number, child.0));
    }
    spent
}

/// The agent of a session, and its work so far; `None` where it cannot be read.
fn read(directory: &Path) -> Option<(String, TaskOutcome)> {
    let agent = journal::header(directory).ok()?.task?.agent;
    let mut outcome = TaskOutcome::default();
    for entry in journal::read(directory).ok()? {
        outcome.take(&entry.ok()?.record);
    }
    Some((agent, outcome))
}
