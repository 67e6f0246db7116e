//! Reads a file that a project may have put there.

use crate::error::{ConfigError, SourceLine};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Largest configuration file in bytes. Stops a huge file in a foreign project from filling memory.
const FILE_CAP: u64 = 1 << 20;

/// The name of a file and its text; none where there is no such file.
pub(crate) fn read_text(path: &Path) -> Result<Option<(String, String)>, ConfigError> {
    let Some(content) = read_file(path)? else { return Ok(None) };
    let file = path.display().to_string();
    match String::from_utf8(content) {
        Ok(text) => Ok(Some((file, text))),
        Err(error) => {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            Err(ConfigError::NotText { place: SourceLine { file, line, column: 0 } })
        }
    }
}

/// The bytes of a file that a project may have put there; `None` where there is none. Only a regular file of
/// bounded size is read, and nothing waits for one.
///
/// # Errors
/// The file, and why it is not read.
pub fn read_file(path: &Path) -> Result<Option<Vec<u8>>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { file: path.into(), source };
    // Checked before it is opened: opening a FIFO would wait for a writer.
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(ConfigError::NotAFile { file: path.into() }),
        Err(error) if is_absence(&error) => return Ok(None),
        Err(source) => return Err(unreadable(source)),
    }
    // It may have been replaced since.
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path);
    let file = file.map_err(unreadable)?;
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Err(ConfigError::NotAFile { file: path.into() });
    }
    let mut content = Vec::new();
    file.take(FILE_CAP + 1).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() as u64 > FILE_CAP {
        return Err(ConfigError::TooLarge { file: path.into(), cap: FILE_CAP });
    }
    Ok(Some(content))
}

/// `.agentd` may be missing, or be a file of another program.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
