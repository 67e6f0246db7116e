//! The session actor: owns one session's journal, its workers, its calls and its attached clients.
//!
//! This file creates the actor, dispatches its messages, carries out the router's steps (`route` decides where each
//! message of a worker goes), and ends the session. The state is in `state`. Each of its parts has an
//! owner with private fields, and no other code changes that part:
//!
//! | State | Owner |
//! |---|---|
//! | the journal, attached clients, a parent that waits, failures | `events`, with `records`, `clients`, `tasks` and `failures` |
//! | the conversation, the provider, the store, and what waits while one is away; pings | `links` |
//! | running calls, and the lease of a fleet under which they run | `running_calls` |
//! | all calls, those that end without a verdict, and facts that outlast them | `session_calls`, `unjudged` |
//! | commands, sub-agents and MCP servers that the conversation does not wait for | `services` |
//! | the next command's runner, started while the model thinks | `reserve` |
//! | changed protected files | `tampered_files` |
//! | the cages of commands, as clients know them | `cages` |
//! | what waits for a person | `questions` |
//! | sub-agents | `tasks` |
//! | the end of the session, and pauses | `shutdown` |
//!
//! These files have the actor's work that concerns several of them:
//!
//! | File | Work |
//! |---|---|
//! | `workers` | events of the processes that serve the session |
//! | `calls` | calls, from the proposal to the result |
//! | `answers` | questions put and answers taken, "always allow" rules, approved plans |
//! | `sub_agents` | the start and the end of sub-agents, and of a sub-agent's own work |
//! | `service_messages` | the steps of servers and commands, carried out |
//! | `client_messages` | attached clients and their messages |
//! | `wishes` | prompts and changed settings, carried out |
//!
//! The others decide or read. Of the session they change nothing, but for the settings, in `new_setting`:
//!
//! | File | Work |
//! |---|---|
//! | `call_facts`, `configured_calls`, `rights` | what a call may do: from its arguments and the session |
//! | `hook_events` | hooks at questions, at notifications and at the end |
//! | `usage` | the session's state for people, and its reasons to stay open |
//! | `jobs` | the messages of calls in the background and of MCP servers |
//! | `joins`, `typed_prompt`, `new_setting` | a client that joins, a prompt with all that it refers to, a changed setting |
//! | `models`, `fallback`, `turn_rules` | the models that may be used, the one after a failed request, the rules of a turn |
//! | `request_images`, `pinning` | images of a request, pinned files |
//! | `backlog`, `process_rows` | the journal for a new client, the rows of `agentd ps` |
//! | `fleet` | the lease of a session that works for a fleet |

mod answers;
mod args;
mod asked_ahead;
mod backlog;
mod cages;
mod call_facts;
mod calls;
mod client_messages;
mod clients;
mod configured_calls;
mod effect_reach;
mod events;
mod failures;
mod fallback;
mod fleet;
mod hook_events;
mod jobs;
mod joins;
mod links;
mod models;
mod new_setting;
mod pinning;
mod ports;
mod process_rows;
mod questions;
mod records;
mod request_images;
mod reserve;
mod resources;
mod rights;
mod running_calls;
mod service_messages;
mod services;
mod session_calls;
mod shutdown;
mod state;
mod sub_agents;
mod tampered_files;
mod tasks;
mod turn_rules;
mod typed_prompt;
mod unjudged;
mod usage;
mod waiting_prompts;
mod wishes;
mod workers;

pub(crate) use args::{OpenTurnGrants, OpenedJournal, OpenedTasks, SessionArgs, WaitingWishes};

