//! Questions to people and their answers. Attached clients see each open question; the first answer
//! counts, and later ones are rejected.

use super::hook_events::{self, PERMISSION_PROMPT};
use super::questions::{Put, SentAnswer};
use super::state::SessionActorState;
use crate::messages::{GivenAnswer, SessionMsg};
use crate::unix_time::now_ms;
use call::CallInput;
use protocol::broker::ToBroker;
use protocol::client::ClientEvent;
use protocol::hook::HookEvent;
use protocol::ids::CallId;
use protocol::judgement::{Basis, PersonAnswer, Question, Verdict};
use ractor::ActorRef;

impl SessionActorState {
    /// Puts a question to people.
    pub(super) fn put_question(&mut self, question: Question) {
        let put = self.questions.put(question.clone());
        if put == Put::First && !HookEvent::is_run_by(&question.tool) {
            let words = match question.is_of_server() {
                true => question.reason.trim_end_matches(" asks:").to_owned() + " asks you",
                false => format!("agentd asks for your permission to use {}", question.tool),
            };
            let occasion = hook_events::notification(PERMISSION_PROMPT, words);
            self.workers.run_hooks(&self.spec.setup.hooks, occasion);
        }
        self.calls.running.look_at_protected(&self.calls.services);
        self.show(&ClientEvent::Asked { question });
    }

    pub(super) fn answer(&mut self, answered: GivenAnswer) {
        let Some(answered) = self.pass_answer_on(answered) else { return };
        let GivenAnswer { call, digest, answer, by, client } = answered;
        if self.questions.is_overdue(&call, now_ms()) {
            self.calls.running.send(&call, CallInput::Expired);
            return self.reject(&client, &call, "its deadline is over");
        }
        if let PersonAnswer::Mode(mode) = answer
            && let Err(why) = self.may_have_mode(mode)
        {
            return self.reject(&client, &call, &why);
        }
        let sent =
            SentAnswer { call: call.clone(), by: by.clone(), answer: answer.clone(), client };
        self.questions.answered(sent);
        let message = ToBroker::Answer { call, digest, answer, by };
        self.workers.broker.send(message);
    }

    /// A verdict, by itself or because of an answer.
    pub(super) async fn on_verdict(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        call: CallId,
        verdict: Verdict,
    ) {
        let person = match &verdict {
            Verdict::Allow(Basis::Person(by)) | Verdict::Deny(Basis::Person(by), _) => Some(by),
            Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_) => None,
        };
        let settled = person.is_some().then(|| self.questions.settled(&call)).flatten();
        let settled = settled.filter(|sent| Some(&sent.by) == person);
        if !matches!(verdict, Verdict::Ask(_)) {
            let question = self.questions.close(&call);
            if let (Verdict::Allow(Basis::Person(_)), Some(question)) = (&verdict, question) {
                // A failure closes the session, and nothing runs.
                if let Some(record) = self.calls.tampered.accept(&question) {
                    let _ = self.record(vec![record]).await;
                }
            }
            self.workers.broker.made_progress();
        }
        if let (Verdict::Allow(_), Some(sent)) = (&verdict, &settled) {
            self.learn(&sent.answer, &sent.by).await;
        }
        let stops = settled.is_some_and(|sent| sent.answer == PersonAnswer::Stop);
        match verdict {
            Verdict::Deny(basis, text) if stops => {
                self.calls.running.send(&call, CallInput::StoppedByAnswer(basis, text));
            }
            Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_) => {
                self.calls.running.send(&call, CallInput::Verdict(verdict));
            }
        }
        if stops {
            let steps = self.turn.router.interrupt();
            self.carry_out(myself, steps).await;
        }
    }

    pub(super) fn on_answer_rejected(&mut self, call: &CallId, reason: &str) {
        match self.questions.settled(call) {
            Some(sent) => self.reject(&sent.client, call, reason),
            None => tracing::warn!(%call, reason, "an answer from an unknown client was rejected"),
        }
    }

    /// The broker died with unsettled answers. It will ask these questions again.
    pub(super) fn reject_lost_answers(&mut self) {
        for sent in self.questions.lost() {
            let reason = "the broker restarted before it received the answer; answer again";
            self.reject(&sent.client, &sent.call, reason);
        }
    }
}
