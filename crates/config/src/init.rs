//! The project file that `agentd init` writes.

use crate::file_text::read_file;
use crate::load::{PROJECT_FILE, PROJECT_LOCAL_FILE};
use crate::load_hooks::CLAUDE_PROJECT_FILES;
use crate::mcp::PROJECT_SERVERS;
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

/// Why there is no new project file.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// There is one.
    #[error(
        "{} is there already and was left as it is. `agentd init --trust` shows the project's files and \
         records your trust in them as they are", .0.display()
    )]
    Exists(PathBuf),
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
    /// The trust in it could not be recorded; the file was taken back.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// Writes the project file of `project` and records the user's trust in it. An existing file is
/// never touched, and no file stays behind without its record of trust.
pub fn init_project(project: &Path, store: &TrustStore) -> Result<PathBuf, InitError> {
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
    let mut out = match OpenOptions::new().write(true).create_new(true).open(&file) {
        Ok(out) => out,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(InitError::Exists(file));
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
    Ok(file)
}

/// The project's files that count for more once the user trusts them: those that there are.
#[must_use]
pub fn trusted_files(project: &Path) -> Vec<PathBuf> {
    let own = [PROJECT_FILE, PROJECT_LOCAL_FILE];
    let all = own.into_iter().chain(CLAUDE_PROJECT_FILES).chain([PROJECT_SERVERS]);
    let all = all.map(|name| project.join(name));
    all.filter(|file| file.exists()).collect()
}

/// Records the user's trust in the project's files of Claude Code, of which agentd reads the hooks and
/// the MCP servers.
/// Returns those that there are.
///
/// # Errors
/// The record of trust cannot be used.
pub fn trust_claude_files(project: &Path, store: &TrustStore) -> Result<Vec<PathBuf>, TrustError> {
    let mut trusted = Vec::new();
    for name in CLAUDE_PROJECT_FILES.into_iter().chain([PROJECT_SERVERS]) {
        let file = project.join(name);
        if let Ok(Some(content)) = read_file(&file) {
            store.record(&file, &content)?;
            trusted.push(file);
        }
    }
    Ok(trusted)
}
