//! Events of the processes that serve the session, as far as they concern more than the owner of each in `links`.

use super::answers;
use super::asked_ahead;
use super::links::store::StoreNews;
use super::rules;
use super::state::SessionActorState;
use crate::messages::{BrokerToSession, CallMsg, ClientMsg};
use crate::route::Router;
use crate::worker::actor::WorkerEvent;
use call::CallInput;
use protocol::hook::HookOccasion;
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
                self.route(|router| router.on_session_msg(message)).await;
                self.start_next_turn().await;
            }
            WorkerEvent::Down { cause, failed } => {
                self.workers.conversation.went_down();
                self.hooks_lost();
                self.calls.services.servers.not_requested();
                let calls: Vec<_> = self.calls.foreground().map(|call| call.number).collect();
                self.route(|router| router.session_down(&cause, &calls)).await;
                if let Some(why) = failed {
                    self.events.failures.conversation_failed(why);
                    self.events.report_context_unknown();
                    self.close_failed_turn().await;
                }
                tracing::warn!(session = %self.spec.id(), %cause, "the conversation's process ended");
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
            self.route(Router::close_turn).await;
        }
        if then == OpenTurn::GoesOn {
            self.workers.ping_later();
        }
        let mut first = vec![ToSession::Begin(self.spec.setup().clone())];
        first.extend(self.server_news());
        first.extend(self.turn.router.words_wait());
        let journal = self.events.replay((then, self.turn.router.compact_told()));
        self.workers.conversation.begin(first, journal, self.own.clone());
    }

    /// Ends the turn of a failed conversation once its calls have ended, and reports it.
    pub(super) async fn close_failed_turn(&mut self) {
        if self.events.failures.conversation().is_none() || self.calls.foreground().next().is_some()
        {
            return;
        }
        let steps = self.turn.router.close_turn();
        match steps.is_empty() {
            true => {
                self.events.show_failed_workers();
                self.events.fail_work().await;
            }
            false => self.carry_out(steps).await,
        }
    }

    /// A client asks what fills the model's context, which the conversation knows.
    pub(super) async fn describe_context(&mut self, client: ActorRef<ClientMsg>) {
        self.events.clients.ask_context(client);
        self.route(Router::describe_context).await;
        self.events.report_context_unknown();
    }
}

/// The provider, the store, and the broker, which serves every session.
impl SessionActorState {
    pub(super) async fn on_provider_event(&mut self, event: WorkerEvent<ProviderLink>) {
        match event {
            WorkerEvent::Up(generation) => {
                self.workers.provider.came_up(generation, &self.spec);
                self.route(Router::provider_up).await;
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
                self.route(|router| router.provider_down(&cause, failed.as_deref())).await;
                if let Some(why) = failed {
                    self.events.failures.provider_failed(why);
                    // If a turn waits for the model, the conversation ends it first; it has just been told.
                    if !self.turn.router.turn_is_open() {
                        self.events.show_failed_workers();
                    }
                }
                return;
            }
        }
        self.workers.provider.suspend_later((&self.turn.router, &self.spec), &self.own);
    }

    pub(super) async fn on_store_event(&mut self, event: WorkerEvent<StoreLink>) {
        match self.workers.store.on_event(event, &self.spec, &self.calls.running) {
            StoreNews::Handled => {}
            StoreNews::Instructions { text, mut notes, tools, without_undo } => {
                notes.extend(self.spec.without_undo_note(without_undo.as_deref()));
                self.spec.list_tools(&tools);
                self.take_instructions(text, notes);
                self.on_instructions_settled().await;
            }
            StoreNews::Failed => self.on_instructions_settled().await,
        }
    }

    /// A store that was restarted sends the same.
    fn take_instructions(&mut self, text: String, notes: Vec<String>) {
        // Clients that attach later get them then.
        if self.spec.set_instruction_notes(&notes) {
            notes.into_iter().for_each(|note| self.events.show_notice(note));
        }
        if self.spec.set_instructions(text) {
            // A conversation that has not begun gets it with its first message.
            let text = self.spec.setup().system.clone();
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
            BrokerToSession::Verdict(call, verdict) => self.on_verdict(call, *verdict).await,
            BrokerToSession::Ahead(call, verdict) => {
                asked_ahead::on_verdict(self, call, *verdict).await;
            }
            BrokerToSession::Replied(replied) => self.on_replied(*replied).await,
            BrokerToSession::AnswerRejected(call, reason) => {
                answers::on_rejected(self, &call, &reason);
            }
            // A new process, which gets the rules.
            BrokerToSession::Back(generation) => {
                self.workers.broker.up(generation);
                self.events.failures.broker_is_back();
                answers::reject_lost(self);
                self.workers.broker.send(rules(&self.spec));
                self.calls.running.send_all(|| CallMsg::BrokerBack(generation));
                asked_ahead::put_again(self);
            }
            // Fails closed, now and for every call to come.
            BrokerToSession::Failed(why) => {
                let failed = || CallInput::BrokerFailed(why.clone());
                self.calls.running.send_all(|| CallMsg::Input(failed()));
                self.events.failures.broker_failed(why);
            }
        }
    }
}

/// Failures of the processes.
impl SessionActorState {
    /// Has the hooks of an event run; false if none of them runs.
    pub(super) fn run_hooks(&self, occasion: HookOccasion) -> bool {
        self.events.failures.takes_input()
            && self.workers.run_hooks(&self.spec.setup().hooks, occasion)
    }

    /// Starts the processes that have failed again.
    ///
    /// # Errors
    /// The reason and a remedy, if the disk has made the session read-only.
    pub(super) fn restart(&mut self) -> Result<(), String> {
        if !self.events.failures.restart() {
            return Err(self.events.degraded().unwrap_or_default());
        }
        self.workers.retry();
        let servers = self.calls.services.servers.restart();
        self.servers_due(servers);
        Ok(())
    }
}
