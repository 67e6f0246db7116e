//! Walking a directory tree with the ignore rules that all tools share.
//!
//! The walk is our own, the pattern matching is ripgrep's. ripgrep's walker would open anything
//! named `.gitignore`, even a FIFO or a device, and would read ignore files above the granted
//! directory.

use crate::files::read_set::ReadSet;
use crate::files::safe_open;
use crate::tool_context::ToolContext;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, Glob};
use nix::fcntl::{AT_FDCWD, OFlag};
use nix::sys::stat::Mode;
use protocol::hidden::line_for_model;
use sandbox::CallScope;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, FileType};
use std::io::Read;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Always ignored; an ignore file cannot re-include them.
const ALWAYS_IGNORED: [&str; 3] = ["node_modules", ".git", ".agentd"];
/// Not even named in remarks.
const NEVER_FOUND: [&str; 2] = [".git", ".agentd"];
/// People do not write larger ignore files.
const RULES_BYTES: u64 = 1 << 20;
/// Most notes of a walk.
const NOTES: usize = 3;
/// A walk through ignored files stops after this many entries.
const IGNORED_SEEN: usize = 20_000;

/// A walk descends no further from where it begins: no project is so deep, and each level costs time
/// and memory at every name below it.
const DEEPEST: usize = 256;

/// How far down a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkDepth {
    /// The entries of the directory itself.
    OneLevel,
    /// Everything beneath.
    All,
}

/// Which side of the ignore rules a walk finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WalkSide {
    Unignored,
    /// Only ignored files, up to a bound.
    Ignored {
        /// Number of entries that may still be visited.
        left: usize,
    },
}

/// Something found on a walk.
#[derive(Debug)]
pub(crate) struct WalkEntry<'a> {
    /// Where, a real path.
    pub path: &'a Path,
    /// Its type; links are not followed.
    pub kind: FileType,
}

/// The entries below a directory, each level sorted by name, directories before their content.
#[derive(Debug)]
pub(crate) struct DirWalk {
    depth: WalkDepth,
    side: WalkSide,
    levels: Vec<WalkLevel>,
    /// Path of the last entry. One buffer serves all paths, because most are only inspected.
    path: PathBuf,
    /// From the granted directory down to the level that is walked.
    rules: Vec<IgnoreRules>,
    notes: Vec<String>,
    unread: usize,
    too_deep: usize,
    /// The number of entries that each ignore file kept out.
    ignored_by: BTreeMap<PathBuf, usize>,
    read_set: ReadSet,
}

#[derive(Debug)]
struct WalkLevel {
    directory: PathBuf,
    /// All names, one behind the other.
    names: Vec<u8>,
    /// True if everything in it is ignored.
    is_ignored: bool,
    entries: std::vec::IntoIter<(Range<usize>, FileType)>,
}

/// Presence of a name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamePresence {
    There,
    Missing,
    /// The directory was not listed.
    Unknown,
}

/// The ignore files of one directory, the stronger first.
#[derive(Debug)]
struct IgnoreRules {
    ignore: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
    /// Rules of git from further up end at a repository of its own.
    repository: bool,
}

impl DirWalk {
    /// A walk through `root`, a real path that the call names: that it is itself ignored does not
    /// matter. Rules hold from the granted directory around it on, none from above.
    pub fn new(ctx: &ToolContext<'_>, root: &Path, depth: WalkDepth) -> Self {
        let read_set = ctx.extras.read_set.clone();
        Self::on(WalkSide::Unignored, ctx.scope, root, depth, read_set)
    }

    /// A bounded walk through the ignored files below `root`, for a remark in an answer.
    pub fn through_ignored(ctx: &ToolContext<'_>, root: &Path, depth: WalkDepth) -> Self {
        let side = WalkSide::Ignored { left: IGNORED_SEEN };
        Self::on(side, ctx.scope, root, depth, ReadSet::unrecorded())
    }

