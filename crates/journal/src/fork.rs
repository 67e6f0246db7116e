//! A new session from the good records of another: a rewind, and the way on where a journal is damaged.

use crate::blobs::Blobs;
use crate::reader::{BLOBS, FILE};
use crate::{
    AppendError, BlobError, CreateError, ForkParent, Journal, JournalRecord, ReadError,
    ResumeState, SessionHeader, disk, image, is_session_name, past_of, read, spill,
};
use std::fs;
use std::path::Path;

/// Ends the name of a copy in the making. No session has such a name, so nothing opens it.
pub(crate) const UNFINISHED: &str = ".copy";

/// Why a session could not be forked.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The other one cannot be read at all.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The new one could not be begun.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A record could not be copied.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// A long text could not be copied.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// Makes session `id` with the records of session `from` up to the last good one, `up_to` at most,
/// kinds unknown here included, and behind them those that the copy ends with. The old session is left
/// as it is. The new one appears whole, or not at all: it gets its name last.
///
/// # Errors
/// Where not even the header can be read, or the new session cannot be written. Nothing is left then.
pub fn fork(
    sessions: &Path,
    (from, id): (&str, &str),
    up_to: u64,
    end: impl FnOnce(&ResumeState) -> Vec<JournalRecord>,
) -> Result<(), ForkError> {
    for name in [from, id] {
        if !is_session_name(name) {
            return Err(CreateError::BadName { id: name.to_owned() }.into());
        }
    }
    let place = sessions.join(id);
    if place.exists() {
        return Err(CreateError::Exists { id: id.to_owned() }.into());
    }
    let unfinished = sessions.join(format!("{id}{UNFINISHED}"));
    remove_unfinished(sessions);
    let made = copy(sessions, (from, id), up_to, (&unfinished, end)).and_then(|()| {
        let named = fs::rename(&unfinished, &place).and_then(|()| disk::sync_dir(sessions));
        named.map_err(|source| CreateError::Io { path: place, source }.into())
    });
    if made.is_err() {
        // What is left of it is removed by the next fork.
        let _ = fs::remove_dir_all(&unfinished);
    }
    made
}

fn copy(
    sessions: &Path,
    (from, id): (&str, &str),
    up_to: u64,
    (to, end): (&Path, impl FnOnce(&ResumeState) -> Vec<JournalRecord>),
) -> Result<(), ForkError> {
    let source = sessions.join(from);
    let texts = Blobs::at(source.join(BLOBS));
    let mut good = Vec::new();
    for entry in read(&source)? {
        match entry {
            // A session without a header cannot be opened, whatever record the caller asks for.
            Ok(entry) if entry.seq <= up_to.max(1) => good.push(entry.record),
            Ok(_) => break,
            Err(ReadError::Damaged { .. }) if !good.is_empty() => break,
            Err(error) => return Err(error.into()),
        }
    }
    let parent = ForkParent { session: from.to_owned(), seq: good.len() as u64 };
    if let Some(JournalRecord::Session(header)) = good.first_mut() {
        // A copy is a session of this host alone.
        *header = SessionHeader {
            id: id.to_owned(),
            parent: Some(parent),
            fleet_task: None,
            ..header.clone()
        };
    }
    let mut journal = Journal::create_in(sessions, to, id)?;
    let copies = Blobs::at(to.join(BLOBS));
    for record in &mut good {
        // A name is of one session, so that it finds this one and not its copy.
        if let JournalRecord::Changed { name, .. } = record {
            *name = None;
        }
        image::copy(record, &texts, &copies)?;
        // Long texts of known kinds came in when they were read.
        if let JournalRecord::Unknown { fields, .. } = record {
            spill::take_in(fields, |digest| texts.get(digest))?;
        }
    }
    journal.append_all(&good)?;
    let end = end(&past_of(to)?);
    if !end.is_empty() {
        journal.append_all(&end)?;
    }
    Ok(())
}

/// Removes copies that a death left unfinished. One that another process writes has its lock.
fn remove_unfinished(sessions: &Path) {
    for entry in fs::read_dir(sessions).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_copy = name.to_str().and_then(|name| name.strip_suffix(UNFINISHED));
        if is_copy.is_none_or(|id| !is_session_name(id)) {
            continue;
        }
        let left = disk::open_file(&entry.path().join(FILE));
        if left.is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
