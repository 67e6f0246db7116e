//! Questions to people and their answers. `questions` knows which are open; the first answer counts, and later ones
//! are rejected. The broker judges each answer. An answer that holds longer than its call changes a setting before
//! the call goes on. Questions of sub-agents are answered here and judged in their sessions.

use super::hook_events::{self, PERMISSION_PROMPT};
use super::new_setting::NewSetting;
use super::questions::{Judged, Put, SentAnswer};
use super::state::SessionActorState;
use super::tasks::ENDED;
use crate::messages::{ClientMsg, GivenAnswer, RepliedQuestion};
use crate::unix_time::now_ms;
use call::{CallInput, QuestionReply, ServerInput};
use protocol::broker::ToBroker;
use protocol::client::{ClientEvent, SettingChange};
use protocol::hook::HookEvent;
use protocol::ids::CallId;
use protocol::judgement::{PersonAnswer, Question, Verdict};
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
        if answered.call.session != self.spec.id {
            if let Err(answer) = self.tasks.sub_agents.pass_on(answered, &self.spec.id) {
                self.reject(&answer.client, &answer.call, ENDED);
            }
            return;
        }
        let GivenAnswer { call, digest, answer, by, client } = answered;
        if self.questions.is_overdue(&call, now_ms()) {
            self.calls.running.send(&call, CallInput::Expired);
            return self.reject(&client, &call, "its deadline is over");
        }
        if let PersonAnswer::Mode(mode) = answer
            && let Err(failure) = self.spec.check_change(&SettingChange::Mode(mode))
        {
            return self.reject(&client, &call, &failure.message);
        }
        let sent =
            SentAnswer { call: call.clone(), by: by.clone(), answer: answer.clone(), client };
        self.questions.answered(sent);
        self.workers.broker.send(ToBroker::Answer { call, digest, answer, by });
    }

    /// A verdict, by itself or because of an answer.
    pub(super) async fn on_verdict(&mut self, call: CallId, verdict: Verdict) {
        let Judged { answer, allowed } = self.questions.judged(&call, &verdict);
        if let Some(record) = allowed.and_then(|it| self.calls.tampered.accept(&it)) {
            // A failure closes the session, and nothing runs.
            let _ = self.record(vec![record]).await;
        }
        if !matches!(verdict, Verdict::Ask(_)) {
            self.workers.broker.made_progress();
        }
        if let (Verdict::Allow(_), Some(sent)) = (&verdict, &answer)
            && let Some(new) = NewSetting::answered(&self.spec, &sent.answer).await
        {
            // After a failure of the disk the setting stays, and nothing runs.
            let _ = self.adopt(new, &sent.by).await;
        }
        let stops = is_stop(answer.as_ref());
        let input = match verdict {
            Verdict::Deny(basis, text) if stops => CallInput::StoppedByAnswer(basis, text),
            Verdict::Allow(_) | Verdict::Deny(..) | Verdict::Ask(_) => CallInput::Verdict(verdict),
        };
        self.calls.running.send(&call, input);
        if stops {
            let steps = self.turn.router.interrupt();
            self.carry_out(steps).await;
        }
    }

    /// The broker took an answer to a server's question, or no person is asked.
    pub(super) async fn on_replied(&mut self, replied: RepliedQuestion) {
        let RepliedQuestion { call, reply, by, note } = replied;
        let sent = by.as_ref().and_then(|_| self.questions.settled(&call));
        self.questions.close(&call);
        self.workers.broker.made_progress();
        let reply = QuestionReply { reply, by, note };
        self.calls.running.send(&call, CallInput::OfServer(ServerInput::Replied(reply)));
        if is_stop(sent.as_ref()) {
            let steps = self.turn.router.interrupt();
            self.carry_out(steps).await;
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

    /// Tells a client that its answer does not count: a client of this session, or of its parent's.
    pub(super) fn reject(&self, client: &ActorRef<ClientMsg>, call: &CallId, reason: &str) {
        if self.clients.has(client) || !self.tasks.own.reject(client, call, reason) {
            let (call, reason) = (call.clone(), reason.to_owned());
            let event = ClientEvent::AnswerRejected { call, reason };
            self.clients.show_to(client, self.journal.last_seq(), event);
        }
    }
}

/// The person stops the turn.
fn is_stop<C>(sent: Option<&SentAnswer<C>>) -> bool {
    sent.is_some_and(|sent| sent.answer == PersonAnswer::Stop)
}
