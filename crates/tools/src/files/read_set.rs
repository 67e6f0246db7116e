//! The read set of a query: the files that its answer depends on. `agentd-store` reuses the cached
//! answer while all of them are unchanged.
//!
//! Opening a file (`safe_open`) and walking a directory (`walk`) record what they read; tools do not
//! have to. Clones share one set.

use protocol::call::{ReadEvidence, ReadPart, ReadStamp};
use std::collections::HashSet;
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Checking more than this again would take as long as the query.
const PARTS: usize = 2_000;

/// Records the state of each file before it is read.
#[derive(Debug, Clone)]
pub(crate) struct ReadSet(Option<Arc<Mutex<RecordedFiles>>>);

#[derive(Debug)]
struct RecordedFiles {
    began: SystemTime,
    parts: Vec<ReadPart>,
    known: HashSet<String>,
    /// The set is not complete: there is no evidence.
    is_incomplete: bool,
}

impl Default for ReadSet {
    fn default() -> Self {
        let (parts, known) = (Vec::new(), HashSet::new());
        let files = RecordedFiles { began: SystemTime::now(), parts, known, is_incomplete: false };
        Self(Some(Arc::new(Mutex::new(files))))
    }
}

impl ReadSet {
    /// Records nothing: for reads that no cached answer depends on.
    pub fn unrecorded() -> Self {
        Self(None)
    }

    /// The metadata of a path, recorded; links are not followed.
    ///
    /// # Errors
    /// The system's. A missing path is recorded as missing.
    pub fn stat(&self, path: &Path) -> io::Result<Metadata> {
        let found = path.symlink_metadata();
        match &found {
            Ok(meta) => self.record_as(path, meta),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                self.add(path, None);
            }
            Err(_) => self.mark_incomplete(),
        }
        found
    }

    /// Records the state of a path that is about to be read; links are not followed.
    pub fn record(&self, path: &Path) {
        if self.files().is_some_and(|files| !files.is_incomplete) {
            let _ = self.stat(path);
        }
    }

    /// The same with metadata that was taken before the read.
    pub fn record_as(&self, path: &Path, meta: &Metadata) {
        let nanoseconds = |seconds: i64, rest| seconds.saturating_mul(1_000_000_000) + rest;
        let stamp = ReadStamp {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
        };
        self.add(path, Some(stamp));
    }

    /// Gives up the set, because the answer depends on something that it cannot record.
    pub fn mark_incomplete(&self) {
        if let Some(mut files) = self.files() {
            files.forget();
        }
    }

    /// The complete read set, or `None`.
    pub fn evidence(&self) -> Option<ReadEvidence> {
        let files = self.files()?;
        let began = files.began.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        let began = i64::try_from(began).ok()?;
        (!files.is_incomplete && !files.parts.is_empty())
            .then(|| ReadEvidence { began, parts: files.parts.clone() })
    }

    fn files(&self) -> Option<MutexGuard<'_, RecordedFiles>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, path: &Path, was: Option<ReadStamp>) {
        let Some(mut files) = self.files() else { return };
        match path.to_str() {
            Some(path) if files.parts.len() < PARTS || files.known.contains(path) => {
                // The first state counts: it was taken before every read.
                if !files.is_incomplete && files.known.insert(path.to_owned()) {
                    files.parts.push(ReadPart { path: path.to_owned(), was });
                }
            }
            Some(_) | None => files.forget(),
        }
    }
}

impl RecordedFiles {
    fn forget(&mut self) {
        self.is_incomplete = true;
        self.parts = Vec::new();
        self.known = HashSet::new();
    }
}
