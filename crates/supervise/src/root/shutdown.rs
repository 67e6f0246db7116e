//! Shutdown: first the sessions, including those that are being opened, then the broker, then the
//! root. Each step has a timeout, so that a disk that does not answer cannot block it for ever.

use super::state::{RetiringSession, RootState, ShutdownPhase};
use crate::messages::{ClientMsg, RootMsg, RootToSession, SessionMsg, SessionSummary};
use protocol::client::{RequestFailure, SessionEnding, SessionStatus, ToClient};
use ractor::{ActorId, ActorRef};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long all sessions together may take to end. Their calls and workers need a few seconds; a
/// session that takes longer waits for its disk. Data that it could not write is recovered when it
/// is opened again.
const SESSIONS_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for sessions to report their state. They answer at once, unless they wait for a disk;
/// such a session must not block the others.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// Why a session did not report.
pub(super) const NO_REPLY: &str = "it does not answer; most likely it waits for its disk";
/// How long the broker may take to end. It is killed after 2 s.
const BROKER_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the removal of temporary directories may take. The next start removes the rest.
pub(super) const REMOVAL_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a process that is just being started may delay the end.
pub(super) const SPAWN_TIMEOUT: Duration = Duration::from_secs(1);

impl RootState {
    /// Shuts down if no turn runs; otherwise reports the sessions with a running turn. Sessions are
    /// paused meanwhile, so that no prompt sent at this moment is interrupted.
    pub(super) fn shutdown_if_idle(&self, myself: &ActorRef<RootMsg>, by: ActorRef<ClientMsg>) {
        let opening = self.opening.keys().map(|session| format!("{session} (it is being opened)"));
        let mut busy: Vec<_> = opening.collect();
        let paused: Vec<_> = self.sessions.values().cloned().collect();
        let asked: Vec<_> =
            self.sessions.iter().map(|(id, actor)| (id.clone(), pause(actor))).collect();
        let myself = myself.clone();
        tokio::spawn(async move {
            let until = Instant::now() + REPLY_TIMEOUT;
            for (session, glance) in asked {
                busy.extend(
                    unfinished_work(until, glance).await.map(|why| format!("{session} ({why})")),
                );
            }
            if busy.is_empty() {
                let paused = paused.iter().map(|session| session.get_id()).collect();
                let _ = myself.send_message(RootMsg::ShutdownIfPaused { by, paused });
                return;
            }
            for session in paused {
                let _ = session.send_message(RootToSession::Resume.into());
            }
            let message = format!(
                "work is not finished in session {}; wait for it, or end it with --force, which \
                 interrupts it",
                busy.join(", ")
            );
            let word = ToClient::Failed { kind: RequestFailure::Usage, message };
            let _ = by.send_message(ClientMsg::Send(word));
        });
    }

    /// Shuts down, unless a session was opened in the meantime: then all sessions are asked again.
    pub(super) fn shutdown_if_paused(
        &mut self,
        myself: &ActorRef<RootMsg>,
        by: ActorRef<ClientMsg>,
        paused: &HashSet<ActorId>,
    ) {
        let came = |session: &ActorRef<SessionMsg>| !paused.contains(&session.get_id());
        if self.opening.is_empty() && !self.sessions.values().any(came) {
            return self.begin_shutdown(myself, Some(by.get_id()));
        }
        self.shutdown_if_idle(myself, by);
        let again = self.sessions.values().filter(|session| !came(session));
        for session in again {
            let _ = session.send_message(RootToSession::Resume.into());
        }
    }