use crate::fleet_seat::FleetEvent;
use crate::journal_writer::JournalWriter;
use crate::messages::{
    CallMsg, CallToSession, Lifetime, RootMsg, RootToSession, SessionMsg, SessionTimer,
};
use crate::records::encode;
use crate::reserve_actor::ReserveArgs;
use crate::route::{RouteStep, Router, is_progress};
use cages::KnownCages;
use call::CallInput;
use events::SessionEvents;
use launch::log_lines;
use links::{Starting, Workers};
use models::{Recording, put_present_model};
use new_setting::{begin_turn_model, end_turn_model};
use ports::OpenedPorts;
use process_rows::describe;
use protocol::broker::ToBroker;
use protocol::client::{ClientEvent, DetachReason, SessionEnding};
use protocol::provider::ToProvider;
use protocol::session::SessionEvent;
use questions::Questions;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use records::SessionJournal;
use reserve::Reserve;
use resources::SessionResources;
use running_calls::RunningCalls;
use services::Services;
use session_calls::SessionCalls;
use setup::session_spec::tool_kind;
use setup::settings::LayerName;
use shutdown::{Closing, EndWanted, Rest};
use state::{SessionActorState, SessionTurn};
use std::time::Duration;
use tampered_files::TamperedFiles;
use tasks::{OwnPlace, OwnTask, SubAgents};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use turn_rules::{rules, turn_rules};
use unjudged::Unjudged;

/// How long the conversation waits for the project's instructions. The store reads them in
/// milliseconds; on an overloaded machine they are sent later.
const INSTRUCTIONS: Duration = Duration::from_secs(2);
/// How long the end of a session waits for its last journal record. With a slower disk the open turn
/// counts as cut short.
const CLOSING: Duration = Duration::from_secs(1);
/// All hooks of the end together have this time, of the ten seconds that a shutdown takes at most.
const END_HOOKS: Duration = Duration::from_secs(4);

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
        let spawner = spawner.with_env(plan.worker_env()).with_web_env(&plan.proxy_variables());
        broker.send(rules(&plan));
        let workers = Workers::start(
            Starting { spec: &plan, spawner: &spawner, session: &myself, times },
            broker,
            passed_fds,
        )
        .await?;
        let reserve = ReserveArgs {
            session: plan.id().clone(),
            hello: times.hello,
            idle: Duration::from_millis(plan.config().daemon.idle_reserve_ms),
            lock: opened.hold.clone(),
            overlays: caches.as_ref().map(|caches| caches.overlays.clone()),
            spawner: spawner.clone(),
        };
        let calls = SessionCalls {
            running: RunningCalls::under(lease.clone()),
            services: Services::none_yet(plan.servers().len()),
            ports: OpenedPorts::default(),
            reserve: Reserve::start(reserve, &myself).await?,
            unjudged: Unjudged::none_yet(audit.clone()),
            file_versions: opened.file_versions,
            tampered: TamperedFiles::resumed(opened.tampered),
            cages: KnownCages::at_first(plan.confinement().highest_tier, plan.left_out()),
        };
        let last_seq = opened.journal.last_seq();
        let own = OwnPlace {
            session: plan.id().clone(),
            agent: plan.task().map(|task| task.agent.clone()).unwrap_or_default(),
            directory: opened.directory.clone(),
        };
        let writer = JournalWriter::new(opened.journal, lease);
        let journal = SessionJournal::of(writer, opened.directory, last_seq);
        let events = SessionEvents::of(plan.id().clone(), journal, OwnTask::at(own));
        // The conversation begins without the instructions after a while.
        myself.send_after(INSTRUCTIONS, || SessionMsg::Timer(SessionTimer::InstructionsTimeout));
        Ok(SessionActorState {
            own: myself,
            root,
            resources: SessionResources {
                audit,
                caches,
                _private: private,
                lock: opened.hold,
                identity,
                spawner,
                times,
                written,
            },
            events,
            workers,
            calls,
            questions: Questions::resumed(opened.pending_questions),
            turn: SessionTurn {
                router: Router::resumed(opened.turns, opened.last, opened.cut_short)
                    .with_queue(waiting_prompts::reopened(opened.waiting.queue, &plan))
                    .with_typed(opened.turn.typed)
                    .with_compact(opened.waiting.compact),
                next_audience: None,
            },
            sub_agents: SubAgents::resumed(plan.id().clone(), opened.tasks.left),
            closing: Closing::not_yet(),
            spec: plan,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SessionMsg::Conversation(event) => state.on_conversation_event(event).await,
            SessionMsg::Provider(event) => state.on_provider_event(event).await,
            SessionMsg::Store(event) => state.on_store_event(event).await,
            SessionMsg::Broker(message) => state.on_broker_msg(message).await,
            SessionMsg::Call(message) => state.on_call_msg(message).await,
            SessionMsg::Client(message) => state.on_client_msg(message).await,
            SessionMsg::Root(message) => state.on_root_msg(message).await,
            SessionMsg::Timer(timer) => state.on_timer(timer).await,
            SessionMsg::Task(message) => state.on_task_msg(message).await,
            SessionMsg::Fleet(event) => state.on_fleet_event(event),
            SessionMsg::ReplayFailed(why) => state.events.enter_read_only(why).await,
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
            tracing::error!(session = %state.spec.id(), %error, "an actor of the session failed");
            // Senders wait in vain for its answers. Opening the session again closes its open calls.
            state.events.enter_read_only(format!("a part of it failed: {error}")).await;
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
            let written = state.events.record(vec![encode::closed()], &mut state.calls.running);
            let _ = tokio::time::timeout(CLOSING, written).await;
        }
        state.events.own_task.end().await;
        state.workers.stop_timers();
        state.workers.broker.send(ToBroker::EndSession(state.spec.id().clone()));
        for done in state.closing.is_over() {
            let _ = done.send(());
        }
        Ok(())
    }
}

