//! Which names of a project are protected, whether they exist or not.

use super::link_targets::outermost_link;
use super::linked_git_dir::{LinkedGitDir, gitfile_target, read_dir_pointer};
use super::walk::{DirShape, FoundDir, SearchPhase, WalkOutcome, walk};
use super::{exists, git_index, is_real_dir};
use crate::policy::ProtectedName;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// How far down submodules are looked for: deeper names than any that are in use.
const MODULES_DEEP: usize = 32;
/// Most repositories that are looked at for being named by an index.
const MOST_ENTERED: usize = 10_000;
/// What of a git folder is run or believed later.
const OF_GIT: [&str; 5] = ["hooks", "config", "config.worktree", "info/attributes", "commondir"];
/// Where git looked for the addresses of remotes before it had settings, and still does.
const ADDRESSES: [&str; 2] = ["remotes", "branches"];
/// The same of what a repository keeps about a linked worktree.
const OF_WORKTREE: [&str; 3] = ["config.worktree", "commondir", "gitdir"];
/// What is still to be done of a rebase, a cherry-pick or a merge under way, in either.
const STEPS: [&str; 4] =
    ["rebase-merge/git-rebase-todo", "rebase-merge/strategy", "sequencer/opts", "MERGE_RR"];
/// What of a git folder git writes without a new file of its own, so that a link there would lead its
/// writes elsewhere: what lies right in it, and in these.
const WRITTEN: [&str; 6] =
    ["logs", "rr-cache", "rebase-merge", "rebase-apply", "sequencer", "worktrees"];
/// Most names that are looked at in them, and how far down.
const WRITTEN_NAMES: usize = 20_000;
const WRITTEN_DEEP: usize = 8;

/// What a place holds, where it matters to whether it may be new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProtectedKind {
    /// A name that no new one of is believed.
    Plain,
    /// Settings of git.
    GitConfig,
    /// Its hooks.
    Hooks,
    /// A file of a worktree's own folder in the repository.
    WorktreeFile,
    /// A `.git` that is no directory.
    GitFile,
    /// What is still to be done of a rebase or its like: git runs programs by it when the person goes
    /// on with it.
    SequencerFile,
    /// A link in a git folder, which leads what git writes elsewhere.
    LinkInGitDir,
}

/// Where a place lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnerDir {
    /// In a granted directory's own project.
    Project,
    /// In this folder deeper in it. Builds make and remove such, so nothing of it is held in its
    /// place; what changed is put right afterwards.
    Nested(PathBuf),
}

