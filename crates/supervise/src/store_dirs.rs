//! Makes and clears the directories of sessions' stores. Used when a session is opened and removed.

use protocol::ids::SessionId;
use protocol::store::StoreSetup;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes the directories; the store itself cannot.
///
/// # Errors
/// Errors of the file system.
pub(crate) fn make(setup: &StoreSetup) -> io::Result<()> {
    for directory in [&setup.project_store, &setup.user_store] {
        DirBuilder::new().recursive(true).mode(0o700).create(directory.to_path())?;
    }
    Ok(())
}

/// Removes the stored data of a session that is removed, in the stores of all projects.
pub(crate) fn remove_session_store(state: &Path, session: &SessionId) {
    let stores = std::fs::read_dir(state.join("store")).into_iter().flatten().flatten();
    for store in stores {
        let kept = store.path().join("sessions").join(&session.0);
        match std::fs::remove_dir_all(&kept) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::error!(kept = %kept.display(), %error, "not removed"),
        }
    }
}

/// Removes the cached results of a session that a person ended.
pub(crate) fn remove_cached_results(state: &Path, session: &SessionId) {
    let stores = std::fs::read_dir(state.join("store")).into_iter().flatten().flatten();
    for store in stores {
        let kept = store.path().join("sessions").join(&session.0);
        for file in ["cache.db", "cache.db-wal", "cache.db-shm"] {
            match std::fs::remove_file(kept.join(file)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tracing::error!(kept = %kept.display(), file, %error, "not removed"),
            }
        }
    }
}
