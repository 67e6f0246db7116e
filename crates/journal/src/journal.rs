//! The journal of one session: opened by one process at a time, appended to, synced at barriers.

use crate::blobs::Blobs;
use crate::line::{self, LINE_CAP};
use crate::reader::{self, BLOBS, FILE};
use crate::{
    BlobError, JournalReader, JournalRecord, ReadError, ResumeState, SessionHeader, Tail, disk,
    image, resume_state, spill,
};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for which a lock must be held to count as held. A process that is being started has copies
/// of its parent's descriptors until `exec`, among them the descriptor of a journal that was
/// released meanwhile.
const HELD: Duration = Duration::from_millis(250);

/// A session's journal, held by this process. Dropping it lets it go.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    blobs: Blobs,
    last_seq: u64,
    /// Takes each line too, before it is synced.
    copy: Option<Box<dyn JournalCopy>>,
    /// Why nothing more is taken, once a write or sync has failed.
    closed: Option<String>,
}

/// A second copy of a journal. It is given lines that are written and not yet synced, so that both copies
/// become durable at the same time.
pub trait JournalCopy: std::fmt::Debug + Send {
    /// Takes these lines, the first of which has this number. Does not wait.
    fn take(&mut self, first: u64, lines: Vec<String>);
}

/// An opened journal and its state.
#[derive(Debug)]
pub struct OpenedJournal {
    /// For the following records.
    pub journal: Journal,
    /// How far the session had come.
    pub past: ResumeState,
    /// A record whose writing was cut short, if there was one.
    pub torn: Option<TornRecord>,
}

