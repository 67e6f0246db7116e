//! Events of the processes that serve the session, as far as they concern more than the owner of each in `links`.

use super::links::replay::ReplayedJournal;
use super::links::store::StoreNews;
use super::rules;
use super::state::SessionActorState;
use crate::messages::{BrokerToSession, CallMsg, ClientMsg};
use crate::worker::actor::WorkerEvent;
use call::CallInput;
use launch::log_lines;
use protocol::client::ClientEvent;
#[cfg(agentd_hooks)]
use protocol::provider::FromProvider;
use protocol::provider::ProviderLink;
use protocol::session::{OpenTurn, SessionLink, ToSession};
use protocol::store::StoreLink;
use ractor::ActorRef;

/// The conversation.
impl SessionActorState {
    pub(super) async fn on_conversation_event(&mut self, event: WorkerEvent<SessionLink>) {
        match event {
            WorkerEvent::Up(generation) => {
                self.workers.conversation.came_up(generation);
                self.replay_if_quiet().await;
            }
            WorkerEvent::Message { message, permit: _permit } => {
                let steps = self.turn.router.on_session_msg(message);
                self.carry_out(steps).await;
                self.start_next_turn().await;
            }
            WorkerEvent::Down { cause, failed } => {
                self.workers.conversation.went_down();
                self.hooks_lost();
                self.calls.services.servers.not_requested();
                let calls: Vec<_> = self.calls.foreground().map(|call| call.number).collect();
                let steps = self.turn.router.session_down(&cause, &calls);
                self.carry_out(steps).await;
                if let Some(why) = failed {
                    self.workers.failures.conversation_failed(why);
                    self.report_context_unknown();
                    self.close_failed_turn().await;
                }
                tracing::warn!(session = %self.spec.id, %cause, "the conversation's process ended");
            }
        }
    }

    /// Replays the journal to a new conversation, once no call of the earlier process runs in the
    /// foreground: their results belong to the replay.
    pub(super) async fn replay_if_quiet(&mut self) {
        let waits =
            self.calls.foreground().next().is_some() || self.workers.store.awaits_instructions();
        if waits || !self.workers.conversation.awaits_replay() {
            return;
        }
        let then = self.turn.router.open_turn();
        if then == OpenTurn::Waits {
            let steps = self.turn.router.close_turn();
            self.carry_out(steps).await;
        }
        if then == OpenTurn::GoesOn {
            self.workers.ping_later();
        }
        let mut first = vec![ToSession::Begin(self.spec.setup.clone())];
        first.extend(self.server_news());
        let journal = ReplayedJournal {
            directory: self.journal.directory().to_owned(),
            session: self.spec.id.clone(),
            last: self.journal.last_seq(),
            fate: (then, self.turn.router.compact_told()),
        };
        self.workers.conversation.begin(first, journal, self.own.clone());
    }

    /// Ends the turn of a failed conversation once its calls have ended, and reports it.
    pub(super) async fn close_failed_turn(&mut self) {
        if self.workers.failures.conversation().is_none()
            || self.calls.foreground().next().is_some()
        {
            return;
        }
        let steps = self.turn.router.close_turn();
        match steps.is_empty() {
            true => {
                self.show_failed_workers();
                self.tasks.own.fail(self.degraded()).await;
            }
            false => self.carry_out(steps).await,
        }
    }

    /// A client asks what fills the model's context, which the conversation knows.
    pub(super) async fn describe_context(&mut self, client: ActorRef<ClientMsg>) {
        self.clients.ask_context(client);
        let steps = self.turn.router.describe_context();
        self.carry_out(steps).await;
        self.report_context_unknown();
    }

    /// Answers the clients that wait, if the conversation has failed.
    fn report_context_unknown(&mut self) {
        if let Some(why) = self.workers.failures.conversation() {
            let why = format!("the context is not known: the conversation has failed: {why}");
            self.clients.report_context(&Err(why));
        }
    }
}

