//! The session's journal: records are on disk before anything that they report is done.

use crate::journal_writer::{Appended, CopyWait, JournalWriter};
use journal::JournalRecord;
use std::path::{Path, PathBuf};

/// The journal of a session.
pub(super) struct SessionJournal {
    writer: JournalWriter,
    directory: PathBuf,
    /// The number of the last record that clients were shown.
    last_seq: u64,
}

impl SessionJournal {
    pub(super) fn of(writer: JournalWriter, directory: PathBuf, last_seq: u64) -> Self {
        Self { writer, directory, last_seq }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The number of the last record.
    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Appends records, unless the disk has failed before.
    pub(super) async fn append(
        &self,
        records: Vec<JournalRecord>,
        failure: Option<&str>,
    ) -> Result<Appended, String> {
        match failure {
            Some(why) => Err(why.to_owned()),
            None => self.writer.append(records).await,
        }
    }

    /// The record of this number is shown.
    pub(super) fn is_at(&mut self, seq: u64) {
        self.last_seq = seq;
    }

    /// What the second copy lacks of everything so far.
    pub(super) fn copy_of_all(&self) -> CopyWait {
        self.writer.copy_of_all()
    }
}