impl SessionActorState {
    async fn on_call_msg(&mut self, message: CallToSession) {
        match message {
            CallToSession::BackUp { call, tool, what, done } => {
                self.workers.store.back_up(call, tool, what, done);
            }
            CallToSession::Record { records, done } => {
                self.questions.close_recorded(self.spec.id(), &records);
                let _ = done.send(self.events.record_aside(records).await);
            }
            CallToSession::Show(event) => {
                if let ClientEvent::Started { enforced, .. } = &event {
                    for text in self.calls.cages.enforced(enforced) {
                        self.events.show_notice(text);
                    }
                }
                self.events.show(&event);
            }
            CallToSession::Asked(question) => self.on_question(question),
            CallToSession::Slow(call) => self.calls.is_slow(&call),
            CallToSession::Detached(detached) => self.on_detached(detached).await,
            CallToSession::NetworkMoved { call, network } => {
                self.calls.network_moved(call, network);
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
            CallToSession::Finished(call) => self.on_call_finished(*call).await,
        }
    }

    async fn on_root_msg(&mut self, message: RootToSession) {
        match message {
            RootToSession::Join(mut request) => {
                self.exchange_bounds();
                self.wait_for_left_tasks().await;
                match request.task.take() {
                    Some(task) => self.join_task(*request, task).await,
                    None => self.join(*request),
                }
            }
            RootToSession::Retire => self.retire(),
            RootToSession::Restart(reply) => {
                let _ = reply.send(self.restart());
            }
            RootToSession::Describe(reply) => describe(&self.workers, &self.calls, reply),
            RootToSession::Summarize(reply) => {
                let _ = reply.send(self.now().summary());
            }
            RootToSession::Pause(reply) => {
                self.closing.pause();
                let _ = reply.send(self.now().summary());
            }
            RootToSession::Resume => {
                self.closing.resume();
                self.start_next_turn().await;
            }
            RootToSession::Close(ending, done) => self.close(ending, done),
            #[cfg(test)]
            RootToSession::Fail => panic!("a test wants it to fail"),
        }
    }

    async fn on_timer(&mut self, timer: SessionTimer) {
        match timer {
            SessionTimer::Ping => {
                // An idle session wakes no process up.
                let is_busy = self.turn.router.is_busy() && self.events.failures.takes_input();
                self.workers.ping_is_due();
                if is_busy {
                    self.workers.ping();
                    self.workers.ping_later();
                }
            }
            SessionTimer::ProviderIdle => self.workers.provider.is_idle(&self.turn.router),
            SessionTimer::InstructionsTimeout => self.on_instructions_settled().await,
            SessionTimer::Idle { turns } => {
                if self.turn.router.turns() == turns && !self.turn.router.is_busy() {
                    self.run_hooks(hook_events::idle());
                }
            }
            SessionTimer::EndHooks => self.end_hooks_over(),
            SessionTimer::ServerDue(at) => self.servers_due([at]),
        }
    }

    /// Carries out the steps of a provider's message. The permit goes along with the message for the
    /// conversation: the provider is read on once the conversation has taken that message, so a fast
    /// stream never fills the conversation's queue.
    async fn forward_to_conversation(
        &mut self,
        steps: Vec<RouteStep>,
        permit: OwnedSemaphorePermit,
    ) {
        let mut permit = Some(permit);
        for step in steps {
            match (step, permit.take()) {
                (RouteStep::ToSession(message), Some(permit)) => {
                    self.workers.conversation.forward(message, permit);
                }
                (step, unused) => {
                    permit = unused;
                    self.carry_out(vec![step]).await;
                }
            }
        }
    }

    /// Carries out the steps that the router decides on.
    async fn route(&mut self, decide: impl FnOnce(&mut Router) -> Vec<RouteStep>) {
        let steps = decide(&mut self.turn.router);
        self.carry_out(steps).await;
    }

    async fn carry_out(&mut self, steps: Vec<RouteStep>) {
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
                    if self.events.record(vec![record], &mut self.calls.running).await.is_err() {
                        // Nothing after it may happen: the disk is first.
                        return;
                    }
                    let now = &self.spec.settings().layer(LayerName::Turn).rules;
                    if let Some(allow) = allow.filter(|allow| allow != now) {
                        self.spec.change_settings(|settings| settings.set_turn_rules(allow));
                        self.workers.broker.send(rules(&self.spec));
                    }
                    if progress {
                        self.workers.conversation.made_progress();
                    }
                    if answered {
                        self.workers.provider.made_progress();
                    }
                    if ended {
                        let steps = end_turn_model(&mut self.spec);
                        self.carry_out_settings(steps);
                        asked_ahead::close(self);
                        self.events.own_task.answer().await;
                        self.events.show_failed_workers();
                        self.notify_if_idle_later();
                    }
                }
                RouteStep::ToSession(message) => {
                    let recording = Recording::of(self.workers.provider.passed_fds());
                    let steps = begin_turn_model(&mut self.spec, &message, recording).await;
                    self.carry_out_settings(steps);
                    self.workers.conversation.send(message);
                }
                RouteStep::ToProvider(ToProvider::Ask(_))
                    if !self.events.failures.has_provider() =>
                {
                    let steps =
                        self.turn.router.provider_gone("has failed and is not started again");
                    Box::pin(self.carry_out(steps)).await;
                }
                RouteStep::ToProvider(mut message) => {
                    let thinks = matches!(message, ToProvider::Ask(_));
                    put_present_model(&self.spec, &mut message);
                    let journal = self.events.directory();
                    for text in self.workers.provider.send(message, journal).await {
                        tracing::warn!(session = %self.spec.id(), "{text}");
                        self.events.show_notice(text);
                    }
                    if thinks {
                        self.prepare_reserve();
                    }
                }
                RouteStep::StartCall(call, place, answerer, note) => {
                    self.start_call(call, place, answerer, note).await;
                }
                RouteStep::AskAhead(call) => asked_ahead::ask(self, call).await,
                RouteStep::StatPinned { check, files } => {
                    let project = self.spec.confinement().project.to_path();
                    let conversation = self.workers.conversation.process().clone();
                    pinning::stat(conversation, project, check, files);
                }
                RouteStep::HooksEnded { event, call, refusal } => {
                    self.on_hooks_ended(event, call, refusal);
                }
                RouteStep::CancelCall(call) => self.calls.running.send(&call, CallInput::Cancel),
                RouteStep::CancelCalls => {
                    let running = &self.calls.running;
                    let foreground = self.calls.foreground();
                    foreground.for_each(|call| running.send(call, CallInput::Cancel));
                }
                RouteStep::Show(event) => self.events.show(&event),
                RouteStep::ReportContext(report) => self.events.clients.report_context(&Ok(report)),
                RouteStep::Log(worker, line) => log_lines::write(worker, self.spec.id(), &line),
            }
        }
    }

    /// Has a runner ready for the next command, while the model thinks. It has the rights of a command
    /// that asks for no more than the session has.
    fn prepare_reserve(&mut self) {
        self.resources.reread_written_dirs(&mut self.spec);
        if !self.closing.has_begun() {
            let mode = self.spec.rules().mode;
            self.workers.store.prepare_snapshot(mode);
            self.calls.reserve.prepare(self.spec.confinement(), mode, &self.calls.services);
        }
    }

    /// A turn has ended: people are notified if they give no prompt for some time.
    fn notify_if_idle_later(&self) {
        self.calls.running.look_at_protected(&self.calls.services);
        if let Some(time) = hook_events::idle_after(&self.spec) {
            let turns = self.turn.router.turns();
            self.own.send_after(time, move || SessionMsg::Timer(SessionTimer::Idle { turns }));
        }
    }
}

