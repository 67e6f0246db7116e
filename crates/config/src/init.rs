//! The project file that `agentd init` writes.

use crate::load::{PROJECT_FILE, PROJECT_LOCAL_FILE};
use crate::load_hooks::CLAUDE_PROJECT_FILES;
use crate::trust::{TrustError, TrustStore};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The commented project file: allows `bash:cargo *` and `bash:rg *`, denies `bash:sudo *` and
/// `bash:rm -rf /*`.
#[must_use]
pub fn init_text() -> &'static str {
    include_str!("../../../config/init.toml")
}

/// What became of the project file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitDone {
    /// There was none, and it was written.
    Written(PathBuf),
    /// It was there and is left as it is.
    Kept(PathBuf),
}

/// Why the project has no trusted file.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// Its directory is a link, so that it would be written somewhere else.
    #[error(
        "{} is a link to {}: the file would be written there. Remove the link, or put a directory in \
         its place, and run `agentd init` again", dir.display(), to.display()
    )]
    Link {
        /// The directory's name.
        dir: PathBuf,
        /// Where it leads.
        to: PathBuf,
    },
    /// The project directory does not take one.
    #[error("{} cannot be written: {source}. Check that the project directory exists and is yours", file.display())]
    Unwritable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that is there cannot be read.
    #[error("{} cannot be read: {source}. Repair its permissions, or move it away", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The trust in it could not be recorded; a new file was taken back.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// Writes the project file of `project`, unless there is one, and records the user's trust in it as it is now, and in the
/// project's local file. No file that it writes stays behind without its record of trust.
pub fn init_project(project: &Path, store: &TrustStore) -> Result<InitDone, InitError> {
    let file = project.join(PROJECT_FILE);
    let unwritable = |source| InitError::Unwritable { file: file.clone(), source };
    if let Some(dir) = file.parent() {
        match fs::create_dir(dir) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(unwritable(source)),
        }
        // A project from elsewhere may come with one.
        if let Ok(to) = dir.read_link() {
            return Err(InitError::Link { dir: dir.into(), to });
        }
    }
    trust_if_there(&project.join(PROJECT_LOCAL_FILE), store)?;
    let mut out = match OpenOptions::new().write(true).create_new(true).open(&file) {
        Ok(out) => out,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            trust_if_there(&file, store)?;
            return Ok(InitDone::Kept(file));
        }
        Err(source) => return Err(unwritable(source)),
    };
    let written = out
        .write_all(init_text().as_bytes())
        .map_err(unwritable)
        .and_then(|()| Ok(store.record(&file, init_text().as_bytes())?));
    if let Err(error) = written {
        // Half a file or an untrusted one would look like success at the next start.
        let _ = fs::remove_file(&file);
        return Err(error);
    }
    Ok(InitDone::Written(file))
}

fn trust_if_there(file: &Path, store: &TrustStore) -> Result<(), InitError> {
    match fs::read(file) {
        Ok(content) => Ok(store.record(file, &content)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(InitError::Unreadable { file: file.to_owned(), source }),
    }
}

/// Records the user's trust in the project's files of Claude Code, of which agentd reads the hooks.
/// Returns those that there are.
///
/// # Errors
/// The record of trust cannot be used.
pub fn trust_claude_files(project: &Path, store: &TrustStore) -> Result<Vec<PathBuf>, TrustError> {
    let mut trusted = Vec::new();
    for file in CLAUDE_PROJECT_FILES.map(|name| project.join(name)) {
        if let Ok(content) = fs::read(&file) {
            store.record(&file, &content)?;
            trusted.push(file);
        }
    }
    Ok(trusted)
}
