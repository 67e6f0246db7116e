//! The read set of a query: the files that its answer depends on. `agentd-store` reuses the cached
//! answer while all of them are unchanged.

use protocol::call::{Evidence, Part, Stamp};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// To look at more than this again would take as long as the query.
const PARTS: usize = 2_000;

/// Everything that counted, each before it was read.
#[derive(Debug)]
pub(crate) struct ReadSet {
    began: SystemTime,
    parts: Vec<Part>,
    /// Not everything could be noted: there is no evidence.
    lost: bool,
}

impl Default for ReadSet {
    fn default() -> Self {
        Self { began: SystemTime::now(), parts: Vec::new(), lost: false }
    }
}

impl ReadSet {
    /// Records the state of a path that is about to be read; links are not followed.
    pub fn record(&mut self, path: &Path) {
        if self.is_over() {
            return;
        }
        match path.symlink_metadata() {
            Ok(meta) => self.record_as(path, &meta),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                self.note(path, None);
            }
            Err(_) => self.forget(),
        }
    }

    /// The same with metadata that was taken before the read.
    pub fn record_as(&mut self, path: &Path, meta: &Metadata) {
        let nanoseconds = |seconds: i64, rest| seconds.saturating_mul(1_000_000_000) + rest;
        let stamp = Stamp {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
        };
        self.note(path, Some(stamp));
    }

    /// Something counted that cannot be noted.
    pub fn forget(&mut self) {
        self.lost = true;
        self.parts = Vec::new();
    }

    /// Adds the read set of another part of the query.
    pub fn merge(&mut self, other: Self) {
        self.began = self.began.min(other.began);
        if other.lost || self.parts.len() + other.parts.len() > PARTS {
            self.forget();
        }
        if !self.lost {
            self.parts.extend(other.parts);
        }
    }

    /// The complete read set, or `None`.
    pub fn evidence(self) -> Option<Evidence> {
        let began = self.began.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        let began = i64::try_from(began).ok()?;
        (!self.lost && !self.parts.is_empty()).then_some(Evidence { began, parts: self.parts })
    }

    fn note(&mut self, path: &Path, was: Option<Stamp>) {
        match path.to_str() {
            Some(path) if !self.is_over() => self.parts.push(Part { path: path.to_owned(), was }),
            Some(_) | None => self.forget(),
        }
    }

    fn is_over(&mut self) -> bool {
        if self.parts.len() == PARTS {
            self.forget();
        }
        self.lost
    }
}
