//! What a command changed, from what was known before it and what is there after it. Pure.
//!
//! Only what was certainly there before, or certainly was not, can be put back as it was: a new name
//! may be a file that was ignored before, or that lies where nobody had looked, and taking it away
//! would lose it.

use super::tree::{ByPath, Kind, Listed, Seen, Tree};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

/// What is known of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) seen: Seen,
    pub(super) proof: Proof,
    pub(super) copy: Copy,
}

/// What an unchanged stamp proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// That nothing was changed.
    Settled,
    /// Nothing: it was changed just before it was looked at, and the clock had not moved on.
    Racy,
}

/// What is kept of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Copy {
    /// A file's bytes; by their digest.
    Kept(String),
    /// Where a link leads.
    Link(String),
    /// What a directory's rules say of what is ignored, in short; empty where it has none.
    Rules(String),
    /// Nothing, and why not.
    Not(Why),
}

/// Why nothing is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    NotYet,
    TooLarge,
    NoRoom,
    Unread,
    OddName,
    NoFile,
}

impl Why {
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

pub(super) type Index = ByPath<Entry>;

/// What is at a name after the command, looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Now {
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

/// What became of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// It was not there.
    Made { after: Option<String> },
    /// Its bytes, or what it is, are others; absent where nothing is there now.
    Changed { after: After },
    /// Only its permissions are others.
    Mode { digest: String },
    /// Something happened to it, but what was there is not kept.
    NotCovered(&'static str),
}

/// What is there instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    /// By its digest, if that could be taken.
    Something(Option<String>),
}

/// The digest of a link, as the wire has it.
pub(super) fn link(leads_to: &str) -> String {
    format!("{}{leads_to}", protocol::store::KeptFile::LINK)
}

/// The names that have to be looked at: all others are certainly as they were.
pub(super) fn suspects(before: &Index, after: &Tree) -> Vec<OsString> {
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
                // What is in them is looked at by itself.
                (Kind::Directory(_), Kind::Directory(_)) => true,
                (_, _) => was.seen == *is && was.proof == Proof::Settled,
            },
            (_, _) => false,
        };
        if !certain {
            let path = was.map(|(path, _)| path).or(is.map(|(path, _)| path));
            found.extend(path.cloned());
        }
    }
}

/// What became of a name that was known before.
pub(super) fn known(was: &Entry, is: Option<&Seen>, now: &Now) -> Option<Change> {
    let after = || match now {
        Now::Gone => Some(After::Nothing),
        Now::File { digest, .. } => Some(After::Something(digest.clone())),
        Now::Link(to) => Some(After::Something(Some(link(to)))),
        Now::Directory | Now::Other => None,
    };
    match (&was.copy, now) {
        // Directories come and go with what is in them.
        (Copy::Rules(_), Now::Gone | Now::Directory) => None,
        (Copy::Rules(_), Now::File { digest, .. }) => Some(Change::Made { after: digest.clone() }),
        (Copy::Rules(_), Now::Link(to)) => Some(Change::Made { after: Some(link(to)) }),
        (Copy::Rules(_), Now::Other) => Some(Change::NotCovered("it is no file")),
        (Copy::Kept(was_digest), Now::File { digest: Some(digest), mode })
            if was_digest == digest =>
        {
            let same_mode = (was.seen.mode ^ mode) & 0o7777 == 0;
            (!same_mode).then(|| Change::Mode { digest: digest.clone() })
        }
        (Copy::Link(was), Now::Link(to)) if was == to => None,
        (Copy::Kept(_) | Copy::Link(_), _) => Some(match after() {
            Some(after) => Change::Changed { after },
            None => Change::NotCovered("it is no file now"),
        }),
        (Copy::Not(Why::NoFile), Now::Other) => None,
        (Copy::Not(_), _) if is == Some(&was.seen) => None,
        (Copy::Not(why), _) => Some(Change::NotCovered(why.text())),
    }
}

/// What tells new names from those that were only not seen before.
pub(super) struct Evidence<'a> {
    pub(super) before: &'a Index,
    /// When the look before the command began.
    pub(super) since: i64,
    pub(super) after: &'a Tree,
    /// The files whose names are gone, by device and number.
    pub(super) gone: HashSet<(u64, u64)>,
}

impl Evidence<'_> {
    /// Whether a name that was not known certainly was not there: its directory was listed without
    /// it, by rules that still hold, and it was made, or moved here, since.
    pub(super) fn is_new(&self, path: &Path, is: &Seen) -> bool {
        let moved_here = self.gone.contains(&(is.stamp.device, is.stamp.inode));
        if is.stamp.changed < self.since && !moved_here {
            return false;
        }
        let above = path.ancestors().skip(1);
        let mut above =
            above.filter_map(|above| Some((above, self.before.get(above.as_os_str())?)));
        let Some((nearest, was)) = above.next() else { return false };
        was.seen.kind != Kind::Directory(Listed::Not)
            && std::iter::once((nearest, was)).chain(above).all(|(directory, was)| {
                let now = self.after.rules.get(directory.as_os_str()).map_or("", String::as_str);
                match &was.copy {
                    Copy::Rules(was) => was == now,
                    // A file was there: what is below it now is new.
                    Copy::Kept(_) | Copy::Link(_) | Copy::Not(_) => true,
                }
            })
    }
}

/// What became of a new name that certainly is new.
pub(super) fn made(now: &Now) -> Option<Change> {
    match now {
        Now::Gone | Now::Directory => None,
        Now::File { digest, .. } => Some(Change::Made { after: digest.clone() }),
        Now::Link(to) => Some(Change::Made { after: Some(link(to)) }),
        Now::Other => Some(Change::NotCovered("it is no file")),
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
