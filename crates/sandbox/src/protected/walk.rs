//! Where in a granted directory protected names lie, by the names of its folders alone: at any depth,
//! for a bounded time. A command may have made what is read here. For `places` only.
//!
//! A folder whose full name is longer than the kernel takes is not entered: no program can be told of
//! one there by its name, and git and direnv ask for it.

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
/// Folders of dependencies and of builds, which are full of other people's names: nobody opens a
/// folder there to work in it, but git enters a repository wherever it lies.
const OF_OTHERS: [&str; 2] = ["node_modules", "target"];
/// What a folder has in it that git takes for a repository without a `.git`.
pub const GIT_BARE: [&str; 3] = ["HEAD", "objects", "refs"];
/// A file beside `HEAD` that says where the other two are.
const ELSEWHERE: &str = "commondir";

/// When the search is made.
#[derive(Debug)]
pub(super) enum SearchPhase<'a> {
    Before,
    /// Folders that the command closed to their owner are opened by these.
    After(&'a mut OpenedDirs),
}

/// A folder with protected names in it, or what could be one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundDir {
    pub folder: PathBuf,
    /// Which of the names that were looked for are there.
    pub names: Vec<&'static str>,
    pub shape: DirShape,
}

/// What git takes a folder for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirShape {
    /// Without regard to its `.git`.
    Folder,
    /// A repository without a working tree.
    Bare,
}

/// What a search came to.
#[derive(Debug, Default)]
pub(super) struct WalkOutcome {
    pub found: Vec<FoundDir>,
    /// What was not looked into when a bound was reached.
    pub unsearched: Vec<PathBuf>,
}

/// Searches these directories. `names` are those right in a folder, `.git` among them.
pub(super) fn walk(roots: &[PathBuf], names: &[&'static str], when: SearchPhase) -> WalkOutcome {
    let (time, doors) = match when {
        SearchPhase::Before => (BEFORE, None),
        SearchPhase::After(doors) => (AFTER, Some(doors)),
    };
    let mut search = DirWalker {
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
    names: &'a [&'static str],
    until: Instant,
    doors: Option<&'a mut OpenedDirs>,
    /// The nearest first: there people work.
    next: VecDeque<(PathBuf, DirOrigin)>,
    waiting: usize,
    found: Vec<FoundDir>,
}

impl DirWalker<'_> {
    /// Looks at the names in one folder.
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
            if may_be_protected(&name) {
                here.extend(self.names.iter().find(|known| is_same_name(&name, known)));
            }
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
        if among == DirOrigin::Dependency {
            here.retain(|name| *name == ".git");
        }
        if !here.is_empty() || shape == DirShape::Bare {
            // One that can be listed and not entered shows its names and nothing of them.
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

/// Whether a closer look is due: protected names begin with a dot, and other spellings of them with
/// what is no ASCII, or have a number behind a tilde.
fn may_be_protected(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b".") || !name.is_ascii() || name.contains(&b'~')
}

/// Whether a name is this one on a file system that folds case too: there it is the same file.
fn eq_ignoring_case(name: &OsStr, known: &str) -> bool {
    name.as_bytes().eq_ignore_ascii_case(known.as_bytes())
}
