//! Which names of a project are protected, whether they exist or not.

use super::led::outermost;
use super::linked::{Linked, folder_in, pointed};
use super::{exists, is_real_dir};
use crate::policy::Protected;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How far down submodules are looked for: deeper names than any that are in use.
const MODULES_DEEP: usize = 32;
/// How far down repositories within the project are looked for, and in how many folders: it is
/// done twice for each command.
const NESTED_DEEP: usize = 3;
const NESTED_FOLDERS: usize = 150;
/// Folders of which nothing is run from their place, and which would use up the bound.
const NOT_LOOKED_INTO: [&str; 3] = ["node_modules", "target", ".git"];
/// What of a git folder is run or believed later.
const OF_GIT: [&str; 5] = ["hooks", "config", "config.worktree", "info/attributes", "commondir"];
/// The same of what a repository keeps about a linked worktree.
const OF_WORKTREE: [&str; 3] = ["config.worktree", "commondir", "gitdir"];

/// What a place holds, where it matters to whether it may be new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name that no new one of is believed.
    Plain,
    /// Settings of git.
    Settings,
    /// Its hooks.
    Hooks,
    /// A file of a worktree's own folder in the repository.
    OfWorktree,
    /// A `.git` that is no directory.
    Pointer,
}

/// Where a place lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Within {
    /// In a granted directory's own project.
    Project,
    /// In a repository deeper in it, in this folder. Builds make and remove such, so nothing of it
    /// is held in its place; what changed is put right afterwards.
    Nested(PathBuf),
}

impl Within {
    /// Where a place lies that is reached from both: it goes only where neither is left.
    fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Nested(one), Self::Nested(two)) => {
                let both = one.ancestors().find(|above| two.starts_with(above));
                both.map_or(Self::Project, |both| Self::Nested(both.to_owned()))
            }
            (Self::Project, _) | (_, Self::Project) => Self::Project,
        }
    }
}

/// A protected name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub path: PathBuf,
    /// The git folder that it is part of.
    pub of: Option<PathBuf>,
    pub kind: Kind,
    pub within: Within,
}

impl Place {
    /// Whether tier A keeps it as it is while the command runs, given that it exists.
    pub(crate) fn is_held(&self) -> bool {
        // Git removes what it keeps about worktrees together with their folder.
        let goes = self.kind == Kind::OfWorktree || self.within != Within::Project;
        !goes && self.path.symlink_metadata().is_ok_and(|found| !found.is_symlink())
    }
}

impl Place {
    /// Whether it is what git itself is told by a person: settings or hooks of a repository that
    /// lies in one of these.
    pub(crate) fn is_gits_in(&self, folders: &[PathBuf]) -> bool {
        let gits = match self.kind {
            Kind::Settings | Kind::Hooks => true,
            Kind::OfWorktree => self.path.ends_with("config.worktree"),
            Kind::Plain => self.of.is_some() && self.path.ends_with("info/attributes"),
            Kind::Pointer => false,
        };
        gits && folders.iter().any(|folder| self.path.starts_with(folder))
    }
}

/// The protected names as the kernel comes to them: those beneath a link are that link.
pub(crate) fn named(
    roots: &[PathBuf],
    linked: Option<&Linked>,
    names: &'static [Protected],
) -> Vec<Place> {
    let places = find(roots, linked, names);
    once(places.iter().map(|place| outermost(place, roots)))
}

/// Each place once, as the first that came, but for where it lies.
pub(super) fn once(places: impl IntoIterator<Item = Place>) -> Vec<Place> {
    let mut once: Vec<Place> = Vec::new();
    let mut at: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for place in places {
        match at.get(&place.path).and_then(|at| once.get_mut(*at)) {
            Some(known) => known.within = known.within.and(&place.within),
            None => {
                at.insert(place.path.clone(), once.len());
                once.push(place);
            }
        }
    }
    once
}

/// All protected names beneath writable directories, and of the folder where git keeps the rest.
pub(super) fn find(
    roots: &[PathBuf],
    linked: Option<&Linked>,
    names: &'static [Protected],
) -> Vec<Place> {
    let mut found = Finder { within: Within::Project, made: BTreeSet::new(), places: Vec::new() };
    // The project's own first: a git folder that is reached by several ways is where it lies itself,
    // whichever `.git` leads there.
    let mut pointers: Vec<PathBuf> =
        roots.iter().filter_map(|root| found.folder(root, names)).collect();
    let own = pointers.iter().filter_map(|pointer| git_folder(pointer));
    for git in own.filter(|git| lies_in(git, roots)) {
        found.of_git(&git, MODULES_DEEP);
    }
    if let Some(linked) = linked {
        found.of_git(&linked.common, MODULES_DEEP);
    }
    let nested: BTreeSet<PathBuf> = roots.iter().flat_map(|root| with_repositories(root)).collect();
    pointers.clear();
    for folder in nested.into_iter().filter(|folder| !roots.contains(folder)) {
        found.within = Within::Nested(folder.clone());
        pointers.extend(found.folder(&folder, names));
    }
    let led_to = pointers.iter().filter_map(|pointer| git_folder(pointer));
    for git in led_to.filter(|git| lies_in(git, roots)) {
        found.within = Within::Nested(git.clone());
        found.of_git(&git, MODULES_DEEP);
    }
    found.places
}

struct Finder {
    within: Within,
    /// Git folders that were done.
    made: BTreeSet<PathBuf>,
    places: Vec<Place>,
}

