//! The git folder of a project that is a linked worktree or a submodule: it lies elsewhere, and
//! git needs it. A `.git` file alone is no proof, since anybody who wrote the project could point
//! it anywhere; the folder it names must point back.

use super::is_real_dir;
use super::read::{self, Links, Unread};
use super::saved::saved;
use super::vet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
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
        let common = match folder_in(&folder.join("commondir")) {
            Ok(common) => folder.join(common).canonicalize().ok()?,
            Err(Unread::Absent) => folder.clone(),
            Err(Unread::Unreadable) => return None,
        };
        let back = if common == folder {
            let settings = folder.join("config");
            let settings = read::text(&settings, read::SETTINGS, Links::Followed).ok()?;
            let back = vet::value(&settings, "core", "worktree")?;
            folder.join(back).canonicalize().ok()? == project
        } else {
            let back = folder_in(&folder.join("gitdir")).ok()?;
            let back = folder.join(back).canonicalize().ok()?;
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
    let bytes = read::bytes(pointer, read::POINTER, Links::Refused).ok()?;
    let named = bytes.strip_prefix(b"gitdir:")?.trim_ascii();
    Some(PathBuf::from(OsStr::from_bytes(named)))
}

/// What a `commondir` or a `gitdir` names.
pub(super) fn folder_in(file: &Path) -> Result<PathBuf, Unread> {
    let bytes = read::bytes(file, read::POINTER, Links::Followed)?;
    Ok(PathBuf::from(OsStr::from_bytes(bytes.trim_ascii_end())))
}

saved!(struct Linked { folder, common });
