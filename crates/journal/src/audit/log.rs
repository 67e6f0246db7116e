//! Appends to the audit log. Several processes may append: each append takes the log's lock and
//! continues from the current head. A full file is rotated by one rename under its own lock; the
//! next writer creates the new file. So all records exist at every moment, and the chain never
//! forks.

mod error;
mod reopen;

use super::last_line::last_line;
use super::list::told_of;
use super::retention::{self, Retention};
use super::{FILE, SCRIPTS, chain, files};
use crate::blobs::Blobs;
use crate::{AuditRecord, ChainHead, DecidedRecord, EndedRecord, LineFault, disk, spill};
pub use error::AuditError;
use serde_json::{Map, Value};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for another process's append. An append takes microseconds; a process stopped in
/// the middle of one must end in an error here, not in a wait for ever.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many files in a row may be put away by others before this process has its turn.
const TURNS: u32 = 100;

/// The audit log, open for appending.
#[derive(Debug)]
pub struct Audit {
    file: File,
    path: PathBuf,
    dir: PathBuf,
    scripts: Blobs,
    head: ChainHead,
    /// The file's length when `head` was its last record.
    length: u64,
    /// When its first record was written.
    since: Option<u64>,
    /// Bytes of texts that its records of this process name.
    beside: u64,
    retention: Retention,
    /// A file was rotated since the last removal of old files.
    is_grown: bool,
    /// The length up to which the disk has confirmed the file.
    confirmed: u64,
    /// Why nothing more is taken.
    closed: Option<ClosedLog>,
}

/// Why the log takes no more records.
#[derive(Debug)]
struct ClosedLog {
    /// The first failure, in words.
    cause: String,
    /// The way to reopen it.
    remedy: Reopening,
}

/// The way to reopen a closed log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reopening {
    /// The disk failed or was full: [`Audit::reopen`] tries again.
    Disk,
    /// Records are damaged or gone: only a person can judge that.
    Person,
}

impl Audit {
    /// Opens the log in this directory; makes both where they are missing.
    ///
    /// # Errors
    /// Where it cannot be opened, or its last line is damaged.
    pub fn open(dir: &Path) -> Result<Self, AuditError> {
        Self::open_bounded(dir, Retention::default())
    }

    /// The same with bounds of the caller's.
    ///
    /// # Errors
    /// As [`Audit::open`].
    pub fn open_bounded(dir: &Path, retention: Retention) -> Result<Self, AuditError> {
        let path = dir.join(FILE);
        let file =
            current(dir).map_err(|source| AuditError::Open { path: path.clone(), source })?;
        let mut audit = Self {
            file,
            path,
            dir: dir.to_owned(),
            scripts: Blobs::at(dir.join(SCRIPTS)),
            head: ChainHead::EMPTY,
            length: 0,
            since: None,
            beside: 0,
            retention,
            // By a process that died before it looked, for all that is known.
            is_grown: true,
            confirmed: 0,
            closed: None,
        };
        audit.locked(Self::catch_up)?;
        // Their writers have seen them confirmed, or died before anything rested on them.
        audit.confirmed = audit.length;
        Ok(audit)
    }

    /// Appends a record. It is in the file when this returns, and durable after [`Audit::sync`].
    ///
    /// # Errors
    /// See [`AuditError`]. Nothing more is taken then, unless the lock was the reason.
    pub fn append(&mut self, record: &AuditRecord) -> Result<ChainHead, AuditError> {
        self.check_open()?;
        let mut fields = record.to_fields()?;
        loop {
            // A removal counts once a session has seen a later record, which happens at a call's
            // end. A removal recorded at a call's start would look like damage while that call
            // runs.
            if self.is_grown && matches!(record, AuditRecord::Ended(_)) {
                self.remove_oldest()?;
                self.is_grown = false;
            }
            let head = self.locked(|audit| {
                audit.catch_up().map_err(|error| audit.close(error))?;
                if audit.is_full() {
                    return audit.put_away().map(|()| None).map_err(|error| audit.close(error));
                }
                let put_out = spill::put_out(&mut fields, &audit.scripts);
                put_out.map_err(|error| audit.close(error.into()))?;
                audit.write(&fields).map(Some)
            })?;
            match head {
                Some(head) => return Ok(head),
                None => self.is_grown = true,
            }
        }
    }

    /// Writes the line of a record behind the head. Under the lock.
    fn write(&mut self, fields: &Map<String, Value>) -> Result<ChainHead, AuditError> {
        let (line, head) = chain::seal(self.head, disk::now(), fields)
            .map_err(|fault| self.close(AuditError::Damaged { path: self.path.clone(), fault }))?;
        if let Err(source) = self.file.write_all(line.as_bytes()) {
            // Best effort: the next to append sets half a line aside anyway.
            let _ = self.file.set_len(self.length);
            return Err(self.close(AuditError::Write { path: self.path.clone(), source }));
        }
        self.head = head;
        self.length += line.len() as u64;
        let texts = spill::references(fields);
        self.beside += texts.into_iter().filter_map(|(_, bytes)| bytes).sum::<u64>();
        Ok(head)
    }

