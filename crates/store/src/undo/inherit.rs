//! The changes of a session that was copied: the copy begins with those of its calls that it shares,
//! so that they can be undone there too. Done once, before the first use. For `undo` only.

use crate::failure::{StoreError, StoreErrorCode};
use protocol::store::{ForkedFrom, StoreSetup};
use rusqlite::{Connection, OpenFlags, params};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a writer of the other session is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the changes of the other session are, and which of them are shared.
#[derive(Debug)]
pub(super) struct SharedChanges {
    from: PathBuf,
    /// The last shared call.
    last_call: u32,
}

impl SharedChanges {
    /// Those of the session that this one is a copy of, if it is one.
    pub(super) fn of(setup: &StoreSetup, name: &str) -> Option<Self> {
        let ForkedFrom { session, last_call } = setup.forked_from.as_ref()?;
        let sessions = setup.project_store.to_path().join("sessions");
        Some(Self { from: sessions.join(&session.0).join(name), last_call: *last_call })
    }

    /// Copies them to `to`, unless something is there already.
    pub(super) fn copy(&self, to: &Path) -> Result<(), StoreError> {
        if to.symlink_metadata().is_ok() || !self.from.is_file() {
            return Ok(());
        }
        let part = to.with_extension("part");
        if let Some(directory) = to.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        }
        // The rest of an attempt that a kill cut short.
        match std::fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let from = Connection::open_with_flags(&self.from, flags)?;
        from.busy_timeout(PATIENCE)?;
        // A consistent copy, also while the other session writes.
        from.execute("VACUUM INTO ?1", params![part.display().to_string()])?;
        drop(from);
        let copy = Connection::open(&part)?;
        let after = params![self.last_call];
        copy.execute("DELETE FROM change WHERE call > ?1", after)?;
        copy.execute("DELETE FROM file WHERE change NOT IN (SELECT id FROM change)", [])?;
        copy.execute("DELETE FROM command WHERE change NOT IN (SELECT id FROM change)", [])?;
        copy.execute("DELETE FROM unchanged WHERE call > ?1", after)?;
        copy.close().map_err(|(_, error)| error)?;
        File::open(&part).and_then(|file| file.sync_all()).map_err(failed)?;
        std::fs::rename(&part, to).map_err(failed)
    }
}

fn failed(error: io::Error) -> StoreError {
    StoreError::new(StoreErrorCode::Io, error.to_string(), "Go on without it, and tell the person.")
}
