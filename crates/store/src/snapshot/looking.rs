//! What is at one name of a project: a copy of it, and what became of it since. For `snapshot`.

use super::compare::{self, After, Change, Copy, Entry, Now, Why};
use super::tree::{Kind, Seen};
use super::{Before, Changed, LARGEST, keeping};
use crate::found::{UNKNOWN, digest_now, hex, open};
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The digest of what was changed again after the call: it is a conflict, whatever it is.
const SINCE: &str = "changed since";

/// A copy of what is at a path, if they are those that were looked at.
pub(super) fn copy(path: &Path, entry: &Entry, room: u64) -> (Copy, Vec<u8>) {
    let not = |why| (Copy::Not(why), Vec::new());
    if entry.seen.kind == Kind::Link {
        return match std::fs::read_link(path) {
            Ok(to) => match to.to_str() {
                Some(to) => (Copy::Link(to.to_owned()), Vec::new()),
                None => not(Why::OddName),
            },
            Err(_) => not(Why::Unread),
        };
    }
    if entry.seen.stamp.size > room {
        return not(Why::NoRoom);
    }
    let mut bytes = Vec::new();
    let Ok(Some(file)) = open(path) else { return not(Why::Unread) };
    match file.take(LARGEST + 1).read_to_end(&mut bytes) {
        Ok(length) if length as u64 == entry.seen.stamp.size => {}
        // Somebody is writing it: the next look finds that too.
        Ok(_) | Err(_) => return not(Why::Unread),
    }
    (Copy::Kept(hex(&Sha256::digest(&bytes))), bytes)
}

/// Who changed something last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Call,
    Others,
}

/// One name that is to be looked at.
pub(super) struct Name<'a> {
    pub(super) path: &'a Path,
    pub(super) real: PathBuf,
    pub(super) was: Option<&'a Entry>,
}

impl Name<'_> {
    /// What is there, as far as there is time and reason to read it.
    pub(super) fn now(&self, is: Option<&Seen>, until: Instant) -> Now {
        let Some(is) = is else { return Now::Gone };
        match is.kind {
            Kind::Directory(_) => Now::Directory,
            Kind::Other => Now::Other,
            Kind::Link => match std::fs::read_link(&self.real) {
                Ok(to) => Now::Link(to.to_string_lossy().into_owned()),
                Err(_) => Now::Gone,
            },
            Kind::File => {
                let kept = !matches!(self.was, Some(Entry { copy: Copy::Not(_), .. }));
                let text = self.real.to_str().filter(|_| kept && Instant::now() < until);
                let digest = text.and_then(digest_now).filter(|digest| digest != UNKNOWN);
                Now::File { digest, mode: is.mode }
            }
        }
    }

    fn not_covered(&self, why: &str) -> Changed {
        let path = self.real.to_string_lossy().into_owned();
        Changed { path, before: Before::NotCovered(why.to_owned()), after: None }
    }

    pub(super) fn copy_is_gone(&self) -> Changed {
        self.not_covered("its copy is gone")
    }

    /// A change with what was there before, from the file.
    pub(super) fn changed(
        &self,
        change: Change,
        by: By,
        file: &Connection,
    ) -> rusqlite::Result<Changed> {
        let mode = self.was.map_or(0, |was| was.seen.mode);
        let after = |digest: Option<String>| match by {
            By::Others => SINCE.to_owned(),
            By::Call => digest.unwrap_or_else(|| UNKNOWN.to_owned()),
        };
        let Some(path) = self.real.to_str().map(str::to_owned) else {
            return Ok(self.not_covered(Why::OddName.text()));
        };
        let (before, after) = match change {
            Change::NotCovered(why) => return Ok(self.not_covered(why)),
            Change::Made { after: digest } => (Before::Absent, Some(after(digest))),
            Change::Mode { digest } => match keeping::bytes(file, self.path)? {
                Some(bytes) => {
                    let before = Before::Mode { bytes, mode, digest: digest.clone() };
                    (before, Some(after(Some(digest))))
                }
                None => return Ok(self.copy_is_gone()),
            },
            Change::Changed { after: is } => {
                let after = match is {
                    After::Nothing => None,
                    After::Something(digest) => Some(after(digest)),
                };
                let before = match self.was.map(|was| &was.copy) {
                    Some(Copy::Link(to)) => Before::Link { digest: compare::link(to) },
                    Some(Copy::Kept(digest)) => match keeping::bytes(file, self.path)? {
                        Some(bytes) => Before::File { bytes, mode, digest: digest.clone() },
                        None => return Ok(self.copy_is_gone()),
                    },
                    Some(Copy::Rules(_) | Copy::Not(_)) | None => Before::Absent,
                };
                (before, after)
            }
        };
        Ok(Changed { path, before, after })
    }
}
