//! Finds a command's changes by comparing the state before it with the state after it. Pure.
//!
//! Undo restores a name only if it certainly existed before, or certainly did not. A new name may
//! be a file that was ignored before, or one in a directory that was not scanned; removing it would
//! lose data.

use super::tree::{ByPath, EntryKind, ListingState, ProjectTree, TreeEntry};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

/// The known state of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SnapshotEntry {
    pub(super) seen: TreeEntry,
    pub(super) proof: StampProof,
    pub(super) copy: StoredCopy,
}

/// The strength of an unchanged stamp as proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StampProof {
    /// That nothing was changed.
    Settled,
    /// None: the file was changed just before the scan, and the clock had not advanced since.
    Racy,
}

/// The stored copy of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoredCopy {
    /// A file's bytes; by their digest.
    Kept(String),
    /// Where a link leads.
    Link(String),
    /// Digest of a directory's ignore rules; empty if it has none.
    Rules(String),
    /// Nothing, and why not.
    Not(NoCopyReason),
}

/// Why nothing is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoCopyReason {
    NotYet,
    TooLarge,
    NoRoom,
    Unread,
    OddName,
    NoFile,
}

impl NoCopyReason {
    pub(super) const ALL: [Self; 6] =
        [Self::NotYet, Self::TooLarge, Self::NoRoom, Self::Unread, Self::OddName, Self::NoFile];

    /// For people, after `not covered`.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::NotYet => "there was no time to copy it before",
            Self::TooLarge => "larger than 256 KiB",
            Self::NoRoom => "the project has more than 64 MiB",
            Self::Unread => "it could not be read",
            Self::OddName => "its name is no UTF-8",
            Self::NoFile => "it was no file",
        }
    }
}

pub(super) type Index = ByPath<SnapshotEntry>;

/// The content of a name after the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CurrentFile {
    Gone,
    /// Its digest, where it could be taken.
    File {
        digest: Option<String>,
        mode: u32,
    },
    Link(String),
    Directory,
    Other,
}

/// The change of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NameChange {
    /// It was not there.
    Made { after: Option<String> },
    /// Its bytes or its kind changed; absent if nothing is there now.
    Changed { after: ContentAfter },
    /// Only its permissions are others.
    Mode { digest: String },
    /// It changed, but there is no copy of the content before.
    NotCovered(&'static str),
}

/// The content after the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContentAfter {
    Nothing,
    /// By its digest, if that could be taken.
    Something(Option<String>),
}

/// The digest of a link, as the wire has it.
pub(super) fn link(leads_to: &str) -> String {
    format!("{}{leads_to}", protocol::store::FileBackup::LINK)
}

/// The names to inspect: all others are certainly unchanged.
pub(super) fn suspects(before: &Index, after: &ProjectTree) -> Vec<OsString> {
    let mut found = Vec::new();
    let (mut was, mut is) = (before.iter().peekable(), after.entries.iter().peekable());
    loop {
        // Both are in the same order: one pass meets all of both.
        let order = match (was.peek(), is.peek()) {
            (None, None) => return found,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((was, _)), Some((is, _))) => was.cmp(is),
        };
        let was = if order.is_le() { was.next() } else { None };
        let is = if order.is_ge() { is.next() } else { None };
        let certain = match (was, is) {
            (Some((_, was)), Some((_, is))) => match (was.seen.kind, is.kind) {
                // Their content is inspected separately.
                (EntryKind::Directory(_), EntryKind::Directory(_)) => true,
                (_, _) => was.seen == *is && was.proof == StampProof::Settled,
            },
            (_, _) => false,
        };
        if !certain {
            let path = was.map(|(path, _)| path).or(is.map(|(path, _)| path));
            found.extend(path.cloned());
        }
    }
}