impl OwnerDir {
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
pub(crate) struct ProtectedPath {
    pub path: PathBuf,
    /// The git folder that it is part of.
    pub git_dir: Option<PathBuf>,
    pub kind: ProtectedKind,
    pub owner: OwnerDir,
}

impl ProtectedPath {
    /// Whether tier A keeps it as it is while the command runs, given that it exists.
    pub(crate) fn is_mounted_read_only(&self) -> bool {
        // Git removes what it keeps about worktrees together with their folder, and each step.
        let gits = matches!(
            self.kind,
            ProtectedKind::WorktreeFile
                | ProtectedKind::SequencerFile
                | ProtectedKind::LinkInGitDir
        );
        let goes = gits || self.owner != OwnerDir::Project;
        !goes && self.path.symlink_metadata().is_ok_and(|found| !found.is_symlink())
    }
}

impl ProtectedPath {
    /// Whether it is what git itself is told by a person: settings or hooks of a repository that
    /// lies in one of these.
    pub(crate) fn is_git_config_in(&self, folders: &[PathBuf]) -> bool {
        let gits = match self.kind {
            ProtectedKind::GitConfig | ProtectedKind::Hooks | ProtectedKind::SequencerFile => true,
            ProtectedKind::WorktreeFile => self.path.ends_with("config.worktree"),
            ProtectedKind::Plain => {
                self.git_dir.is_some() && self.path.ends_with("info/attributes")
            }
            ProtectedKind::GitFile | ProtectedKind::LinkInGitDir => false,
        };
        gits && folders.iter().any(|folder| self.path.starts_with(folder))
    }
}

/// The protected names that were found.
#[derive(Debug)]
pub(crate) struct ProtectedPaths {
    pub paths: Vec<ProtectedPath>,
    /// Folders that were not looked into, since the search had used its time.
    pub unsearched: Vec<PathBuf>,
    /// Folders of repositories that an index names, of such a search.
    pub entered_repos: Vec<PathBuf>,
}

/// The protected names as the kernel comes to them: those beneath a link are that link.
pub(crate) fn find_protected(
    roots: &[PathBuf],
    linked: Option<&LinkedGitDir>,
    names: &'static [ProtectedName],
) -> ProtectedPaths {
    let found = find_all(roots, linked, names, SearchPhase::Before);
    ProtectedPaths {
        paths: merged_by_path(found.paths.iter().map(|place| outermost_link(place, roots))),
        ..found
    }
}

/// Each place once, as the first that came, but for where it lies.
pub(super) fn merged_by_path(
    places: impl IntoIterator<Item = ProtectedPath>,
) -> Vec<ProtectedPath> {
    let mut once: Vec<ProtectedPath> = Vec::new();
    let mut at: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for place in places {
        match at.get(&place.path).and_then(|at| once.get_mut(*at)) {
            Some(known) => known.owner = known.owner.and(&place.owner),
            None => {
                at.insert(place.path.clone(), once.len());
                once.push(place);
            }
        }
    }
    once
}

/// All protected names beneath writable directories, and of the folder where git keeps the rest.
pub(super) fn find_all(
    roots: &[PathBuf],
    linked: Option<&LinkedGitDir>,
    names: &'static [ProtectedName],
    when: SearchPhase,
) -> ProtectedPaths {
    let mut found =
        PathFinder { owner: OwnerDir::Project, done_git_dirs: BTreeSet::new(), places: Vec::new() };
    // The project's own first: a git folder that is reached by several ways is where it lies itself,
    // whichever `.git` leads there.
    let mut pointers: Vec<PathBuf> =
        roots.iter().filter_map(|root| found.add_folder(root, names)).collect();
    let own = pointers.iter().filter_map(|pointer| git_dir_of(pointer));
    for git in own.filter(|git| lies_in(git, roots)) {
        found.add_git_dir(&git, MODULES_DEEP);
    }
    if let Some(linked) = linked {
        found.add_git_dir(&linked.common, MODULES_DEEP);
    }
    pointers.clear();
    let WalkOutcome { found: holdings, unsearched } = walk(roots, &first_parts(names), when);
    for FoundDir { folder, names: here, shape } in holdings {
        let is_root = roots.contains(&folder);
        found.owner = if is_root { OwnerDir::Project } else { OwnerDir::Nested(folder.clone()) };
        if shape == DirShape::Bare {
            found.add_git_dir(&folder, MODULES_DEEP);
        }
        if is_root {
            continue;
        }
        if here.contains(&GIT) {
            pointers.extend(found.add_folder(&folder, names));
        } else {
            let here = |name: &&ProtectedName| here.iter().any(|part| first_part(name) == *part);
            for name in names.iter().filter(here) {
                found.add(folder.join(name.name), None, ProtectedKind::Plain);
            }
        }
    }
    let entered =
        if unsearched.is_empty() { Vec::new() } else { found.add_entered_repos(names, roots) };
    pointers.extend(entered.iter().map(|folder| folder.join(GIT)));
    let led_to = pointers.iter().filter_map(|pointer| git_dir_of(pointer));
    for git in led_to.filter(|git| lies_in(git, roots)) {
        found.owner = OwnerDir::Nested(git.clone());
        found.add_git_dir(&git, MODULES_DEEP);
    }
    ProtectedPaths { paths: found.places, unsearched, entered_repos: entered }
}

/// The folder of a repository in its working tree.
const GIT: &str = ".git";

/// What lies right in a folder of a protected name.
fn first_part(name: &ProtectedName) -> &'static str {
    name.name.split('/').next().unwrap_or(name.name)
}

