//! The processes that serve the session: their events, and the messages to them. `links` knows which of them is
//! away, and what waits for it.

use super::links::provider::BeforeProcess;
use super::links::replay::ReplayedJournal;
use super::links::store::AwaitsCopies;
use super::models::Recording;
use super::request_images::fill_in_images;
use super::rules;
use super::state::SessionActorState;
use crate::messages::{BackupOf, CallMsg, ClientMsg, SessionMsg, SessionTimer};
use crate::route::RouteStep;
use crate::unix_time::now_ns;
use crate::worker::actor::{WorkerEvent, WorkerMsg};
use call::{CallInput, WillRestart};
use protocol::client::{ClientEvent, ToClient};
use protocol::ids::{CallId, Generation};
#[cfg(agentd_hooks)]
use protocol::provider::FromProvider;
use protocol::provider::{PassedFd, ProviderLink, ToProvider};
use protocol::session::{OpenTurn, SessionLink, ToSession};
use protocol::store::{ChangeSet, FileChanges, FromStore, StoreLink, ToStore};
use ractor::ActorRef;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the conversation waits for the project's instructions. The store reads them in
/// milliseconds; on an overloaded machine they are sent later.
const INSTRUCTIONS: Duration = Duration::from_secs(2);

impl AwaitsCopies for oneshot::Sender<()> {
    fn is_waiting(&self) -> bool {
        !self.is_closed()
    }

    fn go_on(self) -> bool {
        self.send(()).is_ok()
    }
}

/// The conversation.
impl SessionActorState {
    pub(super) async fn on_conversation_event(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        event: WorkerEvent<SessionLink>,
    ) {
        match event {
            WorkerEvent::Up(generation) => {
                self.workers.conversation.up(generation);
                self.links.replay.process_came();
                self.replay_if_quiet(myself).await;
            }
            WorkerEvent::Message { message, permit: _permit } => {
                let steps = self.turn.router.on_session_msg(message);
                self.carry_out(myself, steps).await;
                self.start_next_turn(myself).await;
            }
            WorkerEvent::Down { cause, failed } => {
                self.links.replay.process_ended();
                self.hooks_lost(myself);
                self.calls.services.servers.not_requested();
                let calls: Vec<_> = self.calls.foreground().map(|call| call.number).collect();
                let steps = self.turn.router.session_down(&cause, &calls);
                self.carry_out(myself, steps).await;
                if let Some(why) = failed {
                    self.links.failures.conversation_failed(why);
                    self.report_context_unknown();
                    self.close_failed_turn(myself).await;
                }
                tracing::warn!(session = %self.spec.id, %cause, "the conversation's process ended");
            }
        }
    }

    /// Sends a message to a conversation whose replay has started.
    pub(super) fn send_conversation(&self, message: ToSession) {
        if self.links.replay.has_started() {
            self.workers.conversation.send(message);
        }
    }

    /// Replays the journal to a new conversation, once no call of the earlier process runs in the
    /// foreground: their results belong to the replay.
    pub(super) async fn replay_if_quiet(&mut self, myself: &ActorRef<SessionMsg>) {
        let waits =
            self.calls.foreground().next().is_some() || self.links.store.awaits_instructions();
        if waits || !self.links.replay.is_due() {
            return;
        }
        let then = self.turn.router.open_turn();
        if then == OpenTurn::Waits {
            let steps = self.turn.router.close_turn();
            self.carry_out(myself, steps).await;
        }
        if then == OpenTurn::GoesOn {
            self.ping_later(myself);
        }
        let conversation = self.workers.conversation.clone();
        conversation.send(ToSession::Begin(self.spec.setup.clone()));
        self.server_news().into_iter().for_each(|news| conversation.send(news));
        let journal = ReplayedJournal {
            directory: self.journal.directory.clone(),
            session: self.spec.id.clone(),
            last: self.journal.last_seq,
            fate: (then, self.turn.router.compact_told()),
        };
        let myself = myself.clone();
        let forward = move |messages, permit| conversation.forward(messages, permit);
        let failed = move |why| drop(myself.send_message(SessionMsg::ReplayFailed(why)));
        self.links.replay.starts(journal.forward(forward, failed));
    }

    /// Why nothing more is taken, if so, with the way on.
    pub(super) fn degraded(&self) -> Option<String> {
        self.links.failures.reason(&self.spec.id)
    }

