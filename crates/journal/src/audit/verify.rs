//! Proves that the audit log is what was written, or names the lines where it is not.
//!
//! The chain alone finds what was changed, removed or put in by somebody who did not compute all
//! hashes anew, from one file to the next. The anchors in the session journals find the rest: a log cut
//! at its end, and a chain that was written anew. A log whose oldest records were removed by its bounds
//! says so itself, and names the record behind which it begins by its hash. Anybody could write such a
//! line behind what is left of a log that they cut; so it counts where an anchor at or behind it shows
//! that it was there when a call ended. Where no session has an anchor, none can show that, and the
//! chain is all there is.

use super::fault::{Fault, FaultKind};
use super::files::{self, Lines};
use super::retention::{Retention, named, older, removal_of};
use super::{FILE, SCRIPTS, chain};
use crate::blobs::Blobs;
use crate::{Anchor, Bound, Digest, Head, Removed};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// How often a log is read whose texts were removed with its files meanwhile. That happens once in
/// thousands of calls.
const TRIES: u32 = 20;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Lines read.
    pub lines: u64,
    /// What was removed from its beginning by its bounds, where it says so and begins there. An anchor
    /// confirms that, unless there are none at all.
    pub removed: Option<Removed>,
    /// Anchors compared with the record that they saw. Those of records that were removed are not.
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
    verify_bounded(dir, anchors, Retention::default())
}

/// The same for a log of other bounds.
///
/// # Errors
/// As [`verify`].
pub fn verify_bounded(
    dir: &Path,
    anchors: &[Anchor],
    retention: Retention,
) -> Result<Verification, VerifyError> {
    let listed = || files::all(dir).map_err(|source| VerifyError { path: dir.to_owned(), source });
    let mut tries = 1;
    loop {
        let before = listed()?;
        let found = once(dir, anchors, retention)?;
        // A text may have been removed as a file was that is said in one that was not there yet.
        let without_text =
            found.faults.iter().any(|fault| matches!(fault.kind, FaultKind::Text { .. }));
        if !without_text || tries == TRIES || listed()? == before {
            return Ok(found);
        }
        tries += 1;
    }
}

fn once(dir: &Path, anchors: &[Anchor], retention: Retention) -> Result<Verification, VerifyError> {
    let mut walk = Walk::new(anchors, Blobs::at(dir.join(SCRIPTS)), retention);
    let failed = |path: &Path, source| VerifyError { path: path.to_owned(), source };
    let mut lines = Lines::open(dir).map_err(|source| failed(&dir.join(FILE), source))?;
    while let Some(text) = lines.next().map_err(|source| failed(&lines.path, source))? {
        walk.line(&lines.path, &text);
    }
    Ok(walk.finish())
}

/// The first record, if it is not the first of all.
struct Beginning {
    /// Its line, counted over all files.
    line: u64,
    seq: u64,
    time: u64,
    prev: Digest,
    /// The number that its line would have in a log of which nothing was removed.
    expected: u64,
}

/// A record that tells of a removal.
struct Told {
    /// Its line, counted over all files.
    line: u64,
    seq: u64,
    time: u64,
    removed: Removed,
    /// Whether the last record that it says is removed was still there, as it names it.
    is_seen: bool,
}

impl Beginning {
    /// Whether this is the line that such a removal leaves as the first.
    fn follows(&self, Told { time, removed, .. }: &Told, retention: Retention) -> bool {
        // Files are removed as a whole.
        self.line == 1
            && removed.to.checked_add(1) == Some(self.seq)
            && removed.to_hash == self.prev
            && removed.before == self.time
            && match removed.bound {
                Bound::Size => true,
                Bound::Age => older(removed.before, *time, retention.age),
            }
    }
}

/// The state between two lines. Lines are counted over all files.
struct Walk<'a> {
    scripts: Blobs,
    retention: Retention,
    /// By number of the record they saw, those not yet met.
    anchors: HashMap<u64, Vec<&'a Anchor>>,
    /// How many were compared, and the highest record that one of them saw as it is; none where there
    /// are no anchors.
    compared: usize,
    confirmed: Option<u64>,
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
    told: Vec<Told>,
    /// Line, number and text of records whose text is gone.
    without_text: Vec<(u64, u64, Digest)>,
    faults: Vec<(u64, FaultKind)>,
}