    fn on(
        side: WalkSide,
        scope: &CallScope,
        root: &Path,
        depth: WalkDepth,
        read_set: ReadSet,
    ) -> Self {
        let mut walk = Self {
            depth,
            side,
            levels: Vec::new(),
            path: PathBuf::new(),
            rules: Vec::new(),
            notes: Vec::new(),
            unread: 0,
            too_deep: 0,
            ignored_by: BTreeMap::new(),
            read_set,
        };
        let top = scope.root_of(root).unwrap_or(root);
        let mut above: Vec<&Path> =
            root.ancestors().skip(1).take_while(|path| path.starts_with(top)).collect();
        above.reverse();
        for directory in above {
            walk.read_set.record(directory);
            walk.load(directory, |_| NamePresence::Unknown);
        }
        walk.descend(root.to_owned(), false);
        walk
    }

    /// The number of entries that each ignore file kept out, with the file's path.
    pub fn ignored_by(&self) -> &BTreeMap<PathBuf, usize> {
        &self.ignored_by
    }

    /// The notes for the result: ignore files that were not applied, unreadable directories.
    pub fn finish(mut self) -> Vec<String> {
        if self.unread > 0 {
            self.notes.push(format!("[{} directories could not be read]", self.unread));
            self.read_set.mark_incomplete();
        }
        if self.too_deep > 0 {
            self.notes.push(format!(
                "[{} directories are more than {DEEPEST} levels deep and were not searched; \
                    give one as path]",
                self.too_deep
            ));
        }
        self.notes
    }