impl Finder {
    /// The names of a folder and of its git folder; its `.git`, where that is none itself.
    fn folder(&mut self, folder: &Path, names: &'static [Protected]) -> Option<PathBuf> {
        for name in names.iter().filter(|name| !name.name.starts_with(".git/")) {
            self.add(folder.join(name.name), None, Kind::Plain);
        }
        let git = folder.join(".git");
        if is_real_dir(&git) {
            self.of_git(&git, MODULES_DEEP);
            return None;
        }
        self.add(git.clone(), Some(&git), Kind::Pointer);
        Some(git)
    }

    fn add(&mut self, path: PathBuf, of: Option<&Path>, kind: Kind) {
        let within = self.within.clone();
        self.places.push(Place { path, of: of.map(Path::to_owned), kind, within });
    }

    /// A git folder, what it keeps about linked worktrees, and its submodules: by names that may
    /// have slashes (`vendor/lib`), and with submodules of their own.
    fn of_git(&mut self, git: &Path, deep: usize) {
        if !self.made.insert(git.to_owned()) {
            return;
        }
        for name in OF_GIT {
            let kind = match name {
                "hooks" => Kind::Hooks,
                "config" | "config.worktree" => Kind::Settings,
                _ => Kind::Plain,
            };
            self.add(git.join(name), Some(git), kind);
        }
        for worktree in folders(&git.join("worktrees")) {
            for name in OF_WORKTREE {
                self.add(worktree.join(name), Some(&worktree), Kind::OfWorktree);
            }
        }
        self.modules(&git.join("modules"), deep);
    }

    fn modules(&mut self, folder: &Path, deep: usize) {
        let Some(deep) = deep.checked_sub(1) else { return };
        for path in folders(folder) {
            if exists(&path.join("HEAD")) {
                self.of_git(&path, deep);
            } else {
                self.modules(&path, deep);
            }
        }
    }
}

/// A writable directory, and the repositories within it as far as they are looked for.
fn with_repositories(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    let mut level = vec![root.to_owned()];
    let mut looked = 0;
    for _ in 0..NESTED_DEEP {
        let mut next = Vec::new();
        for folder in level {
            looked += 1;
            if looked > NESTED_FOLDERS {
                return found;
            }
            for inner in folders(&folder) {
                let name = inner.file_name().and_then(|name| name.to_str());
                if name.is_some_and(|name| NOT_LOOKED_INTO.contains(&name)) {
                    continue;
                }
                if exists(&inner.join(".git")) {
                    found.push(inner.clone());
                }
                next.push(inner);
            }
        }
        level = next;
    }
    found
}

/// The directories right in a directory, links left out.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let real = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut found: Vec<PathBuf> =
        entries.flatten().filter(real).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The git folder that a `.git` leads to which is none itself, by a link or by what it says; of a
/// worktree, the folder of its repository, where what it says about the worktree lies too.
pub(super) fn git_folder(pointer: &Path) -> Option<PathBuf> {
    git_folders(pointer).map(|(_, common)| common)
}

/// The same, behind the folder of the worktree alone.
pub(super) fn git_folders(pointer: &Path) -> Option<(PathBuf, PathBuf)> {
    let folder = match pointer.is_dir() {
        true => pointer.canonicalize().ok()?,
        false => pointer.parent()?.join(pointed(pointer)?).canonicalize().ok()?,
    };
    let common = match folder_in(&folder.join("commondir")) {
        Ok(common) => folder.join(common).canonicalize().ok()?,
        Err(_) => folder.clone(),
    };
    exists(&common.join("HEAD")).then_some((folder, common))
}

/// Whether it is beneath one of these.
pub(super) fn lies_in(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path != root && path.starts_with(root))
}

/// Whether a new `.git` file leads to a folder that one of these repositories keeps for it.
pub(super) fn leads_home(pointer: &Path, places: &[Place]) -> bool {
    let folder = pointer.parent().zip(pointed(pointer)).map(|(at, to)| at.join(to));
    let Some(folder) = folder.and_then(|folder| folder.canonicalize().ok()) else { return false };
    places.iter().filter_map(|place| place.of.as_ref()).any(|git| {
        git == &folder
            || ["worktrees", "modules"].iter().any(|kept| {
                folder.starts_with(git.join(kept))
                    && places.iter().any(|known| known.of.as_ref() == Some(&folder))
            })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn repositories_within_are_found_and_their_names_are_protected() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for made in [
            ".git/worktrees/side",
            ".git/modules/vendor/lib",
            "a/b/.git",
            "node_modules/x/.git",
            "one/two/three/four/.git",
        ] {
            std::fs::create_dir_all(root.join(made)).unwrap();
        }
        std::fs::write(root.join(".git/modules/vendor/lib/HEAD"), "").unwrap();
        let names = &[Protected { name: ".envrc", why: "for the test" }];
        let found = find(std::slice::from_ref(&root), None, names);
        let has = |name: &str| found.iter().any(|place| place.path == root.join(name));
        for name in [
            ".envrc",
            ".git/hooks",
            ".git/worktrees/side/commondir",
            ".git/modules/vendor/lib/config",
            "a/b/.envrc",
            "a/b/.git/config",
        ] {
            assert!(has(name), "{name}");
        }
        assert!(!has("node_modules/x/.git/config"), "looked into");
        assert!(!has("one/two/three/four/.git/config"), "deeper than it is looked");
        assert!(!has("a/.envrc"), "no repository, so not looked at");
    }
}
