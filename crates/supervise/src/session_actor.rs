//! The session actor: owns one session's journal, its workers, its calls and its attached clients.
//!
//! This file creates the actor, dispatches its messages and carries out the router's steps (`route`
//! decides where each message of a worker goes). The state is in `state`; the files beside it each hold
//! one part of the actor's work:
//!
//! | File | Work |
//! |---|---|
//! | `records` | journal records: on disk first, then shown |
//! | `calls`, `unjudged` | calls, and those without a verdict |
//! | `call_facts`, `configured_calls`, `rights` | what a call may do: from its arguments and the session |
//! | `questions`, `answers` | what waits for a person; questions put and answers taken |
//! | `hook_events` | hooks at questions, at notifications and at the end |
//! | `reserve` | the next command's runner, started while the model thinks |
//! | `tasks`, `sub_agents` | sub-agents, and the work of a sub-agent's session; the flows that span both |
//! | `links`, `workers` | the processes that serve the session, and what waits while one is away |
//! | `fleet` | the lease of a session that works for a fleet |
//! | `services`, `jobs` | what the conversation does not wait for: commands, sub-agents, MCP servers; its messages |
//! | `service_messages` | the steps of servers and commands, carried out |
//! | `clients`, `client_messages`, `process_rows` | attached clients, their messages, the rows of `agentd ps` |
//! | `joins`, `backlog` | a client that joins; the journal, sent to a new client |
//! | `typed_prompt` | a prompt as it was typed, with all that it refers to |
//! | `new_setting`, `pinning` | the check of a changed setting, and of a pinned file |
//! | `models`, `fallback` | the models that may be used, and the one after a request that failed |
//! | `wishes` | prompts and changed settings, carried out |
//! | `quiesce`, `idle_session`, `shutdown` | pauses, the end of an idle session, the end |
//! | `tampered_files` | changed protected files |

mod answers;
mod args;
mod backlog;
mod call_facts;
mod calls;
mod client_messages;
mod clients;
mod configured_calls;
mod context;
mod fallback;
mod fleet;
mod hook_events;
mod idle_session;
mod jobs;
mod joins;
mod left_out;
mod links;
mod models;
mod new_setting;
mod pinning;
mod process_rows;
mod questions;
mod quiesce;
mod records;
mod request_images;
mod reserve;
mod rights;
mod service_messages;
mod services;
mod shutdown;
mod state;
mod sub_agents;
mod tampered_files;
mod tasks;
mod turn_rules;
mod typed_prompt;
mod unjudged;
mod wishes;
mod workers;

pub(crate) use args::{OpenTurnGrants, OpenedJournal, OpenedTasks, SessionArgs, WaitingWishes};

use crate::fleet_seat::HeldLease;
use crate::journal_writer::JournalWriter;
use crate::messages::{BrokerToSession, CallToSession, RootToSession, SessionMsg, SessionTimer};
use crate::records::encode;
use crate::route::{RouteStep, Router, is_progress};
use crate::worker::actor::{WorkerActor, WorkerArgs, WorkerEvent, WorkerMsg};
use crate::worker_ref::WorkerRef;
use call::CallInput;
use launch::log_lines;
use launch::spawner::{Spawner, WorkerKind};
use launch::timeouts::WorkerTimeouts;
use models::{Recording, put_present_model};
use new_setting::{begin_turn_model, end_turn_model};
use process_rows::describe;
use protocol::broker::ToBroker;
use protocol::client::ClientEvent;
use protocol::provider::{ProviderLink, ToProvider};
use protocol::session::{SessionEvent, SessionLink, ToSession};
use protocol::store::{StoreLink, ToStore};
use questions::Questions;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use setup::session_spec::{SessionSpec, tool_kind};
use setup::settings::LayerName;
use state::{
    Closing, SessionActorState, SessionCalls, SessionClients, SessionJournal, SessionLinks,
    SessionResources, SessionTasks, SessionTimers, SessionTurn, SessionWorkers,
};
use std::sync::Arc;
use std::time::Duration;
use tasks::OwnPlace;
use tokio::sync::OwnedSemaphorePermit;
use turn_rules::{rules, turn_rules};

/// How long the end of a session waits for its last journal record. With a slower disk the open turn
/// counts as cut short.
const CLOSING: Duration = Duration::from_secs(1);

/// The actor.
pub(crate) struct SessionActor;

