//! A new session from the good records of another: the way on where a journal is damaged.

use crate::blobs::Blobs;
use crate::reader::BLOBS;
use crate::{
    AppendError, BlobError, CreateError, ForkParent, Journal, JournalRecord, ReadError,
    SessionHeader, image, is_session_name, read, spill,
};
use std::path::Path;

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

/// Begins session `id` with the records of session `from` up to the last good one, `up_to` at
/// most, kinds unknown here included. The old session is left as it is.
///
/// # Errors
/// Where not even the header can be read, or the new session cannot be written.
pub fn fork(sessions: &Path, from: &str, id: &str, up_to: u64) -> Result<Journal, ForkError> {
    for name in [from, id] {
        if !is_session_name(name) {
            return Err(CreateError::BadName { id: name.to_owned() }.into());
        }
    }
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
        *header = SessionHeader { id: id.to_owned(), parent: Some(parent), ..header.clone() };
    }
    let mut journal = Journal::create_empty(sessions, id)?;
    let copies = Blobs::at(sessions.join(id).join(BLOBS));
    for record in &mut good {
        image::copy(record, &texts, &copies)?;
        // Long texts of known kinds came in when they were read.
        if let JournalRecord::Unknown { fields, .. } = record {
            spill::take_in(fields, |digest| texts.get(digest))?;
        }
    }
    journal.append_all(&good)?;
    Ok(journal)
}