/// The change of a name that was known before.
pub(super) fn known(
    was: &SnapshotEntry,
    is: Option<&TreeEntry>,
    now: &CurrentFile,
) -> Option<NameChange> {
    let after = || match now {
        CurrentFile::Gone => Some(ContentAfter::Nothing),
        CurrentFile::File { digest, .. } => Some(ContentAfter::Something(digest.clone())),
        CurrentFile::Link(to) => Some(ContentAfter::Something(Some(link(to)))),
        CurrentFile::Directory | CurrentFile::Other => None,
    };
    match (&was.copy, now) {
        // Directories are created and removed with their content.
        (StoredCopy::Rules(_), CurrentFile::Gone | CurrentFile::Directory) => None,
        (StoredCopy::Rules(_), CurrentFile::File { digest, .. }) => {
            Some(NameChange::Made { after: digest.clone() })
        }
        (StoredCopy::Rules(_), CurrentFile::Link(to)) => {
            Some(NameChange::Made { after: Some(link(to)) })
        }
        (StoredCopy::Rules(_), CurrentFile::Other) => Some(NameChange::NotCovered("it is no file")),
        (StoredCopy::Kept(was_digest), CurrentFile::File { digest: Some(digest), mode })
            if was_digest == digest =>
        {
            let same_mode = (was.seen.mode ^ mode) & 0o7777 == 0;
            (!same_mode).then(|| NameChange::Mode { digest: digest.clone() })
        }
        (StoredCopy::Link(was), CurrentFile::Link(to)) if was == to => None,
        (StoredCopy::Kept(_) | StoredCopy::Link(_), _) => Some(match after() {
            Some(after) => NameChange::Changed { after },
            None => NameChange::NotCovered("it is no file now"),
        }),
        (StoredCopy::Not(NoCopyReason::NoFile), CurrentFile::Other) => None,
        (StoredCopy::Not(_), _) if is == Some(&was.seen) => None,
        (StoredCopy::Not(why), _) => Some(NameChange::NotCovered(why.text())),
    }
}

/// Evidence that separates new names from names that the scan before had missed.
pub(super) struct NewNameEvidence<'a> {
    pub(super) before: &'a Index,
    /// When the look before the command began.
    pub(super) since: i64,
    pub(super) after: &'a ProjectTree,
    /// The files whose names are gone, by device and number.
    pub(super) gone: HashSet<(u64, u64)>,
}

impl NewNameEvidence<'_> {
    /// True if an unknown name certainly did not exist before: its directory was listed without it,
    /// under ignore rules that still apply, and it was created or moved here since.
    pub(super) fn is_new(&self, path: &Path, is: &TreeEntry) -> bool {
        let moved_here = self.gone.contains(&(is.stamp.device, is.stamp.inode));
        if is.stamp.changed < self.since && !moved_here {
            return false;
        }
        let above = path.ancestors().skip(1);
        let mut above =
            above.filter_map(|above| Some((above, self.before.get(above.as_os_str())?)));
        let Some((nearest, was)) = above.next() else { return false };
        was.seen.kind != EntryKind::Directory(ListingState::Not)
            && std::iter::once((nearest, was)).chain(above).all(|(directory, was)| {
                let now = self.after.rules.get(directory.as_os_str()).map_or("", String::as_str);
                match &was.copy {
                    StoredCopy::Rules(was) => was == now,
                    // There was a file at this path before, so everything below it is new.
                    StoredCopy::Kept(_) | StoredCopy::Link(_) | StoredCopy::Not(_) => true,
                }
            })
    }
}

/// The change of a name that is certainly new.
pub(super) fn made(now: &CurrentFile) -> Option<NameChange> {
    match now {
        CurrentFile::Gone | CurrentFile::Directory => None,
        CurrentFile::File { digest, .. } => Some(NameChange::Made { after: digest.clone() }),
        CurrentFile::Link(to) => Some(NameChange::Made { after: Some(link(to)) }),
        CurrentFile::Other => Some(NameChange::NotCovered("it is no file")),
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
