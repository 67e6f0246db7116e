//! Replaces the person's configuration file in one step: a crash or a concurrent reader finds either the
//! old or the new file. Its permissions and a link to it stay. For `append_rule`, `edit_servers` and
//! `edit_provider`.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be {act}: {source}", file.display())]
pub struct FileAccessError {
    /// The file.
    file: PathBuf,
    /// `read` or `written`.
    act: &'static str,
    source: io::Error,
}

/// Puts the new text of `change` in place of the old one, which is empty where there is no file. On disk
/// when this returns.
///
/// # Errors
/// Those of `change`, and where the file cannot be read or written. It is as it was then.
pub(crate) fn edit<T, E: From<FileAccessError>>(
    file: &Path,
    change: impl FnOnce(&str) -> Result<(Option<String>, T), E>,
) -> Result<T, E> {
    let failed = |source| FileAccessError { file: file.to_owned(), act: "written", source };
    // Where people keep such files elsewhere and link to them, the link stays.
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let dir = real.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    // Two changes at the same time would each lose the other's.
    let directory = File::open(dir).map_err(failed)?;
    directory.lock().map_err(failed)?;
    let old = text_of(&real)?;
    let (new, answer) = change(&old)?;
    if let Some(new) = new {
        replace(&real, &new).map_err(failed)?;
        directory.sync_all().map_err(failed)?;
    }
    Ok(answer)
}

/// Its text, which is empty where there is no file.
pub(crate) fn text_of(file: &Path) -> Result<String, FileAccessError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(FileAccessError { file: file.to_owned(), act: "read", source }),
    }
}

/// The new text under the old name, in one step.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let beside = file.with_file_name(format!(".{name}.new"));
    // Left by a process that was killed; the lock guarantees that no other process writes it.
    let _ = fs::remove_file(&beside);
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let done = out.write_all(text.as_bytes()).and_then(|()| match fs::metadata(file) {
        Ok(old) => out.set_permissions(old.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    });
    let done = done.and_then(|()| out.sync_all()).and_then(|()| fs::rename(&beside, file));
    if done.is_err() {
        let _ = fs::remove_file(&beside);
    }
    done
}
