//! A sub-agent's session and the sessions that wait for its work: they hear of its questions and get its outcome.

use super::OwnTask;
use super::start::outcome_of;
use crate::messages::{ClientMsg, RootMsg, SessionMsg, TaskToSession};
use crate::task_outcome::TaskOutcome;
use protocol::call::CallOrigin;
use protocol::client::ClientEvent;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::Question;
use ractor::ActorRef;
use tokio::sync::oneshot;

/// Why a question is over without an answer.
pub(in crate::session_actor) const ENDED: &str = "its call has ended";

impl OwnTask<ActorRef<SessionMsg>, oneshot::Sender<TaskOutcome>> {
    /// Passes a question, and its end, to the session that waits for this one.
    pub(in crate::session_actor) fn tell_parent(&self, event: &ClientEvent) {
        let Some(parent) = &self.parent else { return };
        if let Some(message) = for_parent(event, &self.place.session, &self.place.agent) {
            let _ = parent.send_message(message.into());
        }
    }

    /// Tells a client of the parent that its answer does not count; false if no parent is known.
    pub(in crate::session_actor) fn reject(
        &self,
        client: &ActorRef<ClientMsg>,
        call: &CallId,
        reason: &str,
    ) -> bool {
        let Some(parent) = &self.parent else { return false };
        let (client, call, reason) = (client.clone(), call.clone(), reason.to_owned());
        let message = TaskToSession::Rejected { client, call, reason };
        let _ = parent.send_message(message.into());
        true
    }

    /// A parent waits for the work, and is answered at once if that has ended. It gets the questions that are open.
    pub(in crate::session_actor) async fn begin(
        &mut self,
        parent: ActorRef<SessionMsg>,
        done: oneshot::Sender<TaskOutcome>,
        open: impl Iterator<Item = &Question>,
    ) {
        self.given_by(parent);
        open.cloned().for_each(|question| self.tell_parent(&ClientEvent::Asked { question }));
        self.await_end(done);
        self.answer().await;
    }

    /// Answers the parents that wait, if the work has ended.
    pub(in crate::session_actor) async fn answer(&mut self) {
        if !self.is_awaited() {
            return;
        }
        match outcome_of(self.place.directory.clone()).await {
            Ok(outcome) if outcome.end.is_some() => self.send(&outcome),
            Ok(_) => {}
            Err(why) => {
                tracing::error!(session = %self.place.session, why, "its work cannot be read");
                self.cannot_be_read();
            }
        }
    }

    /// Answers the parents that wait, if the session has failed for this reason, so that its turn gets no end.
    pub(in crate::session_actor) async fn fail(&mut self, why: Option<String>) {
        if let (true, Some(why)) = (self.is_awaited(), why) {
            let read = outcome_of(self.place.directory.clone()).await;
            let mut outcome = read.unwrap_or_default();
            outcome.failure = Some(why);
            self.send(&outcome);
        }
    }

    /// The session ends: parents that wait get the work so far.
    pub(in crate::session_actor) async fn end(&mut self) {
        if self.is_awaited()
            && let Ok(outcome) = outcome_of(self.place.directory.clone()).await
        {
            self.send(&outcome);
        }
    }

    fn send(&mut self, outcome: &TaskOutcome) {
        for waiting in self.ended() {
            let _ = waiting.send(outcome.clone());
        }
    }
}

/// Has the parent of a sub-agent's session send it the rights that bind it.
pub(in crate::session_actor) fn ask_bounds(
    parent: SessionId,
    child: ActorRef<SessionMsg>,
    root: &ActorRef<RootMsg>,
) {
    let (reply, found) = oneshot::channel();
    let _ = root.send_message(RootMsg::Find(parent, reply));
    tokio::spawn(async move {
        if let Ok(Some(parent)) = found.await {
            let _ = parent.send_message(TaskToSession::BoundsFor(child).into());
        }
    });
}

/// The message about a question, or about its end, to the parent of this sub-agent's session.
fn for_parent(event: &ClientEvent, session: &SessionId, agent: &str) -> Option<TaskToSession> {
    if let ClientEvent::Asked { question } = event {
        let mut question = question.clone();
        if question.call.session == *session {
            let reason = question.reason;
            question.reason = format!("sub-agent {agent}, session {session}: {reason}");
        }
        Some(TaskToSession::Asks(Box::new(question)))
    } else if let ClientEvent::Decided { call, allowed, basis } = event {
        let (call, basis) = (call.clone(), basis.clone());
        Some(TaskToSession::Settled { call, allowed: *allowed, basis })
    } else if let ClientEvent::Proposed { call } = event {
        matches!(call.origin, CallOrigin::Model { .. }).then(|| TaskToSession::Calls(call.clone()))
    } else if let ClientEvent::CallEnded { call, .. } = event {
        let (call, basis) = (call.clone(), ENDED.to_owned());
        Some(TaskToSession::Settled { call, allowed: false, basis })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::call::Call;
    use protocol::judgement::Ask;

    fn asked_in(session: &SessionId) -> ClientEvent {
        let question = Question {
            call: CallId { session: session.clone(), number: 3 },
            tool: "bash".into(),
            input: "{}".into(),
            preview: String::new(),
            confinement: String::new(),
            reason: "no rule allows it".into(),
            widens: Vec::new(),
            ask: Ask::Call { rules: Vec::new(), modes: Vec::new() },
            deadline: 1000,
            digest: "d".into(),
        };
        ClientEvent::Asked { question }
    }

    #[test]
    fn a_question_names_the_sub_agent_that_asks_once_however_far_it_goes_up() {
        let own = SessionId("0123456789ab-1".into());
        let below = SessionId("0123456789ab-1-2".into());
        let reason = |asks: Option<TaskToSession>| match asks {
            Some(TaskToSession::Asks(question)) => question.reason,
            _ => String::new(),
        };
        let own_reason = "sub-agent reader, session 0123456789ab-1: no rule allows it";
        assert_eq!(reason(for_parent(&asked_in(&own), &own, "reader")), own_reason);
        assert_eq!(reason(for_parent(&asked_in(&below), &own, "reader")), "no rule allows it");
    }

    #[test]
    fn the_parent_hears_of_questions_their_ends_and_calls_of_the_model_alone() {
        let own = SessionId("0123456789ab-1".into());
        let call = CallId { session: own.clone(), number: 3 };
        let decided = ClientEvent::Decided { call, allowed: true, basis: "a rule".into() };
        let settled = for_parent(&decided, &own, "reader");
        assert!(matches!(settled, Some(TaskToSession::Settled { allowed: true, .. })));
        let proposed = |origin| {
            let (id, tool) = (CallId { session: own.clone(), number: 4 }, "read".into());
            let call = Call { id, origin, tool, input: "{}".into() };
            for_parent(&ClientEvent::Proposed { call }, &own, "reader")
        };
        let begun = proposed(CallOrigin::model("u"));
        assert!(matches!(begun, Some(TaskToSession::Calls(call)) if call.id.number == 4));
        assert!(proposed(CallOrigin::ServerStart).is_none());
        let notice = ClientEvent::Notice { text: "the disk is full".into() };
        assert!(for_parent(&notice, &own, "reader").is_none());
    }
}
