//! Reads a session's journal record by record, and never past a damaged one.

use crate::blobs::Blobs;
use crate::line::{self, JournalLine, LINE_CAP};
use crate::lines::{LineReader, NextLine};
use crate::{FORMAT, JournalEntry, JournalRecord, LineDamage, SessionHeader, spill};
use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Name of the journal in its session's directory.
pub(crate) const FILE: &str = "journal.jsonl";
/// Name of the directory of its long texts.
pub(crate) const BLOBS: &str = "blobs";

/// Why a journal cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The journal does not exist.
    #[error("there is no session journal at {path}")]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot read {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Its permissions keep this user out.
    #[error(
        "{path} may not be opened by this user; give yourself the rights back (`chmod u+rwX` on it \
         and on the directories above it), or run agentd as its owner"
    )]
    NotPermitted {
        /// The file.
        path: PathBuf,
    },
    /// Something else has its name.
    #[error("{path} is no file; move it away, or remove the session's directory")]
    NoFile {
        /// The content found.
        path: PathBuf,
    },
    /// The session was cut short before its first record was whole: nothing is lost with it.
    #[error(
        "{path} holds no whole record: the session was never begun; its directory can be removed"
    )]
    NoHeader {
        /// The file.
        path: PathBuf,
    },
    /// It was written by a newer agentd.
    #[error(
        "{path} is in format {found}, written by agentd {writer}; this agentd reads formats up to \
         {FORMAT}: use a newer one"
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The agentd that wrote it.
        writer: String,
    },
    /// A line is damaged.
    #[error(
        "{path}, line {line} is damaged; the session does not go on behind it, but the {last_good} \
         records before it are good and can be forked into a new session"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// The number of the record before it; 0 if there is none.
        last_good: u64,
        /// The damage.
        #[source]
        damage: LineDamage,
    },
}

/// The bytes after the last whole line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    Clean,
    /// The last record is whole, and only its line end is not there.
    Unended,
    /// The beginning of a record whose write was cut short. It was never synced, so no action
    /// depends on it.
    Torn {
        /// Where it begins in the file.
        offset: u64,
        /// Its length in bytes.
        bytes: u64,
    },
}

/// The records of a journal, in order. Ends after the first error.
#[derive(Debug)]
pub struct JournalReader {
    lines: LineReader,
    path: PathBuf,
    pub(crate) blobs: Blobs,
    /// Records given out so far; also the lines.
    read: u64,
    /// Bytes of the lines read so far.
    offset: u64,
    tail: Tail,
    ended: bool,
    texts: BlobTexts,
}

/// The treatment of separately stored texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlobTexts {
    /// Puts them back.
    TakeIn,
    /// Leaves them out: where each was, the text is empty.
    LeaveOut,
}

/// Reads the journal of the session in this directory, without its lock and without changing it:
/// for lists and for looking at a session that is live.
///
/// # Errors
/// Where there is no journal or it may not be read.
pub fn read(session_dir: &Path) -> Result<JournalReader, ReadError> {
    Ok(JournalReader::new(open(&session_dir.join(FILE))?, session_dir))
}

/// The journal at this path, to read.
pub(crate) fn open(path: &Path) -> Result<File, ReadError> {
    open_as(path, |path| File::open(path))
}

/// Opens a journal without blocking. Opening a named pipe would wait for another process at its
/// other end.
pub(crate) fn open_as(
    path: &Path,
    open: impl FnOnce(&Path) -> io::Result<File>,
) -> Result<File, ReadError> {
    let opened = fs::metadata(path).and_then(|found| match found.is_file() {
        true => open(path).map(Some),
        false => Ok(None),
    });
    let path = path.to_owned();
    match opened {
        Ok(Some(file)) => Ok(file),
        Ok(None) => Err(ReadError::NoFile { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ReadError::Missing { path }),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(ReadError::NotPermitted { path })
        }
        Err(source) => Err(ReadError::Io { path, source }),
    }
}

/// The header of the session in this directory.
///
/// # Errors
/// As [`read`], and where the first record is damaged.
pub fn header(session_dir: &Path) -> Result<SessionHeader, ReadError> {
    match read(session_dir)?.next() {
        Some(Ok(JournalEntry { record: JournalRecord::Session(header), .. })) => Ok(header),
        Some(Err(error)) => Err(error),
        // The reader lets nothing else through as the first record.
        Some(Ok(_)) | None => Err(ReadError::NoHeader { path: session_dir.join(FILE) }),
    }
}

impl JournalReader {
    pub(crate) fn new(file: File, session_dir: &Path) -> Self {
        Self {
            lines: LineReader::of(file),
            path: session_dir.join(FILE),
            blobs: Blobs::at(session_dir.join(BLOBS)),
            read: 0,
            offset: 0,
            tail: Tail::Clean,
            ended: false,
            texts: BlobTexts::TakeIn,
        }
    }

    /// Leaves long texts empty instead of reading them, for those who look at other fields.
    #[must_use]
    pub fn without_texts(mut self) -> Self {
        self.texts = BlobTexts::LeaveOut;
        self
    }

    /// The bytes after the last record; known once all records are read.
    #[must_use]
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// The number of the last record given out.
    pub(crate) fn last_seq(&self) -> u64 {
        self.read
    }

    /// The line that was taken last, without its line end.
    pub(crate) fn line(&self) -> &[u8] {
        self.lines.line()
    }

