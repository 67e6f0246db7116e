//! What the root does when something of it is lost: a session's actor that failed is told to whoever
//! waits for it, and what a person wants tried again is.

use super::RootState;
use crate::client_actor::ClientMsg;
use crate::plan::OpenFailure;
use crate::session_actor::SessionMsg;
use crate::slot::SlotMsg;
use protocol::client::{FailedKind, Parting};
use protocol::ids::SessionId;
use ractor::ActorId;

impl RootState {
    /// Starts the failed workers of a session again, and the broker if it is among them.
    pub(super) fn restart(&mut self, session: &SessionId) -> Result<(), OpenFailure> {
        let Some(actor) = self.sessions.get(session) else {
            let message = format!(
                "session {session} is not open in this supervisor; opening it starts its workers \
                 anew"
            );
            return Err(OpenFailure::new(FailedKind::NotFound, message));
        };
        if self.broker_failed.take().is_some() {
            let _ = self.broker.send_message(SlotMsg::Forgive);
        }
        let _ = actor.send_message(SessionMsg::Restart);
        Ok(())
    }

    /// An actor failed. If it was a session's, its journal is whole and nothing of it runs any
    /// more, but clients wait for its words.
    pub(super) fn lost(&mut self, who: ActorId) {
        let Some(session) = self.forget(who) else { return };
        for client in self.clients.values() {
            let _ = client.send_message(ClientMsg::Lost(session.clone()));
        }
    }

    /// A session's actor ended in order. Who came to it while it was ending was not told.
    pub(super) fn ended(&mut self, who: ActorId) {
        let Some(session) = self.forget(who) else { return };
        for client in self.clients.values() {
            let reason = "the session was ended; it is on disk".to_owned();
            let _ = client.send_message(ClientMsg::Dismissed {
                session: session.clone(),
                parting: Parting::Ended,
                reason,
            });
        }
    }

    fn forget(&mut self, who: ActorId) -> Option<SessionId> {
        let session = self.sessions.iter().find(|(_, actor)| actor.get_id() == who);
        let session = session.map(|(session, _)| session.clone())?;
        self.sessions.remove(&session);
        Some(session)
    }
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
