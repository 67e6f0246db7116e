//! Proves that the audit log is what was written, or names the lines where it is not.
//!
//! The chain alone finds what was changed, removed or put in by somebody who did not compute all
//! hashes anew, from one file to the next. The anchors in the session journals find the rest: a log cut
//! at its end, and a chain that was written anew. A log whose oldest records were removed by its bounds
//! says so itself, and names the record behind which it begins by its hash.

use super::files::Lines;
use super::retention::{named, removal_of};
use super::{FILE, SCRIPTS, chain};
use crate::blobs::Blobs;
use crate::{Anchor, Digest, Head, LineFault, Removed};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Lines read.
    pub lines: u64,
    /// What was removed from its beginning by its bounds, where it says so and begins there.
    pub removed: Option<Removed>,
    /// Anchors compared.
    pub anchors: usize,
    /// Scripts and long inputs compared with their digests.
    pub texts: u64,
    /// The last record.
    pub head: Head,
    /// Everything that is not as it was written, in the order of the lines; empty for a log that
    /// is whole.
    pub faults: Vec<Fault>,
}

impl Verification {
    /// Whether the log is what was written.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}line {line}: {kind}", file = prefix(file))]
pub struct Fault {
    /// The file's name.
    pub file: String,
    /// Where in it, counted from 1. Behind the last line for what is missing there.
    pub line: u64,
    /// What.
    pub kind: FaultKind,
}

/// The file is named where it is not the one that is written.
fn prefix(file: &str) -> String {
    if file == FILE { String::new() } else { format!("{file}, ") }
}

/// What can be wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// The line's bytes changed.
    #[error("changed: {0}")]
    Changed(LineFault),
    /// Records before this line are gone.
    #[error("records {from} to {to} are missing before it")]
    Removed {
        /// The first that is gone.
        from: u64,
        /// The last that is gone.
        to: u64,
    },
    /// The line was put in: the chain goes past it.
    #[error("put in: the record behind it does not follow from it")]
    Inserted,
    /// The line is a good record that does not follow from the one before it.
    #[error("does not follow from the record before it")]
    Unlinked,
    /// The log ends before a record that a session journal saw in it.
    #[error("the log was cut: session {session} saw record {record} in it")]
    Cut {
        /// The session.
        session: String,
        /// The record of the log.
        record: u64,
    },
    /// The line is another record than the one that a session journal saw in this place.
    #[error("written anew: session {session} saw another record in this place")]
    Rewritten {
        /// The session.
        session: String,
    },
    /// A script or long input that it names is gone or changed.
    #[error("the text {digest} that it names is gone or changed")]
    Text {
        /// The text's digest.
        digest: Digest,
    },
}

/// Why the log could not be verified.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the audit log {path}")]
pub struct VerifyError {
    /// The log.
    pub path: PathBuf,
    /// The system's word.
    #[source]
    pub source: io::Error,
}

/// Verifies the log in this directory against these anchors (see [`crate::anchors`]). A log that
/// does not exist is an empty one: whole, unless an anchor speaks of it. Half a line at the end is
/// no fault: it is being written, or a crash cut it short before it counted.
///
/// # Errors
/// Where the log cannot be read.
pub fn verify(dir: &Path, anchors: &[Anchor]) -> Result<Verification, VerifyError> {
    let mut walk = Walk::new(anchors, Blobs::at(dir.join(SCRIPTS)));
    let failed = |path: &Path, source| VerifyError { path: path.to_owned(), source };
    let mut lines = Lines::open(dir).map_err(|source| failed(&dir.join(FILE), source))?;
    while let Some(text) = lines.next().map_err(|source| failed(&lines.path, source))? {
        walk.line(&lines.path, &text);
    }
    Ok(walk.finish(anchors.len()))
}

/// Where the first record stands, if it is not the first of all.
struct Beginning {
    /// Its line, counted over all files.
    line: u64,
    seq: u64,
    /// The one before it; unknown where the line before was unreadable.
    prev: Option<Digest>,
}

/// The state between two lines. Lines are counted over all files.
struct Walk<'a> {
    scripts: Blobs,
    /// By number of the record they saw, those not yet met.
    anchors: HashMap<u64, Vec<&'a Anchor>>,
    /// Name and last line of the files before the one that is read, and that one's name.
    files: Vec<(String, u64)>,
    file: String,
    lines: u64,
    texts: u64,
    /// The last record the chain stands at.
    head: Head,
    /// Whether the line before was unreadable, so that the next cannot be blamed for its hash.
    broken: bool,
    /// Line and number of each good record by its hash, to tell what was put in.
    places: HashMap<Digest, (u64, u64)>,
    beginning: Option<Beginning>,
    removed: Vec<Removed>,
    /// Line, number and text of records whose text is gone.
    without_text: Vec<(u64, u64, Digest)>,
    faults: Vec<(u64, FaultKind)>,
}

