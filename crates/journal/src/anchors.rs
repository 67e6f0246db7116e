//! Where the session journals say that the audit log's chain stood.

use crate::{Head, ReadError, Record, read};
use std::path::{Path, PathBuf};
use std::{fs, io};

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
    for (name, dir) in sessions_in(sessions)? {
        if let Err(error) = collect(&name, &dir, &mut anchors.found) {
            anchors.unreadable.push((name, error));
        }
    }
    Ok(anchors)
}

/// Names and directories, sorted.
fn sessions_in(sessions: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let listing = match fs::read_dir(sessions) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
    }
    found.sort();
    Ok(found)
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
            | Record::Changed { .. }
            | Record::Learned { .. }
            | Record::Answer { .. }
            | Record::Proposed { .. }
            | Record::Asked { .. }
            | Record::Approved { .. }
            | Record::Denied { .. }
            | Record::Expired { .. }
            | Record::Start { .. }
            | Record::TurnEnded { .. }
            | Record::Unknown { .. } => None,
        };
        if let Some(head) = head {
            found.push(Anchor { session: session.to_owned(), record: entry.seq, head });
        }
    }
    Ok(())
}