/// The end. `usage` has the reasons to stay open.
impl SessionActorState {
    /// Ends the calls, then the workers, then this actor. Calls that began and do not end in time are
    /// recorded as `may have run` when the session is opened again.
    fn close(&mut self, ending: SessionEnding, done: oneshot::Sender<()>) {
        match self.closing.is_wanted(done, ending) {
            EndWanted::Again => return,
            EndWanted::Hurries => return self.end_processes(ending),
            EndWanted::First => {}
        }
        self.events.clients.dismiss(DetachReason::Ended, "the session was ended; it is on disk");
        self.calls.services.servers.close();
        self.sub_agents.close(ending);
        self.calls.running.send_all(|| CallMsg::Input(CallInput::Cancel));
        // A session that ends in the middle of a turn is cut short, and its hooks do not run.
        let runs_hooks = ending == SessionEnding::Stop
            && !self.turn.router.is_busy()
            && self.run_hooks(hook_events::end());
        if !runs_hooks {
            return self.end_processes(ending);
        }
        self.closing.hooks_run();
        self.own.send_after(END_HOOKS, || SessionMsg::Timer(SessionTimer::EndHooks));
    }

    /// The hooks of the end have ended, or are not awaited any longer.
    fn end_hooks_over(&mut self) {
        if self.closing.awaits_hooks() {
            self.end_processes(SessionEnding::Stop);
        }
    }

