//! Targets of protected names: symbolic links at a name, on the way to it or beneath it, and hook
//! folders that git settings name. A command that can write a target changes the program behind the
//! name.

use super::bounded_read::{self, ReadFailure, Symlinks};
use super::file_state::is_sample_by_name;
use super::git_config::{self, included_path};
use super::path_checks::is_real_dir;
use super::path_finder::ProtectedPaths;
use super::protected_path::{OwnerDir, ProtectedKind, ProtectedPath, merged_by_path, plain_path};
use crate::resolved_path::follow_links;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most files of settings that are read; each may include others.
const FILES: usize = 100;
/// Most names beneath protected folders that are checked for links, and greatest depth.
const ALL_NAMES: usize = 2000;
const DEEP: usize = 16;

/// Paths that a command may write, and the home that `~` stands for.
#[derive(Debug)]
pub(crate) struct WriteScope {
    /// All that it may write, links resolved.
    pub writable: Vec<PathBuf>,
    pub home: Option<PathBuf>,
}

/// Targets of the protected names.
#[derive(Debug, Default)]
pub(crate) struct LinkTargets {
    /// Places to be protected as if they were named themselves.
    pub paths: Vec<ProtectedPath>,
    /// Targets that are not protected, a sentence each.
    pub limits: Vec<String>,
    /// The name that leads to each target; of a folder that settings name, the folder itself.
    pub origins: BTreeMap<PathBuf, PathBuf>,
}

/// Limit in the record: protected folders hold too many names.
const TOO_MANY: &str = "More lies beneath the protected names than is looked at for links: beyond 2,000 names, what a link leads to is not protected.";
/// Said where only git knows which file settings of a repository in the project include.
const INCLUDES: &str = "Settings of a repository around or in the project include a file by a name that only git knows (`~name/`, `%(prefix)/`), or more than 100 files: what those say, and where they lie, is not protected.";
/// Said where they could not be read.
const UNREADABLE: &str = "Settings of a repository around or in the project could not be read, as no regular file of up to 256 KiB: a folder of hooks that they name is not protected.";
/// Said where they name another user's home.
const ANOTHERS: &str = "Settings of a repository around or in the project name a folder of hooks by somebody's name (`~name/`), which is not looked up: what is there is not protected.";

/// Finds the targets of protected names in `named` and outside of the grants, as far as a command
/// may write them.
pub(crate) fn find_link_targets(
    named: &ProtectedPaths,
    outside: &[ProtectedPath],
    ground: &WriteScope,
) -> LinkTargets {
    let places = &named.paths;
    let gits: BTreeSet<&PathBuf> = named.all().filter_map(|place| place.git_dir.as_ref()).collect();
    let gits = gits.into_iter().map(|git| git.canonicalize().unwrap_or_else(|_| git.clone()));
    let gits = gits.filter(|git| git.is_dir()).collect();
    let mut found =
        TargetFinder { ground, gits, names: ALL_NAMES, targets: LinkTargets::default() };
    // A link in a git folder leads to no program; it is put back itself.
    let leads = |place: &&ProtectedPath| {
        !matches!(place.kind, ProtectedKind::LinkInGitDir | ProtectedKind::Asked)
    };
    for place in places.iter().chain(outside).filter(leads) {
        found.from(place, DEEP);
    }
    let all: Vec<&ProtectedPath> = named.all().chain(outside).collect();
    found.add_hook_dirs(&all, places.iter().chain(outside));
    let TargetFinder { targets: LinkTargets { paths: led, mut limits, origins }, .. } = found;
    let mut said = BTreeSet::new();
    limits.retain(|limit| said.insert(limit.clone()));
    if led.is_empty() {
        return LinkTargets { limits, ..LinkTargets::default() };
    }
    let led = merged_by_path(led);
    // Paths that are protected already, by their own name or with their folder.
    let folders = places.iter().chain(&led).filter(|place| is_real_dir(&place.path));
    let folders: BTreeMap<PathBuf, OwnerDir> =
        folders.map(|place| (place.path.clone(), place.owner.clone())).collect();
    let named: BTreeMap<&Path, &OwnerDir> =
        named.all().map(|place| (place.path.as_path(), &place.owner)).collect();
    let stays = |place: &ProtectedPath| {
        let as_long = |within: &OwnerDir| *within == OwnerDir::Project || *within == place.owner;
        let named = named.get(place.path.as_path()).is_some_and(|within| as_long(within));
        let whole = place.path.ancestors().zip(place.path.ancestors().skip(1));
        // Of a folder, git's examples are left out.
        let mut whole =
            whole.take_while(|(below, _)| !is_sample_by_name(below)).map(|(_, above)| above);
        !named && !whole.any(|above| folders.get(above).is_some_and(as_long))
    };
    let led = led.into_iter().filter(stays).collect();
    LinkTargets { paths: led, limits, origins }
}

struct TargetFinder<'a> {
    ground: &'a WriteScope,
    /// Git directories, in which only some names are protected.
    gits: BTreeSet<PathBuf>,
    /// Names that may still be checked.
    names: usize,
    targets: LinkTargets,
}

