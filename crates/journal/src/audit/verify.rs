//! Proves that the audit log is unchanged since it was written, or names the damaged lines.
//!
//! The hash chain, across all files, reveals lines that were changed, removed or inserted by a
//! writer who did not recompute all later hashes. The anchors in the session journals reveal the
//! rest: a log cut at its end, and a chain that was recomputed. If the retention bounds removed the
//! oldest records, a record in the log says so and gives the hash of the last removed one. An
//! attacker could append such a record after cutting the log; so it counts only if an anchor at or
//! after it shows that it existed when a call ended. Without any anchor, only the chain is checked.

use super::fault::{AuditFault, AuditFaultKind};
use super::files::{self, AuditLines};
use super::retention::{Retention, named, older, removal_of};
use super::{FILE, SCRIPTS, chain};
use crate::blobs::Blobs;
use crate::{ChainAnchor, ChainHead, Digest, RemovedRecord, RetentionBound};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// How often a log is read whose texts were removed with its files meanwhile. That happens once in
/// thousands of calls.
const TRIES: u32 = 20;

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Lines read.
    pub lines: u64,
    /// Records that the retention bounds removed from the start, if the log says so and begins
    /// there. An anchor confirms the claim, unless there are no anchors at all.
    pub removed: Option<RemovedRecord>,
    /// Anchors compared with the record that they saw. Those of records that were removed are not.
    pub anchors: usize,
    /// Scripts and long inputs compared with their digests.
    pub texts: u64,
    /// The last record.
    pub head: ChainHead,
    /// Everything that is not as it was written, in the order of the lines; empty for a log that
    /// is whole.
    pub faults: Vec<AuditFault>,
}

impl Verification {
    /// True if the log is unchanged since it was written.
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
    /// The operating system's error.
    #[source]
    pub source: io::Error,
}

/// Verifies this directory's log against these anchors (see [`crate::anchors`]). A missing log
/// counts as empty: valid unless an anchor refers to it. Half a line at the end is no fault: it is
/// being written, or a crash cut it short before it counted.
///
/// # Errors
/// Where the log cannot be read.
pub fn verify(dir: &Path, anchors: &[ChainAnchor]) -> Result<Verification, VerifyError> {
    verify_bounded(dir, anchors, Retention::default())
}

/// The same for a log of other bounds.
///
/// # Errors
/// As [`verify`].
pub fn verify_bounded(
    dir: &Path,
    anchors: &[ChainAnchor],
    retention: Retention,
) -> Result<Verification, VerifyError> {
    let listed = || files::all(dir).map_err(|source| VerifyError { path: dir.to_owned(), source });
    let mut tries = 1;
    loop {
        let before = listed()?;
        let found = once(dir, anchors, retention)?;
        // Retention may have deleted a blob between the two reads; a log file created since then
        // records it.
        let without_text =
            found.faults.iter().any(|fault| matches!(fault.kind, AuditFaultKind::Text { .. }));
        if !without_text || tries == TRIES || listed()? == before {
            return Ok(found);
        }
        tries += 1;
    }
}

fn once(
    dir: &Path,
    anchors: &[ChainAnchor],
    retention: Retention,
) -> Result<Verification, VerifyError> {
    let mut walk = Verifier::new(anchors, Blobs::at(dir.join(SCRIPTS)), retention);
    let failed = |path: &Path, source| VerifyError { path: path.to_owned(), source };
    let mut lines = AuditLines::open(dir).map_err(|source| failed(&dir.join(FILE), source))?;
    while let Some(text) = lines.next().map_err(|source| failed(&lines.path, source))? {
        walk.line(&lines.path, &text);
    }
    Ok(walk.finish())
}

/// The first record, if it is not the first of all.
struct FirstRecord {
    /// Its line, counted over all files.
    line: u64,
    seq: u64,
    time: u64,
    prev: Digest,
    /// The number that its line would have in a log of which nothing was removed.
    expected: u64,
}

/// A record that tells of a removal.
struct RemovalClaim {
    /// Its line, counted over all files.
    line: u64,
    seq: u64,
    time: u64,
    removed: RemovedRecord,
    /// True if the last record of the claimed removal still existed, with the claimed hash.
    is_seen: bool,
}

