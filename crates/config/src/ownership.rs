//! Two checks on files. Calls must not be able to write the user's configuration file, which
//! restricts them, and must not be able to read a key file. For `load`, and for the supervisor when
//! a directory is added.

use crate::error::ConfigError;
use crate::origin::ValueOrigin;
use std::path::{Path, PathBuf};

/// A file that holds a key: of the model in use, of another, or for a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile {
    /// An absolute path.
    pub path: PathBuf,
    /// Which setting names it.
    pub(crate) setting: String,
    /// Where that stands.
    pub(crate) origin: ValueOrigin,
    /// The directory of the user's settings, which is withheld from calls wherever it lies.
    pub(crate) withheld: Option<PathBuf>,
}

/// Resolves the user's configuration file. Its directory is withheld from calls anyway, but the
/// target of a link out of it is not.
///
/// # Errors
/// It is a link into one of these directories, which calls may write.
pub fn user_file_is_own<P: AsRef<Path>>(
    file: &Path,
    writable: impl IntoIterator<Item = P>,
) -> Result<(), ConfigError> {
    let Ok(real) = file.canonicalize() else { return Ok(()) };
    let kept = file.parent().and_then(|dir| dir.canonicalize().ok());
    let kept = kept.filter(|kept| real.starts_with(kept));
    let within = writable.into_iter().find_map(|dir| {
        let dir = dir.as_ref().canonicalize().ok()?;
        let withheld = kept.as_ref().is_some_and(|kept| kept.starts_with(&dir));
        (real.starts_with(&dir) && !withheld).then_some(dir)
    });
    match within {
        None => Ok(()),
        Some(within) => Err(ConfigError::NotOwn { file: file.into(), real, within }),
    }
}

/// Checks the key files' paths and the targets of their links.
///
/// # Errors
/// A key file is in one of these directories, which calls may read.
pub(crate) fn key_files_are_apart<P: AsRef<Path>>(
    key_files: &[KeyFile],
    readable: impl IntoIterator<Item = P>,
) -> Result<(), ConfigError> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let readable: Vec<PathBuf> = readable.into_iter().map(|dir| real(dir.as_ref())).collect();
    for key in key_files {
        let name = key.path.file_name().unwrap_or_default();
        let named = key.path.parent().map(|dir| real(dir).join(name));
        let withheld = key.withheld.as_deref().map(real);
        for place in named.into_iter().chain([real(&key.path)]) {
            let reaches = |dir: &&PathBuf| {
                let kept = withheld.as_ref().filter(|kept| place.starts_with(kept));
                place.starts_with(dir) && !kept.is_some_and(|kept| kept.starts_with(dir))
            };
            if let Some(within) = readable.iter().find(reaches) {
                return Err(ConfigError::KeyInReach {
                    origin: key.origin.clone(),
                    setting: key.setting.clone(),
                    file: key.path.clone(),
                    within: within.clone(),
                });
            }
        }
    }
    Ok(())
}
