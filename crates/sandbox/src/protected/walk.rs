//! Searches a granted directory for protected names, at any depth and for a bounded time. A command
//! may have made the folders that it reads.
//!
//! A folder whose path is longer than the kernel allows is skipped: git and direnv open files there
//! by full path, which fails.

use super::name_folding::is_same_name;
use super::opened_dirs::OpenedDirs;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a search may take before the command, whose cage waits for it, and after it.
const BEFORE: Duration = Duration::from_secs(4);
const AFTER: Duration = Duration::from_secs(8);
/// Most bytes of the names of folders that are still to be looked into, and most folders that are
/// found: a command may make any number.
const WAITING: usize = 32 << 20;
const MOST: usize = 20_000;
/// Longest name of a file that the kernel takes, in bytes (`PATH_MAX`, with the zero behind it).
const LONGEST: usize = 4095;
/// Folders of dependencies and builds, full of names of other projects. No user works in a folder
/// there, but git enters a repository wherever it lies.
pub(super) const OF_OTHERS: [&str; 2] = ["node_modules", "target"];
/// Names by which git recognizes a repository without a `.git`.
pub const GIT_BARE: [&str; 3] = ["HEAD", "objects", "refs"];
/// A file beside `HEAD` that says where the other two are.
pub(super) const ELSEWHERE: &str = "commondir";

/// When the search is made.
#[derive(Debug)]
pub(super) enum SearchPhase<'a> {
    Before,
    /// Folders that the command closed to their owner are opened by these.
    After(&'a mut OpenedDirs),
}

/// A folder with protected names, or with names that could be protected, and each directory that the
/// search began with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundDir {
    pub folder: PathBuf,
    /// Which of the names that were looked for are there.
    pub names: Vec<&'static str>,
    pub shape: DirShape,
}

/// How git treats a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirShape {
    /// Without regard to its `.git`.
    Folder,
    /// A repository without a working tree.
    Bare,
}

/// Result of a search.
#[derive(Debug, Default)]
pub(super) struct WalkOutcome {
    pub found: Vec<FoundDir>,
    /// Folders that were not searched when a limit was reached.
    pub unsearched: Vec<PathBuf>,
}

/// Searches these directories. `names` are those right in a folder, `.git` among them.
pub(super) fn walk(roots: &[PathBuf], names: &[&'static str], when: SearchPhase) -> WalkOutcome {
    let (time, doors) = match when {
        SearchPhase::Before => (BEFORE, None),
        SearchPhase::After(doors) => (AFTER, Some(doors)),
    };
    let mut search = DirWalker {
        roots,
        names,
        until: Instant::now() + time,
        doors,
        next: roots.iter().map(|root| (root.clone(), DirOrigin::Project)).collect(),
        waiting: 0,
        found: Vec::new(),
    };
    while let Some((folder, among)) = search.next.pop_front() {
        search.waiting = search.waiting.saturating_sub(folder.as_os_str().len());
        if search.visit(&folder, among) == WalkStep::OutOfBounds {
            search.next.push_front((folder, among));
            break;
        }
    }
    let unsearched = search.next.into_iter().map(|(folder, _)| folder).collect();
    search.found.sort_by(|one, two| one.folder.cmp(&two.folder));
    search.found.dedup_by(|one, two| one.folder == two.folder);
    WalkOutcome { found: search.found, unsearched }
}

/// Among whose names a folder lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirOrigin {
    Project,
    Dependency,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WalkStep {
    Done,
    OutOfBounds,
}

struct DirWalker<'a> {
    roots: &'a [PathBuf],
    names: &'a [&'static str],
    until: Instant,
    doors: Option<&'a mut OpenedDirs>,
    /// The nearest first: there people work.
    next: VecDeque<(PathBuf, DirOrigin)>,
    waiting: usize,
    found: Vec<FoundDir>,
}