    /// Shuts everything down. The client that asked sees its connection close.
    pub(super) fn begin_shutdown(&mut self, myself: &ActorRef<RootMsg>, asker: Option<ActorId>) {
        if self.shutdown_phase != ShutdownPhase::NotStarted {
            return;
        }
        self.shutdown_phase = ShutdownPhase::EndingSessions(0);
        self.settings.service_manager.stopping();
        // Without a message the other clients would take it for a crash and start another
        // supervisor.
        let others = self.clients.iter().filter(|(id, _)| Some(**id) != asker);
        for (_, client) in others {
            let message = "agentd-supervisor was asked to end; the session is on disk".to_owned();
            let word = ToClient::Failed { kind: RequestFailure::Ending, message };
            let _ = client.send_message(ClientMsg::Send(word));
        }
        // Hooks of their end are judged, so their verdicts still have to find them.
        for (session, actor) in self.sessions.drain() {
            self.retiring.insert(session, RetiringSession { actor, waiting: Vec::new() });
        }
        self.retiring.values_mut().for_each(|it| it.waiting.clear());
        let sessions: Vec<_> = self.retiring.values().map(|it| it.actor.clone()).collect();
        for session in sessions {
            self.end_with_supervisor(myself, &session);
        }
        myself.send_after(SESSIONS_TIMEOUT, || RootMsg::ShutdownTimeout);
        self.end_broker_if_last(myself);
    }

    /// Ends a session during shutdown.
    pub(super) fn end_with_supervisor(
        &mut self,
        myself: &ActorRef<RootMsg>,
        session: &ActorRef<SessionMsg>,
    ) {
        if let ShutdownPhase::EndingSessions(count) = &mut self.shutdown_phase {
            *count += 1;
        }
        let (done, gone) = oneshot::channel();
        let _ = session.send_message(RootToSession::Close(SessionEnding::Stop, done).into());
        let myself = myself.clone();
        tokio::spawn(async move {
            // Dropped without an answer if its actor failed: then it has ended too.
            let _ = gone.await;
            let _ = myself.send_message(RootMsg::SessionEnded);
        });
    }

    pub(super) fn on_session_ended(&mut self, myself: &ActorRef<RootMsg>) {
        if let ShutdownPhase::EndingSessions(count) = &mut self.shutdown_phase {
            *count = count.saturating_sub(1);
        }
        self.end_broker_if_last(myself);
    }

    pub(super) fn on_shutdown_timeout(&mut self, myself: &ActorRef<RootMsg>) {
        if let ShutdownPhase::EndingSessions(count) = self.shutdown_phase {
            tracing::error!(
                count,
                "sessions do not end, most likely because their disk does not answer; data they \
                 could not write is recovered when they are opened again"
            );
            self.end_broker(myself);
        }
    }

    /// A session that is being opened is waited for: it succeeds and is ended, or it fails.
    pub(super) fn end_broker_if_last(&mut self, myself: &ActorRef<RootMsg>) {
        if self.shutdown_phase == ShutdownPhase::EndingSessions(0) && self.opening.is_empty() {
            self.end_broker(myself);
        }
    }

    fn end_broker(&mut self, myself: &ActorRef<RootMsg>) {
        self.shutdown_phase = ShutdownPhase::EndingBroker;
        let (broker, myself) = (self.broker.worker.clone(), myself.clone());
        tokio::spawn(async move {
            let _ = tokio::time::timeout(BROKER_TIMEOUT, broker.stop()).await;
            myself.stop(None);
        });
    }
}

/// Unfinished work that keeps a session from being ended.
async fn unfinished_work(
    until: Instant,
    glance: oneshot::Receiver<SessionSummary>,
) -> Option<&'static str> {
    match tokio::time::timeout_at(until, glance).await.map(|glance| glance.map(|it| it.state)) {
        Ok(Ok(SessionStatus::Working)) => Some("a turn runs"),
        Ok(Ok(SessionStatus::Background(_))) => {
            Some("a command or a sub-agent runs in the background")
        }
        Ok(Ok(SessionStatus::Asking(_))) => Some("a question waits for an answer"),
        Ok(Ok(
            SessionStatus::Ended
            | SessionStatus::Idle
            | SessionStatus::Degraded(_)
            | SessionStatus::Unreadable(_)
            | SessionStatus::CutShort(_)
            | SessionStatus::IdleCutShort(_),
        ))
        | Ok(Err(_)) => None,
        Err(_) => Some(NO_REPLY),
    }
}

fn pause(session: &ActorRef<SessionMsg>) -> oneshot::Receiver<SessionSummary> {
    let (reply, glance) = oneshot::channel();
    let _ = session.send_message(RootToSession::Pause(reply).into());
    glance
}

#[cfg(test)]
#[path = "shutdown_tests.rs"]
mod tests;
