//! The messages of clients, the events that they are shown, and their backlog. `clients` knows who is attached.

use super::backlog;
use super::clients::{Address, ShownTo};
use super::rules;
use super::state::SessionActorState;
use crate::client_actor::feed::{Broadcast, Feed, FeedResult, FeedStatus};
use crate::messages::{
    AttachRequest, ClientMsg, ClientToSession, OpenRequest, SessionMsg, SessionSummary,
};
use crate::records::decode::ShownEvents;
use crate::session_page::{MAX_PAGE, PageRequest, send_page};
use ipc::ChannelError;
use protocol::client::{
    BacklogFrom, ClientEvent, DetachReason, NumberedEvent, OtherClients, RequestFailure,
    SessionQuery, SessionRequest, SessionStatus, SessionWish, ToClient,
};
use protocol::confinement::Tier;
use protocol::error_chain::chain;
use protocol::ids::SessionId;
use protocol::judgement::Audience;
use ractor::{ActorId, ActorRef, ActorStatus};
use setup::open_failure::OpenFailure;
use setup::session_spec::{SessionSpec, describe_confinement};
use std::ops::Range;
use std::path::Path;

/// Records that are read and sent at once when a client attaches; more are sent by another task.
const INLINE_RECORDS: u64 = 512;

impl SessionActorState {
    pub(super) async fn on_client_msg(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        message: ClientToSession,
    ) {
        if let ClientToSession::Attach(_)
        | ClientToSession::Prompt { .. }
        | ClientToSession::Query { query: SessionQuery::Servers, .. } = &message
        {
            self.start_logged_in();
        }
        match message {
            ClientToSession::Attach(request) => self.attach(myself, request).await,
            ClientToSession::Detach(client) => {
                self.remove_client(&client);
                self.retire_if_unused();
            }
            ClientToSession::Page { client, before, most } => self.page(client, before, most),
            ClientToSession::Query { client, query: SessionQuery::Changes { since } } => {
                self.workers.store.fetch_changes(client, since);
            }
            ClientToSession::Query { client, query: SessionQuery::Context } => {
                self.describe_context(myself, client).await;
            }
            ClientToSession::Query { client, query: SessionQuery::Servers } => {
                self.try_failed_servers();
                self.report_servers(&client);
            }
            ClientToSession::Prompt { client, text, form } => {
                self.prompt(myself, &client, text, form).await;
            }
            ClientToSession::TakeBack(client) => self.take_back(&client).await,
            ClientToSession::Withdraw { client, text } => self.withdraw(&client, &text).await,
            ClientToSession::Change { client, change, by } => {
                self.change(&client, change, by).await;
            }
            ClientToSession::Answer(answer) => self.answer(answer),
            ClientToSession::Interrupt => {
                let steps = self.turn.router.interrupt();
                self.carry_out(myself, steps).await;
            }
            ClientToSession::Wish(SessionWish::Compact { focus }) => {
                let steps = self.turn.router.compact(focus);
                self.carry_out(myself, steps).await;
            }
            ClientToSession::Wish(SessionWish::EditSummary(summary)) => {
                let steps = self.turn.router.edit_summary(summary);
                self.carry_out(myself, steps).await;
            }
            ClientToSession::Wish(SessionWish::Background) => self.detach_commands(),
        }
    }

    pub(super) fn show(&self, event: &ClientEvent) {
        self.tell_parent(event);
        if self.clients.any_attached() {
            let event = Broadcast::new(&self.spec.id, self.journal.last_seq(), event.clone());
            let missed = self.clients.show(|feed| is_put(&event, feed));
            missed.into_iter().for_each(|client| report_missed(&self.spec.id, &event, client));
        }
    }

