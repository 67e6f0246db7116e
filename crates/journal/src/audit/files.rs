//! The files of the audit log: the current one, and the earlier ones, each named by its first
//! record. The chain continues through all of them in that order. Shared by the writer and the
//! readers.

use super::FILE;
use crate::line::{LINE_CAP, seq_and_time};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Prefix and suffix of an earlier file's name. The number of its first record has leading zeros,
/// so that names sort in the order of the chain.
const EARLIER: (&str, &str) = ("log-", ".jsonl");
const DIGITS: usize = 12;

/// How often the files are opened anew because one was put away meanwhile. That happens once in
/// thousands of calls.
const TRIES: u32 = 100;

/// A file that is written no more.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Earlier {
    /// The number of its first record, which is in its name.
    pub number: u64,
    pub path: PathBuf,
}

/// The earlier files, oldest first; none where there is no directory.
pub(super) fn earlier(dir: &Path) -> io::Result<Vec<Earlier>> {
    let listing = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing?,
    };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry?;
        if let Some(number) = entry.file_name().to_str().and_then(number) {
            found.push(Earlier { number, path: entry.path() });
        }
    }
    found.sort();
    Ok(found)
}

/// The earlier files and the identity of the current one, for detecting a change. Between two files
/// there may be no current one.
pub(super) fn all(dir: &Path) -> io::Result<(Vec<Earlier>, Option<u64>)> {
    let current = match fs::metadata(dir.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        found => Some(found?.ino()),
    };
    Ok((earlier(dir)?, current))
}

fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(EARLIER.0)?.strip_suffix(EARLIER.1)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Where the file that is written goes when the next begins: behind all that are there.
pub(super) fn place_of(current: &File, dir: &Path) -> io::Result<PathBuf> {
    let newest = earlier(dir)?.last().map_or(0, |newest| newest.number);
    let behind = newest.checked_add(1).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "an earlier file has the last name there is")
    })?;
    // Does not check its first line.
    let number = first_of(current)?.map_or(behind, |(seq, _)| seq.max(behind));
    Ok(dir.join(format!("{}{number:0DIGITS$}{}", EARLIER.0, EARLIER.1)))
}

/// Number and time of a file's first record, unchecked.
pub(super) fn first_of(file: &File) -> io::Result<Option<(u64, u64)>> {
    let mut front = [0; 64];
    let length = file.read_at(&mut front, 0)?;
    Ok(seq_and_time(&front[..length]))
}

/// The lines of all files, in order. Every file is opened at the start, so that files rotated or
/// removed meanwhile are still read.
#[derive(Debug)]
pub(super) struct AuditLines {
    left: VecDeque<(PathBuf, BufReader<File>)>,
    /// The file that is read.
    pub path: PathBuf,
    /// The line in it that was read last, counted from 1.
    pub line: u64,
}

impl AuditLines {
    /// Opens all files of the log in this directory; a log that does not exist yet has none.
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        let current = dir.join(FILE);
        for _ in 0..TRIES {
            let before = earlier(dir)?;
            let paths = before.iter().map(|file| &file.path).chain([&current]);
            let opened: Vec<_> = paths.map(|path| open(path)).collect::<io::Result<_>>()?;
            // Equal before and after: no file was renamed in between.
            if earlier(dir)? != before {
                continue;
            }
            let left: VecDeque<_> = opened.into_iter().flatten().collect();
            let path = left.front().map_or(current, |(path, _)| path.clone());
            return Ok(Self { left, path, line: 0 });
        }
        Err(io::Error::new(io::ErrorKind::Interrupted, "its files changed too often to be read"))
    }

    /// The next whole line without its line end. Half a line at a file's end is being written, or a
    /// crash cut it short.
    pub(super) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        while let Some((path, input)) = self.left.front_mut() {
            if self.path != *path {
                (self.path, self.line) = (path.clone(), 0);
            }
            if let Some(text) = next_line(input)? {
                self.line += 1;
                return Ok(Some(text));
            }
            self.left.pop_front();
        }
        Ok(None)
    }

    /// Reads nothing more.
    pub(super) fn end(&mut self) {
        self.left.clear();
    }
}

fn open(path: &Path) -> io::Result<Option<(PathBuf, BufReader<File>)>> {
    match File::open(path) {
        Ok(file) => Ok(Some((path.to_owned(), BufReader::with_capacity(64 << 10, file)))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
    }
}

fn next_line(input: &mut BufReader<File>) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    let length = input.take(LINE_CAP as u64).read_until(b'\n', &mut text)?;
    if text.last() == Some(&b'\n') {
        text.pop();
        return Ok(Some(text));
    }
    if length == LINE_CAP {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is longer than any record"));
    }
    Ok(None)
}