    /// Ends the turn of a failed conversation once its calls have ended, and reports it.
    pub(super) async fn close_failed_turn(&mut self, myself: &ActorRef<SessionMsg>) {
        if self.links.failures.conversation().is_none() || self.calls.foreground().next().is_some()
        {
            return;
        }
        let steps = self.turn.router.close_turn();
        match steps.is_empty() {
            true => {
                self.show_failed_workers();
                self.tasks.own.fail(self.degraded()).await;
            }
            false => self.carry_out(myself, steps).await,
        }
    }

    /// Reports failed workers once the turn in which they failed has ended.
    pub(super) fn show_failed_workers(&self) {
        if self.links.failures.is_without_worker() {
            self.show_degraded(self.degraded());
        }
    }

    /// Starts the processes that have failed again.
    ///
    /// # Errors
    /// The reason and a remedy, if the disk has made the session read-only.
    pub(super) fn restart(&mut self) -> Result<(), String> {
        if !self.links.failures.restart() {
            return Err(self.degraded().unwrap_or_default());
        }
        let _ = self.workers.conversation.actor().send_message(WorkerMsg::Retry);
        let _ = self.workers.provider.actor().send_message(WorkerMsg::Retry);
        let _ = self.workers.store.actor().send_message(WorkerMsg::Retry);
        let servers = self.calls.services.servers.restart();
        self.servers_due(servers);
        Ok(())
    }
}

/// The provider: started when it is needed, suspended when it was not asked for a while.
impl SessionActorState {
    pub(super) async fn on_provider_event(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        event: WorkerEvent<ProviderLink>,
    ) {
        match event {
            WorkerEvent::Up(generation) => {
                self.workers.provider.up(generation);
                self.configure_provider();
                let steps = self.turn.router.provider_up();
                self.carry_out(myself, steps).await;
                self.suspend_later(myself);
            }
            WorkerEvent::Message { message, permit } => {
                ipc::step!("supervisor: route", if matches!(message, FromProvider::Delta { .. }));
                if self.fall_back(myself, &message).await {
                    return;
                }
                let steps = self.turn.router.on_provider_msg(message);
                self.forward_to_conversation(myself, steps, permit).await;
                self.suspend_later(myself);
            }
            WorkerEvent::Down { cause, failed } => {
                self.links.provider.went_down();
                let steps = self.turn.router.provider_down(&cause, failed.as_deref());
                self.carry_out(myself, steps).await;
                if let Some(why) = failed {
                    self.links.failures.provider_failed(why);
                    // If a turn waits for the model, the conversation ends it first; it has just been told.
                    if !self.turn.router.turn_is_open() {
                        self.show_failed_workers();
                    }
                }
            }
        }
    }

    /// Sends a message to the provider. A request starts a suspended provider.
    pub(super) async fn send_provider(&mut self, mut message: ToProvider) {
        if matches!(message, ToProvider::Ask(_)) {
            let before = self.links.provider.begin_request();
            if let Some(timer) = before.timer {
                timer.abort();
            }
            if before.process == BeforeProcess::Replace {
                let _ = self.workers.provider.actor().send_message(WorkerMsg::Suspend);
            }
            let _ = self.workers.provider.actor().send_message(WorkerMsg::Resume);
        }
        if !self.links.provider.is_up() {
            return;
        }
        if let ToProvider::Ask(request) = &mut message {
            for text in fill_in_images(request, &self.journal.directory).await {
                tracing::warn!(session = %self.spec.id, "{text}");
                self.show(&ClientEvent::Notice { text });
            }
        }
        self.workers.provider.send(message);
    }

    /// A client passed descriptors, a newer key for example.
    pub(super) fn on_new_keys(&mut self) {
        if self.may_suspend() {
            self.links.provider.outdate();
        }
    }

    /// Suspends the provider after a while, if it is not asked.
    fn suspend_later(&mut self, myself: &ActorRef<SessionMsg>) {
        let needs_timer = self.links.provider.needs_timer() && !self.turn.router.awaits_answer();
        if needs_timer && self.may_suspend() {
            let time = Duration::from_millis(self.spec.config.daemon.idle_provider_ms);
            let later = myself.send_after(time, || SessionMsg::Timer(SessionTimer::ProviderIdle));
            self.links.provider.timer_started(later.abort_handle());
        }
    }

