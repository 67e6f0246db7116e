//! Of which session another is a copy.

use journal::JournalRecord;
use protocol::ids::SessionId;
use protocol::store::ForkedFrom;
use std::path::Path;

/// The session that the one in this directory is a copy of, and the last call that both have.
pub(super) fn forked_from(directory: &Path) -> Option<ForkedFrom> {
    let parent = journal::header(directory).ok()?.parent?;
    let entries = journal::read(directory).ok()?.without_texts().map_while(Result::ok);
    let shared = entries.take_while(|entry| entry.seq <= parent.seq);
    let calls = shared.filter_map(|entry| {
        let JournalRecord::Proposed { call, .. } = entry.record else { return None };
        Some(call)
    });
    let last_call = calls.max().unwrap_or(0);
    Some(ForkedFrom { session: SessionId(parent.session), last_call })
}