impl FirstRecord {
    /// True if this line is the first one after such a removal.
    fn follows(
        &self,
        RemovalClaim { time, removed, .. }: &RemovalClaim,
        retention: Retention,
    ) -> bool {
        // Files are removed as a whole.
        self.line == 1
            && removed.to.checked_add(1) == Some(self.seq)
            && removed.to_hash == self.prev
            && removed.before == self.time
            && match removed.bound {
                RetentionBound::Size => true,
                RetentionBound::Age => older(removed.before, *time, retention.age),
            }
    }
}

/// The anchors' part of a verification.
struct AnchorCheck<'a> {
    /// Anchors that are not yet compared, by the number of the record that they saw.
    waiting: HashMap<u64, Vec<&'a ChainAnchor>>,
    compared: usize,
    /// The highest record that an anchor confirms; none without anchors.
    confirmed: Option<u64>,
}

/// The state between two lines. Lines are counted over all files.
struct Verifier<'a> {
    scripts: Blobs,
    retention: Retention,
    anchors: AnchorCheck<'a>,
    /// Name and last line of the files before the current one, and its own name.
    files: Vec<(String, u64)>,
    file: String,
    lines: u64,
    texts: u64,
    /// The last record the chain stands at.
    head: ChainHead,
    /// The line before was unreadable, so a mismatch of the next line's hash is not that line's
    /// fault.
    broken: bool,
    /// Line and number of each valid record by its hash, for recognizing insertions.
    places: HashMap<Digest, (u64, u64)>,
    beginning: Option<FirstRecord>,
    told: Vec<RemovalClaim>,
    /// Line, number and text of records whose text is gone.
    without_text: Vec<(u64, u64, Digest)>,
    faults: Vec<(u64, AuditFaultKind)>,
}