/// Where a record that was cut short is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornRecord {
    /// The file beside the journal.
    pub kept: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Why a session could not be begun.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Its name cannot be that of a directory of ours.
    #[error("{id:?} is no name for a session: letters, digits and hyphens, at most 64")]
    BadName {
        /// The name.
        id: String,
    },
    /// There is one of that name.
    #[error("there is a session {id} already")]
    Exists {
        /// The name.
        id: String,
    },
    /// The system refused.
    #[error("cannot make the session's directory {path}")]
    Io {
        /// The file or directory that was being created.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The header could not be written.
    #[error(transparent)]
    Header(#[from] AppendError),
}

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it: try again (exit code 75).
    #[error("another process holds this session ({path}); try again when it is done")]
    Held {
        /// The journal.
        path: PathBuf,
    },
    /// Its disk takes no writes.
    #[error(
        "the disk that holds {path} is mounted read-only: the session can be shown and does not go \
         on until the disk is mounted for writing"
    )]
    ReadOnlyDisk {
        /// The journal.
        path: PathBuf,
    },
    /// Its records cannot be read to the end.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The record that was cut short could not be set aside.
    #[error("cannot mend the end of {path}")]
    Mend {
        /// The journal.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// Why a record was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// An earlier one failed; the session can be read but goes on only after it is opened anew.
    #[error("{path} takes no more records since one could not be kept: {cause}")]
    ReadOnly {
        /// The journal.
        path: PathBuf,
        /// The first failure, in words.
        cause: String,
    },
    /// The record is longer than any reader takes. Nothing was written; others may follow.
    #[error("the record has {bytes} bytes, the most is {LINE_CAP}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The record cannot be put into words. Nothing was written; others may follow.
    #[error("the record cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// A long text in it could not be stored.
    #[error("a long text of the record could not be kept")]
    Blob(#[from] BlobError),
    /// The line could not be written.
    #[error("cannot write to {path}; is the disk full?")]
    Write {
        /// The journal.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The disk did not confirm it; its state on disk is unknown.
    #[error("the disk did not confirm a record of {path}")]
    Sync {
        /// The journal.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// True if a process holds the session in this directory. Takes a free lock for a moment; a process
/// that opens the session meanwhile waits.
#[must_use]
pub fn is_held(session_dir: &Path) -> bool {
    let journal = reader::open(&session_dir.join(FILE));
    journal.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

impl Journal {
    /// Begins a session: makes `<sessions>/<header.id>`, with the header on disk. The directory of
    /// sessions is made where it is missing.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create(sessions: &Path, header: SessionHeader) -> Result<Self, CreateError> {
        let id = header.id.clone();
        let mut journal = Self::create_in(sessions, &sessions.join(&id), &id)?;
        journal.append(&JournalRecord::Session(header))?;
        Ok(journal)
    }

    /// The same without a header and in this directory, for a copy of another's records.
    pub(crate) fn create_in(sessions: &Path, dir: &Path, id: &str) -> Result<Self, CreateError> {
        if !is_session_name(id) {
            return Err(CreateError::BadName { id: id.to_owned() });
        }
        let path = dir.join(FILE);
        let made = (|| {
            disk::ensure_dir(sessions)?;
            disk::make_dir(dir)?;
            let file = disk::create_file(&path)?;
            // No other process knows this directory yet, so the lock is free.
            file.lock()?;
            disk::sync_dir(dir)?;
            disk::sync_dir(sessions)?;
            Ok(file)
        })();
        let file = made.map_err(|source: io::Error| {
            if source.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() {
                return CreateError::Exists { id: id.to_owned() };
            }
            CreateError::Io { path: dir.to_owned(), source }
        })?;
        let blobs = Blobs::at(dir.join(BLOBS));
        Ok(Self { file, path, blobs, last_seq: 0, copy: None, closed: None })
    }

    /// Opens the session in this directory: checks every line, and moves a record that was cut
    /// short to a file of its own. Everything read is durable on return.
    ///
    /// # Errors
    /// See [`OpenError`]. Nothing is changed then.
    pub fn open(session_dir: &Path) -> Result<OpenedJournal, OpenError> {
        let path = session_dir.join(FILE);
        let file = reader::open_as(&path, disk::open_file).map_err(|error| {
            if let ReadError::Io { path, source } = &error
                && source.kind() == io::ErrorKind::ReadOnlyFilesystem
            {
                return OpenError::ReadOnlyDisk { path: path.clone() };
            }
            error.into()
        })?;
        let cannot_mend = |source| OpenError::Mend { path: path.clone(), source };
        match disk::lock_within(&file, HELD) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(OpenError::Held { path });
            }
            Err(source) => return Err(ReadError::Io { path, source }.into()),
        }
        let mut reader = JournalReader::new(file.try_clone().map_err(cannot_mend)?, session_dir);
        let past = resume_state::past(&mut reader)?;
        let torn = mend(&file, reader.tail(), session_dir).map_err(cannot_mend)?;
        let last_seq = reader.last_seq();
        let blobs = Blobs::at(session_dir.join(BLOBS));
        let journal = Self { file, path, blobs, last_seq, copy: None, closed: None };
        Ok(OpenedJournal { journal, past, torn })
    }

    /// Appends a record and returns its number. A barrier is durable on return.
    ///
    /// # Errors
    /// See [`AppendError`]. After one of writing or syncing, nothing more is taken.
    pub fn append(&mut self, record: &JournalRecord) -> Result<u64, AppendError> {
        self.append_all(std::slice::from_ref(record))
    }

    /// Appends records in one write with at most one sync, and returns the number of the last.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn append_all(&mut self, records: &[JournalRecord]) -> Result<u64, AppendError> {
        self.check_open()?;
        let time = disk::now();
        let mut lines = String::new();
        for (seq, record) in (self.last_seq + 1..).zip(records) {
            let (kind, mut fields) = record.to_fields()?;
            let images = image::put_out(record, &self.blobs);
            let put_out = images.and_then(|()| spill::put_out(&mut fields, &self.blobs));
            put_out.map_err(|error| self.close(error.into()))?;
            let line = line::seal(seq, time, &kind, &fields);
            if line.len() > LINE_CAP {
                return Err(AppendError::TooLong { bytes: line.len() });
            }
            lines.push_str(&line);
        }
        let written = self.file.write_all(lines.as_bytes());
        written.map_err(|source| {
            let path = self.path.clone();
            self.close(AppendError::Write { path, source })
        })?;
        if let Some(copy) = &mut self.copy {
            copy.take(self.last_seq + 1, lines.lines().map(str::to_owned).collect());
        }
        if records.iter().any(JournalRecord::barrier) {
            self.sync()?;
        }
        self.last_seq += records.len() as u64;
        Ok(self.last_seq)
    }

    /// Makes everything appended so far durable, barrier or not.
    ///
    /// # Errors
    /// Where the disk does not confirm it. Nothing more is taken then.
    pub fn sync(&mut self) -> Result<(), AppendError> {
        self.check_open()?;
        self.file.sync_data().map_err(|source| {
            let path = self.path.clone();
            self.close(AppendError::Sync { path, source })
        })
    }

    /// Gives each line to this copy too, from now on.
    pub fn set_copy(&mut self, copy: Box<dyn JournalCopy>) {
        self.copy = Some(copy);
    }

    /// The number of the last record taken.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    fn check_open(&self) -> Result<(), AppendError> {
        match &self.closed {
            None => Ok(()),
            Some(cause) => {
                Err(AppendError::ReadOnly { path: self.path.clone(), cause: cause.clone() })
            }
        }
    }

    /// Takes nothing more from now on.
    fn close(&mut self, error: AppendError) -> AppendError {
        self.closed = Some(disk::with_causes(&error));
        error
    }
}

