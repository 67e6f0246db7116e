//! The git directory of a linked worktree, a submodule or the repository around the project, which lies
//! outside the project and which git needs. A `.git` file alone proves nothing, since any author of the
//! project could point it anywhere. The directory must point back.

use super::bounded_read::{self, ReadFailure, Symlinks};
use super::git_dir_check;
use super::git_pointers::{gitfile_target, read_dir_pointer};
use super::path_checks::is_real_dir;
use super::persist::persist;
use nix::unistd::Uid;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where git keeps the rest of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkedGitDir {
    /// Of this worktree or submodule alone.
    pub folder: PathBuf,
    /// Shared with other worktrees; the same directory for a submodule and for a repository around
    /// the project.
    pub common: PathBuf,
    /// The working tree around the project, of which git reads all files.
    pub tree: Option<PathBuf>,
}

/// The repository around a project that has no git directory of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnclosingRepo {
    /// There is none.
    Absent,
    /// Calls use it. The root of its working tree.
    Used(PathBuf),
    /// Calls do not see it.
    LeftOut {
        /// The root of its working tree.
        tree: PathBuf,
        /// The reason, to follow "since".
        why: &'static str,
    },
}

/// Looks for the repository around a project, as git does: on the project's file system.
#[must_use]
pub fn enclosing_repo(project: &Path, home: Option<&Path>) -> EnclosingRepo {
    match LinkedGitDir::around(project, home) {
        Ok(found) => {
            found.and_then(|linked| linked.tree).map_or(EnclosingRepo::Absent, EnclosingRepo::Used)
        }
        Err((tree, why)) => EnclosingRepo::LeftOut { tree, why },
    }
}

/// A place outside the project that git needs and calls do not see: nothing there says that it belongs to
/// the project, so only a person can grant it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitElsewhere {
    /// The git directory, to which `.git` leads, as a link or as a file.
    Directory(PathBuf),
    /// The repository whose objects this one borrows.
    Objects(PathBuf),
}

/// Looks for such a place.
#[must_use]
pub fn git_elsewhere(project: &Path, home: Option<&Path>) -> Option<GitElsewhere> {
    let git = project.join(".git");
    let found = git.symlink_metadata().ok()?;
    let outside = |place: PathBuf| (!place.starts_with(project)).then_some(place);
    if found.is_dir() {
        let list = git.join("objects/info/alternates");
        let text = bounded_read::text(&list, bounded_read::SETTINGS, Symlinks::Refuse).ok()?;
        let mut lines = text.lines().map(|line| git.join("objects").join(line));
        let objects = lines.find_map(|at| outside(at.canonicalize().ok()?))?;
        let owner = objects.parent().unwrap_or(&objects);
        let is_inside = owner.file_name().is_some_and(|name| name == ".git");
        let tree = owner.parent().filter(|_| is_inside).unwrap_or(owner);
        return Some(GitElsewhere::Objects(tree.to_owned()));
    }
    if LinkedGitDir::named(project, home).is_some() && !found.is_symlink() {
        return None;
    }
    let named = match found.is_symlink() {
        true => git,
        false => project.join(gitfile_target(&git)?),
    };
    outside(named.canonicalize().ok()?).map(GitElsewhere::Directory)
}

impl LinkedGitDir {
    /// For a project whose git directory lies elsewhere.
    pub(crate) fn of(project: &Path, home: Option<&Path>) -> Option<Self> {
        Self::named(project, home).or_else(|| Self::around(project, home).ok().flatten())
    }