impl<'a> Verifier<'a> {
    fn new(all: &'a [ChainAnchor], scripts: Blobs, retention: Retention) -> Self {
        let mut anchors: HashMap<u64, Vec<&ChainAnchor>> = HashMap::new();
        for anchor in all.iter().filter(|anchor| anchor.head.seq > 0) {
            anchors.entry(anchor.head.seq).or_default().push(anchor);
        }
        Self {
            scripts,
            retention,
            anchors: AnchorCheck {
                confirmed: (!anchors.is_empty()).then_some(0),
                waiting: anchors,
                compared: 0,
            },
            files: Vec::new(),
            file: FILE.to_owned(),
            lines: 0,
            texts: 0,
            head: ChainHead::EMPTY,
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
                self.fault(self.lines, AuditFaultKind::Changed(fault));
                self.broken = true;
                // It counts as one record, whatever its content.
                self.head.seq = self.head.seq.saturating_add(1);
                return;
            }
        };
        self.check_place(&link);
        self.check_texts(&link);
        self.check_removal(&link);
        for anchor in self.anchors.waiting.remove(&link.seq).unwrap_or_default() {
            self.anchors.compared += 1;
            if anchor.head.hash == link.hash {
                self.anchors.confirmed = self.anchors.confirmed.max(Some(link.seq));
            } else {
                let session = anchor.session.clone();
                self.fault(self.lines, AuditFaultKind::Rewritten { session });
            }
        }
        self.places.insert(link.hash, (self.lines, link.seq));
        self.head = ChainHead { seq: link.seq, hash: link.hash };
        self.broken = false;
    }

    /// Checks that the record continues the one before it; returns the reason if it does not.
    fn check_place(&mut self, link: &chain::ChainLine) {
        let Some(expected) = self.head.seq.checked_add(1) else {
            return self.fault(self.lines, AuditFaultKind::Unlinked);
        };
        if link.seq == expected && (self.broken || link.prev == self.head.hash) {
            return;
        }
        // The first valid record. Later records decide whether the log may begin here.
        let is_first = self.places.len() == 1;
        if is_first && link.seq > expected {
            let (line, seq, time, prev) = (self.lines, link.seq, link.time, link.prev);
            self.beginning = Some(FirstRecord { line, seq, time, prev, expected });
            return;
        }
        if let Some((line, seq)) = self.places.get(&link.prev).copied() {
            // The chain goes on from an earlier record, past everything between.
            if link.seq == seq + 1 {
                for inserted in line + 1..self.lines {
                    self.fault(inserted, AuditFaultKind::Inserted);
                }
                return;
            }
        }
        if link.seq > expected {
            self.fault(self.lines, AuditFaultKind::Removed { from: expected, to: link.seq - 1 });
        } else {
            self.fault(self.lines, AuditFaultKind::Unlinked);
        }
    }

    fn check_texts(&mut self, link: &chain::ChainLine) {
        for digest in named(link) {
            self.texts += 1;
            match self.scripts.get(digest) {
                Ok(_) => {}
                Err(error) if error.is_gone() => {
                    self.without_text.push((self.lines, link.seq, digest));
                }
                Err(_) => self.fault(self.lines, AuditFaultKind::Text { digest }),
            }
        }
    }

    fn check_removal(&mut self, link: &chain::ChainLine) {
        let Some(removed) = removal_of(link) else { return };
        let place = self.places.get(&removed.to_hash);
        let is_seen = removed.to < link.seq && place.is_some_and(|(_, seq)| *seq == removed.to);
        let (line, seq, time) = (self.lines, link.seq, link.time);
        self.told.push(RemovalClaim { line, seq, time, removed, is_seen });
    }

    /// True if an anchor confirms the record, or if there is no anchor at all.
    fn is_confirmed(&self, told: &RemovalClaim) -> bool {
        self.anchors.confirmed.is_none_or(|confirmed| confirmed >= told.seq)
    }

    fn fault(&mut self, line: u64, kind: AuditFaultKind) {
        let fault = (line, kind);
        // A line between two that were put in may be blamed by both.
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn finish(mut self) -> Verification {
        let removed = self.begins_as_it_says();
        for (line, seq, digest) in std::mem::take(&mut self.without_text) {
            // A crash may leave records whose removal had begun, with their scripts. The first
            // record that claims the removal is confirmed first.
            match self.told.iter().find(|told| told.is_seen && told.removed.to >= seq) {
                Some(told) if self.is_confirmed(told) => {}
                Some(told) => {
                    let (line, to) = (told.line, told.removed.to);
                    self.fault(line, AuditFaultKind::NotConfirmed { to });
                }
                None => self.fault(line, AuditFaultKind::Text { digest }),
            }
        }
        let mut unmet: Vec<_> =
            std::mem::take(&mut self.anchors.waiting).into_values().flatten().collect();
        unmet.sort_by_key(|anchor| anchor.head.seq);
        for anchor in unmet {
            let (session, record) = (anchor.session.clone(), anchor.head.seq);
            if record > self.head.seq {
                self.fault(self.lines + 1, AuditFaultKind::Cut { session, record });
            }
        }
        self.faults.sort_by_key(|(line, _)| *line);
        let faults = std::mem::take(&mut self.faults);
        let faults = faults.into_iter().map(|(line, kind)| self.placed(line, kind)).collect();
        let Self { lines, texts, head, anchors: AnchorCheck { compared: anchors, .. }, .. } = self;
        Verification { lines, removed, anchors, texts, head, faults }
    }

    /// The removal, if the log begins directly after it; otherwise a fault.
    fn begins_as_it_says(&mut self) -> Option<RemovedRecord> {
        let begins = self.beginning.take()?;
        let seen = self.anchors.waiting.remove(&(begins.seq - 1)).unwrap_or_default();
        self.anchors.compared += seen.len();
        let fits = |told: &&RemovalClaim| {
            begins.follows(told, self.retention)
                && seen.iter().all(|anchor| anchor.head.hash == told.removed.to_hash)
        };
        // A removal that was recorded, begun and recorded again appears twice; the first one is
        // confirmed first.
        match self.told.iter().find(fits) {
            Some(told) if self.is_confirmed(told) => Some(told.removed.clone()),
            Some(told) => {
                let (line, to) = (told.line, told.removed.to);
                self.fault(line, AuditFaultKind::NotConfirmed { to });
                None
            }
            None => {
                let (from, to) = (begins.expected, begins.seq - 1);
                self.fault(begins.line, AuditFaultKind::Removed { from, to });
                None
            }
        }
    }

    /// The fault with its place in its file.
    fn placed(&self, line: u64, kind: AuditFaultKind) -> AuditFault {
        let at = self.files.partition_point(|(_, last)| *last < line);
        let before = at.checked_sub(1).and_then(|at| self.files.get(at)).map_or(0, |file| file.1);
        let file = self.files.get(at).map_or(&self.file, |(name, _)| name).clone();
        AuditFault { file, line: line - before, kind }
    }
}