impl DirWalker<'_> {
    /// Checks the names in one folder.
    fn visit(&mut self, folder: &Path, among: DirOrigin) -> WalkStep {
        if self.is_over() {
            return WalkStep::OutOfBounds;
        }
        let entries = match (std::fs::read_dir(folder), &mut self.doors) {
            (Ok(entries), _) => entries,
            (Err(_), Some(doors)) => {
                // Its own mode keeps us out, or that of the folder that it lies in.
                doors.open(folder.parent().unwrap_or(folder));
                doors.open(folder);
                let Ok(entries) = std::fs::read_dir(folder) else { return WalkStep::Done };
                entries
            }
            (Err(_), None) => return WalkStep::Done,
        };
        let mut here = Vec::new();
        let (mut bare, mut elsewhere) = ([false; GIT_BARE.len()], false);
        for (number, entry) in entries.flatten().enumerate() {
            if number % 1024 == 1023 && self.is_over() {
                return WalkStep::OutOfBounds;
            }
            let name = entry.file_name();
            here.extend(known_name(&name, self.names));
            if let Some(at) = GIT_BARE.iter().position(|part| eq_ignoring_case(&name, part)) {
                bare[at] = true;
            }
            elsewhere |= eq_ignoring_case(&name, ELSEWHERE);
            // A git folder has places of its own.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && name != ".git" {
                self.enqueue(entry.path(), among);
            }
        }
        // The first is `HEAD`.
        let is_bare = bare[0] && (elsewhere || bare == [true; GIT_BARE.len()]);
        let shape = if is_bare { DirShape::Bare } else { DirShape::Folder };
        let is_root = self.roots.iter().any(|root| root == folder);
        if among == DirOrigin::Dependency && !is_root && !here.contains(&".git") {
            here.clear();
        }
        if !here.is_empty() || shape == DirShape::Bare || is_root {
            // In a folder without search permission the names are visible, but their files are not.
            if let Some(doors) = &mut self.doors {
                doors.open(folder);
            }
            self.found.push(FoundDir { folder: folder.to_owned(), names: here, shape });
        }
        WalkStep::Done
    }

    fn enqueue(&mut self, folder: PathBuf, among: DirOrigin) {
        let bytes = folder.as_os_str().len();
        if bytes > LONGEST {
            return;
        }
        let of_others =
            folder.file_name().is_some_and(|name| OF_OTHERS.iter().any(|it| name == *it));
        self.waiting += bytes;
        self.next.push_back((folder, if of_others { DirOrigin::Dependency } else { among }));
    }

    fn is_over(&self) -> bool {
        self.waiting > WAITING || self.found.len() > MOST || Instant::now() > self.until
    }
}

/// The name among these that a file's name is a spelling of.
pub(super) fn known_name(name: &OsStr, names: &[&'static str]) -> Option<&'static str> {
    let mut names = names.iter().copied();
    match may_be_respelled(name) {
        true => names.find(|known| is_same_name(name, known)),
        false => names.find(|known| eq_ignoring_case(name, known)),
    }
}

/// Cheap first test: other spellings than those by letter case contain non-ASCII characters, a tilde
/// with a number or a colon, or end in a dot or space.
fn may_be_respelled(name: &OsStr) -> bool {
    let name = name.as_bytes();
    let is_marked = |byte: &u8| matches!(byte, b'~' | b':');
    !name.is_ascii() || name.iter().any(is_marked) || name.ends_with(b".") || name.ends_with(b" ")
}

/// True if the name equals this one on a case-insensitive file system.
pub(super) fn eq_ignoring_case(name: &OsStr, known: &str) -> bool {
    name.as_bytes().eq_ignore_ascii_case(known.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_name_is_known_and_no_other_name() {
        let names = ["mise.toml", ".envrc", ".git"];
        for (name, known) in [
            (".git", Some(".git")),
            (".GIT", Some(".git")),
            (".git.", Some(".git")),
            (".git ", Some(".git")),
            (".git:x", Some(".git")),
            ("git~1", Some(".git")),
            (".g\u{200c}it", Some(".git")),
            (".gitignore", None),
            (".env", None),
            ("Mise.TOML", Some("mise.toml")),
            ("mise.toml~", None),
        ] {
            assert_eq!(known_name(OsStr::new(name), &names), known, "{name:?}");
        }
    }
}
