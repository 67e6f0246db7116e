//! Where calls of a session can write.

use crate::cache_paths::overlays_dir;
use protocol::confinement::Confinement;
use std::path::PathBuf;

/// Paths that calls of the session can write, including the overlays that each command gets.
pub(crate) fn writable_paths(confinement: &Confinement) -> Vec<PathBuf> {
    let overlays = confinement.caches.as_ref().map(|kept| overlays_dir(&kept.to_path()));
    confinement.written().into_iter().chain(overlays).collect()
}
