//! Which sessions there are. Used by whoever lists them.

use crate::{ReadError, header, is_session_name};
use std::path::Path;
use std::{fs, io};

/// The names of the sessions in this directory, sorted; none where there is no directory. One whose
/// making was cut short by a death holds nothing, was never seen, and is left out; one that cannot be
/// read is not.
///
/// # Errors
/// Where the directory cannot be listed.
pub fn sessions(sessions: &Path) -> io::Result<Vec<String>> {
    let mut names = directories(sessions)?;
    names.retain(|name| was_begun(&sessions.join(name)));
    Ok(names)
}

/// The names of the sessions' directories, sorted, those included that hold nothing: for who asks
/// whether something is gone.
pub(crate) fn directories(sessions: &Path) -> io::Result<Vec<String>> {
    let listing = match fs::read_dir(sessions) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in listing {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if is_session_name(&name) && entry.file_type()?.is_dir() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Whether its header was written, or what is wrong with it is something else.
fn was_begun(session_dir: &Path) -> bool {
    match header(session_dir) {
        Err(ReadError::NoHeader { .. }) => false,
        // Without a journal it is one that lost it, unless there is nothing at all.
        Err(ReadError::Missing { .. }) => {
            fs::read_dir(session_dir).is_ok_and(|mut inside| inside.next().is_some())
        }
        Ok(_) | Err(_) => true,
    }
}
