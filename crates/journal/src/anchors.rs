//! Where the session journals say that the audit log's chain stood.

use crate::session_dirs::directories;
use crate::{ChainHead, JournalRecord, ReadError, read};
use std::io;
use std::path::Path;

/// One such place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainAnchor {
    /// The session.
    pub session: String,
    /// The record in its journal.
    pub record: u64,
    /// The audit log's head at that time.
    pub head: ChainHead,
}

/// All anchors of a state directory.
#[derive(Debug, Default)]
pub struct ChainAnchors {
    /// In no order.
    pub found: Vec<ChainAnchor>,
    /// Journals that could not be read to their end, each with its reason. Anchors before the
    /// damage count.
    pub unreadable: Vec<(String, ReadError)>,
}

/// Collects the anchors of every session in this directory; none where there is no directory.
/// Call it before [`crate::verify`], so that every anchor's record is in the log by then.
///
/// # Errors
/// Where the directory cannot be listed.
pub fn anchors(sessions: &Path) -> io::Result<ChainAnchors> {
    let mut anchors = ChainAnchors::default();
    // Empty files count too: an emptied journal leaves the same gap as a removed one.
    for name in directories(sessions)? {
        if let Err(error) = collect(&name, &sessions.join(&name), &mut anchors.found) {
            anchors.unreadable.push((name, error));
        }
    }
    Ok(anchors)
}

fn collect(session: &str, dir: &Path, found: &mut Vec<ChainAnchor>) -> Result<(), ReadError> {
    for entry in read(dir)?.without_texts() {
        let entry = entry?;
        let head = match entry.record {
            JournalRecord::Result { audit, .. } | JournalRecord::Interrupted { audit, .. } => audit,
            JournalRecord::Session(_)
            | JournalRecord::Prompt { .. }
            | JournalRecord::Queued { .. }
            | JournalRecord::Joined { .. }
            | JournalRecord::TakenBack { .. }
            | JournalRecord::Compacted { .. }
            | JournalRecord::Summary(_)
            | JournalRecord::Changed { .. }
            | JournalRecord::Learned { .. }
            | JournalRecord::Seen { .. }
            | JournalRecord::Answer { .. }
            | JournalRecord::Proposed { .. }
            | JournalRecord::Asked { .. }
            | JournalRecord::Approved { .. }
            | JournalRecord::Denied { .. }
            | JournalRecord::Expired { .. }
            | JournalRecord::Answered { .. }
            | JournalRecord::Start { .. }
            | JournalRecord::Tampered { .. }
            | JournalRecord::TurnEnded { .. }
            | JournalRecord::Background { .. }
            | JournalRecord::Spent { .. }
            | JournalRecord::Closed
            | JournalRecord::Unknown { .. } => None,
        };
        if let Some(head) = head {
            found.push(ChainAnchor { session: session.to_owned(), record: entry.seq, head });
        }
    }
    Ok(())
}