    fn is_full(&self) -> bool {
        self.since.is_some_and(|since| {
            self.retention.is_full(self.length + self.beside, since, disk::now())
        })
    }

    /// Rotates the file, so that the next writer creates a new one. All of its records are durable
    /// before. It stays locked: a writer that waits for this lock then finds that the file is no
    /// longer current.
    fn put_away(&mut self) -> Result<(), AuditError> {
        let put = self.file.sync_data().and_then(|()| {
            fs::rename(&self.path, files::place_of(&self.file, &self.dir)?)?;
            disk::sync_dir(&self.dir)
        });
        put.map_err(|source| AuditError::Write { path: self.path.clone(), source })
    }

    /// Removes the oldest files by the retention bounds. The record of a removal is durable before
    /// the removal itself, so that a crash in between leaves a file that the log already counts as
    /// removed; the next run removes it. Files that cannot be read or removed stay: the log keeps
    /// too much rather than too little.
    fn remove_oldest(&mut self) -> Result<(), AuditError> {
        self.locked(Self::catch_up).map_err(|error| self.close(error))?;
        let bounds = self.retention;
        while let Ok(Some((doomed, removed))) = retention::oldest(&self.dir, &bounds, disk::now()) {
            let Ok(texts) = retention::texts_of(&self.dir, &doomed) else { break };
            let fields = AuditRecord::Removed(removed).to_fields()?;
            self.locked(|audit| {
                audit.catch_up().map_err(|error| audit.close(error))?;
                audit.write(&fields)
            })?;
            self.sync()?;
            let gone = self.locked(|audit| Ok(retention::remove(&audit.dir, &doomed, &texts)))?;
            if gone.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Makes every record appended so far durable, and returns the last of this process: the head
    /// to store with a call's result. A head that is stored before it is durable looks like a cut
    /// log after a power failure.
    ///
    /// # Errors
    /// Where the disk does not confirm it. Nothing more is taken then.
    pub fn sync(&mut self) -> Result<ChainHead, AuditError> {
        self.check_open()?;
        self.file.sync_data().map_err(|source| {
            let path = self.path.clone();
            self.close(AuditError::Sync { path, source })
        })?;
        self.confirmed = self.length;
        Ok(self.head)
    }

    /// Appends the missing records of a lost call, its verdict and its outcome: their writer may
    /// have died before any other record of them. Returns the position of the outcome, durable
    /// after [`Audit::sync`]. The outcome's note on lost connections is written only if the verdict
    /// asked for an allow-list.
    ///
    /// # Errors
    /// As [`Audit::append`], and where the log cannot be searched.
    pub fn append_lost(
        &mut self,
        decided: DecidedRecord,
        mut ended: EndedRecord,
    ) -> Result<ChainHead, AuditError> {
        let told = told_of(&self.dir, &ended.session, ended.call);
        let told = told.map_err(|source| AuditError::Search { path: self.path.clone(), source })?;
        if let Some(end) = told.end {
            return Ok(end);
        }
        if !told.decided {
            self.append(&AuditRecord::Decided(decided))?;
        }
        ended.connections_cut = ended.connections_cut.filter(|_| told.listed);
        self.append(&AuditRecord::Ended(ended))
    }

    /// The last record that this process knows of.
    #[must_use]
    pub fn head(&self) -> ChainHead {
        self.head
    }

    /// Works under the lock of the file that is current then.
    fn locked<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T, AuditError>,
    ) -> Result<T, AuditError> {
        for _ in 0..TURNS {
            disk::lock_within(&self.file, PATIENCE)
                .map_err(|source| AuditError::Lock { path: self.path.clone(), source })?;
            let is_current = self.is_current();
            let done = match is_current {
                Ok(true) => Some(work(self)),
                Ok(false) => None,
                Err(source) => Some(Err(AuditError::Open { path: self.path.clone(), source })),
            };
            // An unlock that fails is made up for by the end of the process.
            let _ = self.file.unlock();
            match done {
                Some(done) => return done,
                None => self.go_to_current().map_err(|error| self.close(error))?,
            }
        }
        let source = io::Error::new(io::ErrorKind::TimedOut, "others put it away again and again");
        Err(AuditError::Lock { path: self.path.clone(), source })
    }

    fn is_current(&self) -> io::Result<bool> {
        let held = self.file.metadata()?;
        match fs::symlink_metadata(&self.path) {
            Ok(named) => Ok((named.dev(), named.ino()) == (held.dev(), held.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Leaves a file that was put away for the current one.
    fn go_to_current(&mut self) -> Result<(), AuditError> {
        let cannot_open = |source| AuditError::Open { path: self.path.clone(), source };
        let gone = self.file.metadata().map_err(cannot_open)?.nlink() == 0;
        // It may be so old that it was removed since; nothing else takes one away.
        if gone && !retention::tells_of(&self.dir, self.head.seq).map_err(cannot_open)? {
            return Err(AuditError::Cut { path: self.path.clone() });
        }
        self.file = current(&self.dir).map_err(cannot_open)?;
        (self.length, self.since, self.beside, self.confirmed) = (0, None, 0, 0);
        Ok(())
    }

    /// Finds the head that other processes left. Under the lock.
    fn catch_up(&mut self) -> Result<(), AuditError> {
        let cannot_read = |source| AuditError::Open { path: self.path.clone(), source };
        let length = self.file.metadata().map_err(cannot_read)?.len();
        if length < self.length {
            return Err(AuditError::Cut { path: self.path.clone() });
        }
        if length != self.length || length == 0 {
            let (head, length) = match length {
                0 => (self.last_of_earlier()?, 0),
                length => self.last_record(length)?,
            };
            if head.seq < self.head.seq {
                return Err(AuditError::Cut { path: self.path.clone() });
            }
            (self.head, self.length) = (head, length);
        }
        if self.since.is_none() {
            self.since = files::first_of(&self.file).map_err(cannot_read)?.map(|(_, time)| time);
        }
        Ok(())
    }

    /// The last record of the files before this one.
    fn last_of_earlier(&self) -> Result<ChainHead, AuditError> {
        let cannot_read = |source| AuditError::Open { path: self.path.clone(), source };
        let Some(newest) = files::earlier(&self.dir).map_err(cannot_read)?.pop() else {
            return Ok(ChainHead::EMPTY);
        };
        let read = File::open(&newest.path).and_then(|file| {
            let length = file.metadata()?.len();
            last_line(&file, length)
        });
        let (_, line) = read.map_err(cannot_read)?;
        head_of(&line).map_err(|fault| AuditError::Damaged { path: newest.path, fault })
    }

    /// The last record of a file of this length, half a line behind it set aside; and the length
    /// without that half.
    fn last_record(&self, length: u64) -> Result<(ChainHead, u64), AuditError> {
        let cannot_read = |source| AuditError::Open { path: self.path.clone(), source };
        let (mut start, mut line) = last_line(&self.file, length).map_err(cannot_read)?;
        let mut end = length;
        if chain::open(&line).is_ok() {
            // All of a record but its line end was written.
            (&self.file).write_all(b"\n").map_err(cannot_read)?;
            line.push(b'\n');
            end += 1;
        } else if line.last() != Some(&b'\n') {
            // The lock is held, so the writer of this half line is dead.
            disk::set_aside(&self.file, start, &self.dir, "log").map_err(cannot_read)?;
            end = start;
            (start, line) = last_line(&self.file, end).map_err(cannot_read)?;
        }
        if start == end {
            return Ok((self.last_of_earlier()?, end));
        }
        let head = head_of(&line)
            .map_err(|fault| AuditError::Damaged { path: self.path.clone(), fault })?;
        Ok((head, end))
    }

    fn check_open(&self) -> Result<(), AuditError> {
        match &self.closed {
            None => Ok(()),
            Some(ClosedLog { cause, .. }) => {
                Err(AuditError::Closed { path: self.path.clone(), cause: cause.clone() })
            }
        }
    }

    /// Takes nothing more from now on.
    fn close(&mut self, error: AuditError) -> AuditError {
        let remedy = match error {
            AuditError::Damaged { .. } | AuditError::Cut { .. } => Reopening::Person,
            AuditError::Open { .. }
            | AuditError::Lock { .. }
            | AuditError::Closed { .. }
            | AuditError::Json(_)
            | AuditError::Script(_)
            | AuditError::Search { .. }
            | AuditError::Write { .. }
            | AuditError::Sync { .. } => Reopening::Disk,
        };
        self.closed = Some(ClosedLog { cause: disk::with_causes(&error), remedy });
        error
    }
}

/// The current file, created if absent.
fn current(dir: &Path) -> io::Result<File> {
    let path = dir.join(FILE);
    disk::ensure_dir(dir)?;
    let file = made_or_opened(&path)?;
    // Also for a file that another process made a moment ago.
    disk::sync_dir(dir)?;
    if let Some(parent) = dir.parent() {
        disk::sync_dir(parent)?;
    }
    Ok(file)
}

fn made_or_opened(path: &Path) -> io::Result<File> {
    let is = |found: &io::Result<File>, kind| found.as_ref().is_err_and(|it| it.kind() == kind);
    for _ in 0..TURNS {
        let made = disk::create_file(path);
        if !is(&made, io::ErrorKind::AlreadyExists) {
            return made;
        }
        let opened = disk::open_file(path);
        // Another process put it away between.
        if !is(&opened, io::ErrorKind::NotFound) {
            return opened;
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "others put it away again and again"))
}

fn head_of(line: &[u8]) -> Result<ChainHead, LineFault> {
    let link = chain::open(line.strip_suffix(b"\n").unwrap_or(line))?;
    Ok(ChainHead { seq: link.seq, hash: link.hash })
}