impl<'a> Walk<'a> {
    fn new(all: &'a [Anchor], scripts: Blobs, retention: Retention) -> Self {
        let mut anchors: HashMap<u64, Vec<&Anchor>> = HashMap::new();
        for anchor in all.iter().filter(|anchor| anchor.head.seq > 0) {
            anchors.entry(anchor.head.seq).or_default().push(anchor);
        }
        Self {
            scripts,
            retention,
            confirmed: (!anchors.is_empty()).then_some(0),
            anchors,
            compared: 0,
            files: Vec::new(),
            file: FILE.to_owned(),
            lines: 0,
            texts: 0,
            head: Head::EMPTY,
            broken: false,
            places: HashMap::from([(Digest::NONE, (0, 0))]),
            beginning: None,
            told: Vec::new(),
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
                self.head.seq = self.head.seq.saturating_add(1);
                return;
            }
        };
        self.check_place(&link);
        self.check_texts(&link);
        self.check_removal(&link);
        for anchor in self.anchors.remove(&link.seq).unwrap_or_default() {
            self.compared += 1;
            if anchor.head.hash == link.hash {
                self.confirmed = self.confirmed.max(Some(link.seq));
            } else {
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
        let Some(expected) = self.head.seq.checked_add(1) else {
            return self.fault(self.lines, FaultKind::Unlinked);
        };
        if link.seq == expected && (self.broken || link.prev == self.head.hash) {
            return;
        }
        // The first good record: whether the log may begin here, the records behind it say.
        let is_first = self.places.len() == 1;
        if is_first && link.seq > expected {
            let (line, seq, time, prev) = (self.lines, link.seq, link.time, link.prev);
            self.beginning = Some(Beginning { line, seq, time, prev, expected });
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
            match self.scripts.get(digest) {
                Ok(_) => {}
                Err(error) if error.is_gone() => {
                    self.without_text.push((self.lines, link.seq, digest));
                }
                Err(_) => self.fault(self.lines, FaultKind::Text { digest }),
            }
        }
    }

    fn check_removal(&mut self, link: &chain::Link) {
        let Some(removed) = removal_of(link) else { return };
        let place = self.places.get(&removed.to_hash);
        let is_seen = removed.to < link.seq && place.is_some_and(|(_, seq)| *seq == removed.to);
        let (line, seq, time) = (self.lines, link.seq, link.time);
        self.told.push(Told { line, seq, time, removed, is_seen });
    }

    /// Whether an anchor shows that the record was there, or nothing could show it.
    fn is_confirmed(&self, told: &Told) -> bool {
        self.confirmed.is_none_or(|confirmed| confirmed >= told.seq)
    }

    fn fault(&mut self, line: u64, kind: FaultKind) {
        let fault = (line, kind);
        // A line between two that were put in may be blamed by both.
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn finish(mut self) -> Verification {
        let removed = self.begins_as_it_says();
        for (line, seq, digest) in std::mem::take(&mut self.without_text) {
            // A death between may leave records whose removal, and that of their texts, had begun.
            // The first of those that say so is confirmed first.
            match self.told.iter().find(|told| told.is_seen && told.removed.to >= seq) {
                Some(told) if self.is_confirmed(told) => {}
                Some(told) => {
                    let (line, to) = (told.line, told.removed.to);
                    self.fault(line, FaultKind::NotConfirmed { to });
                }
                None => self.fault(line, FaultKind::Text { digest }),
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
        let Self { lines, texts, head, compared: anchors, .. } = self;
        Verification { lines, removed, anchors, texts, head, faults }
    }

    /// Where the log begins behind what it says was removed, that; else it is a fault.
    fn begins_as_it_says(&mut self) -> Option<Removed> {
        let begins = self.beginning.take()?;
        let seen = self.anchors.remove(&(begins.seq - 1)).unwrap_or_default();
        self.compared += seen.len();
        let fits = |told: &&Told| {
            begins.follows(told, self.retention)
                && seen.iter().all(|anchor| anchor.head.hash == told.removed.to_hash)
        };
        // One that was said, begun and said again stands there twice; the first is confirmed first.
        match self.told.iter().find(fits) {
            Some(told) if self.is_confirmed(told) => Some(told.removed.clone()),
            Some(told) => {
                let (line, to) = (told.line, told.removed.to);
                self.fault(line, FaultKind::NotConfirmed { to });
                None
            }
            None => {
                let (from, to) = (begins.expected, begins.seq - 1);
                self.fault(begins.line, FaultKind::Removed { from, to });
                None
            }
        }
    }

    /// The fault with its place in its file.
    fn placed(&self, line: u64, kind: FaultKind) -> Fault {
        let at = self.files.partition_point(|(_, last)| *last < line);
        let before = at.checked_sub(1).and_then(|at| self.files.get(at)).map_or(0, |file| file.1);
        let file = self.files.get(at).map_or(&self.file, |(name, _)| name).clone();
        Fault { file, line: line - before, kind }
    }
}
