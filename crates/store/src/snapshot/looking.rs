//! What is at one name of a project: a copy of it, and what became of it since. For `snapshot`.

use super::compare::{self, After, Change, Copy, Entry, Now, Why};
use super::place::Place;
use super::tree::{Kind, Seen};
use super::{Before, Changed, LARGEST, keeping};
use crate::found::{UNKNOWN, digest_of, hex};
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use std::io::{Error, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The digest of what was changed again after the call: it is a conflict, whatever it is.
const SINCE: &str = "changed since";

/// A copy of what is at a name, if it is what was looked at, to the end.
pub(super) fn copy(project: &Path, path: &Path, entry: &Entry, room: u64) -> (Copy, Vec<u8>) {
    if entry.seen.kind != Kind::Link && entry.seen.stamp.size > room {
        return (Copy::Not(Why::NoRoom), Vec::new());
    }
    match same(project, path, &entry.seen) {
        Ok(Some(copied)) => copied,
        // Somebody is writing it: the next look finds that too.
        Ok(None) | Err(_) => (Copy::Not(Why::Unread), Vec::new()),
    }
}

fn same(project: &Path, path: &Path, seen: &Seen) -> Result<Option<(Copy, Vec<u8>)>, Error> {
    let Some(place) = Place::of(project, path)? else { return Ok(None) };
    let device = seen.stamp.device;
    if seen.kind == Kind::Link {
        let copy = match place.leads_to()?.into_string() {
            Ok(to) => Copy::Link(to),
            Err(_) => Copy::Not(Why::OddName),
        };
        let still = place.look(device)?.is_some_and(|now| now == *seen);
        return Ok(still.then_some((copy, Vec::new())));
    }
    let mut bytes = Vec::new();
    let Some(file) = place.file()? else { return Ok(None) };
    (&file).take(LARGEST + 1).read_to_end(&mut bytes)?;
    let still = Seen::of(&file.metadata()?, device) == *seen;
    let whole = bytes.len() as u64 == seen.stamp.size;
    Ok((still && whole).then(|| (Copy::Kept(hex(&Sha256::digest(&bytes))), bytes)))
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
    pub(super) fn now(&self, place: Option<&Place<'_>>, is: Option<&Seen>, until: Instant) -> Now {
        let Some((place, is)) = place.zip(is) else { return Now::Gone };
        match is.kind {
            Kind::Directory(_) => Now::Directory,
            Kind::Other => Now::Other,
            Kind::Link => match place.leads_to() {
                Ok(to) => Now::Link(to.to_string_lossy().into_owned()),
                Err(_) => Now::Other,
            },
            Kind::File => {
                let kept = !matches!(self.was, Some(Entry { copy: Copy::Not(_), .. }));
                let read = kept && self.real.to_str().is_some() && Instant::now() < until;
                let file = read.then(|| place.file().ok().flatten()).flatten();
                let digest = file.and_then(|file| {
                    let digest = digest_of(&file)?;
                    // What is said of its times has to be said of these bytes.
                    let still = Seen::of(&file.metadata().ok()?, is.stamp.device) == *is;
                    still.then_some(digest)
                });
                Now::File { digest, mode: is.mode }
            }
        }
    }

    pub(super) fn unseen(&self) -> Changed {
        self.not_covered("what is there now could not be looked at")
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
