//! Files that only this user may read, written as a whole.

use crate::error::FleetError;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a file of this user alone, as a whole.
pub(crate) fn write_private(file: &Path, bytes: &[u8]) -> Result<(), FleetError> {
    use std::io::Write as _;
    let fresh = file.with_extension("new");
    let written = File::options().create(true).truncate(true).write(true).mode(0o600).open(&fresh);
    let written = written.and_then(|mut out| {
        out.write_all(bytes)?;
        out.sync_data()
    });
    written.and_then(|()| std::fs::rename(&fresh, file)).map_err(FleetError::file(file))
}