    pub(super) fn on_provider_idle(&mut self) {
        let _ = self.links.provider.timer_over();
        if self.links.provider.is_up() && !self.turn.router.awaits_answer() {
            self.links.provider.went_down();
            let _ = self.workers.provider.actor().send_message(WorkerMsg::Suspend);
        }
    }

    /// Where a recording is played or made, the process knows how far it is.
    pub(super) fn may_suspend(&self) -> bool {
        Recording::of(&self.resources.passed_fds) == Recording::Absent
    }

    /// Keys of hosts are for proxies.
    fn provider_fds(&self) -> impl Iterator<Item = &(PassedFd, OwnedFd)> {
        self.resources.passed_fds.iter().filter(|(paper, _)| !paper.is_for_calls())
    }

    /// Tells a provider that has just begun whom to speak to.
    fn configure_provider(&mut self) {
        self.links.provider.configured();
        let message = ToProvider::Configure {
            source: self.spec.model().source(),
            patience: self.spec.config.provider.patience,
            proxy: self.spec.config.provider.proxy.clone(),
            papers: self.provider_fds().map(|(paper, _)| paper.clone()).collect(),
        };
        self.workers.provider.send(message);
        for (_, descriptor) in self.provider_fds() {
            match descriptor.try_clone() {
                Ok(copy) => self.workers.provider.send_descriptor(copy),
                Err(error) => {
                    tracing::error!(%error, "a descriptor could not be sent to the provider")
                }
            }
        }
    }
}

/// The store.
impl SessionActorState {
    /// The conversation begins without the instructions after a while.
    pub(super) fn limit_instructions_wait(&self, myself: &ActorRef<SessionMsg>) {
        myself.send_after(INSTRUCTIONS, || SessionMsg::Timer(SessionTimer::InstructionsTimeout));
    }

    pub(super) async fn on_instructions_settled(&mut self, myself: &ActorRef<SessionMsg>) {
        self.links.store.instructions_settled();
        self.replay_if_quiet(myself).await;
    }

    pub(super) async fn on_store_event(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        event: WorkerEvent<StoreLink>,
    ) {
        match event {
            WorkerEvent::Up(generation) => {
                self.workers.store.up(generation);
                let mut setup = self.spec.store.clone();
                setup.denied_reads = approval::read_denials(&self.spec.rules);
                self.workers.store.send(ToStore::Begin(setup));
                let waiting = self.links.store.came_up();
                waiting.into_iter().for_each(|message| self.workers.store.send(message));
                self.send_calls(|| CallMsg::StoreBack(generation));
            }
            WorkerEvent::Message { message, permit: _permit } => {
                self.on_store_msg(myself, message).await
            }
            WorkerEvent::Down { cause, failed } => {
                let lost = "the changes are not known: the store was restarted; ask again";
                let askers = self.links.store.take_all_askers();
                self.send_changes(askers, &Err(lost.to_owned()));
                let will_restart =
                    if failed.is_some() { WillRestart::No } else { WillRestart::Yes };
                let cause = failed.clone().unwrap_or(cause);
                let lost = || CallInput::StoreLost { cause: cause.clone(), will_restart };
                self.send_calls(|| CallMsg::Input(lost()));
                if let Some(why) = failed {
                    tracing::error!(session = %self.spec.id, why, "the store has failed");
                    self.links.store.has_failed(why);
                    self.on_instructions_settled(myself).await;
                }
            }
        }
    }

    async fn on_store_msg(&mut self, myself: &ActorRef<SessionMsg>, message: FromStore) {
        if serves_a_call(&message) {
            let _ = self.workers.store.actor().send_message(WorkerMsg::ResetFailures);
        }
        match message {
            FromStore::Ready | FromStore::Pong(_) => {}
            FromStore::Instructions { text, notes } => {
                // Clients that attach later get them then. A store that was restarted sends the same.
                if notes != self.spec.texts.instruction_notes {
                    let told = notes.iter().cloned().map(|text| ClientEvent::Notice { text });
                    told.for_each(|note| self.show(&note));
                    self.spec.texts.instruction_notes = notes;
                }
                if text != self.spec.texts.instructions {
                    self.spec.set_instructions(text);
                    // A conversation that has not begun gets it with its first message.
                    let text = self.spec.setup.system.clone();
                    self.send_conversation(ToSession::System { text });
                }
                self.on_instructions_settled(myself).await;
            }
            FromStore::Answered { call, result } => {
                self.calls.send(&call, CallInput::Stored(result));
            }
            FromStore::CacheAnswer { call, found } => {
                self.calls.send(&call, CallInput::CacheAnswer(found));
            }
            FromStore::BackedUp(call) => self.links.store.backed_up(&call),
            FromStore::ChangesRecorded(call) => self.links.store.recorded(&call),
            FromStore::BackupsFetched { call, files } => {
                self.calls.send(&call, CallInput::RestoreFetched(files));
            }
            FromStore::ChangesFetched { since, changes } => {
                let askers = self.links.store.take_askers(since);
                self.send_changes(askers, &changes);
            }
            FromStore::Log(line) => {
                self.carry_out(myself, vec![RouteStep::Log("store", line)]).await
            }
        }
    }