    /// That of the repository around a project without a git directory. It is this user's own, and no
    /// home lies in it: commands read the whole working tree.
    fn around(
        project: &Path,
        home: Option<&Path>,
    ) -> Result<Option<Self>, (PathBuf, &'static str)> {
        let Ok(own) = project.metadata() else { return Ok(None) };
        // Git looks no further than a git directory, with a working tree or without one.
        if project.join(".git").symlink_metadata().is_ok() || is_whole(project) {
            return Ok(None);
        }
        let user = Uid::effective().as_raw();
        // A home may be a link; both its places count.
        let homes = [home.map(Path::to_owned), home.and_then(|home| home.canonicalize().ok())];
        let holds_home = |tree: &Path| homes.iter().flatten().any(|home| home.starts_with(tree));
        for tree in project.ancestors().skip(1) {
            let Ok(root) = tree.metadata() else { return Ok(None) };
            if root.dev() != own.dev() || is_whole(tree) {
                return Ok(None);
            }
            let git = tree.join(".git");
            let Ok(found) = git.symlink_metadata() else { continue };
            let left_out = |why| Err((tree.to_owned(), why));
            let is_whole = found.is_dir() && is_whole(&git);
            if found.is_dir() && !is_whole {
                continue;
            }
            if tree.parent().is_none() || holds_home(tree) {
                return left_out("your home lies in it");
            }
            if found.uid() != user || root.uid() != user {
                return left_out("it belongs to another user");
            }
            if is_whole {
                let common = git.clone();
                return Ok(Some(Self { folder: git, common, tree: Some(tree.to_owned()) }));
            }
            let linked = Self::named(tree, home);
            return match linked.filter(|_| !found.is_symlink()) {
                Some(linked) => Ok(Some(Self { tree: Some(tree.to_owned()), ..linked })),
                None => left_out("its .git leads to a directory that does not point back"),
            };
        }
        Ok(None)
    }

    /// For a directory whose `.git` is a file, if the directory that it names points back.
    fn named(project: &Path, home: Option<&Path>) -> Option<Self> {
        let pointer = project.join(".git");
        let named = gitfile_target(&pointer)?;
        let folder = project.join(named).canonicalize().ok()?;
        let common = match read_dir_pointer(&folder.join("commondir")) {
            Ok(common) => folder.join(common).canonicalize().ok()?,
            Err(ReadFailure::Absent) => folder.clone(),
            Err(ReadFailure::Unreadable) => return None,
        };
        let back = if common == folder {
            let settings = folder.join("config");
            let settings =
                bounded_read::text(&settings, bounded_read::SETTINGS, Symlinks::Follow).ok()?;
            let back = git_dir_check::value(&settings, "core", "worktree")?;
            folder.join(back).canonicalize().ok()? == project
        } else {
            let back = read_dir_pointer(&folder.join("gitdir")).ok()?;
            let back = folder.join(back).canonicalize().ok()?;
            back == pointer && folder.parent() == Some(&common.join("worktrees"))
        };
        let whole = is_whole(&common) && !home.is_some_and(|home| home.starts_with(&common));
        (back && whole).then_some(Self { folder, common, tree: None })
    }

    /// Paths that tier B makes writable: all but settings and hooks of a worktree's repository. A
    /// submodule has a single directory, and Landlock cannot exclude a part of it.
    pub(crate) fn writable(&self) -> Vec<PathBuf> {
        if self.common == self.folder {
            return vec![self.folder.clone()];
        }
        let parts = ["objects", "refs", "logs"].map(|name| self.common.join(name));
        parts.into_iter().chain([self.folder.clone()]).collect()
    }
}

fn is_whole(git: &Path) -> bool {
    ["objects", "refs"].iter().all(|name| is_real_dir(&git.join(name)))
        && git.join("HEAD").is_file()
}

/// True if this directory is a linked worktree of the repository that `project` is a working tree of.
#[must_use]
pub fn is_worktree_of(place: &Path, project: &Path) -> bool {
    let git = project.join(".git");
    let common = match git.is_dir() {
        true => git.canonicalize().ok(),
        false => LinkedGitDir::of(project, None).map(|linked| linked.common),
    };
    let linked = LinkedGitDir::named(place, None).filter(|linked| linked.common != linked.folder);
    linked.zip(common).is_some_and(|(linked, common)| linked.common == common)
}

persist!(struct LinkedGitDir { folder, common, tree });
