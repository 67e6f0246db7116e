//! Inspects one name of a project: copies its content, and finds its change since. For `snapshot`.

use super::compare::{
    self, ContentAfter, CurrentFile, NameChange, NoCopyReason, SnapshotEntry, StoredCopy,
};
use super::path::ProjectPath;
use super::tree::{EntryKind, TreeEntry};
use super::{ChangedFile, ContentBefore, LARGEST, format};
use crate::file_copy::{UNKNOWN, digest_of};
use data_encoding::HEXLOWER;
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use std::io::{Error, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The digest of a file that changed again after the call: always a conflict.
const SINCE: &str = "changed since";

/// A copy of a name's content, if the name did not change while it was read.
pub(super) fn copy(
    project: &Path,
    path: &Path,
    entry: &SnapshotEntry,
    room: u64,
) -> (StoredCopy, Vec<u8>) {
    if entry.seen.kind != EntryKind::Link && entry.seen.stamp.size > room {
        return (StoredCopy::Not(NoCopyReason::NoRoom), Vec::new());
    }
    match same(project, path, &entry.seen) {
        Ok(Some(copied)) => copied,
        // Another process is writing it; the next scan finds that too.
        Ok(None) | Err(_) => (StoredCopy::Not(NoCopyReason::Unread), Vec::new()),
    }
}

fn same(
    project: &Path,
    path: &Path,
    seen: &TreeEntry,
) -> Result<Option<(StoredCopy, Vec<u8>)>, Error> {
    let Some(place) = ProjectPath::of(project, path)? else { return Ok(None) };
    let device = seen.stamp.device;
    if seen.kind == EntryKind::Link {
        let copy = match place.leads_to()?.into_string() {
            Ok(to) => StoredCopy::Link(to),
            Err(_) => StoredCopy::Not(NoCopyReason::OddName),
        };
        let still = place.look(device)?.is_some_and(|now| now == *seen);
        return Ok(still.then_some((copy, Vec::new())));
    }
    let mut bytes = Vec::new();
    let Some(file) = place.file()? else { return Ok(None) };
    (&file).take(LARGEST + 1).read_to_end(&mut bytes)?;
    let still = TreeEntry::of(&file.metadata()?, device) == *seen;
    let whole = bytes.len() as u64 == seen.stamp.size;
    Ok((still && whole)
        .then(|| (StoredCopy::Kept(HEXLOWER.encode(&Sha256::digest(&bytes))), bytes)))
}

/// Who changed something last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangedBy {
    Call,
    Others,
}

/// One name to inspect.
pub(super) struct InspectedName<'a> {
    pub(super) path: &'a Path,
    pub(super) real: PathBuf,
    pub(super) was: Option<&'a SnapshotEntry>,
}

impl InspectedName<'_> {
    /// Its content, if there is time and reason to read it.
    pub(super) fn now(
        &self,
        place: Option<&ProjectPath<'_>>,
        is: Option<&TreeEntry>,
        until: Instant,
    ) -> CurrentFile {
        let Some((place, is)) = place.zip(is) else { return CurrentFile::Gone };
        match is.kind {
            EntryKind::Directory(_) => CurrentFile::Directory,
            EntryKind::Other => CurrentFile::Other,
            EntryKind::Link => match place.leads_to() {
                Ok(to) => CurrentFile::Link(to.to_string_lossy().into_owned()),
                Err(_) => CurrentFile::Other,
            },
            EntryKind::File => {
                let kept =
                    !matches!(self.was, Some(SnapshotEntry { copy: StoredCopy::Not(_), .. }));
                let read = kept && self.real.to_str().is_some() && Instant::now() < until;
                let file = read.then(|| place.file().ok().flatten()).flatten();
                let digest = file.and_then(|file| {
                    let digest = digest_of(&file)?;
                    // The stamp must belong to exactly these bytes.
                    let still = TreeEntry::of(&file.metadata().ok()?, is.stamp.device) == *is;
                    still.then_some(digest)
                });
                CurrentFile::File { digest, mode: is.mode }
            }
        }
    }

    pub(super) fn unseen(&self) -> ChangedFile {
        self.not_covered("the current content could not be read")
    }

    fn not_covered(&self, why: &str) -> ChangedFile {
        let path = self.real.to_string_lossy().into_owned();
        ChangedFile { path, before: ContentBefore::NotCovered(why.to_owned()), after: None }
    }

    pub(super) fn copy_is_gone(&self) -> ChangedFile {
        self.not_covered("its copy is gone")
    }

    /// A change with the content before it, from the file.
    pub(super) fn changed(
        &self,
        change: NameChange,
        by: ChangedBy,
        file: &Connection,
    ) -> rusqlite::Result<ChangedFile> {
        let mode = self.was.map_or(0, |was| was.seen.mode);
        let after = |digest: Option<String>| match by {
            ChangedBy::Others => SINCE.to_owned(),
            ChangedBy::Call => digest.unwrap_or_else(|| UNKNOWN.to_owned()),
        };
        let Some(path) = self.real.to_str().map(str::to_owned) else {
            return Ok(self.not_covered(NoCopyReason::OddName.text()));
        };
        let (before, after) = match change {
            NameChange::NotCovered(why) => return Ok(self.not_covered(why)),
            NameChange::Made { after: digest } => (ContentBefore::Absent, Some(after(digest))),
            NameChange::Mode { digest } => match format::bytes(file, self.path)? {
                Some(bytes) => {
                    let before = ContentBefore::Mode { bytes, mode, digest: digest.clone() };
                    (before, Some(after(Some(digest))))
                }
                None => return Ok(self.copy_is_gone()),
            },
            NameChange::Changed { after: is } => {
                let after = match is {
                    ContentAfter::Nothing => None,
                    ContentAfter::Something(digest) => Some(after(digest)),
                };
                let before = match self.was.map(|was| &was.copy) {
                    Some(StoredCopy::Link(to)) => ContentBefore::Link { digest: compare::link(to) },
                    Some(StoredCopy::Kept(digest)) => match format::bytes(file, self.path)? {
                        Some(bytes) => ContentBefore::File { bytes, mode, digest: digest.clone() },
                        None => return Ok(self.copy_is_gone()),
                    },
                    Some(StoredCopy::Rules(_) | StoredCopy::Not(_)) | None => ContentBefore::Absent,
                };
                (before, after)
            }
        };
        Ok(ChangedFile { path, before, after })
    }
}
