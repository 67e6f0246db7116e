//! Reads a journal backwards, from its end or from a given record, without reading the records
//! before. Used by screens that show the newest records of a long session and page back.
//!
//! Lines are numbered and in order, so that the place of a record is found by halving the file;
//! there is no index that could be wrong. Each line on a page passes its checksum and follows on
//! the one before it.

use crate::blobs::Blobs;
use crate::line;
use crate::reader::{self, BLOBS, BlobTexts, FILE, TailKind};
use crate::{JournalEntry, LineDamage, ReadError, header, read};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A page has this many bytes of text at most, and one record at least. Stops a page of long texts
/// from outgrowing the memory and the wire to a client.
const PAGE_BYTES: usize = 8 << 20;
/// Bytes per read.
const STEP: u64 = 64 << 10;

/// The newest records of the session in this directory that `shown` makes something of: at most so
/// many, in their order. Needs no lock and changes nothing.
///
/// # Errors
/// Like [`read`]; also fails if a parsed line is damaged.
pub fn newest<T>(
    session_dir: &Path,
    most: usize,
    shown: impl FnMut(JournalEntry) -> Option<T>,
) -> Result<Vec<T>, ReadError> {
    page(session_dir, u64::MAX, most, shown)
}

/// The same of the records with a number below `before`. Fewer than `most` only where there are no
/// more, or where their texts are long; none where the beginning was reached.
///
/// # Errors
/// As [`newest`].
pub fn page<T>(
    session_dir: &Path,
    before: u64,
    most: usize,
    mut shown: impl FnMut(JournalEntry) -> Option<T>,
) -> Result<Vec<T>, ReadError> {
    // A newer format is refused before any of its content is parsed.
    header(session_dir)?;
    let mut backwards = Backwards::open(session_dir, before)?;
    let mut page = Vec::new();
    let mut bytes = 0;
    while page.len() < most && bytes < PAGE_BYTES {
        let Some((entry, length)) = backwards.next_entry()? else { break };
        if let Some(shown) = shown(entry) {
            page.push(shown);
            bytes += length;
        }
    }
    page.reverse();
    Ok(page)
}

/// True if the last turn of the session in this directory has no end on disk.
#[must_use]
pub fn is_unfinished(session_dir: &Path) -> bool {
    let turns = |entry: JournalEntry| {
        let ended = entry.record.ends_turn();
        (entry.record.is_prompt() || ended).then_some(!ended)
    };
    newest(session_dir, 1, turns).is_ok_and(|last| last == [true])
}

/// The records of a journal, newest first.
#[derive(Debug)]
struct Backwards {
    file: File,
    dir: PathBuf,
    blobs: Blobs,
    /// Only records below this number.
    before: u64,
    /// The number of the next, once one was read.
    expected: Option<u64>,
    /// Whole lines that end where the last one given out begins.
    lines: Vec<u8>,
    /// Where they begin in the file.
    start: u64,
}

impl Backwards {
    fn open(dir: &Path, before: u64) -> Result<Self, ReadError> {
        let mut found = Self {
            file: reader::open(&dir.join(FILE))?,
            dir: dir.to_owned(),
            blobs: Blobs::at(dir.join(BLOBS)),
            before,
            expected: None,
            lines: Vec::new(),
            start: 0,
        };
        found.start = found.end().map_err(|source| found.io(source))?;
        found.judge_end()?;
        Ok(found)
    }

    /// A place behind the last record of interest: a line end, or the end of the file.
    fn end(&self) -> io::Result<u64> {
        let length = self.file.metadata()?.len();
        let end = match self.before {
            u64::MAX => None,
            before => first_from(&self.file, before, length)?,
        };
        Ok(end.unwrap_or(length))
    }

    /// Checks the bytes after the last line end, if the reading starts at the end of the file.
    fn judge_end(&mut self) -> Result<(), ReadError> {
        let rest = self.take_line().map_err(|source| self.io(source))?;
        match reader::behind(&rest) {
            TailKind::Nothing | TailKind::Torn => Ok(()),
            TailKind::Unended => {
                self.lines.extend(rest);
                self.lines.push(b'\n');
                Ok(())
            }
            TailKind::LineEndChanged => Err(self.fault(LineDamage::LineEnd)),
        }
    }

