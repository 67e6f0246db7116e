//! Recovery from failures: reports a failed session to the clients that wait for it, and restarts
//! workers when a person asks.

use super::shutdown::{NO_REPLY, REPLY_TIMEOUT};
use super::state::RootState;
use crate::audit_actor::AuditMsg;
use crate::messages::{ClientMsg, RootToSession};
use protocol::client::{DetachReason, RequestFailure};
use protocol::ids::SessionId;
use ractor::{ActorId, ActorRef};
use setup::open_failure::OpenFailure;
use tokio::sync::oneshot;
use tokio::time::timeout;

impl RootState {
    /// Restarts the failed workers of a session, and the broker if it failed; reopens the audit log
    /// if a disk error had closed it. The reply reports the first of these that fails.
    pub(super) fn restart(
        &mut self,
        session: &SessionId,
        reply: oneshot::Sender<Result<(), OpenFailure>>,
    ) {
        let Some(actor) = self.sessions.get(session).cloned() else {
            let message = format!(
                "session {session} is not open in this supervisor; opening it starts its workers \
                 anew"
            );
            let _ = reply.send(Err(OpenFailure::new(RequestFailure::NotFound, message)));
            return;
        };
        if self.broker.failed.take().is_some() {
            self.broker.worker.retry();
        }
        let (audit, session) = (self.audit.clone(), session.clone());
        tokio::spawn(async move {
            let restarted = async {
                check_audit_log(&audit).await?;
                let (done, restarted) = oneshot::channel();
                let _ = actor.send_message(RootToSession::Restart(done).into());
                let silent = |_| format!("session {session} does not answer: {NO_REPLY}");
                let answered = timeout(REPLY_TIMEOUT, restarted).await.map_err(silent)?;
                answered.unwrap_or_else(|_| Err(format!("session {session} has ended")))
            };
            let failed = |why| OpenFailure::new(RequestFailure::Disk, why);
            let _ = reply.send(restarted.await.map_err(failed));
        });
    }

    /// An actor failed. If it was a session's, its journal is complete and none of its processes
    /// runs, but clients still wait for its messages.
    pub(super) fn on_session_failed(&mut self, who: ActorId) {
        let Some(session) = self.remove_session(who) else { return };
        for client in self.clients.values() {
            let _ = client.send_message(ClientMsg::Lost(session.clone()));
        }
    }

    /// A session's actor ended in order. Clients that attached while it was ending get no message
    /// from it, so the root reports the end to all.
    pub(super) fn on_session_stopped(&mut self, who: ActorId) {
        let Some(session) = self.remove_session(who) else { return };
        for client in self.clients.values() {
            let reason = "the session was ended; it is on disk".to_owned();
            let _ = client.send_message(ClientMsg::Dismissed {
                session: session.clone(),
                parting: DetachReason::Ended,
                reason,
            });
        }
    }

    fn remove_session(&mut self, who: ActorId) -> Option<SessionId> {
        let session = self.sessions.iter().find(|(_, actor)| actor.get_id() == who);
        let session = session.map(|(session, _)| session.clone())?;
        self.sessions.remove(&session);
        Some(session)
    }
}

/// Checks that the audit log can record; if a disk error had closed it, it is reopened first.
///
/// # Errors
/// The reason and the remedy if no call could be recorded.
pub(super) async fn check_audit_log(audit: &ActorRef<AuditMsg>) -> Result<(), String> {
    let (reply, checked) = oneshot::channel();
    let _ = audit.send_message(AuditMsg::Check(reply));
    let checked = timeout(REPLY_TIMEOUT, checked).await;
    let why = match checked {
        Ok(Ok(Ok(()))) => return Ok(()),
        Ok(Ok(Err(why))) => why,
        Ok(Err(_)) => "its writer has ended".to_owned(),
        Err(_) => NO_REPLY.to_owned(),
    };
    Err(format!("no call can run, because the audit log takes no records: {why}"))
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