impl Actor for SessionActor {
    type Msg = SessionMsg;
    type State = SessionActorState;
    type Arguments = SessionArgs;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        args: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let SessionArgs {
            plan,
            caches,
            private,
            opened,
            passed_fds,
            identity,
            spawner,
            times,
            written,
            broker,
            audit,
            root,
            fleet,
        } = args;
        let lease = fleet.map(|seated| fleet::listen(&myself, seated));
        let spawner = spawner.with_env(&plan.worker_env).with_web_env(&plan.proxy_variables());
        broker.send(rules(&plan));
        let (store, _) = WorkerActor::<StoreLink>::spawn_linked(
            None,
            WorkerActor::new(),
            worker_args(WorkerKind::Store, &plan, &spawner, times, &myself, SessionMsg::Store),
            myself.get_cell(),
        )
        .await?;
        let (conversation, _) = WorkerActor::<SessionLink>::spawn_linked(
            None,
            WorkerActor::new(),
            worker_args(
                WorkerKind::Session,
                &plan,
                &spawner,
                times.replaying(),
                &myself,
                SessionMsg::Conversation,
            ),
            myself.get_cell(),
        )
        .await?;
        let (provider, _) = WorkerActor::<ProviderLink>::spawn_linked(
            None,
            WorkerActor::new(),
            worker_args(
                WorkerKind::Provider,
                &plan,
                &spawner,
                times,
                &myself,
                SessionMsg::Provider,
            ),
            myself.get_cell(),
        )
        .await?;
        let last_seq = opened.journal.last_seq();
        let own = OwnPlace {
            session: plan.id.clone(),
            agent: plan.task().map(|task| task.agent.clone()).unwrap_or_default(),
            directory: opened.directory.clone(),
        };
        let mut state = SessionActorState {
            own: myself,
            root,
            audit,
            resources: SessionResources {
                caches,
                _private: private,
                lock: opened.hold,
                passed_fds,
                identity,
                spawner,
                times,
                written,
            },
            journal: SessionJournal {
                writer: JournalWriter::new(opened.journal, lease.clone()),
                directory: opened.directory,
                last_seq,
            },
            workers: SessionWorkers {
                conversation: WorkerRef::new(conversation),
                provider: WorkerRef::new(provider),
                store: WorkerRef::new(store),
                broker,
            },
            links: SessionLinks::none_yet(),
            calls: SessionCalls::new(
                &plan,
                (opened.file_versions, opened.tampered),
                HeldLease::of(lease),
            ),
            clients: SessionClients::none_yet(plan.id.clone()),
            questions: Questions::resumed(opened.pending_questions),
            turn: SessionTurn {
                router: Router::resumed(opened.turns, opened.last, opened.cut_short)
                    .with_queue(opened.waiting.queue)
                    .with_compact(opened.waiting.compact),
                pauses: 0,
                next_audience: None,
            },
            timers: SessionTimers::default(),
            tasks: SessionTasks::resumed(opened.tasks.left, own),
            closing: Closing::default(),
            spec: plan,
        };
        state.start_reserve().await?;
        state.limit_instructions_wait(&state.own);
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SessionMsg::Conversation(event) => state.on_conversation_event(&myself, event).await,
            SessionMsg::Provider(event) => state.on_provider_event(&myself, event).await,
            SessionMsg::Store(event) => state.on_store_event(&myself, event).await,
            SessionMsg::Broker(message) => state.on_broker_msg(&myself, message).await,
            SessionMsg::Call(message) => state.on_call_msg(&myself, message).await,
            SessionMsg::Client(message) => state.on_client_msg(&myself, message).await,
            SessionMsg::Root(message) => state.on_root_msg(&myself, message).await,
            SessionMsg::Timer(timer) => state.on_timer(&myself, timer).await,
            SessionMsg::Task(message) => state.on_task_msg(message).await,
            SessionMsg::Fleet(event) => state.on_fleet_event(&myself, event),
            SessionMsg::ReplayFailed(why) => state.enter_read_only(why).await,
        }
        Ok(())
    }

    /// The messages of a child report its end. The session goes on when a child ends.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(_, error) = event {
            tracing::error!(session = %state.spec.id, %error, "an actor of the session failed");
            // Senders wait in vain for its answers. Opening the session again closes its open calls.
            state.enter_read_only(format!("a part of it failed: {error}")).await;
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        // Records that the supervisor ended the open turn; without it, the turn would count as cut
        // short by a death.
        if state.turn.router.turn_is_open() {
            let written = state.record(vec![encode::closed()]);
            let _ = tokio::time::timeout(CLOSING, written).await;
        }
        state.tasks.own.end().await;
        let timers = [state.timers.ping.take(), state.links.provider.timer_over()];
        for timer in timers.into_iter().flatten() {
            timer.abort();
        }
        state.workers.broker.send(ToBroker::EndSession(state.spec.id.clone()));
        for done in state.closing.asked.drain(..) {
            let _ = done.send(());
        }
        Ok(())
    }
}

