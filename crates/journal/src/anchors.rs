//! Where the session journals say that the audit log's chain stood.

use crate::roll::directories;
use crate::{Head, ReadError, Record, read};
use std::io;
use std::path::Path;

/// One such place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// The session.
    pub session: String,
    /// The record in its journal.
    pub record: u64,
    /// What the audit log held by then.
    pub head: Head,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Anchors {
    /// In no order.
    pub found: Vec<Anchor>,
    /// Journals that could not be read to their end, each with its reason. Anchors before the
    /// damage count.
    pub unreadable: Vec<(String, ReadError)>,
}

/// Collects the anchors of every session in this directory; none where there is no directory.
/// Call it before [`crate::verify`], so that every anchor's record is in the log by then.
///
/// # Errors
/// Where the directory cannot be listed.
pub fn anchors(sessions: &Path) -> io::Result<Anchors> {
    let mut anchors = Anchors::default();
    // Also those without a record: one that was emptied is no less a gap than one that was removed.
    for name in directories(sessions)? {
        if let Err(error) = collect(&name, &sessions.join(&name), &mut anchors.found) {
            anchors.unreadable.push((name, error));
        }
    }
    Ok(anchors)
}

fn collect(session: &str, dir: &Path, found: &mut Vec<Anchor>) -> Result<(), ReadError> {
    for entry in read(dir)?.without_texts() {
        let entry = entry?;
        let head = match entry.record {
            Record::Result { audit, .. } | Record::Interrupted { audit, .. } => audit,
            Record::Session(_)
            | Record::Prompt { .. }
            | Record::Queued { .. }
            | Record::TakenBack
            | Record::Compacted { .. }
            | Record::Changed { .. }
            | Record::Learned { .. }
            | Record::Seen { .. }
            | Record::Answer { .. }
            | Record::Proposed { .. }
            | Record::Asked { .. }
            | Record::Approved { .. }
            | Record::Denied { .. }
            | Record::Expired { .. }
            | Record::Start { .. }
            | Record::Tampered { .. }
            | Record::TurnEnded { .. }
            | Record::Closed
            | Record::Unknown { .. } => None,
        };
        if let Some(head) = head {
            found.push(Anchor { session: session.to_owned(), record: entry.seq, head });
        }
    }
    Ok(())
}
