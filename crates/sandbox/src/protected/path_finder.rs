//! Finds the protected paths of a project, including those that do not exist.

use super::git_index;
use super::git_pointers::git_dir_of;
use super::linked_git_dir::LinkedGitDir;
use super::path_checks::{exists, is_real_dir, lies_in, subfolders};
use super::protected_path::{
    OwnerDir, ProtectedKind, ProtectedPath, merged_by_path, outermost_link,
};
use super::walk::{DirShape, FoundDir, SearchPhase, WalkOutcome, walk};
use crate::policy::{NameClass, ProtectedName};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How far down submodules are looked for: deeper names than any that are in use.
const MODULES_DEEP: usize = 32;
/// Most repositories that are searched because an index names them.
const MOST_ENTERED: usize = 10_000;
/// Names in a git directory that git later runs or trusts.
pub(super) const OF_GIT: [&str; 5] =
    ["hooks", "config", "config.worktree", "info/attributes", "commondir"];
/// Where git looked for the addresses of remotes before it had settings, and still does.
pub(super) const ADDRESSES: [&str; 2] = ["remotes", "branches"];
/// The same in a linked worktree's folder in the repository.
const OF_WORKTREE: [&str; 3] = ["config.worktree", "commondir", "gitdir"];
/// Pending steps of a rebase, cherry-pick or merge in progress, in either.
const STEPS: [&str; 4] =
    ["rebase-merge/git-rebase-todo", "rebase-merge/strategy", "sequencer/opts", "MERGE_RR"];
/// Folders of a git directory in which git writes files in place, as it does in the directory
/// itself. A link there would redirect git's writes.
const WRITTEN: [&str; 6] =
    ["logs", "rr-cache", "rebase-merge", "rebase-apply", "sequencer", "worktrees"];
/// Most names that are checked in them, and greatest depth.
const WRITTEN_NAMES: usize = 20_000;
const WRITTEN_DEEP: usize = 8;

/// The protected names that were found.
#[derive(Debug)]
pub(crate) struct ProtectedPaths {
    /// Those that are there or may be.
    pub paths: Vec<ProtectedPath>,
    /// Those that were not there when their directory was read.
    pub absent: Vec<ProtectedPath>,
    /// Folders that were not looked into, since the search had used its time.
    pub unsearched: Vec<PathBuf>,
    /// Folders of repositories that an index names, of such a search.
    pub entered_repos: Vec<PathBuf>,
}

impl ProtectedPaths {
    /// All of them, present or not.
    pub(crate) fn all(&self) -> impl Iterator<Item = &ProtectedPath> {
        self.paths.iter().chain(&self.absent)
    }

    /// Those of an earlier search: any of them may have been made since.
    pub(super) fn unverified(mut self) -> Self {
        self.paths.append(&mut self.absent);
        self
    }
}

/// The protected paths as the kernel resolves them: a path beneath a link is replaced by the link.
/// Most names of the table are absent from any project, so each is looked at once, here.
pub(crate) fn find_protected(
    roots: &[PathBuf],
    linked: Option<&LinkedGitDir>,
    names: &'static [ProtectedName],
) -> ProtectedPaths {
    let found = find_all(roots, linked, names, SearchPhase::Before);
    let resolved = merged_by_path(found.paths.iter().map(|place| outermost_link(place, roots)));
    let (paths, mut absent): (Vec<_>, Vec<_>) =
        resolved.into_iter().partition(|place| exists(&place.path));
    absent.extend(found.absent);
    ProtectedPaths { paths, absent, ..found }
}

/// All protected names beneath writable directories, and of the folder where git keeps the rest.
pub(super) fn find_all(
    roots: &[PathBuf],
    linked: Option<&LinkedGitDir>,
    names: &'static [ProtectedName],
    when: SearchPhase,
) -> ProtectedPaths {
    let WalkOutcome { found: holdings, unsearched } = walk(roots, &first_parts(names), when);
    let listed = |root: &Path| holdings.iter().find(|holding| holding.folder == *root);
    let mut found = PathFinder {
        owner: OwnerDir::Project,
        done_git_dirs: BTreeSet::new(),
        places: Vec::new(),
        absent: Vec::new(),
    };
    // The project's own first: a git directory that several `.git` lead to counts where it lies
    // itself.
    let own = |root: &PathBuf| {
        found.add_folder(root, names, listed(root).map(|here| here.names.as_slice()))
    };
    let mut pointers: Vec<PathBuf> = roots.iter().filter_map(own).collect();
    let own = pointers.iter().filter_map(|pointer| git_dir_of(pointer));
    for git in own.filter(|git| lies_in(git, roots)) {
        found.add_git_dir(&git, MODULES_DEEP);
    }
    if let Some(linked) = linked {
        found.add_git_dir(&linked.common, MODULES_DEEP);
    }
    pointers.clear();
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
            pointers.extend(found.add_folder(&folder, names, Some(&here)));
        } else {
            let here = |name: &&ProtectedName| here.iter().any(|part| first_part(name) == *part);
            for name in names.iter().filter(here) {
                found.add(folder.join(name.name), None, kind_of(name));
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
    let PathFinder { places: paths, absent, .. } = found;
    ProtectedPaths { paths, absent, unsearched, entered_repos: entered }
}

/// The folder of a repository in its working tree.
pub(super) const GIT: &str = ".git";

fn kind_of(name: &ProtectedName) -> ProtectedKind {
    match name.class {
        NameClass::Protected => ProtectedKind::Plain,
        NameClass::Asked => ProtectedKind::Asked,
    }
}

/// First part of a protected name.
fn first_part(name: &ProtectedName) -> &'static str {
    name.name.split('/').next().unwrap_or(name.name)
}

