//! Files and links that name a git directory: `.git` files, `commondir` and `gitdir`.

use super::bounded_read::{self, ReadFailure, Symlinks};
use super::path_checks::exists;
use super::protected_path::ProtectedPath;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The path in a `.git` file.
pub(super) fn gitfile_target(pointer: &Path) -> Option<PathBuf> {
    let bytes = bounded_read::bytes(pointer, bounded_read::POINTER, Symlinks::Refuse).ok()?;
    let named = bytes.strip_prefix(b"gitdir:")?.trim_ascii();
    Some(PathBuf::from(OsStr::from_bytes(named)))
}

/// The path in a `commondir` or `gitdir` file.
pub(super) fn read_dir_pointer(file: &Path) -> Result<PathBuf, ReadFailure> {
    let bytes = bounded_read::bytes(file, bounded_read::POINTER, Symlinks::Follow)?;
    Ok(PathBuf::from(OsStr::from_bytes(bytes.trim_ascii_end())))
}

/// The git directory that a `.git` link or file leads to. For a worktree it is the repository's,
/// which also holds the worktree's own files.
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

/// The git directories of these paths.
pub(super) fn git_dirs_among(places: &[ProtectedPath]) -> HashSet<&Path> {
    places.iter().filter_map(|place| place.git_dir.as_deref()).collect()
}

/// True if a new `.git` file leads to one of these git directories or to a worktree folder in them.
pub(super) fn points_to_known_git_dir(pointer: &Path, gits: &HashSet<&Path>) -> bool {
    let folder = pointer.parent().zip(gitfile_target(pointer)).map(|(at, to)| at.join(to));
    let Some(folder) = folder.and_then(|folder| folder.canonicalize().ok()) else { return false };
    gits.contains(folder.as_path())
}
