//! Lists the directories of sessions.

use crate::{ReadError, header, is_session_name};
use std::path::Path;
use std::{fs, io};

/// The IDs of the sessions in this directory, sorted; none if the directory does not exist. A
/// session whose creation was cut short is empty and left out; an unreadable one is included.
///
/// # Errors
/// Where the directory cannot be listed.
pub fn sessions(sessions: &Path) -> io::Result<Vec<String>> {
    let mut names = directories(sessions)?;
    names.retain(|name| was_begun(&sessions.join(name)));
    Ok(names)
}

/// The names of all session directories, sorted, including empty ones: for checking that a session
/// is gone.
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

/// True if the header of the session in this directory exists, or if its damage is of another kind.
/// A directory without one is what a death left of a session's creation: nothing is lost with it.
#[must_use]
pub fn was_begun(session_dir: &Path) -> bool {
    match header(session_dir) {
        Err(ReadError::NoHeader { .. }) => false,
        // A directory without a journal has lost it, unless it is empty.
        Err(ReadError::Missing { .. }) => {
            fs::read_dir(session_dir).is_ok_and(|mut inside| inside.next().is_some())
        }
        Ok(_) | Err(_) => true,
    }
}
