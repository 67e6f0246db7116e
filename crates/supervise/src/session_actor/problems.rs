//! Failures that make a session read-only: its disk, its conversation, its provider. `agentd
//! restart` starts the last two again.

use super::state::{Problems, SessionActorState};
use crate::messages::SessionMsg;
use crate::worker::actor::WorkerMsg;
use protocol::ids::SessionId;
use ractor::ActorRef;

impl Problems {
    /// The message for people: the failure, and how to go on.
    fn reason(&self, session: &SessionId) -> Option<String> {
        let read_only = "this session can be read but accepts no input:";
        match (&self.disk, &self.conversation, &self.provider) {
            (Some(why), _, _) => Some(format!(
                "{read_only} {why}. Free space or repair the disk, then open it again: `agentd stop \
                 {session}`, `agentd attach {session}`"
            )),
            (None, Some(why), _) => Some(format!(
                "{read_only} its conversation has failed: {why}. `agentd restart {session}` tries \
                 again"
            )),
            (None, None, Some(why)) => Some(format!(
                "{read_only} its provider has failed: {why}. `agentd restart {session}` tries again"
            )),
            (None, None, None) => None,
        }
    }
}

impl SessionActorState {
    /// Why nothing more is taken, if so, with the way on.
    pub(super) fn degraded(&self) -> Option<String> {
        self.problems.reason(&self.spec.id)
    }

    pub(super) async fn conversation_failed(&mut self, myself: &ActorRef<SessionMsg>, why: String) {
        self.problems.conversation = Some(why);
        self.report_context_unknown();
        self.close_failed_turn(myself).await;
    }

    /// Ends the turn of a failed conversation once its calls have ended, and reports it.
    pub(super) async fn close_failed_turn(&mut self, myself: &ActorRef<SessionMsg>) {
        if self.problems.conversation.is_none() || self.foreground().next().is_some() {
            return;
        }
        let steps = self.turn.router.close_turn();
        match steps.is_empty() {
            true => {
                self.show_failed_workers();
                self.fail_task().await;
            }
            false => self.carry_out(myself, steps).await,
        }
    }

    /// If a turn waits for the model, the conversation ends it first; it has just been told of the
    /// failure.
    pub(super) fn provider_failed(&mut self, why: String) {
        self.problems.provider = Some(why);
        if !self.turn.router.turn_is_open() {
            self.show_failed_workers();
        }
    }

    /// No request reaches a provider that has failed.
    pub(super) fn has_provider(&self) -> bool {
        self.problems.provider.is_none()
    }

    /// Reports failed workers once the turn in which they failed has ended.
    pub(super) fn show_failed_workers(&self) {
        if self.problems.conversation.is_some() || self.problems.provider.is_some() {
            self.show_degraded(self.degraded());
        }
    }

    /// Starts the processes that have failed again.
    ///
    /// # Errors
    /// The reason and a remedy, if the disk has made the session read-only: its records end where the
    /// disk failed, and only opening the session reads them again.
    pub(super) fn restart(&mut self) -> Result<(), String> {
        if self.problems.disk.is_some() {
            return Err(self.degraded().unwrap_or_default());
        }
        self.problems.conversation = None;
        self.problems.provider = None;
        let _ = self.workers.conversation.actor().send_message(WorkerMsg::Retry);
        let _ = self.workers.provider.actor().send_message(WorkerMsg::Retry);
        let _ = self.workers.store.actor().send_message(WorkerMsg::Retry);
        self.restart_servers();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_trouble_has_its_sentence_and_its_way_on() {
        let session = SessionId("3f2a91c0d4e5".into());
        let why = || Some("it is gone".to_owned());
        let said = |problems: Problems| problems.reason(&session);
        assert_eq!(said(Problems::default()), None);
        let disk = said(Problems { disk: why(), ..Problems::default() }).unwrap();
        assert!(
            disk.contains("it is gone. Free space") && disk.contains("open it again"),
            "{disk}"
        );
        assert!(disk.contains("`agentd stop 3f2a91c0d4e5`"), "{disk}");
        for problems in [
            Problems { conversation: why(), ..Problems::default() },
            Problems { provider: why(), ..Problems::default() },
        ] {
            let said = said(problems).unwrap();
            assert!(said.contains("can be read") && said.contains("it is gone"), "{said}");
            assert!(said.contains("`agentd restart 3f2a91c0d4e5`"), "{said}");
        }
    }
}
