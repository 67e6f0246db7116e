//! Questions of sub-agents: shown to the clients of the session that waits for the sub-agent, answered there,
//! and judged where they were asked. Each level passes them on to the next.

use super::state::SessionActorState;
use crate::messages::{ClientMsg, ClientToSession, GivenAnswer, TaskToSession};
use protocol::client::ClientEvent;
use protocol::ids::{CallId, SessionId};
use protocol::judgement::Question;
use ractor::ActorRef;
use setup::session_spec::{is_below, session_of};

/// Why a question is over without an answer.
const ENDED: &str = "its call has ended";

impl SessionActorState {
    /// Passes a question, and its end, to the session that waits for this one.
    pub(super) fn tell_parent(&self, event: &ClientEvent) {
        let Some(parent) = &self.tasks.parent else { return };
        let message = if let ClientEvent::Asked { question } = event {
            let mut question = question.clone();
            if question.call.session == self.spec.id {
                let agent = self.spec.task().map_or("", |task| task.agent.as_str());
                let (session, reason) = (&self.spec.id, question.reason);
                question.reason = format!("sub-agent {agent}, session {session}: {reason}");
            }
            TaskToSession::Asks(Box::new(question))
        } else if let ClientEvent::Decided { call, allowed, basis } = event {
            let (call, basis) = (call.clone(), basis.clone());
            TaskToSession::Settled { call, allowed: *allowed, basis }
        } else if let ClientEvent::CallEnded { call, .. } = event {
            let (call, basis) = (call.clone(), ENDED.to_owned());
            TaskToSession::Settled { call, allowed: false, basis }
        } else {
            return;
        };
        let _ = parent.send_message(message.into());
    }

    /// A sub-agent waits for a person, who sees this session and not that one.
    pub(super) fn on_task_asks(&mut self, question: Question) {
        self.clients.questions.put_of_task(question.clone());
        self.show(&ClientEvent::Asked { question });
    }

    pub(super) fn on_task_settled(&mut self, call: CallId, allowed: bool, basis: String) {
        if self.clients.questions.close_of_task(&call) {
            self.show(&ClientEvent::Decided { call, allowed, basis });
        }
    }

    /// The sub-agent of a call has ended, and its questions with it.
    pub(super) fn end_task_questions(&mut self, child: &SessionId) {
        for call in self.clients.questions.below(child) {
            self.on_task_settled(call, false, ENDED.to_owned());
        }
    }

    /// Passes an answer on to the sub-agent that asked. Returns an answer to a question of this session.
    pub(super) fn pass_answer_on(&self, answer: GivenAnswer) -> Option<GivenAnswer> {
        let asker = answer.call.session.clone();
        if asker == self.spec.id {
            return Some(answer);
        }
        let to = self.tasks.running.iter().find(|(call, _)| {
            let child = session_of(&self.spec.id, **call);
            asker == child || is_below(&asker, &child)
        });
        match to.and_then(|(_, task)| task.session.as_ref()) {
            Some(session) => {
                let _ = session.send_message(ClientToSession::Answer(answer).into());
            }
            None => self.reject(&answer.client, &answer.call, ENDED),
        }
        None
    }

    /// Tells a client that its answer does not count: a client of this session, or of its parent's.
    pub(super) fn reject(&self, client: &ActorRef<ClientMsg>, call: &CallId, reason: &str) {
        let (client, call, reason) = (client.clone(), call.clone(), reason.to_owned());
        match &self.tasks.parent {
            Some(parent) if !self.has_client(&client) => {
                let message = TaskToSession::Rejected { client, call, reason };
                let _ = parent.send_message(message.into());
            }
            Some(_) | None => self.show_to(&client, ClientEvent::AnswerRejected { call, reason }),
        }
    }
}