/// True if this is a valid session ID. Any other text could lead outside the directory of sessions.
#[must_use]
pub fn is_session_name(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !id.is_empty() && id.len() <= 64 && id.chars().all(plain)
}

/// Leaves the file at the end of a whole line, and on disk.
fn mend(file: &File, tail: Tail, dir: &Path) -> io::Result<Option<TornRecord>> {
    match tail {
        Tail::Clean => file.sync_data().map(|()| None),
        Tail::Unended => {
            let mut file = file;
            file.write_all(b"\n")?;
            file.sync_data().map(|()| None)
        }
        Tail::Torn { offset, bytes } => {
            let kept = disk::set_aside(file, offset, dir, "journal")?;
            Ok(Some(TornRecord { kept, bytes }))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::OpenOptions;

    /// A device that takes bytes and cannot confirm them: its fdatasync is EINVAL.
    #[test]
    fn a_failed_sync_is_not_tried_again() {
        let file = OpenOptions::new().read(true).append(true).open("/dev/null").unwrap();
        let (path, blobs) = (PathBuf::from("/dev/null"), Blobs::at(PathBuf::from("/nowhere")));
        let mut journal = Journal { file, path, blobs, last_seq: 0, copy: None, closed: None };
        let no_barrier =
            JournalRecord::Start { call: 1, tool_kind: crate::ToolKind::Query, contained: false };
        assert_eq!(journal.append(&no_barrier).unwrap(), 1);
        let barrier = JournalRecord::Prompt { text: String::new(), expanded: None };
        assert!(matches!(journal.append(&barrier), Err(AppendError::Sync { .. })));
        assert_eq!(journal.last_seq(), 1);
        assert!(matches!(journal.append(&no_barrier), Err(AppendError::ReadOnly { .. })));
        assert!(matches!(journal.sync(), Err(AppendError::ReadOnly { .. })));
    }

    #[test]
    fn a_long_text_that_cannot_be_kept_closes_the_journal() {
        let file = OpenOptions::new().read(true).append(true).open("/dev/null").unwrap();
        let (path, blobs) = (PathBuf::from("/dev/null"), Blobs::at(PathBuf::from("/dev/null/x")));
        let mut journal = Journal { file, path, blobs, last_seq: 0, copy: None, closed: None };
        let long = JournalRecord::Prompt { text: "x".repeat(70_000), expanded: None };
        assert!(matches!(journal.append(&long), Err(AppendError::Blob(_))));
        let short =
            JournalRecord::Start { call: 1, tool_kind: crate::ToolKind::Query, contained: false };
        assert!(matches!(journal.append(&short), Err(AppendError::ReadOnly { .. })));
    }
}