    /// Shows an event to one client, which may still be receiving its backlog.
    pub(super) fn show_to(&self, client: &ActorRef<ClientMsg>, event: ClientEvent) {
        let seq = self.journal.last_seq();
        let broadcast = Broadcast::new(&self.spec.id, seq, event.clone());
        match self.clients.show_to(client, |feed| is_put(&broadcast, feed)) {
            ShownTo::Client => {}
            ShownTo::Missed(client) => report_missed(&self.spec.id, &broadcast, client),
            ShownTo::Stranger => {
                let _ = client.send_message(ClientMsg::Send(self.event_msg(seq, event)));
            }
        }
    }

    /// The model that is asked now, for clients.
    pub(super) fn model_event(&self) -> ClientEvent {
        let (name, facts) = (self.spec.setup.model.clone(), self.spec.config.provider.facts);
        ClientEvent::Model { name, facts }
    }

    fn event_msg(&self, seq: u64, event: ClientEvent) -> ToClient {
        ToClient::Event { session: self.spec.id.clone(), seq, event }
    }

    pub(super) fn show_if(&self, event: Option<ClientEvent>) {
        if let Some(event) = event {
            self.show(&event);
        }
    }

    pub(super) fn show_degraded(&self, reason: Option<String>) {
        if let Some(reason) = reason {
            tracing::error!(session = %self.spec.id, %reason, "degraded");
            self.show(&ClientEvent::Degraded { reason });
        }
    }

    /// PendingAnswers a client that asked for this session. Papers replace older ones of their kind, so
    /// that a key is there again.
    pub(super) fn join(&mut self, request: OpenRequest) {
        let joins = self.spec.check_join(&request.opening);
        if let Err(failure) = joins.and_then(|()| self.spec.check_joined_limit(&request.opening)) {
            let _ = request.reply.send(Err(failure));
            return;
        }
        match (request.opening.audience, self.spec.rules.audience) {
            (Audience::NonInteractive, Audience::Person) if self.is_used() => {
                let message = format!(
                    "session {id} is open in a terminal: a script in it would wait for that \
                     person's answers. Detach the terminal first, or work in a copy: \
                     `agentd fork {id}`",
                    id = self.spec.id
                );
                let _ = request.reply.send(Err(OpenFailure::new(RequestFailure::Held, message)));
                return;
            }
            (Audience::Person, Audience::NonInteractive) if self.turn.router.must_queue() => {
                self.turn.next_audience = Some(Audience::Person);
            }
            (audience, before) if audience != before => self.set_audience(audience),
            (Audience::NonInteractive | Audience::Person, _) => {}
        }
        self.workers.provider.pass(request.passed_fds);
        // One of them may be what a server waits for.
        (0..self.spec.servers().len()).for_each(|at| self.on_server_due(at));
        let message = opened_message(
            &self.spec,
            (self.calls.cages.tier(), self.journal.last_seq()),
            &request.opening,
        );
        // A client that has disconnected gets no answer.
        if request.reply.send(Ok((self.own.clone(), message))).is_ok() {
            self.clients.expects(request.client);
        }
    }

    /// A turn is open, a prompt waits, or a client is attached.
    pub(super) fn is_used(&self) -> bool {
        self.turn.router.must_queue() || self.clients.any_attached()
    }

    /// Who can be asked from now on.
    pub(super) fn set_audience(&mut self, audience: Audience) {
        self.turn.next_audience = None;
        self.spec.set_audience(audience);
        self.workers.broker.send(rules(&self.spec));
    }

