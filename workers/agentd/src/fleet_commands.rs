//! `agentd fleet`, `submit` and `tasks`: `agentd-fleet` takes the place of this process. It alone links a
//! database client.

use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use std::ffi::{OsStr, OsString};

/// The words of this command line are checked already.
pub(crate) fn main() -> Result<CliExit, CliError> {
    let executable = client::sibling_executable("agentd-fleet")?;
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    Err(client::become_program(&executable, &words).into())
}
