//! Read-only mounts that are made while the command runs. The runner requests them and may mount
//! nothing itself; PID 1 of the namespace makes them.

use crate::error::{CageError, CageStep};
use crate::mounts::{self, StagingDir};
use crate::spawn::setup_channel::SetupChannel;
use std::cell::Cell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// How long the runner waits for a mount, which takes 50 us.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// The runner's handle for requests to PID 1.
#[derive(Debug)]
pub(crate) struct ReadOnlyMounter {
    channel: SetupChannel,
    /// A reply was missed. It may still arrive, and would be taken for the reply to the next
    /// request.
    broken: Cell<bool>,
}

impl ReadOnlyMounter {
    /// Uses this channel, which must carry nothing else.
    pub(crate) fn new(channel: SetupChannel) -> Self {
        Self { channel, broken: Cell::new(false) }
    }

    /// Makes the file at this path of the root read-only. In a staging directory the mount then
    /// moves with the file.
    ///
    /// # Errors
    /// The reason why the file is not read-only.
    pub(crate) fn make_read_only(&self, path: &Path) -> Result<(), CageError> {
        if self.broken.get() {
            return Err(CageError::new(
                CageStep::Handover,
                "PID 1 of the namespace did not answer an earlier request",
            ));
        }
        let asked = || {
            self.channel.set_timeout(REPLY_TIMEOUT)?;
            self.channel.send_parts(&[path.as_os_str().as_bytes()])?;
            self.channel.receive_parts()
        };
        match asked() {
            Ok(Some(answer)) if answer.is_empty() => Ok(()),
            Ok(Some(why)) => {
                let why: Vec<_> = why.iter().map(|part| String::from_utf8_lossy(part)).collect();
                Err(CageError::new(CageStep::Root, why.concat()))
            }
            Ok(None) => Err(CageError::new(CageStep::Lost, "PID 1 of the namespace has ended")),
            Err(error) => {
                self.broken.set(true);
                Err(error)
            }
        }
    }
}

/// Handles one request in PID 1. False if the channel is closed.
pub(crate) fn handle_request(channel: &SetupChannel, staging_dirs: &[StagingDir]) -> bool {
    let Ok(Some(parts)) = channel.receive_parts() else { return false };
    let mut paths = parts.iter().map(|part| Path::new(OsStr::from_bytes(part)));
    let sealed = paths.try_for_each(|path| mounts::make_read_only(path, staging_dirs));
    let answered = match sealed {
        Ok(()) => channel.send_parts(&[]),
        Err(errno) => channel.send_parts(&[errno.desc().as_bytes()]),
    };
    answered.is_ok()
}
