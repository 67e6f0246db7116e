//! `agentd fleet`, `submit` and `tasks`: `agentd-fleet` takes the place of this process. It alone links a
//! database client.

use crate::cli_error::CliError;
use crate::cli_exit::CliExit;
use crate::context::CliContext;
use crate::sessions;
use client::{fleet_output, one_line};
use protocol::ids::SessionId;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The words of this command line are checked already.
pub(crate) fn main() -> Result<CliExit, CliError> {
    let executable = client::fleet_executable()?;
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    Err(client::become_program(&executable, &words).into())
}

/// True if another host of the fleet may have the session whose name begins so: there is a fleet, and no
/// supervisor here runs such a session.
pub(crate) fn is_elsewhere(context: &CliContext, beginning: &str) -> Result<bool, CliError> {
    if std::env::var_os("AGENTD_FLEET_URL").is_none_or(|url| url.is_empty()) {
        return Ok(false);
    }
    // A name that several sessions here have is an error in itself.
    sessions::by_name(context, beginning)?;
    let Ok(session) = sessions::named(context, beginning) else { return Ok(true) };
    let header = journal::header(&sessions::directory(context, &session));
    let is_of_fleet = header.is_ok_and(|header| header.fleet_task.is_some());
    Ok(is_of_fleet && sessions::holder(context, &session)?.is_none())
}

/// The session on this host whose name begins so, for a command that reaches no other host. For one that runs
/// on another host of the fleet the error names the commands that do.
pub(crate) fn named_here(context: &CliContext, beginning: &str) -> Result<SessionId, CliError> {
    let named = sessions::named(context, beginning);
    if named.is_ok() || beginning.is_empty() || sessions::are_named(context, beginning) {
        return named;
    }
    let is_meant = |row: &Value| {
        row["session_id"].as_str().is_some_and(|name| name.starts_with(beginning))
            || beginning.parse().is_ok_and(|number: i64| row["task"] == number)
    };
    let rows = sessions_elsewhere();
    let mut meant = rows.iter().filter(|row| is_meant(row));
    let (Some(row), None) = (meant.next(), meant.next()) else { return named };
    let text = |key: &str| one_line(row[key].as_str().unwrap_or_default(), 100);
    let (session, host, task) = (text("session_id"), text("host"), &row["task"]);
    Err(CliError::user(format!("session {session} runs on the host {host}")).hint(format!(
        "`agentd tasks cancel {task}` ends it, and `agentd attach {task}` reaches it, to stop its turn"
    )))
}

/// The records of a session on another host, in a directory of their own. It is removed when this is dropped.
pub(crate) struct FetchedSession {
    directory: PathBuf,
    pub(crate) session: SessionId,
}

impl FetchedSession {
    /// Fetches the session whose name begins so.
    pub(crate) fn get(beginning: &str) -> Result<Self, CliError> {
        let failed = |error: std::io::Error| CliError::user(error.to_string());
        let directory = std::env::temp_dir().join(format!("agentd-fetched-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
            .create(&directory)
            .map_err(failed)?;
        let mut fetched = Self { directory, session: SessionId(String::new()) };
        let words = ["fleet", "fetch", "--", beginning].map(OsStr::new);
        let words: Vec<&OsStr> = words.into_iter().chain([fetched.directory.as_os_str()]).collect();
        let executable = client::fleet_executable()?;
        let name = fleet_output(&executable, &words).map_err(failed)?;
        name.trim().clone_into(&mut fetched.session.0);
        Ok(fetched)
    }

    /// The session's directory.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(&self.session.0)
    }
}

impl Drop for FetchedSession {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The sessions that hosts of the fleet work for. Without a fleet there are none; one that cannot be asked is
/// named.
pub(crate) fn sessions_elsewhere() -> Vec<Value> {
    if std::env::var_os("AGENTD_FLEET_URL").is_none_or(|url| url.is_empty()) {
        return Vec::new();
    }
    let asked = client::fleet_executable().map_err(|error| error.to_string());
    let asked = asked.and_then(|executable: PathBuf| {
        let words = ["fleet", "sessions"].map(OsStr::new);
        fleet_output(Path::new(&executable), &words).map_err(|error| error.to_string())
    });
    match asked {
        Ok(lines) => lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
        Err(why) => {
            eprintln!(
                "agentd: sessions of the fleet are not listed: {}",
                protocol::hidden::on_screen(&why)
            );
            Vec::new()
        }
    }
}
