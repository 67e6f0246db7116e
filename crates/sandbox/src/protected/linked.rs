//! The git folder of a project that is a linked worktree or a submodule: it lies elsewhere, and
//! git needs it. A `.git` file alone is no proof, since anybody who wrote the project could point
//! it anywhere; the folder it names must point back.

use super::is_real_dir;
use super::vet;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Where git keeps the rest of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Linked {
    /// Of this worktree or submodule alone.
    pub folder: PathBuf,
    /// What it shares with other worktrees; the same folder for a submodule.
    pub common: PathBuf,
}

impl Linked {
    /// Of a project whose `.git` is a file, and where what it names points back.
    pub(crate) fn of(project: &Path, home: Option<&Path>) -> Option<Self> {
        let pointer = project.join(".git");
        let named = pointed(&pointer)?;
        let folder = project.join(named).canonicalize().ok()?;
        let common = match read_to_string(folder.join("commondir")) {
            Ok(common) => folder.join(common.trim_end()).canonicalize().ok()?,
            Err(_) => folder.clone(),
        };
        let back = if common == folder {
            let settings = read_to_string(folder.join("config")).ok()?;
            let back = vet::value(&settings, "core", "worktree")?;
            folder.join(back).canonicalize().ok()? == project
        } else {
            let back = read_to_string(folder.join("gitdir")).ok()?;
            let back = folder.join(back.trim_end()).canonicalize().ok()?;
            back == pointer && folder.parent() == Some(&common.join("worktrees"))
        };
        let whole = ["objects", "refs"].iter().all(|name| is_real_dir(&common.join(name)))
            && common.join("HEAD").is_file()
            && !home.is_some_and(|home| home.starts_with(&common));
        (back && whole).then_some(Self { folder, common })
    }

    /// What tier B lets be written: all but settings and hooks of a worktree's repository. A
    /// submodule keeps everything in one folder, of which Landlock takes nothing out.
    pub(crate) fn writable(&self) -> Vec<PathBuf> {
        if self.common == self.folder {
            return vec![self.folder.clone()];
        }
        let parts = ["objects", "refs", "logs"].map(|name| self.common.join(name));
        parts.into_iter().chain([self.folder.clone()]).collect()
    }
}

/// What a `.git` file names.
pub(super) fn pointed(pointer: &Path) -> Option<PathBuf> {
    let found = pointer.symlink_metadata().ok()?;
    if !found.is_file() || found.len() > 4096 {
        return None;
    }
    let text = read_to_string(pointer).ok()?;
    Some(PathBuf::from(text.strip_prefix("gitdir:")?.trim()))
}