impl SessionActorState {
    async fn on_broker_msg(&mut self, myself: &ActorRef<SessionMsg>, message: BrokerToSession) {
        match message {
            BrokerToSession::Verdict(call, verdict) => {
                self.on_verdict(myself, call, *verdict).await
            }
            BrokerToSession::Replied(replied) => self.on_replied(myself, *replied).await,
            BrokerToSession::AnswerRejected(call, reason) => {
                self.on_answer_rejected(&call, &reason);
            }
            BrokerToSession::Back(generation) => self.on_broker_back(generation),
            BrokerToSession::Failed(why) => self.on_broker_failed(why),
        }
    }

    async fn on_call_msg(&mut self, myself: &ActorRef<SessionMsg>, message: CallToSession) {
        match message {
            CallToSession::BackUp { call, tool, what, done } => {
                self.back_up(call, tool, what, done);
            }
            CallToSession::Record { records, done } => {
                self.questions.close_recorded(&self.spec.id, &records);
                let _ = done.send(self.record_aside(records).await);
            }
            CallToSession::Show(event) => {
                if let ClientEvent::Started { enforced, .. } = &event {
                    self.calls.tier = enforced.of_command().unwrap_or(self.calls.tier);
                    self.show_left_out(&enforced.left_out);
                }
                self.show(&event);
            }
            CallToSession::Asked(question) => self.on_question(question),
            CallToSession::Slow(call) => self.calls.is_slow(&call),
            CallToSession::Detached(detached) => self.on_detached(myself, detached).await,
            CallToSession::NetworkMoved { call, network } => {
                self.calls.services.network_moved(call, network);
            }
            CallToSession::ServerSays { call, said } => {
                self.on_server_says(call.number, said).await;
            }
            CallToSession::AskJob { request, from } => {
                self.calls.ask_job(request, from, &self.spec);
            }
            CallToSession::AskServer { request, from } => {
                self.calls.ask_server(request, from, &self.spec);
            }
            CallToSession::Protected { call, news } => self.on_protected(&call, news).await,
            CallToSession::Finished(call) => self.on_call_finished(myself, *call).await,
        }
    }

    async fn on_root_msg(&mut self, myself: &ActorRef<SessionMsg>, message: RootToSession) {
        match message {
            RootToSession::Join(mut request) => {
                self.exchange_bounds();
                self.wait_for_left_tasks(myself).await;
                match request.task.take() {
                    Some(task) => self.join_task(myself, *request, task).await,
                    None => self.join(*request),
                }
            }
            RootToSession::Retire => self.retire(myself),
            RootToSession::Restart(reply) => {
                let _ = reply.send(self.restart());
            }
            RootToSession::Describe(reply) => describe(&self.workers, &self.calls, reply),
            RootToSession::Summarize(reply) => {
                let _ = reply.send(self.summary());
            }
            RootToSession::Pause(reply) => {
                let _ = reply.send(self.pause());
            }
            RootToSession::Resume => self.resume(myself).await,
            RootToSession::Close(ending, done) => self.close(myself, ending, done),
            #[cfg(test)]
            RootToSession::Fail => panic!("a test wants it to fail"),
        }
    }

    async fn on_timer(&mut self, myself: &ActorRef<SessionMsg>, timer: SessionTimer) {
        match timer {
            SessionTimer::Ping => self.ping_workers(myself),
            SessionTimer::ProviderIdle => self.on_provider_idle(),
            SessionTimer::InstructionsTimeout => self.on_instructions_settled(myself).await,
            SessionTimer::Idle { turns } => self.on_idle(turns),
            SessionTimer::EndHooks => self.end_hooks_over(myself),
            SessionTimer::ServerDue(at) => self.servers_due([at]),
        }
    }

    /// Carries out the steps of a provider's message. The permit goes along with the message for the
    /// conversation: the provider is read on once the conversation has taken that message, so a fast
    /// stream never fills the conversation's queue.
    async fn forward_to_conversation(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        steps: Vec<RouteStep>,
        permit: OwnedSemaphorePermit,
    ) {
        let mut permit = Some(permit);
        for step in steps {
            match (step, permit.take()) {
                (RouteStep::ToSession(message), Some(permit)) => {
                    self.workers.conversation.forward(vec![message], permit);
                }
                (step, unused) => {
                    permit = unused;
                    self.carry_out(myself, vec![step]).await;
                }
            }
        }
    }

