//! The way to a session on another host of a fleet, by a relay of this terminal's own. Used by the command
//! line.

use crate::fleet_programs::spawn_relay;
use crate::silence::SilenceAction;
use crate::supervisor_connection::SupervisorConnection;
use crate::supervisor_source::{SourceResult, SupervisorSource};
use protocol::ids::SessionId;
use serde::Deserialize;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Child;

/// Longest first line of a relay, and longest error.
const WORDS: u64 = 64 << 10;

/// A relay. It ends when this is dropped. After a loss it finds the host that goes on with the session.
#[derive(Debug)]
pub struct RelaySource {
    child: Child,
    first: FirstLine,
}

/// The first line of a relay.
#[derive(Debug, Deserialize)]
struct FirstLine {
    session: String,
    socket: PathBuf,
    token: String,
}

impl RelaySource {
    /// Starts one for the session whose name begins so.
    ///
    /// # Errors
    /// It cannot be started, or says why it cannot reach the session.
    pub fn start(executable: &Path, beginning: &str) -> io::Result<Self> {
        let mut child = spawn_relay(executable, beginning)?;
        let mut line = String::new();
        if let Some(output) = &mut child.stdout {
            BufReader::new(output.take(WORDS)).read_line(&mut line)?;
        }
        if let Ok(first) = serde_json::from_str(&line) {
            return Ok(Self { child, first });
        }
        let mut why = String::new();
        if let Some(errors) = &mut child.stderr {
            errors.take(WORDS).read_to_string(&mut why)?;
        }
        child.wait()?;
        Err(io::Error::other(why.trim().trim_start_matches("error: ").to_owned()))
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        SessionId(self.first.session.clone())
    }
}

impl Drop for RelaySource {
    fn drop(&mut self) {
        // It ends with its standard input, and removes its socket.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl SupervisorSource for RelaySource {
    fn connect(&mut self) -> SourceResult<SupervisorConnection> {
        Ok(SupervisorConnection::open(&self.first.socket, &self.first.token)?)
    }

    /// The relay leads to the host that has the session now.
    fn connect_where_live(&mut self, _: &SessionId) -> SourceResult<Option<SupervisorConnection>> {
        self.connect().map(Some)
    }

    /// The host, the database or the way to it may be slow. None of them is this terminal's to kill.
    fn on_silence(&mut self, checks: u32) -> SilenceAction {
        match checks > 0 && checks.is_multiple_of(5) {
            true => SilenceAction::Reconnect,
            false => SilenceAction::Wait,
        }
    }

    fn kill(&mut self) {}
}
