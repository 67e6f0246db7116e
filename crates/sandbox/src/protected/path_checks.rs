//! Checks of single paths that never follow a link at the path itself.

use std::path::{Path, PathBuf};

/// A directory itself, not a link to one.
pub(super) fn is_real_dir(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// True if the path exists; a dangling link counts.
pub(super) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// True if the path lies beneath one of these.
pub(super) fn lies_in(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path != root && path.starts_with(root))
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
