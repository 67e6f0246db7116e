//! Mounts that keep a file read-only, made while the command runs. The runner asks for them and may
//! mount nothing itself; the first process of the namespaces makes them. For `init` and `listener`.

use crate::error::{CageError, CageStep};
use crate::root::{self, StagingDir};
use crate::setup_channel::SetupChannel;
use std::cell::Cell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// How long the runner waits for a mount, which takes 50 us.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// The runner's way to the first process.
#[derive(Debug)]
pub(crate) struct ReadOnlyMounter {
    line: SetupChannel,
    /// An answer was missed. It may come later, and would then be taken for that to the next word.
    broken: Cell<bool>,
}

impl ReadOnlyMounter {
    /// Over this line, which nothing else is said on.
    pub(crate) fn new(line: SetupChannel) -> Self {
        Self { line, broken: Cell::new(false) }
    }

    /// Makes what lies at this path of the root read-only there; right in a room, wherever it is moved.
    ///
    /// # Errors
    /// What failed; then it is not.
    pub(crate) fn make_read_only(&self, path: &Path) -> Result<(), CageError> {
        if self.broken.get() {
            return Err(CageError::new(
                CageStep::Handover,
                "the first process did not answer before",
            ));
        }
        let asked = || {
            self.line.set_timeout(REPLY_TIMEOUT)?;
            self.line.send_parts(&[path.as_os_str().as_bytes()])?;
            self.line.receive_parts()
        };
        match asked() {
            Ok(Some(answer)) if answer.is_empty() => Ok(()),
            Ok(Some(why)) => {
                let why: Vec<_> = why.iter().map(|part| String::from_utf8_lossy(part)).collect();
                Err(CageError::new(CageStep::Root, why.concat()))
            }
            Ok(None) => Err(CageError::new(CageStep::Lost, "the first process has ended")),
            Err(error) => {
                self.broken.set(true);
                Err(error)
            }
        }
    }
}

/// The first process's part: one word, if there is one, and its answer. False where the line has ended.
pub(crate) fn handle_request(line: &SetupChannel, rooms: &[StagingDir]) -> bool {
    let Ok(Some(parts)) = line.receive_parts() else { return false };
    let mut paths = parts.iter().map(|part| Path::new(OsStr::from_bytes(part)));
    let sealed = paths.try_for_each(|path| root::make_read_only(path, rooms));
    let answered = match sealed {
        Ok(()) => line.send_parts(&[]),
        Err(errno) => line.send_parts(&[errno.desc().as_bytes()]),
    };
    answered.is_ok()
}
