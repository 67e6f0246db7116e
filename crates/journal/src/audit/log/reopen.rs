//! Opens a log again that a failing disk has closed, once the disk takes records.

use super::{Audit, AuditError, ClosedLog, Reopening};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Room that the disk must have before the log opens again, in bytes: some hundred records.
const ROOM: u64 = 64 << 10;

impl Audit {
    /// Opens the log again if the disk had closed it and takes records now; does nothing to a log
    /// that is open. The chain goes on from the last record of this process.
    ///
    /// # Errors
    /// [`AuditError::Closed`] where records are damaged or gone, and the disk's own error where it
    /// still fails or is full. The log stays closed then.
    pub fn reopen(&mut self) -> Result<(), AuditError> {
        match &self.closed {
            Some(ClosedLog { remedy: Reopening::Disk, .. }) => {}
            Some(ClosedLog { remedy: Reopening::Person, .. }) | None => return self.check_open(),
        }
        let reopened = self.locked(|audit| {
            audit.catch_up()?;
            let written = |source| AuditError::Write { path: audit.path.clone(), source };
            reserve(&audit.file, audit.length).map_err(written)?;
            audit.write_again().map_err(written)?;
            let synced = |source| AuditError::Sync { path: audit.path.clone(), source };
            audit.file.sync_data().map_err(synced)
        });
        reopened.map_err(|error| self.close(error))?;
        self.confirmed = self.length;
        self.closed = None;
        Ok(())
    }

    /// Writes the records that the disk has not confirmed once more, in place. After a failed sync
    /// the kernel may take their pages for written: a second sync alone would prove nothing.
    fn write_again(&self) -> io::Result<()> {
        let unconfirmed = self.length.saturating_sub(self.confirmed);
        let mut bytes = vec![0; usize::try_from(unconfirmed).unwrap_or_default()];
        self.file.read_exact_at(&mut bytes, self.confirmed)?;
        // `self.file` always appends.
        File::options().write(true).open(&self.path)?.write_all_at(&bytes, self.confirmed)
    }
}

/// Asks the disk for room behind the last record. A file system without the request is believed
/// until a write fails.
fn reserve(file: &File, length: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::KEEP_SIZE, length, ROOM) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
