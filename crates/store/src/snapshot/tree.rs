//! The names, kinds, sizes and times of a project's files, read without opening them. For
//! `snapshot`.

use super::ignored::{ALWAYS, IgnoreRules, RULES};
use super::tree_watch::TreeWatch;
use protocol::call::ReadStamp;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Maximum number of entries of a scan; this many take about a tenth of a second.
pub(super) const ENTRIES: usize = 50_000;
/// Most bytes of all their paths: a deep tree of long names would be kept whole in memory and on disk.
const PATH_BYTES: usize = 16 << 20;
/// Most directories one in the other. No project is so deep, and each level costs time at every name
/// below it.
const DEEPEST: usize = 256;
/// Names between two checks of the clock.
const NAMES: usize = 256;

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Link,
    Directory(ListingState),
    /// A pipe, socket or device, or an entry on another filesystem.
    Other,
}

/// Whether a directory was listed completely, apart from ignored names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListingState {
    All,
    Not,
}

/// One name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TreeEntry {
    pub(super) kind: EntryKind,
    pub(super) mode: u32,
    pub(super) stamp: ReadStamp,
}

/// Entries by their paths relative to the project; the project itself is the empty path. Paths are
/// compared as bytes, since comparing them part by part takes longer than the rest of a scan.
pub(super) type ByPath<T> = BTreeMap<OsString, T>;

/// The whole project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProjectTree {
    /// When the look began, in nanoseconds of Unix time.
    pub(super) began: i64,
    pub(super) entries: ByPath<TreeEntry>,
    /// For each directory with ignore rules, a digest of them.
    pub(super) rules: ByPath<String>,
}

impl TreeEntry {
    pub(super) fn of(meta: &Metadata, device: u64) -> Self {
        let kind = match meta.file_type() {
            kind if kind.is_symlink() => EntryKind::Link,
            _ if meta.dev() != device => EntryKind::Other,
            kind if kind.is_dir() => EntryKind::Directory(ListingState::All),
            kind if kind.is_file() => EntryKind::File,
            _ => EntryKind::Other,
        };
        let nanoseconds = |seconds: i64, rest| seconds.saturating_mul(1_000_000_000) + rest;
        let stamp = ReadStamp {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
        };
        Self { kind, mode: meta.permissions().mode(), stamp }
    }
}

impl ProjectTree {
    /// Scans until the deadline; unlisted directories are marked. The listed ones are watched.
    pub(super) fn of(
        project: &Path,
        device: u64,
        until: Instant,
        mut watch: Option<&mut TreeWatch>,
    ) -> Self {
        if let Some(watch) = &mut watch {
            watch.begin_scan();
        }
        let mut tree = Self { began: now(), entries: BTreeMap::new(), rules: BTreeMap::new() };
        // A file with several names, of which some may lie elsewhere, gives no event for those.
        let mut has_several_names = false;
        let Ok(root) = project.symlink_metadata() else { return tree };
        let root = TreeEntry::of(&root, device);
        tree.entries.insert(OsString::new(), root);
        let mut found: Vec<(OsString, TreeEntry)> = Vec::new();
        let mut path_bytes = 0;
        let mut left = vec![PendingDir { directory: PathBuf::new(), depth: 0, rules: None }];
        while let Some(PendingDir { directory, depth, rules }) = left.pop() {
            let room = match path_bytes < PATH_BYTES && depth < DEEPEST {
                true => ENTRIES.saturating_sub(found.len()),
                false => 0,
            };
            if let Some(watch) = &mut watch {
                watch.add(&project.join(&directory));
            }
            let listed = match list(&project.join(&directory), room, until) {
                Some((names, mut whole)) => {
                    let has_rules = names.iter().any(|(name, _)| RULES.iter().any(|it| name == it));
                    let rules = match has_rules {
                        true => {
                            let (rules, says) = IgnoreRules::of(&project.join(&directory), rules);
                            tree.rules.insert(directory.clone().into(), says);
                            Some(Rc::new(rules))
                        }
                        false => rules,
                    };
                    for (number, (name, meta)) in names.into_iter().enumerate() {
                        // Rules may be many, and slow.
                        let is_late = number % NAMES == NAMES - 1 && Instant::now() > until;
                        if is_late || path_bytes >= PATH_BYTES {
                            whole = ListingState::Not;
                            break;
                        }
                        let Some(meta) = meta else { continue };
                        let seen = TreeEntry::of(&meta, device);
                        let path = directory.join(name);
                        let ignored = rules.as_ref().is_some_and(|rules| {
                            rules.ignored(&project.join(&path), meta.is_dir())
                        });
                        if ignored {
                            continue;
                        }
                        path_bytes += path.as_os_str().len();
                        has_several_names |= meta.is_file() && meta.nlink() > 1;
                        if matches!(seen.kind, EntryKind::Directory(_)) {
                            let (directory, rules) = (path.clone(), rules.clone());
                            left.push(PendingDir { directory, depth: depth + 1, rules });
                        }
                        found.push((path.into(), seen));
                    }
                    whole
                }
                None => ListingState::Not,
            };
            if listed == ListingState::Not {
                found.push((
                    directory.into(),
                    TreeEntry { kind: EntryKind::Directory(ListingState::Not), ..root },
                ));
            }
        }
        // A directory that could not be listed appears twice, and the second entry counts.
        tree.entries.extend(found);
        match watch {
            // Another scan may come further.
            Some(watch) if has_several_names || Instant::now() > until => watch.forget(),
            Some(watch) => watch.end_scan(project, &tree.rules),
            None => {}
        }
        tree
    }
}

/// A directory that is still to be listed.
struct PendingDir {
    directory: PathBuf,
    /// How many directories it lies in.
    depth: usize,
    /// The rules that hold around it.
    rules: Option<Rc<IgnoreRules>>,
}

type Names = Vec<(OsString, Option<Metadata>)>;

/// The entries of a directory without the ones always left out. Ignore files come by name only.
fn list(directory: &Path, room: usize, until: Instant) -> Option<(Names, ListingState)> {
    if room == 0 || Instant::now() > until {
        return None;
    }
    let (mut names, mut listed) = (Names::new(), ListingState::All);
    for entry in directory.read_dir().ok()? {
        let Ok(entry) = entry else { return Some((names, ListingState::Not)) };
        let name = entry.file_name();
        if ALWAYS.iter().any(|ignored| name == *ignored) {
            if name == ".git" {
                names.push((name, None));
            }
            continue;
        }
        if names.len() + 1 >= room || names.len() % NAMES == NAMES - 1 && Instant::now() > until {
            return Some((names, ListingState::Not));
        }
        match entry.metadata() {
            Ok(meta) => names.push((name, Some(meta))),
            // An entry that disappeared meanwhile is left out.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // It exists; nothing else is known of it.
            Err(_) => listed = ListingState::Not,
        }
    }
    Some((names, listed))
}

/// Nanoseconds of Unix time.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
