//! Servers that ended for want of a log-in: each starts again once the person has logged in, which a prompt, a
//! new client and a question for the servers look for. Such a question has a failed server tried once more too.

use crate::session_actor::state::SessionActorState;
use setup::server_log_in::{self, LogInStamp};

impl SessionActorState {
    /// Tries servers once more that have failed a while ago.
    pub(in crate::session_actor) fn try_failed_servers(&mut self) {
        for at in self.calls.services.servers.tried_again() {
            self.on_server_due(at);
        }
    }

    /// The log-in that there is for the server at this place.
    pub(super) fn log_in_stamp(&self, at: usize) -> LogInStamp {
        let server = self.spec.servers().get(at);
        let file = server.and_then(|server| self.spec.log_in_file(server));
        file.map(|file| server_log_in::stamp(&file)).unwrap_or_default()
    }

    /// Has servers start again for which the person has logged in since.
    pub(in crate::session_actor) fn start_logged_in(&mut self) {
        if !self.workers.conversation.has_begun() {
            return;
        }
        let logged_in = self.calls.services.servers.logged_in(|at| self.log_in_stamp(at));
        for at in logged_in {
            self.on_server_due(at);
        }
    }
}
