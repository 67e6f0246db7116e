//! Questions to people and their answers. `questions` knows which are open; the first answer counts, and later ones
//! are rejected. The broker judges each answer. An answer that holds longer than its call changes a setting before
//! the call goes on. Questions of sub-agents are answered here and judged in their sessions.

use super::asked_ahead;
use super::hook_events;
use super::new_setting::NewSetting;
use super::questions::{Judged, Put, SentAnswer, TurnThen};
use super::state::SessionActorState;
use super::tasks::ENDED;
use crate::messages::{GivenAnswer, RepliedQuestion};
use crate::route::Router;
use crate::unix_time::now_ms;
use call::{CallInput, QuestionReply, ServerInput};
use protocol::broker::ToBroker;
use protocol::client::{ClientEvent, SettingChange};
use protocol::ids::CallId;
use protocol::judgement::{PersonAnswer, Question, Verdict};

impl SessionActorState {
    /// Puts a question to people.
    pub(super) fn put_question(&mut self, question: Question) {
        let put = self.questions.put(question.clone());
        if put == Put::First {
            let hooks = hook_events::asked(&question);
            hooks.map(|occasion| self.run_hooks(occasion));
        }
        self.calls.running.look_at_protected(&self.calls.services);
        self.events.show(&ClientEvent::Asked { question });
        asked_ahead::put(self);
    }

    pub(super) fn answer(&mut self, answered: GivenAnswer) {
        if answered.call.session != *self.spec.id() {
            if let Err(answer) = self.sub_agents.pass_on(answered) {
                self.events.reject(&answer.client, &answer.call, ENDED);
            }
            return;
        }
        let GivenAnswer { call, digest, answer, by, client } = answered;
        if self.questions.is_overdue(&call, now_ms()) {
            self.calls.running.send(&call, CallInput::Expired);
            return self.events.reject(&client, &call, "its deadline is over");
        }
        if let (PersonAnswer::Mode(mode), _) = answer.clone().split_note()
            && let Err(failure) = self.spec.check_change(&SettingChange::Mode(mode))
        {
            return self.events.reject(&client, &call, &failure.message);
        }
        let sent =
            SentAnswer { call: call.clone(), by: by.clone(), answer: answer.clone(), client };
        self.questions.answered(sent);
        self.workers.broker.send(ToBroker::Answer { call, digest, answer, by });
    }

    /// A verdict, by itself or because of an answer.
    pub(super) async fn on_verdict(&mut self, call: CallId, verdict: Verdict) {
        let then = self.follow(&call, &verdict).await;
        let input = match (verdict, then) {
            (Verdict::Deny(basis, text), TurnThen::Stops) => {
                CallInput::StoppedByAnswer(basis, text)
            }
            (verdict, _) => CallInput::Verdict(verdict),
        };
        self.calls.running.send(&call, input);
        if then == TurnThen::Stops {
            self.route(Router::interrupt).await;
        }
    }

    /// What follows from a verdict beside its call: its question closes, and the answer behind it may change a
    /// setting, or stop the turn.
    pub(super) async fn follow(&mut self, call: &CallId, verdict: &Verdict) -> TurnThen {
        let Judged { answer, allowed } = self.questions.judged(call, verdict);
        // Of a call that waits, its turn says whether the files are still as the person saw them.
        let allowed = allowed.filter(|_| !self.questions.is_ahead(call));
        if let Some(record) = allowed.and_then(|it| self.calls.tampered.accept(&it)) {
            // A failure closes the session, and nothing runs.
            let _ = self.events.record(vec![record], &mut self.calls.running).await;
        }
        if !matches!(verdict, Verdict::Ask(_)) {
            self.workers.broker.made_progress();
            asked_ahead::put(self);
        }
        if let (Verdict::Allow(_), Some(sent)) = (verdict, &answer)
            && let Some(new) = NewSetting::answered(&self.spec, &sent.answer).await
        {
            // After a failure of the disk the setting stays, and nothing runs.
            let _ = self.adopt(new, &sent.by).await;
        }
        if is_stop(answer.as_ref()) { TurnThen::Stops } else { TurnThen::GoesOn }
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
            self.route(Router::interrupt).await;
        }
    }
}

/// An answer does not count.
pub(super) fn on_rejected(state: &mut SessionActorState, call: &CallId, reason: &str) {
    match state.questions.settled(call) {
        Some(sent) => state.events.reject(&sent.client, call, reason),
        None => tracing::warn!(%call, reason, "an answer from an unknown client was rejected"),
    }
}

/// The broker died with unsettled answers. It will ask these questions again.
pub(super) fn reject_lost(state: &mut SessionActorState) {
    for sent in state.questions.lost() {
        let reason = "the broker restarted before it received the answer; answer again";
        state.events.reject(&sent.client, &sent.call, reason);
    }
}

/// The person stops the turn.
fn is_stop<C>(sent: Option<&SentAnswer<C>>) -> bool {
    sent.is_some_and(|sent| sent.answer == PersonAnswer::Stop)
}
