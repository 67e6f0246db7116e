//! What lies in a project as one sees it without opening its files: names, kinds, sizes, times. For
//! `snapshot`.

use super::ignored::{ALWAYS, RULES, Rules};
use protocol::call::Stamp;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Most entries that are looked at: a look at so many takes some tenth of a second.
pub(super) const ENTRIES: usize = 50_000;
/// Most bytes of all their paths: a deep tree of long names would be kept whole in memory and on disk.
const PATH_BYTES: usize = 16 << 20;
/// Most directories one in the other. No project is so deep, and each level costs time at every name
/// below it.
const DEEPEST: usize = 256;
/// Names between two looks at the clock.
const NAMES: usize = 256;

/// What something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Link,
    Directory(Listed),
    /// A pipe, a socket, a device, or what lies on another filesystem.
    Other,
}

/// Whether all that is in a directory was seen, but for what is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    All,
    Not,
}

/// One name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) stamp: Stamp,
}

/// Things by their paths from the project on; the project itself is the empty one. Paths are compared
/// by their bytes: comparing them part by part takes longer than all the rest of a look.
pub(super) type ByPath<T> = BTreeMap<OsString, T>;

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    /// When the look began, in nanoseconds of Unix time.
    pub(super) began: i64,
    pub(super) entries: ByPath<Seen>,
    /// Of each directory that has rules of what is ignored, what they say, in short.
    pub(super) rules: ByPath<String>,
}

impl Seen {
    pub(super) fn of(meta: &Metadata, device: u64) -> Self {
        let kind = match meta.file_type() {
            kind if kind.is_symlink() => Kind::Link,
            _ if meta.dev() != device => Kind::Other,
            kind if kind.is_dir() => Kind::Directory(Listed::All),
            kind if kind.is_file() => Kind::File,
            _ => Kind::Other,
        };
        let nanoseconds = |seconds: i64, rest| seconds.saturating_mul(1_000_000_000) + rest;
        let stamp = Stamp {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
        };
        Self { kind, mode: meta.permissions().mode(), stamp }
    }
}

impl Tree {
    /// Looks until then at most; directories that were not listed say so.
    pub(super) fn of(project: &Path, device: u64, until: Instant) -> Self {
        let mut tree = Self { began: now(), entries: BTreeMap::new(), rules: BTreeMap::new() };
        let Ok(root) = project.symlink_metadata() else { return tree };
        let root = Seen::of(&root, device);
        tree.entries.insert(OsString::new(), root);
        let mut found: Vec<(OsString, Seen)> = Vec::new();
        let mut path_bytes = 0;
        let mut left = vec![Left { directory: PathBuf::new(), depth: 0, rules: None }];
        while let Some(Left { directory, depth, rules }) = left.pop() {
            let room = match path_bytes < PATH_BYTES && depth < DEEPEST {
                true => ENTRIES.saturating_sub(found.len()),
                false => 0,
            };
            let listed = match list(&project.join(&directory), room, until) {
                Some((names, mut whole)) => {
                    let has_rules = names.iter().any(|(name, _)| RULES.iter().any(|it| name == it));
                    let rules = match has_rules {
                        true => {
                            let (rules, says) = Rules::of(&project.join(&directory), rules);
                            tree.rules.insert(directory.clone().into(), says);
                            Some(Rc::new(rules))
                        }
                        false => rules,
                    };
                    for (number, (name, meta)) in names.into_iter().enumerate() {
                        // Rules may be many, and slow.
                        let is_late = number % NAMES == NAMES - 1 && Instant::now() > until;
                        if is_late || path_bytes >= PATH_BYTES {
                            whole = Listed::Not;
                            break;
                        }
                        let Some(meta) = meta else { continue };
                        let seen = Seen::of(&meta, device);
                        let path = directory.join(name);
                        let ignored = rules.as_ref().is_some_and(|rules| {
                            rules.ignored(&project.join(&path), meta.is_dir())
                        });
                        if ignored {
                            continue;
                        }
                        path_bytes += path.as_os_str().len();
                        if matches!(seen.kind, Kind::Directory(_)) {
                            let (directory, rules) = (path.clone(), rules.clone());
                            left.push(Left { directory, depth: depth + 1, rules });
                        }
                        found.push((path.into(), seen));
                    }
                    whole
                }
                None => Listed::Not,
            };
            if listed == Listed::Not {
                found.push((directory.into(), Seen { kind: Kind::Directory(Listed::Not), ..root }));
            }
        }
        // One that could not be listed stands there twice, and the second time counts.
        tree.entries.extend(found);
        tree
    }
}

/// A directory that is still to be listed.
struct Left {
    directory: PathBuf,
    /// How many directories it lies in.
    depth: usize,
    /// The rules that hold around it.
    rules: Option<Rc<Rules>>,
}

type Names = Vec<(OsString, Option<Metadata>)>;

/// What is in a directory, but what is never looked at. Names of rules come without more.
fn list(directory: &Path, room: usize, until: Instant) -> Option<(Names, Listed)> {
    if room == 0 || Instant::now() > until {
        return None;
    }
    let (mut names, mut listed) = (Names::new(), Listed::All);
    for entry in directory.read_dir().ok()? {
        let Ok(entry) = entry else { return Some((names, Listed::Not)) };
        let name = entry.file_name();
        if ALWAYS.iter().any(|ignored| name == *ignored) {
            if name == ".git" {
                names.push((name, None));
            }
            continue;
        }
        if names.len() + 1 >= room || names.len() % NAMES == NAMES - 1 && Instant::now() > until {
            return Some((names, Listed::Not));
        }
        match entry.metadata() {
            Ok(meta) => names.push((name, Some(meta))),
            // What went away meanwhile is not there.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // It is there, and nothing else is known of it.
            Err(_) => listed = Listed::Not,
        }
    }
    Some((names, listed))
}

/// Nanoseconds of Unix time.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