/// The same of all, each once.
fn first_parts(names: &'static [ProtectedName]) -> Vec<&'static str> {
    let parts: BTreeSet<&str> = names.iter().map(first_part).chain([GIT]).collect();
    parts.into_iter().collect()
}

struct PathFinder {
    owner: OwnerDir,
    /// Git folders that were done.
    done_git_dirs: BTreeSet<PathBuf>,
    places: Vec<ProtectedPath>,
}

impl PathFinder {
    /// The names of a folder and of its git folder; its `.git`, where that is none itself.
    fn add_folder(&mut self, folder: &Path, names: &'static [ProtectedName]) -> Option<PathBuf> {
        for name in names.iter().filter(|name| !name.name.starts_with(".git/")) {
            self.add(folder.join(name.name), None, ProtectedKind::Plain);
        }
        let git = folder.join(".git");
        if is_real_dir(&git) {
            self.add_git_dir(&git, MODULES_DEEP);
            return None;
        }
        self.add(git.clone(), Some(&git), ProtectedKind::GitFile);
        Some(git)
    }

    fn add(&mut self, path: PathBuf, of: Option<&Path>, kind: ProtectedKind) {
        let within = self.owner.clone();
        self.places.push(ProtectedPath {
            path,
            git_dir: of.map(Path::to_owned),
            kind,
            owner: within,
        });
    }

    /// A git folder, what it keeps about linked worktrees, and its submodules: by names that may
    /// have slashes (`vendor/lib`), and with submodules of their own.
    fn add_git_dir(&mut self, git: &Path, deep: usize) {
        if !self.done_git_dirs.insert(git.to_owned()) {
            return;
        }
        for name in OF_GIT {
            let kind = match name {
                "hooks" => ProtectedKind::Hooks,
                "config" | "config.worktree" => ProtectedKind::GitConfig,
                _ => ProtectedKind::Plain,
            };
            self.add(git.join(name), Some(git), kind);
        }
        for folder in ADDRESSES {
            for file in files(&git.join(folder)) {
                self.add(file, Some(git), ProtectedKind::Plain);
            }
        }
        self.add_sequencer_files(git);
        for worktree in subfolders(&git.join("worktrees")) {
            for name in OF_WORKTREE {
                self.add(worktree.join(name), Some(&worktree), ProtectedKind::WorktreeFile);
            }
            self.add_sequencer_files(&worktree);
        }
        self.add_links(git);
        self.add_submodules(&git.join("modules"), deep);
    }

    fn add_sequencer_files(&mut self, git: &Path) {
        for name in STEPS {
            self.add(git.join(name), Some(git), ProtectedKind::SequencerFile);
        }
    }

    /// The links in a git folder where git writes through them.
    fn add_links(&mut self, git: &Path) {
        let mut left = vec![(git.to_owned(), 0)];
        let mut names = WRITTEN_NAMES;
        while let Some((folder, depth)) = left.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let Some(fewer) = names.checked_sub(1) else { return };
                names = fewer;
                let Ok(kind) = entry.file_type() else { continue };
                let name = entry.file_name();
                if kind.is_symlink() && !OF_GIT.iter().any(|own| name == *own) {
                    self.add(entry.path(), Some(git), ProtectedKind::LinkInGitDir);
                }
                let written = depth > 0 || WRITTEN.iter().any(|inner| name == *inner);
                if kind.is_dir() && written && depth < WRITTEN_DEEP {
                    left.push((entry.path(), depth + 1));
                }
            }
        }
    }

    /// The folders that git enters by an index, and by the index of what lies there.
    fn add_entered_repos(
        &mut self,
        names: &'static [ProtectedName],
        roots: &[PathBuf],
    ) -> Vec<PathBuf> {
        let mut entered = BTreeSet::new();
        let mut left: Vec<PathBuf> = self.done_git_dirs.iter().cloned().collect();
        while let Some(git) = left.pop() {
            let trees = git.parent().into_iter().chain(roots.iter().map(PathBuf::as_path));
            let trees: Vec<&Path> = trees.collect();
            for link in git_index::gitlinks(&git) {
                for folder in trees.iter().map(|tree| tree.join(&link)) {
                    let known = entered.contains(&folder) || entered.len() > MOST_ENTERED;
                    if known || !lies_in(&folder, roots) || !exists(&folder.join(GIT)) {
                        continue;
                    }
                    self.owner = OwnerDir::Nested(folder.clone());
                    if self.add_folder(&folder, names).is_none() {
                        left.push(folder.join(GIT));
                    }
                    entered.insert(folder);
                }
            }
        }
        entered.into_iter().collect()
    }

    fn add_submodules(&mut self, folder: &Path, deep: usize) {
        let Some(deep) = deep.checked_sub(1) else { return };
        for path in subfolders(folder) {
            if exists(&path.join("HEAD")) {
                self.add_git_dir(&path, deep);
            } else {
                self.add_submodules(&path, deep);
            }
        }
    }
}

