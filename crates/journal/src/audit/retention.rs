//! Retention of the audit log: when the current file is rotated, and when the oldest file is
//! removed, with the scripts that only its records refer to. The log records each removal before it
//! happens.

use super::files::{self, AuditLines, Earlier};
use super::last_line::last_line;
use super::{FILE, SCRIPTS, chain};
use crate::blobs::Blobs;
use crate::{Digest, LineFault, RemovedRecord, RetentionBound, spill};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

/// A text that was written or named so lately stays: the record that names it may not be there yet.
const BEING_NAMED: Duration = Duration::from_secs(600);

/// The bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// A file is put away at this length, texts that were kept meanwhile included.
    pub file_bytes: u64,
    /// And at this age, or a log that grows slowly would never have an old file.
    pub file_age: Duration,
    /// The oldest file goes where all files and texts together are longer.
    pub all_bytes: u64,
    /// Also requires that all its records are older. [`crate::verify`] rejects a log that claims to
    /// have removed newer records for their age.
    pub age: Duration,
}

impl Default for Retention {
    /// Thousands of calls a file, some hundred thousand in total, kept for one year and one month.
    fn default() -> Self {
        let day = Duration::from_secs(86_400);
        Self { file_bytes: 16 << 20, file_age: day * 30, all_bytes: 1 << 30, age: day * 400 }
    }
}

impl Retention {
    /// True if a file of this length, with a first record of this age, must be rotated.
    pub(super) fn is_full(&self, bytes: u64, since: u64, now: u64) -> bool {
        bytes >= self.file_bytes || older(since, now, self.file_age)
    }
}

pub(super) fn older(time: u64, now: u64, age: Duration) -> bool {
    u128::from(now.saturating_sub(time)) >= age.as_millis()
}

/// The oldest file, if the bounds say that it goes, and the record of that. One whose end does not meet
/// the beginning of the next stays: it is evidence.
pub(super) fn oldest(
    dir: &Path,
    retention: &Retention,
    now: u64,
) -> io::Result<Option<(Earlier, RemovedRecord)>> {
    let mut earlier = files::earlier(dir)?.into_iter();
    let Some(oldest) = earlier.next() else { return Ok(None) };
    let next = earlier.next().map_or_else(|| dir.join(FILE), |file| file.path);
    let file = File::open(&oldest.path)?;
    let ends = (files::first_of(&file)?, files::first_of(&File::open(&next)?)?);
    let (Some((from, _)), Some((_, before))) = ends else { return Ok(None) };
    let bound = match (bytes(dir)? > retention.all_bytes, older(before, now, retention.age)) {
        (true, _) => RetentionBound::Size,
        (false, true) => RetentionBound::Age,
        (false, false) => return Ok(None),
    };
    let last = last_line(&file, file.metadata()?.len())?.1;
    let mut first = Vec::new();
    BufReader::new(File::open(&next)?).read_until(b'\n', &mut first)?;
    let (Ok(last), Ok(first)) = (link(&last), link(&first)) else { return Ok(None) };
    let meets = first.prev == last.hash && first.seq == last.seq + 1;
    let removed = RemovedRecord { from, to: last.seq, to_hash: last.hash, before, bound };
    Ok(meets.then_some((oldest, removed)))
}

fn link(line: &[u8]) -> Result<chain::ChainLine, LineFault> {
    chain::open(line.strip_suffix(b"\n").unwrap_or(line))
}

/// Bytes of all files and texts.
fn bytes(dir: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for place in [dir.to_owned(), dir.join(SCRIPTS)] {
        let listing = match fs::read_dir(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            listing => listing?,
        };
        for entry in listing {
            // A file that is gone already takes no space.
            sum +=
                entry?.metadata().map_or(0, |found| if found.is_file() { found.len() } else { 0 });
        }
    }
    Ok(sum)
}

/// The texts that this file, the oldest, names and no other does.
pub(super) fn texts_of(dir: &Path, doomed: &Earlier) -> io::Result<BTreeSet<Digest>> {
    let mut texts = BTreeSet::new();
    let mut lines = AuditLines::open(dir)?;
    while let Some(line) = lines.next()? {
        let is_doomed = lines.path == doomed.path;
        if !is_doomed && texts.is_empty() {
            break;
        }
        if !may_name_a_text(&line) {
            continue;
        }
        match (chain::open(&line), is_doomed) {
            (Ok(link), true) => texts.extend(named(&link)),
            (Ok(link), false) => named(&link).iter().for_each(|text| {
                texts.remove(text);
            }),
            (Err(_), true) => {}
            // A damaged line may have referred to any digest among its bytes.
            (Err(_), false) => texts
                .retain(|text| memchr::memmem::find(&line, text.to_string().as_bytes()).is_none()),
        }
    }
    Ok(texts)
}

fn may_name_a_text(line: &[u8]) -> bool {
    spill::may_refer(line) || memchr::memmem::find(line, br#""script":"#).is_some()
}

/// The texts that a record names.
pub(super) fn named(link: &chain::ChainLine) -> Vec<Digest> {
    // A record with the script's text names no file.
    let script = link.fields.get("script").filter(|_| !link.fields.contains_key("script_text"));
    let script = script.and_then(serde_json::Value::as_str);
    let script = script.and_then(|digest| digest.parse().ok());
    script
        .into_iter()
        .chain(spill::references(&link.fields).into_iter().map(|(it, _)| it))
        .collect()
}

/// Removes these scripts and the file. The log's lock is held, so that no new record refers to one
/// of them meanwhile.
pub(super) fn remove(dir: &Path, doomed: &Earlier, texts: &BTreeSet<Digest>) -> io::Result<()> {
    let kept = Blobs::at(dir.join(SCRIPTS));
    for text in texts {
        kept.remove(*text, BEING_NAMED)?;
    }
    match fs::remove_file(&doomed.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| crate::disk::sync_dir(dir)),
    }
}

/// True if a later record says that this record was removed.
pub(super) fn tells_of(dir: &Path, seq: u64) -> io::Result<bool> {
    let mut lines = AuditLines::open(dir)?;
    while let Some(line) = lines.next()? {
        if removal(&line).is_some_and(|(by, removed)| (seq..by).contains(&removed.to)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The removal that this line records, if any, with the line's own number.
fn removal(line: &[u8]) -> Option<(u64, RemovedRecord)> {
    memchr::memmem::find(line, br#""event":"removed""#)?;
    let link = chain::open(line).ok()?;
    Some((link.seq, removal_of(&link)?))
}

/// The removal that this record describes, if any.
pub(super) fn removal_of(link: &chain::ChainLine) -> Option<RemovedRecord> {
    let is_removal =
        link.fields.get("event").and_then(serde_json::Value::as_str) == Some("removed");
    let fields = serde_json::Value::Object(link.fields.clone());
    is_removal.then(|| serde_json::from_value(fields).ok())?
}
