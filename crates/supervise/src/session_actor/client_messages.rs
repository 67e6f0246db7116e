//! The messages of clients, how they join a session and attach to it, and what all of them are shown. `clients`
//! knows who is attached, `joins` who may join, and `backlog` reads what a client has missed.

use super::clients::{Attaching, WaitingPrompt, fail, tell};
use super::joins::{AudienceFrom, check_join, opened_message};
use super::new_setting::{change_audience, model_event};
use super::ports::{Ports, WantedPort};
use super::state::SessionActorState;
use super::usage::{Keeper, SessionNow};
use super::waiting_prompts;
use crate::messages::{AttachRequest, ClientMsg, ClientToSession, OpenRequest};
use crate::person_prompt::PersonPrompt;
use crate::route::Router;
use crate::session_page::{PageRequest, send_page};
use protocol::client::{ClientEvent, SessionQuery, SessionWish, ToClient};
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
                let page = PageRequest { session: self.spec.id().clone(), before, most };
                send_page(self.events.directory().to_owned(), page, client);
            }
            ClientToSession::Query { client, query } => self.query(client, query).await,
            ClientToSession::Prompt { client, text, form, busy } => {
                self.prompt(WaitingPrompt { client, text, form, busy }).await;
            }
            ClientToSession::TakeBack(client) => {
                waiting_prompts::take_back(self, &client, None).await
            }
            ClientToSession::Withdraw { client, text } => {
                waiting_prompts::take_back(self, &client, Some(&text)).await;
            }
            ClientToSession::Change { client, change, by } => {
                self.change(&client, change, &by).await;
            }
            ClientToSession::Answer(answer) => self.answer(answer),
            ClientToSession::Interrupt => self.route(Router::interrupt).await,
            ClientToSession::Wish { client, wish, by } => self.wish(&client, wish, by).await,
        }
    }

    async fn wish(&mut self, client: &ActorRef<ClientMsg>, wish: SessionWish, by: String) {
        match wish {
            SessionWish::Compact { focus } => self.route(|router| router.compact(focus)).await,
            SessionWish::EditSummary(summary) => {
                self.route(|router| router.edit_summary(summary)).await;
            }
            SessionWish::Background => {
                let tasks = &self.sub_agents;
                if let Err(why) = self.calls.detach(|call| tasks.has(call)) {
                    self.events.show_notice(why);
                }
            }
            SessionWish::Run { command } => {
                self.run_typed(client, PersonPrompt::typed(command, by)).await
            }
            SessionWish::OpenPort { port, call } => {
                let (services, opened) = (&self.calls.services, &mut self.calls.ports);
                let wanted = WantedPort { port, call, by };
                let (session, audit) = (self.spec.id(), &self.resources.audit);
                Ports { session, services, opened, audit, events: &self.events }
                    .open(client, wanted)
                    .await;
            }
            SessionWish::StopCall { call } => match self.calls.stop(&self.call_id(call)) {
                Ok(()) => self.events.show_notice(format!("{by} asks to stop call {call}")),
                Err((kind, why)) => fail(client, kind, why),
            },
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
                tell(&client, ToClient::Servers { session: self.spec.id().clone(), servers });
            }
        }
    }

    /// Answers a client that asked for this session. Papers replace older ones of their kind, so that a key is
    /// there again.
    pub(super) fn join(&mut self, request: OpenRequest) {
        let OpenRequest { opening, passed_fds, client, reply, task: _ } = request;
        match check_join(&self.spec, &opening, self.now().present_use()) {
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
                let waiting = self.turn.router.waiting_texts();
                let queue = (!waiting.is_empty()).then_some(ClientEvent::Queue { waiting });
                let present = asked.chain(queue).chain([model_event(&self.spec)]).collect();
                let notes = self.spec.instruction_notes();
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

    /// The present use of the session.
    pub(super) fn now(&self) -> SessionNow {
        SessionNow {
            degraded: self.events.degraded(),
            is_on_disk: self.events.failures.disk().is_none(),
            asking: self.questions.waiting(),
            calls: self.calls.foreground().count(),
            commands: self.calls.services.commands_count(),
            is_busy: self.turn.router.is_busy(),
            must_queue: self.turn.router.must_queue(),
            cut_short: self.turn.router.cut_short().map(ToString::to_string),
            turns: self.turn.router.turns(),
            clients: self.events.clients.attached_count(),
            expects_clients: self.events.clients.any_expected(),
            is_awaited: self.events.own_task.is_awaited(),
            ends: self.closing.has_begun(),
            keeper: Keeper::of(&self.spec, self.turn.next_audience),
        }
    }
}
