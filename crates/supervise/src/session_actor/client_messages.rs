//! The messages of clients, how they join a session and attach to it, and what all of them are shown. `clients`
//! knows who is attached, `joins` who may join, and `backlog` reads what a client has missed.

use super::clients::{Attaching, WaitingPrompt, tell};
use super::joins::{AudienceFrom, SessionUse, check_join, opened_message};
use super::new_setting::{change_audience, model_event};
use super::state::SessionActorState;
use crate::messages::{AttachRequest, ClientMsg, ClientToSession, OpenRequest, SessionSummary};
use crate::session_page::{PageRequest, send_page};
use protocol::client::{ClientEvent, SessionQuery, SessionStatus, SessionWish, ToClient};
use protocol::judgement::Audience;
use ractor::ActorRef;

impl SessionActorState {
    pub(super) async fn on_client_msg(&mut self, message: ClientToSession) {
        if let ClientToSession::Attach(_)
        | ClientToSession::Prompt { .. }
        | ClientToSession::Query { query: SessionQuery::Servers, .. } = &message
        {
            let logged_in = self.calls.services.servers.logged_in(&self.spec);
            self.servers_due(logged_in);
        }
        match message {
            ClientToSession::Attach(wanted) => self.attach(wanted).await,
            ClientToSession::Detach(client) => {
                self.remove_client(&client);
                self.retire_if_unused();
            }
            ClientToSession::Page { client, before, most } => {
                let page = PageRequest { session: self.spec.id.clone(), before, most };
                send_page(self.events.directory().to_owned(), page, client);
            }
            ClientToSession::Query { client, query } => self.query(client, query).await,
            ClientToSession::Prompt { client, text, form } => {
                self.prompt(WaitingPrompt { client, text, form }).await;
            }
            ClientToSession::TakeBack(client) => self.take_back(&client, None).await,
            ClientToSession::Withdraw { client, text } => {
                self.take_back(&client, Some(&text)).await;
            }
            ClientToSession::Change { client, change, by } => {
                self.change(&client, change, &by).await;
            }
            ClientToSession::Answer(answer) => self.answer(answer),
            ClientToSession::Interrupt => {
                let steps = self.turn.router.interrupt();
                self.carry_out(steps).await;
            }
            ClientToSession::Wish(SessionWish::Compact { focus }) => {
                let steps = self.turn.router.compact(focus);
                self.carry_out(steps).await;
            }
            ClientToSession::Wish(SessionWish::EditSummary(summary)) => {
                let steps = self.turn.router.edit_summary(summary);
                self.carry_out(steps).await;
            }
            ClientToSession::Wish(SessionWish::Background) => {
                let tasks = &self.sub_agents;
                if let Err(why) = self.calls.detach(|call| tasks.has(call)) {
                    self.events.show_notice(why);
                }
            }
        }
    }

    async fn query(&mut self, client: ActorRef<ClientMsg>, query: SessionQuery) {
        match query {
            SessionQuery::Changes { since } => self.workers.store.fetch_changes(client, since),
            SessionQuery::Context => self.describe_context(client).await,
            SessionQuery::Servers => {
                let failed = self.calls.services.servers.tried_again();
                self.servers_due(failed);
                let servers = self.calls.services.report_servers(self.spec.servers());
                tell(&client, ToClient::Servers { session: self.spec.id.clone(), servers });
            }
        }
    }

    /// Answers a client that asked for this session. Papers replace older ones of their kind, so that a key is
    /// there again.
    pub(super) fn join(&mut self, request: OpenRequest) {
        let OpenRequest { opening, passed_fds, client, reply, task: _ } = request;
        match check_join(&self.spec, &opening, self.present_use()) {
            Err(failure) => {
                let _ = reply.send(Err(failure));
                return;
            }
            Ok(AudienceFrom::NextTurn) => self.turn.next_audience = Some(opening.audience),
            Ok(AudienceFrom::Now) => self.set_audience(opening.audience),
            Ok(AudienceFrom::Already) => {}
        }
        self.workers.provider.pass(passed_fds);
        // One of them may be what a server waits for.
        self.servers_due(0..self.spec.servers().len());
        let message =
            opened_message(&self.spec, (self.calls.cages.tier(), self.events.last_seq()), &opening);
        // A client that has disconnected gets no answer.
        if reply.send(Ok((self.own.clone(), message))).is_ok() {
            self.events.clients.expects(client);
        }
    }

    fn present_use(&self) -> SessionUse {
        match (self.turn.router.must_queue(), self.events.clients.any_attached()) {
            (true, _) => SessionUse::Works,
            (false, true) => SessionUse::Watched,
            (false, false) => SessionUse::Unused,
        }
    }

    /// A turn is open, a prompt waits, or a client is attached.
    pub(super) fn is_used(&self) -> bool {
        self.present_use() != SessionUse::Unused
    }

    /// Who can be asked from now on.
    pub(super) fn set_audience(&mut self, audience: Audience) {
        self.turn.next_audience = None;
        let steps = change_audience(&mut self.spec, audience);
        self.carry_out_settings(steps);
    }

    /// Sends a client its backlog, and every event from then on.
    async fn attach(&mut self, wanted: AttachRequest) {
        match self.events.prepare(wanted, &self.own).await {
            Attaching::Now { wanted, missed } => {
                let asked = self.questions.shown().cloned();
                let asked = asked.map(|question| ClientEvent::Asked { question });
                let texts = self.turn.router.queued_texts();
                let queue = (!texts.is_empty()).then_some(ClientEvent::Queue { texts });
                let present = asked.chain(queue).chain([model_event(&self.spec)]).collect();
                let notes = &self.spec.texts.instruction_notes;
                self.events.attach(wanted, missed, present, notes);
            }
            Attaching::Gone(client) => self.remove_client(&client),
            Attaching::NotNow => {}
        }
    }

    /// A client sees nothing more, or has gone before it saw anything.
    fn remove_client(&mut self, client: &ActorRef<ClientMsg>) {
        self.workers.store.forget_client(client.get_id());
        self.events.clients.leaves(client);
    }

    pub(super) fn summary(&self) -> SessionSummary {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let (asking, commands) = (self.questions.waiting(), self.calls.services.commands_count());
        let state = match self.events.degraded() {
            Some(why) => SessionStatus::Degraded(why),
            None if asking > 0 => SessionStatus::Asking(count(asking)),
            None if self.turn.router.is_busy() => SessionStatus::Working,
            None if commands > 0 => SessionStatus::Background(count(commands)),
            None => match self.turn.router.cut_short() {
                Some(deaths) => SessionStatus::IdleCutShort(deaths.to_string()),
                None => SessionStatus::Idle,
            },
        };
        let clients = count(self.events.clients.attached_count());
        SessionSummary { state, clients, turns: self.turn.router.turns() }
    }
}