    /// Sends a client its backlog, and every event from then on. A long backlog is read and sent by
    /// another task, as fast as the client reads.
    pub(super) async fn attach(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        attachment: AttachRequest,
    ) {
        let AttachRequest { client, name, from, others, feed } = attachment;
        // The client disconnected while it received its backlog.
        if matches!(client.get_status(), ActorStatus::Stopping | ActorStatus::Stopped) {
            return self.remove_client(&client);
        }
        if others == OtherClients::Detach {
            let reason = format!("{name} attached and took the session over");
            self.detach_all(DetachReason::TakenOver, &reason);
        }
        let from = match from {
            BacklogFrom::Seq(from) => from,
            BacklogFrom::Newest(most) => {
                return self.show_newest(client, name, feed, most.min(MAX_PAGE)).await;
            }
        };
        if self.journal.last_seq().saturating_sub(from) > INLINE_RECORDS {
            let (up_to, directory) = (self.journal.last_seq(), self.journal.directory().to_owned());
            let (session, myself) = (self.spec.id.clone(), myself.clone());
            self.clients.expects(client.get_id());
            tokio::spawn(async move {
                match backlog::send_backlog(&directory, &session, from..=up_to, &feed).await {
                    Ok(FeedStatus::Open) => {
                        let (from, others) = (BacklogFrom::Seq(up_to + 1), OtherClients::Stay);
                        let again = AttachRequest { client, name, from, others, feed };
                        let _ = myself.send_message(ClientToSession::Attach(again).into());
                    }
                    // Its actor reports the end of the connection.
                    Ok(FeedStatus::Gone) => {}
                    Err(why) => {
                        refuse(&client, why);
                        let _ = myself.send_message(ClientToSession::Detach(client).into());
                    }
                }
            });
            return;
        }
        let before = self.journal.last_seq() + 1;
        let (directory, session) = (self.journal.directory().to_owned(), self.spec.id.clone());
        let read =
            tokio::task::spawn_blocking(move || read_range(&directory, &session, from..before));
        let missed = read.await.unwrap_or_else(|error| Err(error.to_string()));
        self.attach_now(client, name, feed, missed);
    }

    async fn show_newest(
        &mut self,
        client: ActorRef<ClientMsg>,
        name: String,
        feed: Feed,
        most: u32,
    ) {
        let (directory, session) = (self.journal.directory().to_owned(), self.spec.id.clone());
        let read = tokio::task::spawn_blocking(move || {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let mut shown = ShownEvents::of(&session);
            let events = journal::newest(&directory, most, |entry| shown.next(entry));
            events.map(|events| shown.complete(events)).map_err(|error| chain(&error))
        });
        let missed = read.await.unwrap_or_else(|error| Err(error.to_string()));
        self.attach_now(client, name, feed, missed);
    }

    fn attach_now(
        &mut self,
        client: ActorRef<ClientMsg>,
        name: String,
        feed: Feed,
        missed: Result<Vec<NumberedEvent>, String>,
    ) {
        self.clients.expects_no_more(client.get_id());
        let missed = match missed {
            Ok(missed) => missed,
            Err(why) => return refuse(&client, why),
        };
        let mut messages: Vec<_> = missed
            .into_iter()
            .map(|NumberedEvent { seq, event }| self.event_msg(seq, event))
            .collect();
        let asked = self.questions.shown().cloned();
        messages.extend(asked.map(|question| {
            self.event_msg(self.journal.last_seq(), ClientEvent::Asked { question })
        }));
        let texts = self.queued_texts();
        if !texts.is_empty() {
            messages.push(self.event_msg(self.journal.last_seq(), ClientEvent::Queue { texts }));
        }
        messages.push(self.event_msg(self.journal.last_seq(), self.model_event()));
        messages.push(ToClient::Attached { session: self.spec.id.clone(), name });
        let notes = self.spec.texts.instruction_notes.iter().cloned();
        let notes = notes.map(|text| ClientEvent::Notice { text });
        messages.extend(notes.map(|note| self.event_msg(self.journal.last_seq(), note)));
        self.clients.attach(client.clone(), feed);
        let backlog = Broadcast::backlog(&messages);
        let shown = self.clients.show_to(&client, |feed| is_put(&backlog, feed));
        if let ShownTo::Missed(client) = shown {
            report_missed(&self.spec.id, &backlog, client);
        }
        self.show_degraded(self.degraded());
    }

    /// A client sees nothing more, or has gone before it saw anything.
    pub(super) fn remove_client(&mut self, client: &ActorRef<ClientMsg>) {
        self.workers.store.forget_client(client.get_id());
        self.clients.leaves(client);
    }

    /// Detaches all clients.
    pub(super) fn detach_all(&mut self, parting: DetachReason, reason: &str) {
        for client in self.clients.detach_all() {
            let (session, reason) = (self.spec.id.clone(), reason.to_owned());
            let _ = client.send_message(ClientMsg::Dismissed { session, parting, reason });
        }
    }

