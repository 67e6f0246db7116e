//! Ends idle sessions. A request for such a session waits until it has ended and then reopens it,
//! so that no client gets a session that is ending.

use super::state::{RetiringSession, RootState, ShutdownPhase};
use crate::messages::{Lifetime, OpenRequest, RootMsg, RootToSession};
use protocol::ids::SessionId;
use ractor::{ActorId, ActorRef};

impl RootState {
    pub(super) fn retire_session(&mut self, session: SessionId, lifetime: Lifetime) {
        // The supervisor of a single run ends with it, and its sessions end then.
        let ends_with_run = self.settings.idle_exit.is_none() && lifetime == Lifetime::Run;
        if self.shutdown_phase != ShutdownPhase::NotStarted || ends_with_run {
            return;
        }
        if let Some(actor) = self.sessions.remove(&session) {
            // Queued after the messages of all clients that were given this session before.
            let _ = actor.send_message(RootToSession::Retire.into());
            self.retiring.insert(session, RetiringSession { actor, waiting: Vec::new() });
        }
    }

    /// Queues the request if the session is ending; returns it otherwise.
    pub(super) fn wait_for_retirement(
        &mut self,
        session: &SessionId,
        order: OpenRequest,
    ) -> Option<OpenRequest> {
        match self.retiring.get_mut(session) {
            Some(retiring) => {
                retiring.waiting.push(order);
                None
            }
            None => Some(order),
        }
    }

    pub(super) fn on_retire_refused(&mut self, myself: &ActorRef<RootMsg>, session: SessionId) {
        let Some(RetiringSession { actor, waiting }) = self.retiring.remove(&session) else {
            return;
        };
        self.sessions.insert(session, actor);
        waiting.into_iter().for_each(|order| self.open_session(myself, Box::new(order)));
    }

    pub(super) fn on_retired(&mut self, myself: &ActorRef<RootMsg>, who: ActorId) {
        let found = self.retiring.iter().find(|(_, it)| it.actor.get_id() == who);
        let Some(session) = found.map(|(session, _)| session.clone()) else { return };
        let Some(RetiringSession { waiting, .. }) = self.retiring.remove(&session) else { return };
        waiting.into_iter().for_each(|order| self.open_session(myself, Box::new(order)));
    }
}