    async fn carry_out(&mut self, myself: &ActorRef<SessionMsg>, steps: Vec<RouteStep>) {
        for step in steps {
            match step {
                RouteStep::Record(happened) => {
                    let progress = is_progress(&happened);
                    let answered = matches!(happened, SessionEvent::Answer { .. });
                    let ended = matches!(happened, SessionEvent::TurnEnded { .. });
                    let allow = turn_rules(&happened);
                    let record = match self.calls.unjudged.take_in(&happened) {
                        Some((call, result)) => self.audited(&call, result).await,
                        None => encode::session_event(happened, tool_kind),
                    };
                    if self.record(vec![record]).await.is_err() {
                        // Nothing after it may happen: the disk is first.
                        return;
                    }
                    let now = &self.spec.settings().layer(LayerName::Turn).rules;
                    if let Some(allow) = allow.filter(|allow| allow != now) {
                        self.spec.change_settings(|settings| settings.set_turn_rules(allow));
                        self.workers.broker.send(rules(&self.spec));
                    }
                    if progress {
                        let _ = self
                            .workers
                            .conversation
                            .actor()
                            .send_message(WorkerMsg::ResetFailures);
                    }
                    if answered {
                        let _ =
                            self.workers.provider.actor().send_message(WorkerMsg::ResetFailures);
                    }
                    if ended {
                        let steps = end_turn_model(&mut self.spec);
                        self.carry_out_settings(steps);
                        self.tasks.own.answer().await;
                        self.show_failed_workers();
                        self.notify_if_idle_later();
                    }
                }
                RouteStep::ToSession(message) => {
                    let recording = Recording::of(&self.resources.passed_fds);
                    let steps = begin_turn_model(&mut self.spec, &message, recording).await;
                    self.carry_out_settings(steps);
                    self.send_conversation(message);
                }
                RouteStep::ToProvider(ToProvider::Ask(_))
                    if !self.links.failures.has_provider() =>
                {
                    let steps =
                        self.turn.router.provider_gone("has failed and is not started again");
                    Box::pin(self.carry_out(myself, steps)).await;
                }
                RouteStep::ToProvider(mut message) => {
                    let thinks = matches!(message, ToProvider::Ask(_));
                    put_present_model(&self.spec, &mut message);
                    self.send_provider(message).await;
                    if thinks {
                        self.prepare_reserve();
                    }
                }
                RouteStep::StartCall(call, place, answerer, note) => {
                    self.start_call(myself, call, place, answerer, note).await;
                }
                RouteStep::StatPinned { check, files } => {
                    let project = self.spec.confinement.project.to_path();
                    pinning::stat(self.workers.conversation.clone(), project, check, files);
                }
                RouteStep::HooksEnded { event, call, refusal } => {
                    self.on_hooks_ended(myself, event, call, refusal);
                }
                RouteStep::CancelCall(call) => self.calls.send(&call, CallInput::Cancel),
                RouteStep::CancelCalls => {
                    self.calls
                        .foreground()
                        .for_each(|call| self.calls.send(call, CallInput::Cancel));
                }
                RouteStep::Show(event) => self.show(&event),
                RouteStep::ReportContext(report) => self.clients.report_context(&Ok(report)),
                RouteStep::Log(worker, line) => log_lines::write(worker, &self.spec.id, &line),
            }
        }
    }

    /// Pings the workers while a turn is open. An idle session wakes no process up.
    fn ping_workers(&mut self, myself: &ActorRef<SessionMsg>) {
        self.timers.ping = None;
        if !self.turn.router.is_busy() || self.degraded().is_some() {
            return;
        }
        self.workers.conversation.ping(ToSession::Ping(0));
        self.workers.provider.ping(ToProvider::Ping(0));
        self.workers.broker.ping(ToBroker::Ping(0));
        self.workers.store.ping(ToStore::Ping(0));
        self.ping_later(myself);
    }

    fn ping_later(&mut self, myself: &ActorRef<SessionMsg>) {
        if self.timers.ping.is_none() {
            let later = myself
                .send_after(self.resources.times.ping, || SessionMsg::Timer(SessionTimer::Ping));
            self.timers.ping = Some(later.abort_handle());
        }
    }
}

/// Arguments of one of the session's workers, whose events become messages of the session.
fn worker_args<L: protocol::Link + 'static>(
    worker: WorkerKind,
    spec: &SessionSpec,
    spawner: &Spawner,
    times: WorkerTimeouts,
    session: &ActorRef<SessionMsg>,
    message: fn(WorkerEvent<L>) -> SessionMsg,
) -> WorkerArgs<L> {
    let session = session.clone();
    WorkerArgs {
        kind: worker,
        session: Some(spec.id.clone()),
        spawner: spawner.clone(),
        timeouts: times,
        on_event: Arc::new(move |event| {
            let _ = session.send_message(message(event));
        }),
    }
}