/// The provider, the store, and the broker, which serves every session.
impl SessionActorState {
    pub(super) async fn on_provider_event(&mut self, event: WorkerEvent<ProviderLink>) {
        match event {
            WorkerEvent::Up(generation) => {
                self.workers.provider.came_up(generation, &self.spec);
                let steps = self.turn.router.provider_up();
                self.carry_out(steps).await;
            }
            WorkerEvent::Message { message, permit } => {
                ipc::step!("supervisor: route", if matches!(message, FromProvider::Delta { .. }));
                if self.fall_back(&message).await {
                    return;
                }
                let steps = self.turn.router.on_provider_msg(message);
                self.forward_to_conversation(steps, permit).await;
            }
            WorkerEvent::Down { cause, failed } => {
                self.workers.provider.went_down();
                let steps = self.turn.router.provider_down(&cause, failed.as_deref());
                self.carry_out(steps).await;
                if let Some(why) = failed {
                    self.workers.failures.provider_failed(why);
                    // If a turn waits for the model, the conversation ends it first; it has just been told.
                    if !self.turn.router.turn_is_open() {
                        self.show_failed_workers();
                    }
                }
                return;
            }
        }
        self.workers.provider.suspend_later((&self.turn.router, &self.spec), &self.own);
    }

    pub(super) async fn on_store_event(&mut self, event: WorkerEvent<StoreLink>) {
        let store = &mut self.workers.store;
        match event {
            WorkerEvent::Up(generation) => {
                store.came_up(generation, &self.spec, &self.calls.running);
            }
            WorkerEvent::Message { message, permit: _permit } => {
                match store.said(message, &self.calls.running) {
                    StoreNews::Handled => {}
                    StoreNews::Instructions { text, notes } => {
                        self.take_instructions(text, notes);
                        self.on_instructions_settled().await;
                    }
                    StoreNews::Log(line) => log_lines::write("store", &self.spec.id, &line),
                }
            }
            WorkerEvent::Down { cause, failed } => {
                store.went_down(cause, failed.as_deref(), &self.calls.running);
                if let Some(why) = failed {
                    tracing::error!(session = %self.spec.id, why, "the store has failed");
                    self.on_instructions_settled().await;
                }
            }
        }
    }

    /// A store that was restarted sends the same.
    fn take_instructions(&mut self, text: String, notes: Vec<String>) {
        // Clients that attach later get them then.
        if notes != self.spec.texts.instruction_notes {
            let told = notes.iter().cloned().map(|text| ClientEvent::Notice { text });
            told.for_each(|note| self.show(&note));
            self.spec.texts.instruction_notes = notes;
        }
        if text != self.spec.texts.instructions {
            self.spec.set_instructions(text);
            // A conversation that has not begun gets it with its first message.
            let text = self.spec.setup.system.clone();
            self.workers.conversation.send(ToSession::System { text });
        }
    }

    /// The project's instructions were received, or did not come in time.
    pub(super) async fn on_instructions_settled(&mut self) {
        self.workers.store.instructions_settled();
        self.replay_if_quiet().await;
    }

    pub(super) async fn on_broker_msg(&mut self, message: BrokerToSession) {
        match message {
            BrokerToSession::Verdict(call, verdict) => {
                self.on_verdict(call, *verdict).await;
            }
            BrokerToSession::Replied(replied) => self.on_replied(*replied).await,
            BrokerToSession::AnswerRejected(call, reason) => {
                self.on_answer_rejected(&call, &reason);
            }
            // A new process, which gets the rules.
            BrokerToSession::Back(generation) => {
                self.workers.broker.up(generation);
                self.workers.failures.broker_is_back();
                self.reject_lost_answers();
                self.workers.broker.send(rules(&self.spec));
                self.calls.running.send_all(|| CallMsg::BrokerBack(generation));
            }
            // Fails closed, now and for every call to come.
            BrokerToSession::Failed(why) => {
                let failed = || CallInput::BrokerFailed(why.clone());
                self.calls.running.send_all(|| CallMsg::Input(failed()));
                self.workers.failures.broker_failed(why);
            }
        }
    }
}

/// Failures of the processes.
impl SessionActorState {
    /// Why nothing more is taken, if so, with the way on.
    pub(super) fn degraded(&self) -> Option<String> {
        self.workers.failures.reason(&self.spec.id)
    }

    /// Reports failed workers once the turn in which they failed has ended.
    pub(super) fn show_failed_workers(&self) {
        if self.workers.failures.is_without_worker() {
            self.show_degraded(self.degraded());
        }
    }

    /// Starts the processes that have failed again.
    ///
    /// # Errors
    /// The reason and a remedy, if the disk has made the session read-only.
    pub(super) fn restart(&mut self) -> Result<(), String> {
        if !self.workers.restart() {
            return Err(self.degraded().unwrap_or_default());
        }
        let servers = self.calls.services.servers.restart();
        self.servers_due(servers);
        Ok(())
    }
}
