//! Questions to people and their answers: each open question is shown to whoever looks on, the
//! first answer counts, and whoever was late is told so.

use super::{SessionActorState, SessionMsg};
use crate::call::CallInput;
use crate::call_actor::now;
use crate::client_actor::ClientMsg;
use crate::slot::SlotMsg;
use protocol::broker::ToBroker;
use protocol::client::Event;
use protocol::ids::CallId;
use protocol::judgement::{Answer, Basis, Question, Verdict};
use ractor::ActorRef;
use std::collections::VecDeque;

/// An answer and who gave it.
pub(crate) struct GivenAnswer {
    pub(crate) call: CallId,
    pub(crate) digest: String,
    pub(crate) answer: Answer,
    /// By the name of their terminal.
    pub(crate) by: String,
    pub(crate) client: ActorRef<ClientMsg>,
}

/// PendingAnswers on their way to the broker, which settles them in their order.
#[derive(Default)]
pub(super) struct PendingAnswers(VecDeque<SentAnswer>);

struct SentAnswer {
    call: CallId,
    by: String,
    answer: Answer,
    client: ActorRef<ClientMsg>,
}

impl PendingAnswers {
    fn settled(&mut self, call: &CallId) -> Option<SentAnswer> {
        let at = self.0.iter().position(|sent| sent.call == *call)?;
        self.0.remove(at)
    }
}

impl SessionActorState {
    pub(super) fn asked(&mut self, question: Question) {
        self.questions.insert(question.call.clone(), question.clone());
        self.tell(&Event::Asked { question });
    }

    pub(super) fn answer(&mut self, answered: GivenAnswer) {
        let GivenAnswer { call, digest, answer, by, client } = answered;
        let over = self.questions.get(&call).is_some_and(|question| question.deadline <= now());
        if over {
            // The timer has slept with the machine.
            self.send_call(&call, CallInput::Expired);
            return self.show_rejected(&client, &call, "its deadline is over");
        }
        let sent =
            SentAnswer { call: call.clone(), by: by.clone(), answer: answer.clone(), client };
        self.answers.0.push_back(sent);
        let word = ToBroker::Answer { call, digest, answer, by };
        self.broker.send(word);
    }

    /// A verdict, by itself or because of an answer.
    pub(super) async fn judged(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        call: CallId,
        verdict: Verdict,
    ) {
        let person = match &verdict {
            Verdict::Allow(Basis::Person(by)) | Verdict::Deny(Basis::Person(by), _) => Some(by),
            Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_) => None,
        };
        let settled = person.is_some().then(|| self.answers.settled(&call)).flatten();
        let settled = settled.filter(|sent| Some(&sent.by) == person);
        if !matches!(verdict, Verdict::Ask(_)) {
            let question = self.questions.remove(&call);
            if let (Verdict::Allow(Basis::Person(_)), Some(question)) = (&verdict, question) {
                self.accept_tampered(&question).await;
            }
            let _ = self.broker.slot().send_message(SlotMsg::Progressed);
        }
        if let (Verdict::Allow(_), Some(sent)) = (&verdict, &settled) {
            self.learn(&sent.answer, &sent.by).await;
        }
        self.send_call(&call, CallInput::Verdict(verdict));
        if settled.is_some_and(|sent| sent.answer == Answer::Stop) {
            let steps = self.router.interrupt();
            self.carry_out(myself, steps).await;
        }
    }

    pub(super) fn rejected(&mut self, call: &CallId, reason: &str) {
        match self.answers.settled(call) {
            Some(sent) => self.show_rejected(&sent.client, call, reason),
            None => tracing::warn!(%call, reason, "an answer of nobody did not count"),
        }
    }

    /// The broker has died with what was on its way. Its questions come again.
    pub(super) fn reject_lost_answers(&mut self) {
        for sent in std::mem::take(&mut self.answers).0 {
            let reason = "the judge of calls was lost before it heard it; answer again";
            self.show_rejected(&sent.client, &sent.call, reason);
        }
    }

    fn show_rejected(&self, client: &ActorRef<ClientMsg>, call: &CallId, reason: &str) {
        let (call, reason) = (call.clone(), reason.to_owned());
        self.show_to(client, Event::AnswerRejected { call, reason });
    }
}
