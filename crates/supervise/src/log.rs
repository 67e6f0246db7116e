//! The log: one file for the supervisor and, through it, for its workers.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use tracing_subscriber::EnvFilter;

/// A log larger than this is moved to `.old` at the next start.
const ROTATE_BYTES: u64 = 8 << 20;

/// Opens the log in this directory, readable by its owner only, and directs tracing's lines to it.
/// `filter` has the syntax of `RUST_LOG`.
///
/// # Errors
/// Those of making the directory and the file.
pub fn start(directory: &Path, filter: Option<&str>) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let path = directory.join("supervisor.log");
    if std::fs::metadata(&path).is_ok_and(|state| state.len() > ROTATE_BYTES) {
        std::fs::rename(&path, directory.join("supervisor.log.old"))?;
    }
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let filter =
        EnvFilter::try_new(filter.unwrap_or("info")).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(Arc::new(file.try_clone()?))
        // It would print to standard error, which is this log too, and a print that fails panics: a
        // full disk would end the daemon.
        .log_internal_errors(false)
        .finish();
    // A second start in one process keeps the first's lines; only tests do that.
    let _ = tracing::subscriber::set_global_default(lines);
    Ok(file)
}
