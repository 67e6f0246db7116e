//! Appends to the audit log. Several processes may: each append takes the log's lock and goes on
//! from the head it finds.

use super::list::{ListError, told_of};
use super::{FILE, SCRIPTS, chain};
use crate::blobs::{BlobError, Blobs};
use crate::{AuditRecord, Decided, Digest, Ended, Head, LineFault, bulk, disk};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for another process's append. An append takes microseconds; a process stopped in
/// the middle of one must end in an error here, not in a wait for ever.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the audit log was not opened, or a record not taken.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The directory or file cannot be made or opened.
    #[error("cannot open the audit log {path}")]
    Open {
        /// The log.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Its lock was not to be had.
    #[error("cannot lock the audit log {path}")]
    Lock {
        /// The log.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Its last line is damaged, so that no chain can go on from it.
    #[error(
        "the last line of the audit log {path} is damaged; see `agentd audit verify`, then move \
         the log elsewhere to begin a new one"
    )]
    Damaged {
        /// The log.
        path: PathBuf,
        /// What is wrong.
        #[source]
        fault: LineFault,
    },
    /// Records this process wrote are gone: somebody cut, replaced or removed the file.
    #[error(
        "the audit log {path} has lost records since this process wrote to it; see `agentd audit \
         verify`, then start again"
    )]
    Cut {
        /// The log.
        path: PathBuf,
    },
    /// An earlier record failed.
    #[error("the audit log {path} takes no more records since one could not be kept: {cause}")]
    Closed {
        /// The log.
        path: PathBuf,
        /// The first failure, in words.
        cause: String,
    },
    /// The record cannot be put into words.
    #[error("the record cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// A script or long input could not be kept.
    #[error("a script could not be kept for the audit log")]
    Script(#[from] BlobError),
    /// What it holds already could not be read.
    #[error("cannot search the audit log {path}")]
    Search {
        /// The log.
        path: PathBuf,
        /// What was in the way.
        source: ListError,
    },
    /// The line could not be written.
    #[error("cannot write to the audit log {path}; is the disk full?")]
    Write {
        /// The log.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// The disk did not confirm it.
    #[error("the disk did not confirm a record of the audit log {path}")]
    Sync {
        /// The log.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}

/// The audit log, open for appending.
#[derive(Debug)]
pub struct Audit {
    file: File,
    path: PathBuf,
    dir: PathBuf,
    scripts: Blobs,
    head: Head,
    /// The file's length when `head` was its last record.
    length: u64,
    /// Why nothing more is taken.
    closed: Option<String>,
}

impl Audit {
    /// Opens the log in this directory; makes both where they are missing.
    ///
    /// # Errors
    /// Where it cannot be opened, or its last line is damaged.
    pub fn open(dir: &Path) -> Result<Self, AuditError> {
        let path = dir.join(FILE);
        let opened = (|| {
            disk::ensure_dir(dir)?;
            let file = match disk::create_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    disk::open_file(&path)?
                }
                made => made?,
            };
            // Also for a file that another process made a moment ago.
            disk::sync_dir(dir)?;
            if let Some(parent) = dir.parent() {
                disk::sync_dir(parent)?;
            }
            Ok(file)
        })();
        let file = opened.map_err(|source| AuditError::Open { path: path.clone(), source })?;
        let scripts = Blobs::at(dir.join(SCRIPTS));
        let (dir, head) = (dir.to_owned(), Head::EMPTY);
        let mut audit = Self { file, path, dir, scripts, head, length: 0, closed: None };
        audit.locked(|audit| audit.catch_up())?;
        Ok(audit)
    }

    /// Keeps a script as a file of its own, and returns what names it in a record. When this
    /// returns, it is on disk.
    ///
    /// # Errors
    /// Where it cannot be written. Nothing more is taken then.
    pub fn keep_script(&mut self, text: &str) -> Result<Digest, AuditError> {
        self.check_open()?;
        self.scripts.put(text).map_err(|error| self.close(error.into()))
    }

    /// Appends a record. It is in the file when this returns, and durable after [`Audit::sync`].
    ///
    /// # Errors
    /// See [`AuditError`]. Nothing more is taken then, unless the lock was the reason.
    pub fn append(&mut self, record: &AuditRecord) -> Result<Head, AuditError> {
        self.check_open()?;
        let mut fields = record.to_fields()?;
        bulk::put_out(&mut fields, &self.scripts).map_err(|error| self.close(error.into()))?;
        self.locked(|audit| {
            audit.catch_up().map_err(|error| audit.close(error))?;
            let (line, head) = chain::seal(audit.head, disk::now(), &fields);
            if let Err(source) = audit.file.write_all(line.as_bytes()) {
                // Best effort: the next to append sets half a line aside anyway.
                let _ = audit.file.set_len(audit.length);
                let path = audit.path.clone();
                return Err(audit.close(AuditError::Write { path, source }));
            }
            audit.head = head;
            audit.length += line.len() as u64;
            Ok(head)
        })
    }

    /// Makes every record appended so far durable, and returns the last of this process: the head
    /// to store with a call's result. A head that is stored before it is durable looks like a cut
    /// log after a power failure.
    ///
    /// # Errors
    /// Where the disk does not confirm it. Nothing more is taken then.
    pub fn sync(&mut self) -> Result<Head, AuditError> {
        self.check_open()?;
        self.file.sync_data().map_err(|source| {
            let path = self.path.clone();
            self.close(AuditError::Sync { path, source })
        })?;
        Ok(self.head)
    }

    /// Appends what is known of a lost call, its decision and its end, as far as the log does not
    /// have it: whoever wrote it may have died before anything else knew of it. Returns the place of
    /// the end, which is durable after [`Audit::sync`].
    ///
    /// # Errors
    /// As [`Audit::append`], and where the log cannot be searched.
    pub fn append_lost(&mut self, decided: Decided, ended: Ended) -> Result<Head, AuditError> {
        let told = told_of(&self.dir, &ended.session, ended.call);
        let told = told.map_err(|source| AuditError::Search { path: self.path.clone(), source })?;
        if let Some(end) = told.end {
            return Ok(end);
        }
        if !told.decided {
            self.append(&AuditRecord::Decided(decided))?;
        }
        self.append(&AuditRecord::Ended(ended))
    }

    /// The last record that this process knows of.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    fn locked<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, AuditError>,
    ) -> Result<T, AuditError> {
        disk::lock_within(&self.file, PATIENCE)
            .map_err(|source| AuditError::Lock { path: self.path.clone(), source })?;
        let done = work(self);
        // An unlock that fails is made up for by the end of the process.
        let _ = self.file.unlock();
        done
    }

    /// Finds the head that other processes left. Under the lock.
    fn catch_up(&mut self) -> Result<(), AuditError> {
        let cannot_read = |source| AuditError::Open { path: self.path.clone(), source };
        let metadata = self.file.metadata().map_err(cannot_read)?;
        if metadata.nlink() == 0 || metadata.len() < self.length {
            return Err(AuditError::Cut { path: self.path.clone() });
        }
        if metadata.len() == self.length {
            return Ok(());
        }
        let (head, length) = self.last_record(metadata.len())?;
        if head.seq < self.head.seq {
            return Err(AuditError::Cut { path: self.path.clone() });
        }
        (self.head, self.length) = (head, length);
        Ok(())
    }

    /// The last record of a file of this length, half a line behind it set aside; and the length
    /// without that half.
    fn last_record(&self, length: u64) -> Result<(Head, u64), AuditError> {
        let cannot_read = |source| AuditError::Open { path: self.path.clone(), source };
        let (mut start, mut line) = last_line(&self.file, length).map_err(cannot_read)?;
        let mut end = length;
        if chain::open(&line).is_ok() {
            // All of a record but its line end was written.
            (&self.file).write_all(b"\n").map_err(cannot_read)?;
            line.push(b'\n');
            end += 1;
        } else if line.last() != Some(&b'\n') {
            // Under the lock nobody is writing: its writer is dead.
            disk::set_aside(&self.file, start, &self.dir, "log").map_err(cannot_read)?;
            end = start;
            (start, line) = last_line(&self.file, end).map_err(cannot_read)?;
        }
        if start == end {
            return Ok((Head::EMPTY, end));
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let link = chain::open(text)
            .map_err(|fault| AuditError::Damaged { path: self.path.clone(), fault })?;
        Ok((Head { seq: link.seq, hash: link.hash }, end))
    }

    fn check_open(&self) -> Result<(), AuditError> {
        match &self.closed {
            None => Ok(()),
            Some(cause) => {
                Err(AuditError::Closed { path: self.path.clone(), cause: cause.clone() })
            }
        }
    }

    /// Takes nothing more from now on.
    fn close(&mut self, error: AuditError) -> AuditError {
        self.closed = Some(disk::with_causes(&error));
        error
    }
}

/// Where the last line of the first `length` bytes begins, and its bytes with its line end, if it
/// has one. Reads from the end, in steps.
fn last_line(mut file: &File, length: u64) -> io::Result<(u64, Vec<u8>)> {
    const STEP: u64 = 16 << 10;
    let mut tail = Vec::new();
    let mut start = length;
    while start > 0 {
        let step = STEP.min(start);
        start -= step;
        let mut chunk = vec![0; usize::try_from(step).unwrap_or_default()];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut chunk)?;
        chunk.append(&mut tail);
        tail = chunk;
        // The line end of the last line is no end of the line before it.
        let searched = &tail[..tail.len() - 1];
        if let Some(position) = searched.iter().rposition(|byte| *byte == b'\n') {
            let line = tail.split_off(position + 1);
            return Ok((start + position as u64 + 1, line));
        }
    }
    Ok((0, tail))
}
