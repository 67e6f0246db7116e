//! Proves that the audit log is what was written, or names the lines where it is not.
//!
//! The chain alone finds what was changed, removed or put in by somebody who did not compute all
//! hashes anew. The anchors in the session journals find the rest: a log cut at its end, and a
//! chain that was written anew.

use super::list::next_line;
use super::{FILE, SCRIPTS, chain};
use crate::blobs::Blobs;
use crate::{Anchor, Digest, Head, LineFault, bulk};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Lines read.
    pub lines: u64,
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
#[error("line {line}: {kind}")]
pub struct Fault {
    /// Where, counted from 1. Behind the last line for what is missing there.
    pub line: u64,
    /// What.
    pub kind: FaultKind,
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
    let path = dir.join(FILE);
    let mut walk = Walk::new(anchors, Blobs::at(dir.join(SCRIPTS)));
    let walked = match File::open(&path) {
        Ok(file) => walk_file(file, &mut walk),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    walked.map_err(|source| VerifyError { path, source })?;
    Ok(walk.finish(anchors.len()))
}

fn walk_file(file: File, walk: &mut Walk<'_>) -> io::Result<()> {
    let mut input = BufReader::with_capacity(64 << 10, file);
    while let Some(text) = next_line(&mut input)? {
        walk.line(&text);
    }
    Ok(())
}

/// The state between two lines.
struct Walk<'a> {
    scripts: Blobs,
    /// By number of the record they saw, those not yet met.
    anchors: HashMap<u64, Vec<&'a Anchor>>,
    lines: u64,
    texts: u64,
    /// The last record the chain stands at.
    head: Head,
    /// Whether the line before was unreadable, so that the next cannot be blamed for its hash.
    broken: bool,
    /// Line and number of each good record by its hash, to tell what was put in.
    places: HashMap<Digest, (u64, u64)>,
    faults: Vec<Fault>,
}

impl<'a> Walk<'a> {
    fn new(all: &'a [Anchor], scripts: Blobs) -> Self {
        let mut anchors: HashMap<u64, Vec<&Anchor>> = HashMap::new();
        for anchor in all.iter().filter(|anchor| anchor.head.seq > 0) {
            anchors.entry(anchor.head.seq).or_default().push(anchor);
        }
        let places = HashMap::from([(Digest::NONE, (0, 0))]);
        let (head, faults) = (Head::EMPTY, Vec::new());
        Self { scripts, anchors, lines: 0, texts: 0, head, broken: false, places, faults }
    }

    fn line(&mut self, text: &[u8]) {
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
        self.check_texts(&link.fields);
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

    fn check_texts(&mut self, fields: &serde_json::Map<String, serde_json::Value>) {
        let script = fields.get("script").and_then(serde_json::Value::as_str);
        let named = script.and_then(|digest| digest.parse().ok()).into_iter();
        for digest in named.chain(bulk::references(fields).into_iter().map(|(digest, _)| digest)) {
            self.texts += 1;
            if self.scripts.get(digest).is_err() {
                self.fault(self.lines, FaultKind::Text { digest });
            }
        }
    }

    fn fault(&mut self, line: u64, kind: FaultKind) {
        let fault = Fault { line, kind };
        // A line between two that were put in may be blamed by both.
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn finish(mut self, anchors: usize) -> Verification {
        let mut unmet: Vec<_> = std::mem::take(&mut self.anchors).into_values().flatten().collect();
        unmet.sort_by_key(|anchor| anchor.head.seq);
        for anchor in unmet {
            let (session, record) = (anchor.session.clone(), anchor.head.seq);
            if record > self.head.seq {
                self.fault(self.lines + 1, FaultKind::Cut { session, record });
            }
        }
        self.faults.sort_by_key(|fault| fault.line);
        let Self { lines, texts, head, faults, .. } = self;
        Verification { lines, anchors, texts, head, faults }
    }
}
