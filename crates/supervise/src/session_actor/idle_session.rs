//! The end of an idle session. A session that only scripts use ends when its run is over and no
//! client is attached. A session that a person opened stays until the person ends it, or the daemon
//! ends. A session that the disk has made read-only ends when its last client leaves, so that the
//! next client opens it again.

use super::state::SessionActorState;
use crate::messages::{Lifetime, RootMsg, SessionMsg};
use protocol::client::SessionEnding;
use protocol::judgement::Audience;
use ractor::ActorRef;
use tokio::sync::oneshot;

impl SessionActorState {
    /// Asks the supervisor actor to let no client join for a moment, if the session looks idle.
    pub(super) fn retire_if_unused(&self) {
        if !self.is_needed() {
            let _ = self.root.send_message(RootMsg::Retire(
                self.spec.id.clone(),
                match self.spec.task() {
                    Some(_) => Lifetime::Task,
                    None => Lifetime::Run,
                },
            ));
        }
    }

    /// No client can join any more. The session goes on if one joined meanwhile.
    pub(super) fn retire(&mut self, myself: &ActorRef<SessionMsg>) {
        if self.is_needed() {
            let _ = self.root.send_message(RootMsg::RetireRefused(self.spec.id.clone()));
            return;
        }
        tracing::info!(session = %self.spec.id, "ends: its run is over and no client is attached");
        self.close(myself, SessionEnding::Stop, oneshot::channel().0);
    }

    fn is_needed(&self) -> bool {
        let has_work = self.clients.any_expected()
            || self.calls.foreground().next().is_some()
            || self.closing.has_begun();
        if self.links.failures.disk().is_some() {
            // Its turn cannot go on here. It can be read from the disk, and opening it again is the way on.
            return has_work || self.clients.any_attached();
        }
        has_work
            || self.is_used()
            || self.tasks.own.is_awaited()
            // The session of a sub-agent ends with its work.
            || (self.spec.rules.audience == Audience::Person && self.spec.task().is_none())
            || self.turn.next_audience == Some(Audience::Person)
            // It can be read, and `agentd restart` finds it.
            || self.degraded().is_some()
    }
}