    /// The record before the last one given out, and how long its texts are.
    fn next_entry(&mut self) -> Result<Option<(JournalEntry, usize)>, ReadError> {
        loop {
            if self.lines.is_empty() && self.start == 0 {
                return Ok(None);
            }
            // The line end of the line to take; `judge_end` left nothing behind it.
            self.lines.pop();
            let line = self.take_line().map_err(|source| self.io(source))?;
            if self.expected.is_none() && line::seq(&line).is_some_and(|seq| seq >= self.before) {
                continue;
            }
            let (entry, taken_in) = line::open(&line)
                .and_then(|line| reader::entry(line, &self.blobs, BlobTexts::TakeIn))
                .map_err(|damage| self.fault(damage))?;
            let found = entry.seq;
            let expected = self.expected.unwrap_or(found);
            if found != expected || found == 0 {
                return Err(self.fault(LineDamage::Sequence { found, expected }));
            }
            self.expected = Some(found - 1);
            return Ok(Some((entry, line.len() + taken_in)));
        }
    }

    /// Takes the bytes after the last line end of `lines`; reads backwards until there is one.
    fn take_line(&mut self) -> io::Result<Vec<u8>> {
        let mut step = STEP;
        let mut searched = self.lines.len();
        loop {
            let end = self.lines[..searched].iter().rposition(|byte| *byte == b'\n');
            if let Some(end) = end {
                return Ok(self.lines.split_off(end + 1));
            }
            if self.start == 0 {
                return Ok(std::mem::take(&mut self.lines));
            }
            let read = step.min(self.start);
            self.start -= read;
            let mut more = vec![0; usize::try_from(read).unwrap_or_default()];
            self.file.seek(SeekFrom::Start(self.start))?;
            self.file.read_exact(&mut more)?;
            searched = more.len();
            more.append(&mut self.lines);
            self.lines = more;
            // A long line is not copied once a step.
            step *= 2;
        }
    }

    /// The damage and its line number, which only reading from the start can tell.
    fn fault(&self, damage: LineDamage) -> ReadError {
        let from_the_front =
            read(&self.dir).map(|reader| reader.without_texts().find_map(Result::err));
        match from_the_front {
            Ok(None) => {
                let line = self.expected.unwrap_or(1);
                let path = self.dir.join(FILE);
                ReadError::Damaged { path, line, last_good: line.saturating_sub(1), damage }
            }
            Ok(Some(error)) | Err(error) => error,
        }
    }

    fn io(&self, source: io::Error) -> ReadError {
        ReadError::Io { path: self.dir.join(FILE), source }
    }
}

/// Where the first line with this number or a higher one begins, or a line a little behind it.
/// Nothing where the numbers do not lead there: then the way is from the end.
fn first_from(file: &File, number: u64, length: u64) -> io::Result<Option<u64>> {
    // The line at `low` has a lower number, that at `high` has not.
    let (mut low, mut high) = (0, None);
    let mut end = length;
    while end - low > STEP {
        let middle = low + (end - low) / 2;
        match line_from(file, middle, end)? {
            FirstLine::Line { start, seq } if seq < number => low = start,
            FirstLine::Line { start, .. } => {
                high = Some(start);
                end = middle;
            }
            FirstLine::NoLine => end = middle,
            FirstLine::NoNumber => return Ok(None),
        }
    }
    Ok(high)
}

/// The first line that begins in a part of the file.
enum FirstLine {
    /// With its place and number.
    Line {
        start: u64,
        seq: u64,
    },
    NoLine,
    /// It does not begin as a record does.
    NoNumber,
}

fn line_from(mut file: &File, from: u64, to: u64) -> io::Result<FirstLine> {
    /// Holds the beginning of a line up to its number.
    const HEAD: usize = 32;
    file.seek(SeekFrom::Start(from))?;
    let mut part = Vec::new();
    let mut searched = 0;
    loop {
        let position = part[searched..].iter().position(|byte| *byte == b'\n');
        let Some(position) = position.map(|position| searched + position + 1) else {
            searched = part.len();
            if from + searched as u64 >= to || file.take(STEP).read_to_end(&mut part)? == 0 {
                return Ok(FirstLine::NoLine);
            }
            continue;
        };
        if part.len() < position + HEAD {
            file.take(HEAD as u64).read_to_end(&mut part)?;
        }
        let start = from + position as u64;
        if start >= to {
            return Ok(FirstLine::NoLine);
        }
        return Ok(match line::seq(&part[position..]) {
            Some(seq) => FirstLine::Line { start, seq },
            None => FirstLine::NoNumber,
        });
    }
}