impl TargetFinder<'_> {
    /// Adds the target of a path and the targets beneath it.
    fn from(&mut self, place: &ProtectedPath, deep: usize) {
        let Ok(found) = place.path.symlink_metadata() else { return };
        let Some(deeper) = deep.checked_sub(1) else { return };
        if found.is_symlink() {
            return self.follow(place, deeper);
        }
        if !found.is_dir() {
            return;
        }
        let Ok(entries) = std::fs::read_dir(&place.path) else { return };
        for entry in entries.flatten() {
            let Some(left) = self.names.checked_sub(1) else {
                return self.targets.limits.push(TOO_MANY.to_owned());
            };
            self.names = left;
            if entry.file_type().is_ok_and(|kind| kind.is_symlink() || kind.is_dir()) {
                self.from(&ProtectedPath { path: entry.path(), ..place.clone() }, deeper);
            }
        }
    }

    /// Each link on the way from a name, and their end, there or not.
    fn follow(&mut self, from: &ProtectedPath, deep: usize) {
        let Some((links, end)) = follow_links(&from.path) else { return };
        let kind = match from.kind {
            kind @ (ProtectedKind::GitConfig | ProtectedKind::Hooks | ProtectedKind::Plain) => kind,
            ProtectedKind::WorktreeFile
            | ProtectedKind::GitFile
            | ProtectedKind::SequencerFile
            | ProtectedKind::LinkInGitDir
            | ProtectedKind::Asked => ProtectedKind::Plain,
        };
        for link in links {
            if self.is_writable(&link.at) {
                self.add(ProtectedPath { kind, ..plain_path(link.at, &from.owner) }, &from.path);
            }
        }
        // A git folder is more than one name, and its own names are found by themselves.
        let folder_of_git = from.kind == ProtectedKind::GitFile && end.is_dir();
        if !self.is_writable(&end) || folder_of_git {
            return;
        }
        let holds = |inner: &PathBuf| inner.starts_with(&end);
        if self.ground.writable.iter().any(holds) || self.gits.iter().any(holds) {
            let (name, end) = (from.path.display(), end.display());
            return self.targets.limits.push(format!(
                "{name} leads to {end}, which holds more than can be kept as it is: what the command changes there is not noticed."
            ));
        }
        let place = ProtectedPath { kind, ..plain_path(end, &from.owner) };
        self.from(&place, deep);
        self.add(place, &from.path);
    }

    fn add(&mut self, target: ProtectedPath, from: &Path) {
        self.targets.origins.entry(target.path.clone()).or_insert_with(|| from.to_owned());
        self.targets.paths.push(target);
    }

    /// The folders of hooks that settings name. A relative one is looked for beneath every working
    /// tree that was found, since settings are shared between several.
    fn add_hook_dirs<'p>(
        &mut self,
        all: &[&ProtectedPath],
        present: impl Iterator<Item = &'p ProtectedPath>,
    ) {
        let trees: BTreeSet<&Path> = all
            .iter()
            .filter(|place| place.path.ends_with(".git") || place.path.ends_with(".git/config"))
            .filter_map(|place| match place.path.ends_with(".git") {
                true => place.path.parent(),
                false => place.path.parent().and_then(Path::parent),
            })
            .collect();
        let settings = |place: &&ProtectedPath| {
            place.kind == ProtectedKind::GitConfig || place.path.ends_with("config.worktree")
        };
        let mut files: Vec<ProtectedPath> = present.filter(settings).cloned().collect();
        let mut read = BTreeSet::new();
        while let Some(file) = files.pop() {
            if !read.insert(file.path.clone()) {
                continue;
            }
            if read.len() > FILES {
                return self.targets.limits.push(INCLUDES.to_owned());
            }
            let included = self.included_files(&file, &trees);
            for path in &included {
                // An included file is a settings file too, wherever it lies.
                let from = ProtectedPath {
                    kind: ProtectedKind::GitConfig,
                    ..plain_path(path.clone(), &file.owner)
                };
                self.follow(&from, DEEP);
                files.push(from);
            }
        }
    }

    /// Follows the folders of hooks that settings name, and returns the files that they include.
    fn included_files(&mut self, file: &ProtectedPath, trees: &BTreeSet<&Path>) -> Vec<PathBuf> {
        let bytes = match bounded_read::bytes(&file.path, bounded_read::SETTINGS, Symlinks::Follow)
        {
            Ok(bytes) => bytes,
            Err(ReadFailure::Absent) => return Vec::new(),
            Err(ReadFailure::Unreadable) => {
                self.targets.limits.push(UNREADABLE.to_owned());
                return Vec::new();
            }
        };
        let read = git_config::GitConfig::parse(&bytes);
        for named in read.values("core", "hookspath") {
            for path in self.hook_dirs(named, trees) {
                let from =
                    ProtectedPath { kind: ProtectedKind::Hooks, ..plain_path(path, &file.owner) };
                self.follow(&from, DEEP);
            }
        }
        let home = self.ground.home.as_deref();
        let named: Vec<_> =
            read.included().map(|named| included_path(named, &file.path, home)).collect();
        if named.contains(&None) {
            self.targets.limits.push(INCLUDES.to_owned());
        }
        named.into_iter().flatten().collect()
    }

    /// Where a folder of hooks may be that settings name.
    fn hook_dirs(&mut self, named: &[u8], trees: &BTreeSet<&Path>) -> Vec<PathBuf> {
        // Git's word for a path that need not exist.
        let named = named.strip_prefix(b":(optional)").unwrap_or(named);
        let path = |bytes| Path::new(OsStr::from_bytes(bytes));
        match named {
            [] => Vec::new(),
            [b'~', rest @ ..] if rest.is_empty() || rest.starts_with(b"/") => {
                let slash = |byte: &u8| *byte == b'/';
                let rest =
                    path(rest.iter().position(|byte| !slash(byte)).map_or(&[], |at| &rest[at..]));
                self.ground.home.iter().map(|home| home.join(rest)).collect()
            }
            [b'~', ..] => {
                self.targets.limits.push(ANOTHERS.to_owned());
                Vec::new()
            }
            relative => trees.iter().map(|tree| tree.join(path(relative))).collect(),
        }
    }

    /// True if a command could change the file at this path.
    fn is_writable(&self, path: &Path) -> bool {
        self.ground.writable.iter().any(|root| path.starts_with(root))
    }
}
