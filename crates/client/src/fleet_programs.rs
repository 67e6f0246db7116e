//! Starts `agentd-fleet` for commands that need its answer: a relay, a list, a session's records.

use crate::spawn::{StartError, output_of_own, sibling_executable, spawn_unmasked};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `agentd-fleet`, which is installed by a command of its own.
///
/// # Errors
/// [`StartError::NoFleet`] if it is not beside the running executable, or [`StartError::Nowhere`].
pub fn fleet_executable() -> Result<PathBuf, StartError> {
    match sibling_executable("agentd-fleet") {
        Err(StartError::Missing { path }) => Err(StartError::NoFleet { path }),
        found @ (Ok(_) | Err(_)) => found,
    }
}

/// Runs a command of `agentd-fleet` to its end, and returns its standard output.
///
/// # Errors
/// It cannot be started, or its own error.
pub fn fleet_output(executable: &Path, words: &[&OsStr]) -> io::Result<String> {
    output_of_own(Command::new(executable).args(words))
}

/// Starts the relay that connects this terminal to a session on another host of a fleet.
pub(crate) fn spawn_relay(executable: &Path, beginning: &str) -> io::Result<Child> {
    let mut command = Command::new(executable);
    command.args(["fleet", "relay", "--", beginning]).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    spawn_unmasked(&mut command)
}
