//! Runs package managers for `agentd mcp install`, with the variables that it names and no others. For
//! `agentd` alone.

use crate::spawn::spawn_unmasked;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs a program of the person's `PATH` to its end. It has no input, and its output is kept.
///
/// # Errors
/// If it cannot be started.
pub fn run_installer(
    (program, arguments): (&OsStr, &[&OsStr]),
    env: &[(String, OsString)],
    dir: &Path,
) -> io::Result<Output> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(env.iter().map(|(name, value)| (name, value)));
    command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    spawn_unmasked(&mut command)?.wait_with_output()
}