    fn end_processes(&mut self, ending: SessionEnding) {
        self.closing.processes_end();
        self.calls.running.send_all(|| CallMsg::Input(CallInput::Cancel));
        let rest = Rest {
            calls: self.calls.running.all(),
            reserve: self.calls.reserve.stop(),
            processes: self.workers.own(),
            patience: self.resources.times.shutdown,
        };
        tokio::spawn(rest.end(ending, self.own.clone()));
    }

    fn on_fleet_event(&mut self, event: FleetEvent) {
        match event {
            FleetEvent::Frozen | FleetEvent::Thawed => {
                self.events.follow_lease(&mut self.calls.running)
            }
            FleetEvent::Lost(why) => {
                tracing::warn!(session = %self.spec.id(), why, "the session's lease is lost");
                let message = format!("this host has the session no longer: {why}");
                self.events.failures.disk_failed(message.clone());
                self.events.clients.dismiss(DetachReason::Failed, &message);
                self.close(SessionEnding::Kill, oneshot::channel().0);
            }
        }
    }

    /// Asks the supervisor actor to let no client join for a moment, if the session looks idle.
    fn retire_if_unused(&self) {
        if !self.now().is_needed() {
            let lifetime = match self.spec.task() {
                Some(_) => Lifetime::Task,
                None => Lifetime::Run,
            };
            let _ = self.root.send_message(RootMsg::Retire(self.spec.id().clone(), lifetime));
        }
    }

    /// No client can join any more. The session goes on if one joined meanwhile.
    fn retire(&mut self) {
        if self.now().is_needed() {
            let _ = self.root.send_message(RootMsg::RetireRefused(self.spec.id().clone()));
            return;
        }
        tracing::info!(session = %self.spec.id(), "ends: its run is over and no client is attached");
        self.close(SessionEnding::Stop, oneshot::channel().0);
    }
}