/// The same of all, each once.
pub(super) fn first_parts(names: &'static [ProtectedName]) -> Vec<&'static str> {
    let mut parts: Vec<&str> = names.iter().map(first_part).chain([GIT]).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

struct PathFinder {
    owner: OwnerDir,
    /// Git folders that were done.
    done_git_dirs: BTreeSet<PathBuf>,
    places: Vec<ProtectedPath>,
    /// Places that are not there.
    absent: Vec<ProtectedPath>,
}

impl PathFinder {
    /// Adds the names of a folder and of its git directory. `here` are the first parts that lie in the
    /// folder, if it could be read. Returns its `.git` if that is not a directory.
    fn add_folder(
        &mut self,
        folder: &Path,
        names: &'static [ProtectedName],
        here: Option<&[&'static str]>,
    ) -> Option<PathBuf> {
        for name in names.iter().filter(|name| !name.name.starts_with(".git/")) {
            self.add(folder.join(name.name), None, kind_of(name));
            if here.is_some_and(|here| !here.contains(&first_part(name))) {
                self.absent.extend(self.places.pop());
            }
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

    /// Adds a git directory, its folders of linked worktrees, and its submodules, whose names may
    /// have slashes (`vendor/lib`) and which may have submodules of their own.
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

    /// Adds the repositories that an index names, and those that their indices name.
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
                    if self.add_folder(&folder, names, None).is_none() {
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
        for file in [
            ".git/modules/vendor/lib/HEAD",
            "bare/HEAD",
            "some/where/.envrc",
            "node_modules/x/.envrc",
        ] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        std::fs::write(root.join("node_modules/y/.envrc"), "").unwrap();
        const NAMES: &[ProtectedName] =
            &[ProtectedName { name: ".envrc", class: NameClass::Protected, why: "for the test" }];
        let found = find_all(std::slice::from_ref(&root), None, NAMES, SearchPhase::Before);
        let at = |name: &str, place: &ProtectedPath| place.path == root.join(name);
        let has = |name: &str| found.all().any(|place| at(name, place));
        let there = |name: &str| found.paths.iter().any(|place| at(name, place));
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
        assert!(there("node_modules/x/.envrc") && !there("a/b/.envrc"), "{found:?}");
        assert!(!has("a/.envrc"), "no repository, and nothing there");
        assert!(!has("some/config"), "no repository");
        assert!(!has("node_modules/y/.envrc"), "a dependency's own");
    }

    #[test]
    fn a_name_is_absent_where_its_directory_could_be_read_and_does_not_hold_it() {
        const NAMES: &[ProtectedName] = &[
            ProtectedName { name: ".envrc", class: NameClass::Protected, why: "for the test" },
            ProtectedName { name: ".vscode/tasks.json", class: NameClass::Protected, why: "" },
            ProtectedName { name: ".vscode/mcp.json", class: NameClass::Protected, why: "" },
            ProtectedName { name: "mise.toml", class: NameClass::Asked, why: "" },
        ];
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let [root, unread] = ["root", "unread"].map(|name| base.join(name));
        std::fs::create_dir_all(root.join("dots")).unwrap();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::write(root.join("dots/tasks.json"), "").unwrap();
        std::os::unix::fs::symlink("dots", root.join(".vscode")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("MISE.toml")).unwrap();
        let names = |found: Vec<ProtectedPath>| {
            let below = |path: &Path| path.strip_prefix(&base).unwrap().display().to_string();
            found.iter().map(|place| below(&place.path)).collect::<Vec<_>>()
        };
        let roots = [root, unread];
        let searched = find_all(&roots, None, NAMES, SearchPhase::Before);
        let of_git = |name: &String| name.contains(".git");
        let (_, maybe): (Vec<_>, Vec<_>) = names(searched.paths).into_iter().partition(of_git);
        assert_eq!(
            maybe,
            [
                "root/.vscode/tasks.json",
                "root/.vscode/mcp.json",
                "root/mise.toml",
                "unread/.envrc",
                "unread/.vscode/tasks.json",
                "unread/.vscode/mcp.json",
                "unread/mise.toml",
            ]
        );
        assert_eq!(names(searched.absent), ["root/.envrc"]);
        let resolved = find_protected(&roots, None, NAMES);
        assert_eq!(names(resolved.paths), ["root/.vscode"], "a link stands for what is behind it");
        assert!(names(resolved.absent).contains(&"unread/mise.toml".to_owned()));
        let later = find_all(&roots, None, NAMES, SearchPhase::Before).unverified();
        assert!(names(later.paths).contains(&"root/.envrc".to_owned()));
    }
}
