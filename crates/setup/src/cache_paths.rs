//! Where the package caches of a project lie. Used by the session specification, and where the caches are
//! made and removed.

use std::path::{Path, PathBuf};

/// The cache that commands write; its metadata is in the directory above.
pub const CACHE: &str = "kept";
/// Overlays with the commands' changes to the user's own caches; the changes are in `upper` of
/// each.
pub const OVERLAYS: &str = "overlays";

/// The directory of all projects' caches.
pub fn caches_dir(state: &Path) -> PathBuf {
    let state = state.canonicalize().unwrap_or_else(|_| state.to_owned());
    state.join("caches")
}

/// The cache of a project.
pub fn project_cache_dir(state: &Path, project: &Path) -> PathBuf {
    caches_dir(state).join(config::project_dir_name(project)).join(CACHE)
}

/// The directory of the overlays that belong to this cache.
pub(crate) fn overlays_dir(kept: &Path) -> PathBuf {
    kept.with_file_name(OVERLAYS)
}
