//! The git directory of a linked worktree or a submodule, which lies outside the project and which
//! git needs. A `.git` file alone proves nothing, since any author of the project could point it
//! anywhere. The directory must point back.

use super::bounded_read::{self, ReadFailure, Symlinks};
use super::git_dir_check;
use super::git_pointers::{gitfile_target, read_dir_pointer};
use super::path_checks::is_real_dir;
use super::persist::persist;
use std::path::{Path, PathBuf};

/// Where git keeps the rest of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkedGitDir {
    /// Of this worktree or submodule alone.
    pub folder: PathBuf,
    /// Shared with other worktrees; the same directory for a submodule.
    pub common: PathBuf,
}

impl LinkedGitDir {
    /// For a project whose `.git` is a file, if the directory that it names points back.
    pub(crate) fn of(project: &Path, home: Option<&Path>) -> Option<Self> {
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
        let whole = ["objects", "refs"].iter().all(|name| is_real_dir(&common.join(name)))
            && common.join("HEAD").is_file()
            && !home.is_some_and(|home| home.starts_with(&common));
        (back && whole).then_some(Self { folder, common })
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

/// True if this directory is a linked worktree of the repository that `project` is a working tree of.
#[must_use]
pub fn is_worktree_of(place: &Path, project: &Path) -> bool {
    let git = project.join(".git");
    let common = match git.is_dir() {
        true => git.canonicalize().ok(),
        false => LinkedGitDir::of(project, None).map(|linked| linked.common),
    };
    let linked = LinkedGitDir::of(place, None).filter(|linked| linked.common != linked.folder);
    linked.zip(common).is_some_and(|(linked, common)| linked.common == common)
}

persist!(struct LinkedGitDir { folder, common });