/// All that lies right in a directory but for directories.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_file = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| !kind.is_dir());
    entries.flatten().filter(is_file).map(|entry| entry.path()).collect()
}

/// The directories right in a directory, links left out.
pub(super) fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let real = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut found: Vec<PathBuf> =
        entries.flatten().filter(real).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The git folder that a `.git` leads to which is none itself, by a link or by what it says; of a
/// worktree, the folder of its repository, where what it says about the worktree lies too.
pub(super) fn git_dir_of(pointer: &Path) -> Option<PathBuf> {
    git_dirs_of(pointer).map(|(_, common)| common)
}

/// The same, behind the folder of the worktree alone.
pub(super) fn git_dirs_of(pointer: &Path) -> Option<(PathBuf, PathBuf)> {
    let folder = match pointer.is_dir() {
        true => pointer.canonicalize().ok()?,
        false => pointer.parent()?.join(gitfile_target(pointer)?).canonicalize().ok()?,
    };
    let common = match read_dir_pointer(&folder.join("commondir")) {
        Ok(common) => folder.join(common).canonicalize().ok()?,
        Err(_) => folder.clone(),
    };
    exists(&common.join("HEAD")).then_some((folder, common))
}

/// Whether it is beneath one of these.
pub(super) fn lies_in(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path != root && path.starts_with(root))
}

/// Git folders among places, each with what is known of it.
pub(super) fn git_dirs_among(places: &[ProtectedPath]) -> HashSet<&Path> {
    places.iter().filter_map(|place| place.git_dir.as_deref()).collect()
}

/// Whether a new `.git` file leads to one of these, or to what one of them keeps for it.
pub(super) fn points_to_known_git_dir(pointer: &Path, gits: &HashSet<&Path>) -> bool {
    let folder = pointer.parent().zip(gitfile_target(pointer)).map(|(at, to)| at.join(to));
    let Some(folder) = folder.and_then(|folder| folder.canonicalize().ok()) else { return false };
    gits.contains(folder.as_path())
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
            "node_modules/y",
            "bare/objects",
            "bare/refs",
        ] {
            std::fs::create_dir_all(root.join(made)).unwrap();
        }
        for file in [".git/modules/vendor/lib/HEAD", "bare/HEAD", "some/where/.envrc"] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        std::fs::write(root.join("node_modules/y/.envrc"), "").unwrap();
        let names = &[ProtectedName { name: ".envrc", why: "for the test" }];
        let found = find_all(std::slice::from_ref(&root), None, names, SearchPhase::Before).paths;
        let has = |name: &str| found.iter().any(|place| place.path == root.join(name));
        for name in [
            ".envrc",
            ".git/hooks",
            ".git/worktrees/side/commondir",
            ".git/modules/vendor/lib/config",
            "a/b/.envrc",
            "a/b/.git/config",
            "node_modules/x/.git/config",
            "one/two/three/four/.git/config",
            "some/where/.envrc",
            "bare/config",
        ] {
            assert!(has(name), "{name}");
        }
        assert!(!has("a/.envrc"), "no repository, and nothing there");
        assert!(!has("some/config"), "no repository");
        assert!(!has("node_modules/y/.envrc"), "a dependency's own");
    }
}