impl<'a> Walk<'a> {
    fn new(all: &'a [Anchor], scripts: Blobs) -> Self {
        let mut anchors: HashMap<u64, Vec<&Anchor>> = HashMap::new();
        for anchor in all.iter().filter(|anchor| anchor.head.seq > 0) {
            anchors.entry(anchor.head.seq).or_default().push(anchor);
        }
        Self {
            scripts,
            anchors,
            files: Vec::new(),
            file: FILE.to_owned(),
            lines: 0,
            texts: 0,
            head: Head::EMPTY,
            broken: false,
            places: HashMap::from([(Digest::NONE, (0, 0))]),
            beginning: None,
            removed: Vec::new(),
            without_text: Vec::new(),
            faults: Vec::new(),
        }
    }

    fn line(&mut self, path: &Path, text: &[u8]) {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        if file != self.file {
            let before = std::mem::replace(&mut self.file, file.into_owned());
            self.files.push((before, self.lines));
        }
        self.lines += 1;
        let link = match chain::open(text) {
            Ok(link) => link,
            Err(fault) => {
                self.fault(self.lines, FaultKind::Changed(fault));
                self.broken = true;
                // It stands for one record, whatever it was.
                self.head.seq += 1;
                return;
            }
        };
        self.check_place(&link);
        self.check_texts(&link);
        self.removed.extend(removal_of(&link));
        for anchor in self.anchors.remove(&link.seq).unwrap_or_default() {
            if anchor.head.hash != link.hash {
                let session = anchor.session.clone();
                self.fault(self.lines, FaultKind::Rewritten { session });
            }
        }
        self.places.insert(link.hash, (self.lines, link.seq));
        self.head = Head { seq: link.seq, hash: link.hash };
        self.broken = false;
    }

    /// Whether the record follows from the one before it; if not, why.
    fn check_place(&mut self, link: &chain::Link) {
        let expected = self.head.seq + 1;
        if link.seq == expected && (self.broken || link.prev == self.head.hash) {
            return;
        }
        // The first good record: whether the log may begin here, the records behind it say.
        let is_first = self.places.len() == 1;
        if is_first && link.seq > expected {
            let prev = (!self.broken).then_some(link.prev);
            let seq = link.seq - (self.lines - 1);
            self.beginning = Some(Beginning { line: self.lines, seq, prev });
            return;
        }
        if let Some((line, seq)) = self.places.get(&link.prev).copied() {
            // The chain goes on from an earlier record, past everything between.
            if link.seq == seq + 1 {
                for inserted in line + 1..self.lines {
                    self.fault(inserted, FaultKind::Inserted);
                }
                return;
            }
        }
        if link.seq > expected {
            self.fault(self.lines, FaultKind::Removed { from: expected, to: link.seq - 1 });
        } else {
            self.fault(self.lines, FaultKind::Unlinked);
        }
    }

    fn check_texts(&mut self, link: &chain::Link) {
        for digest in named(link) {
            self.texts += 1;
            if self.scripts.get(digest).is_err() {
                self.without_text.push((self.lines, link.seq, digest));
            }
        }
    }

    fn fault(&mut self, line: u64, kind: FaultKind) {
        let fault = (line, kind);
        // A line between two that were put in may be blamed by both.
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn finish(mut self, anchors: usize) -> Verification {
        let removed = self.begins_as_it_says();
        // A death between may leave records whose removal, and that of their texts, had begun.
        let gone = self.removed.iter().map(|removed| removed.to).max().unwrap_or_default();
        for (line, seq, digest) in std::mem::take(&mut self.without_text) {
            if seq > gone {
                self.fault(line, FaultKind::Text { digest });
            }
        }
        let mut unmet: Vec<_> = std::mem::take(&mut self.anchors).into_values().flatten().collect();
        unmet.sort_by_key(|anchor| anchor.head.seq);
        for anchor in unmet {
            let (session, record) = (anchor.session.clone(), anchor.head.seq);
            if record > self.head.seq {
                self.fault(self.lines + 1, FaultKind::Cut { session, record });
            }
        }
        self.faults.sort_by_key(|(line, _)| *line);
        let faults = std::mem::take(&mut self.faults);
        let faults = faults.into_iter().map(|(line, kind)| self.placed(line, kind)).collect();
        let Self { lines, texts, head, .. } = self;
        Verification { lines, removed, anchors, texts, head, faults }
    }

    /// Where the log begins behind what it says was removed, that; else it is a fault.
    fn begins_as_it_says(&mut self) -> Option<Removed> {
        let Beginning { line, seq, prev } = self.beginning.take()?;
        let told = self.removed.iter().find(|removed| {
            removed.to + 1 == seq && prev.is_none_or(|prev| prev == removed.to_hash)
        });
        let told = told.cloned();
        if told.is_none() {
            self.fault(line, FaultKind::Removed { from: 1, to: seq - 1 });
        }
        told
    }

    /// The fault with its place in its file.
    fn placed(&self, line: u64, kind: FaultKind) -> Fault {
        let at = self.files.partition_point(|(_, last)| *last < line);
        let before = at.checked_sub(1).and_then(|at| self.files.get(at)).map_or(0, |file| file.1);
        let file = self.files.get(at).map_or(&self.file, |(name, _)| name).clone();
        Fault { file, line: line - before, kind }
    }
}