    /// Takes the next whole line; false if there is none.
    pub(crate) fn next_line(&mut self) -> Result<bool, ReadError> {
        let taken = self.lines.take(LINE_CAP);
        match taken.map_err(|source| ReadError::Io { path: self.path.clone(), source })? {
            NextLine::Line => Ok(true),
            NextLine::Rest => self.at_the_end(),
            NextLine::TooLong => Err(self.damaged(LineDamage::TooLong)),
        }
    }

    /// Classifies the bytes after the last line end.
    fn at_the_end(&mut self) -> Result<bool, ReadError> {
        self.ended = true;
        match behind(self.line()) {
            TailKind::Unended => {
                self.tail = Tail::Unended;
                Ok(true)
            }
            TailKind::LineEndChanged => Err(self.damaged(LineDamage::LineEnd)),
            TailKind::Nothing | TailKind::Torn if self.read == 0 => Err(self.no_header()),
            TailKind::Nothing => Ok(false),
            TailKind::Torn => {
                self.tail = Tail::Torn { offset: self.offset, bytes: self.line().len() as u64 };
                Ok(false)
            }
        }
    }

    /// The record of the line that was taken.
    pub(crate) fn entry(&mut self) -> Result<JournalEntry, ReadError> {
        let opened = line::open(self.line()).map_err(|damage| self.damaged(damage))?;
        self.check_place(opened.seq)?;
        if self.read == 0 {
            self.check_header(&opened)?;
        }
        let (entry, _) =
            entry(opened, &self.blobs, self.texts).map_err(|damage| self.damaged(damage))?;
        self.pass();
        Ok(entry)
    }

    /// The record of a line that stood in its place.
    pub(crate) fn entry_of(&self, line: &[u8]) -> Result<JournalEntry, ReadError> {
        let entry = line::open(line).and_then(|line| entry(line, &self.blobs, self.texts));
        entry.map(|(entry, _)| entry).map_err(|damage| {
            let line = line::seq(line).unwrap_or_default();
            let path = self.path.clone();
            ReadError::Damaged { path, line, last_good: line.saturating_sub(1), damage }
        })
    }

    /// True if a line of this number is in its place.
    pub(crate) fn check_place(&self, found: u64) -> Result<(), ReadError> {
        let expected = self.read + 1;
        match found == expected {
            true => Ok(()),
            false => Err(self.damaged(LineDamage::Sequence { found, expected })),
        }
    }

    /// The line that was taken is good.
    pub(crate) fn pass(&mut self) {
        self.read += 1;
        self.offset += self.line().len() as u64 + 1;
    }

    /// Checks the format first, since a newer format may have changed everything else.
    fn check_header(&self, line: &line::JournalLine) -> Result<(), ReadError> {
        let format = line.fields.get("format").and_then(serde_json::Value::as_u64);
        let (true, Some(found)) = (line.kind == "SESSION", format) else {
            return Err(self.damaged(LineDamage::NoRecord));
        };
        if found > u64::from(FORMAT) {
            let writer = line.fields.get("agentd").and_then(serde_json::Value::as_str);
            return Err(ReadError::NewerFormat {
                path: self.path.clone(),
                found,
                writer: writer.unwrap_or("of an unknown version").to_owned(),
            });
        }
        Ok(())
    }

    pub(crate) fn damaged(&self, damage: LineDamage) -> ReadError {
        ReadError::Damaged {
            path: self.path.clone(),
            line: self.read + 1,
            last_good: self.read,
            damage,
        }
    }

    fn no_header(&self) -> ReadError {
        ReadError::NoHeader { path: self.path.clone() }
    }
}

/// The record of a line, and how many bytes of its texts were kept beside the journal.
pub(crate) fn entry(
    line: JournalLine,
    blobs: &Blobs,
    texts: BlobTexts,
) -> Result<(JournalEntry, usize), LineDamage> {
    let JournalLine { seq, time, kind, mut fields } = line;
    let taken_in = Cell::new(0);
    if JournalRecord::KINDS.contains(&kind.as_str()) {
        let text_of = |digest| match texts {
            BlobTexts::TakeIn => {
                let text = blobs.get(digest)?;
                taken_in.set(taken_in.get() + text.len());
                Ok(text)
            }
            BlobTexts::LeaveOut => Ok(String::new()),
        };
        spill::take_in(&mut fields, text_of).map_err(LineDamage::Blob)?;
    }
    let record = JournalRecord::from_fields(kind, fields).map_err(LineDamage::Fields)?;
    Ok((JournalEntry { seq, time, record }, taken_in.get()))
}

/// The kinds of bytes after a journal's last line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TailKind {
    Nothing,
    /// A whole record that lacks its line end alone.
    Unended,
    /// The beginning of a record.
    Torn,
    /// A whole record with something else for its line end.
    LineEndChanged,
}

pub(crate) fn behind(rest: &[u8]) -> TailKind {
    let Some((_, all_but_last)) = rest.split_last() else { return TailKind::Nothing };
    if line::open(rest).is_ok() {
        return TailKind::Unended;
    }
    // A cut leaves less than the record; one byte more means that the line end was changed, and
    // such a record may have been acted on.
    match line::open(all_but_last) {
        Ok(_) => TailKind::LineEndChanged,
        Err(_) => TailKind::Torn,
    }
}

impl Iterator for JournalReader {
    type Item = Result<JournalEntry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = match self.next_line() {
            Ok(true) => Some(self.entry()),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        };
        if !matches!(next, Some(Ok(_))) {
            self.ended = true;
        }
        next
    }
}