    pub(super) fn page(&self, client: ActorRef<ClientMsg>, before: u64, most: u32) {
        let page = PageRequest { session: self.spec.id.clone(), before, most };
        send_page(self.journal.directory().to_owned(), page, client);
    }

    pub(super) fn summary(&self) -> SessionSummary {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let state = match self.degraded() {
            Some(why) => SessionStatus::Degraded(why),
            None if self.questions.waiting() > 0 => {
                SessionStatus::Asking(count(self.questions.waiting()))
            }
            None if self.turn.router.is_busy() => SessionStatus::Working,
            None if self.calls.services.commands_count() > 0 => {
                SessionStatus::Background(count(self.calls.services.commands_count()))
            }
            None => match self.turn.router.cut_short() {
                Some(deaths) => SessionStatus::IdleCutShort(deaths.to_string()),
                None => SessionStatus::Idle,
            },
        };
        SessionSummary {
            state,
            clients: count(self.clients.attached_count()),
            turns: self.turn.router.turns(),
        }
    }
}

impl Address for ActorRef<ClientMsg> {
    type Id = ActorId;

    fn id(&self) -> ActorId {
        self.get_id()
    }
}

/// Queues it; false where there is no room, or where it could not be encoded.
fn is_put(event: &Result<Broadcast, ChannelError>, feed: &Feed) -> bool {
    event.as_ref().is_ok_and(|event| event.to(feed) == FeedResult::Done)
}

/// The client gets no more until it attaches again, or is disconnected.
fn report_missed(
    session: &SessionId,
    event: &Result<Broadcast, ChannelError>,
    client: &ActorRef<ClientMsg>,
) {
    let message = match event {
        Ok(_) => ClientMsg::Missed(session.clone()),
        Err(error) => ClientMsg::Gone(error.to_string()),
    };
    let _ = client.send_message(message);
}

/// Describes the session to the client that opened it.
pub(super) fn opened_message(
    spec: &SessionSpec,
    (tier, last_seq): (Tier, u64),
    opening: &SessionRequest,
) -> ToClient {
    ToClient::Opened {
        session: spec.id.clone(),
        model: spec.setup.model.clone(),
        facts: spec.config.provider.facts,
        tools: spec.setup.offered().map(|tool| tool.spec.name.clone()).collect(),
        mode: spec.rules.mode,
        network: spec.confinement.network,
        hosts: spec.confinement.hosts.clone(),
        sandbox: format!("{}; {}", tier.in_words(), describe_confinement(&spec.confinement)),
        last_seq,
        warnings: spec
            .config
            .warnings
            .iter()
            .map(ToString::to_string)
            .chain(spec.notes.iter().cloned())
            .chain(spec.ignored_flags(opening))
            .collect(),
        temp: spec.confinement.temp.clone(),
    }
}

/// The events of these records, read from the end.
fn read_range(
    directory: &Path,
    session: &SessionId,
    records: Range<u64>,
) -> Result<Vec<NumberedEvent>, String> {
    let mut shown = Vec::new();
    let mut before = records.end;
    while before > records.start.max(1) {
        let most = usize::try_from(before - records.start).unwrap_or(usize::MAX);
        let mut page = journal::page(directory, before, most, Some).map_err(|e| chain(&e))?;
        // A page is shorter where its texts are long.
        let Some(first) = page.first() else { break };
        before = first.seq;
        page.retain(|entry| entry.seq >= records.start);
        shown.push(page);
    }
    let entries = shown.into_iter().rev().flatten();
    let mut shown = ShownEvents::of(session);
    Ok(entries.filter_map(|entry| shown.next(entry)).collect())
}

fn refuse(client: &ActorRef<ClientMsg>, message: String) {
    let kind = RequestFailure::Disk;
    let _ = client.send_message(ClientMsg::Send(ToClient::Failed { kind, message }));
}
