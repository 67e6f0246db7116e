//! Servers that ended for want of a log-in: each starts again once the person has logged in, which a prompt, a
//! new client and a question for the servers look for. Such a question has a failed server tried once more too.

use super::RunningServer;
use crate::session_actor::state::{ReplayState, SessionActorState};
use protocol::call::ToolResult;
use setup::server_log_in::{self, LogInStamp};

/// The code of a server's end that a log-in helps against.
const WANTS_LOG_IN: &str = "login_required";

/// A server and the person's log-in at it.
#[derive(Debug, Default)]
pub(super) struct ServerLogIn {
    /// The log-in with which it started last.
    used: LogInStamp,
    /// It ended for want of another one.
    is_wanted: bool,
}

impl RunningServer {
    /// Its end, and true if it was for want of a log-in.
    pub(super) fn ends_for_log_in(&mut self, result: &ToolResult) -> bool {
        self.log_in.is_wanted = result.code.as_deref() == Some(WANTS_LOG_IN);
        self.log_in.is_wanted
    }
}

impl SessionActorState {
    /// The server at this place starts, with the log-in that there is.
    pub(super) fn note_log_in(&mut self, at: usize) {
        let used = self.log_in_stamp(at);
        if let Some(running) = self.calls.servers.get_mut(at) {
            running.log_in = ServerLogIn { used, is_wanted: false };
        }
    }

    /// Tries servers once more that have failed a while ago.
    pub(in crate::session_actor) fn try_failed_servers(&mut self) {
        for at in 0..self.calls.servers.len() {
            let running = self.calls.servers.get(at);
            if running.is_some_and(|it| it.restarts.is_tried_again(it.life.since())) {
                self.on_server_due(at);
            }
        }
    }

    fn log_in_stamp(&self, at: usize) -> LogInStamp {
        let server = self.spec.servers().get(at);
        let file = server.and_then(|server| self.spec.log_in_file(server));
        file.map(|file| server_log_in::stamp(&file)).unwrap_or_default()
    }

    /// Has servers start again for which the person has logged in since.
    pub(in crate::session_actor) fn start_logged_in(&mut self) {
        if !matches!(self.workers.replay, ReplayState::Started { .. }) {
            return;
        }
        for at in 0..self.calls.servers.len() {
            let log_in = self.calls.servers.get(at).map(|running| &running.log_in);
            let is_new = log_in
                .is_some_and(|log_in| log_in.is_wanted && log_in.used != self.log_in_stamp(at));
            if is_new {
                self.on_server_due(at);
            }
        }
    }
}
