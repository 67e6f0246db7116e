//! A user's file is the user's own: never one that the calls which it bounds could write. For `load`,
//! and for the supervisor where directories are added.

use crate::error::ConfigError;
use std::path::Path;

/// Looks where the file of the user's settings really lies. The directory that it is kept in is
/// withheld from calls by itself; a link out of it is not.
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