    /// The next entry.
    pub fn next(&mut self) -> Option<WalkEntry<'_>> {
        loop {
            let level = self.levels.last_mut()?;
            let Some((range, kind)) = level.entries.next() else {
                self.levels.pop();
                self.rules.pop();
                continue;
            };
            let name = &level.names[range];
            let always = ALWAYS_IGNORED.iter().any(|ignored| name == ignored.as_bytes());
            let beneath = level.is_ignored;
            self.path.as_mut_os_string().clear();
            self.path.push(&level.directory);
            self.path.push(OsStr::from_bytes(name));
            let decided = match always || beneath {
                true => None,
                false => self.decided(&self.path, kind.is_dir()),
            };
            let rule = decided.filter(|rule| !rule.is_whitelist());
            let is_ignored = always || beneath || rule.is_some();
            let by = rule.and_then(Glob::from).map(Path::to_owned);
            match &mut self.side {
                WalkSide::Unignored if is_ignored => {
                    if let Some(by) = by {
                        *self.ignored_by.entry(by).or_default() += 1;
                    }
                    continue;
                }
                WalkSide::Unignored => {}
                WalkSide::Ignored { left: 0 } => return None,
                WalkSide::Ignored { .. }
                    if NEVER_FOUND.iter().any(|own| self.path.ends_with(own)) =>
                {
                    continue;
                }
                WalkSide::Ignored { left } => *left -= 1,
            }
            if kind.is_dir() && self.depth == WalkDepth::All {
                match self.levels.len() < DEEPEST {
                    true => self.descend(self.path.clone(), is_ignored),
                    false => self.too_deep += 1,
                }
            }
            if matches!(self.side, WalkSide::Ignored { .. }) && !is_ignored {
                continue;
            }
            return Some(WalkEntry { path: &self.path, kind });
        }
    }

    fn descend(&mut self, directory: PathBuf, is_ignored: bool) {
        self.read_set.record(&directory);
        let Ok(listed) = directory.read_dir() else {
            self.unread += 1;
            return;
        };
        let mut names = Vec::new();
        let mut entries: Vec<(Range<usize>, FileType)> = Vec::new();
        for entry in listed.filter_map(Result::ok) {
            let Ok(kind) = entry.file_type() else { continue };
            let from = names.len();
            names.append(&mut entry.file_name().into_vec());
            entries.push((from..names.len(), kind));
        }
        let name = |range: &Range<usize>| &names[range.clone()];
        entries.sort_unstable_by(|(a, _), (b, _)| name(a).cmp(name(b)));
        self.load(&directory, |wanted| {
            match entries.binary_search_by(|(range, _)| name(range).cmp(wanted.as_bytes())) {
                Ok(_) => NamePresence::There,
                // A later entry changes the directory, which is recorded.
                Err(_) => NamePresence::Missing,
            }
        });
        let entries = entries.into_iter();
        self.levels.push(WalkLevel { directory, names, is_ignored, entries });
    }

    /// Takes the rules of a directory; `listed` tells which names are in it.
    fn load(&mut self, directory: &Path, listed: impl Fn(&str) -> NamePresence) {
        let mut read = |first: &str, name: &str| {
            if listed(first) == NamePresence::Missing {
                return Gitignore::empty();
            }
            let mut builder = GitignoreBuilder::new(directory);
            let path = directory.join(name);
            self.read_set.record(&path);
            if path.is_symlink() {
                // The links on the way to its target are not recorded.
                self.read_set.mark_incomplete();
            }
            match text_of(&path) {
                Ok(Some(text)) => {
                    for line in text.lines() {
                        // A line that is no pattern is passed over, as git does.
                        let _ = builder.add_line(Some(path.clone()), line);
                    }
                }
                Ok(None) => {}
                Err(()) if self.notes.len() < NOTES => {
                    let shown = path.to_string_lossy();
                    self.notes.push(format!(
                        "[{} is not a valid ignore file and was not applied]",
                        line_for_model(&shown)
                    ));
                }
                Err(()) => {}
            }
            builder.build().unwrap_or_else(|_| Gitignore::empty())
        };
        let rules = IgnoreRules {
            ignore: read(".ignore", ".ignore"),
            git: read(".gitignore", ".gitignore"),
            exclude: read(".git", ".git/info/exclude"),
            repository: match listed(".git") {
                NamePresence::There => true,
                NamePresence::Missing => false,
                NamePresence::Unknown => directory.join(".git").symlink_metadata().is_ok(),
            },
        };
        self.rules.push(rules);
    }

    /// The nearest rule for a path; `.ignore` files of any level are stronger than git's.
    fn decided(&self, path: &Path, is_directory: bool) -> Option<&Glob> {
        let from = self.rules.iter().rposition(|rules| rules.repository).unwrap_or(0);
        let of_git = || self.rules[from..].iter().rev();
        first_match(self.rules.iter().rev().map(|rules| &rules.ignore), path, is_directory)
            .or_else(|| first_match(of_git().map(|rules| &rules.git), path, is_directory))
            .or_else(|| first_match(of_git().map(|rules| &rules.exclude), path, is_directory))
    }
}

/// The first of `rules` that matches a path.
fn first_match<'a>(
    mut rules: impl Iterator<Item = &'a Gitignore>,
    path: &Path,
    is_directory: bool,
) -> Option<&'a Glob> {
    rules.find_map(|rules| match rules.matched(path, is_directory) {
        Match::None => None,
        Match::Ignore(rule) | Match::Whitelist(rule) => Some(rule),
    })
}

/// The text of an ignore file; `None` if there is none, an error if it is not a regular file.
fn text_of(path: &Path) -> Result<Option<String>, ()> {
    // People link their ignore files; where a link leads is the cage's business.
    let Ok(meta) = path.metadata() else { return Ok(None) };
    if !meta.is_file() || meta.len() > RULES_BYTES {
        return Err(());
    }
    let real = path.canonicalize().map_err(|_| ())?;
    let fd = safe_open::open_no_links(AT_FDCWD, &real, OFlag::O_RDONLY, Mode::empty())
        .map_err(|_| ())?;
    let mut bytes = Vec::new();
    File::from(fd).take(RULES_BYTES).read_to_end(&mut bytes).map_err(|_| ())?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