    /// Asks the store for a client.
    pub(super) fn fetch_changes(&mut self, client: ActorRef<ClientMsg>, since: u32) {
        let request = self.links.store.ask_changes(client, since);
        request.into_iter().for_each(|request| self.workers.store.send(request));
        if let Some(why) = self.links.store.failure() {
            let why = format!("the changes are not known: the store has failed: {why}");
            let askers = self.links.store.take_askers(since);
            self.send_changes(askers, &Err(why));
        }
    }

    fn send_changes(&self, askers: Vec<ActorRef<ClientMsg>>, changes: &Result<ChangeSet, String>) {
        for client in askers {
            let (session, changes) = (self.spec.id.clone(), changes.clone());
            let _ = client.send_message(ClientMsg::Send(ToClient::Changes { session, changes }));
        }
    }

    /// Has the store copy the files that a call will change.
    pub(super) fn back_up(
        &mut self,
        call: CallId,
        tool: String,
        what: BackupOf,
        done: oneshot::Sender<()>,
    ) {
        let request = self.links.store.back_up(call, tool, what, done);
        request.into_iter().for_each(|request| self.workers.store.send(request));
    }

    /// Reports the end of a call to the store, which then records its changes.
    pub(super) fn end_backup(&mut self, call: &CallId, did: Option<FileChanges>) {
        let messages = self.links.store.call_ended(call, did, now_ns());
        messages.into_iter().for_each(|message| self.workers.store.send(message));
    }

    /// A call that has just begun would wait for ever for a worker that has failed.
    pub(super) fn send_failures(&self, call: &ActorRef<CallMsg>) {
        if let Some(why) = self.links.failures.broker() {
            let _ = call.send_message(CallMsg::Input(CallInput::BrokerFailed(why.to_owned())));
        }
        if let Some(cause) = self.links.store.failure() {
            let (cause, will_restart) = (cause.to_owned(), WillRestart::No);
            let _ = call.send_message(CallMsg::Input(CallInput::StoreLost { cause, will_restart }));
        }
    }
}

/// The broker, which serves every session.
impl SessionActorState {
    /// Sends the rules to a new process of the broker.
    pub(super) fn on_broker_back(&mut self, generation: Generation) {
        self.workers.broker.up(generation);
        self.links.failures.broker_is_back();
        self.reject_lost_answers();
        self.workers.broker.send(rules(&self.spec));
        self.send_calls(|| CallMsg::BrokerBack(generation));
    }

    /// Fails closed, now and for every call to come.
    pub(super) fn on_broker_failed(&mut self, why: String) {
        self.send_calls(|| CallMsg::Input(CallInput::BrokerFailed(why.clone())));
        self.links.failures.broker_failed(why);
    }

    /// Sends a message to each running call.
    pub(super) fn send_calls(&self, message: impl Fn() -> CallMsg) {
        for call in self.calls.running.values() {
            let _ = call.send_message(message());
        }
    }
}

/// A message that a call waited for, or that settles an ended call.
fn serves_a_call(message: &FromStore) -> bool {
    match message {
        FromStore::Answered { .. }
        | FromStore::CacheAnswer { .. }
        | FromStore::BackedUp(_)
        | FromStore::ChangesRecorded(_)
        | FromStore::BackupsFetched { .. }
        | FromStore::ChangesFetched { .. } => true,
        FromStore::Ready
        | FromStore::Pong(_)
        | FromStore::Instructions { .. }
        | FromStore::Log(_) => false,
    }
}
