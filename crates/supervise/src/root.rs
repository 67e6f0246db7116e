//! The supervisor actor, root of the process tree. Owns the broker and the sessions, and shuts
//! everything down in order.

mod blocking;
mod idle_daemon;
mod idle_session;
mod kept_flags;
mod lost_tasks;
mod open_journal;
mod open_mode;
mod opening;
mod recovery;
mod seat;
mod session_list;
mod session_opener;
mod shutdown;
mod state;

use crate::SupervisorSettings;
use crate::audit_actor::{AuditActor, AuditFailure};
use crate::client_actor::connection::ClientStream;
use crate::client_actor::{ClientActor, ClientArgs};
use crate::messages::{
    BrokerToSession, IdleMsg, RepliedQuestion, RootMsg, RootToSession, SessionMsg, SessionSummary,
    TaskToSession,
};
use crate::private_dirs;
use crate::project_caches;
use crate::remover::Remover;
use crate::unix_time::now_ms;
use crate::worker::actor::{WorkerActor, WorkerArgs, WorkerEvent};
use crate::worker_ref::WorkerRef;
use crate::written_dirs::{self, WrittenDirs};
use launch::log_lines;
use launch::project_overlays::OverlayRegistry;
use launch::spawner::{Spawner, WorkerKind};
use launch::timeouts::WorkerTimeouts;
use protocol::broker::{BrokerLink, FromBroker};
use protocol::client::{DaemonStatus, OnUnfinished, ProcessRow, SessionStatus};
use protocol::confinement::Tier;
use protocol::ids::SessionId;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use setup::cache_paths::caches_dir;
use setup::session_spec::TaskBounds;
use shutdown::{NO_REPLY, REMOVAL_TIMEOUT, REPLY_TIMEOUT, SPAWN_TIMEOUT};
use state::{BrokerState, IdleTimer, ProjectDirs, RootState, ShutdownPhase};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The actor.
pub(crate) struct RootActor;

impl Actor for RootActor {
    type Msg = RootMsg;
    type State = RootState;
    type Arguments = SupervisorSettings;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        settings: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let log = settings.log.try_clone()?;
        let spawner = Spawner::start(settings.workers.clone(), log, settings.worker_env.clone())?;
        let caches = project_caches::make_caches_dir(&settings.dirs.state)?;
        let remover = Remover::start(&[settings.temp_root.clone(), caches])?;
        clean_up_leftovers(&settings, &remover);
        let cell = myself.get_cell();
        let audit_dir = settings.dirs.state.join("audit");
        let audit_closed = AuditFailure::default();
        let log = (audit_dir, Arc::clone(&audit_closed));
        let (audit, _) = AuditActor::spawn_linked(None, AuditActor, log, cell.clone()).await?;
        let owner = myself.clone();
        let plan = WorkerArgs {
            kind: WorkerKind::Broker,
            session: None,
            spawner: spawner.with_env(&settings.broker_env),
            timeouts: WorkerTimeouts::default(),
            on_event: Arc::new(move |event| {
                let _ = owner.send_message(RootMsg::BrokerEvent(event));
            }),
        };
        let (broker, _) =
            WorkerActor::<BrokerLink>::spawn_linked(None, WorkerActor::new(), plan, cell).await?;
        let sessions = HashMap::new();
        let written = Arc::new(WrittenDirs::at(&settings.dirs.state));
        let mut root = RootState {
            settings: Arc::new(settings),
            spawner,
            remover,
            projects: ProjectDirs { overlays: OverlayRegistry::default(), written },
            broker: BrokerState { worker: WorkerRef::new(broker), failed: None, cage: None },
            audit,
            audit_closed,
            sessions,
            opening: HashMap::new(),
            retiring: HashMap::new(),
            clients_admitted: 0,
            clients: HashMap::new(),
            shutdown_phase: ShutdownPhase::NotStarted,
            idle: IdleTimer::default(),
            started_at: now_ms(),
        };
        root.start_idle_timer(&myself);
        Ok(root)
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            RootMsg::BrokerEvent(event) => state.on_broker_event(event),
            RootMsg::ClientConnected(stream) => state.on_client_connected(&myself, stream).await,
            RootMsg::Open(order) => state.open_session(&myself, order),
            RootMsg::OpenFinished { session, opened, order } => {
                state.on_open_finished(&myself, session, opened, *order);
            }
            RootMsg::Find(session, reply) => {
                let _ = reply.send(state.sessions.get(&session).cloned());
            }
            RootMsg::NarrowTasks { parent, bounds } => state.narrow_tasks(&parent, &bounds),
            RootMsg::List(reply) => state.list(reply),
            RootMsg::EndSession { session, ending, reply } => {
                state.end_session(&session, ending, reply);
            }
            RootMsg::Retire(session, lifetime) => state.retire_session(session, lifetime),
            RootMsg::RetireRefused(session) => state.on_retire_refused(&myself, session),
            RootMsg::Remove(session, reply) => state.remove(session, reply),
            RootMsg::Describe(reply) => state.describe(reply),
            RootMsg::Restart(session, reply) => state.restart(&session, reply),
            RootMsg::Status(reply) => state.status(reply),
            RootMsg::ShutdownRequested { unfinished: OnUnfinished::Interrupt, by } => {
                state.begin_shutdown(&myself, Some(by.get_id()));
            }
            RootMsg::ShutdownRequested { unfinished: OnUnfinished::Refuse, by } => {
                state.shutdown_if_idle(&myself, by)
            }
            RootMsg::ShutdownIfPaused { by, paused } => {
                state.shutdown_if_paused(&myself, by, &paused)
            }
            RootMsg::Idle(IdleMsg::Over(wait)) => state.on_idle_timer(&myself, wait),
            RootMsg::Idle(IdleMsg::Confirmed(wait)) => {
                if wait == state.idle.number && state.clients.is_empty() {
                    tracing::info!("idle for its limit; shuts down");
                    state.begin_shutdown(&myself, None);
                }
            }
            RootMsg::Shutdown => state.begin_shutdown(&myself, None),
            RootMsg::SessionEnded => state.on_session_ended(&myself),
            RootMsg::ShutdownTimeout => state.on_shutdown_timeout(&myself),
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        state.remover.finish(REMOVAL_TIMEOUT).await;
        state.spawner.end(SPAWN_TIMEOUT).await;
        Ok(())
    }

    /// The end of a session or client, in order or not, does not affect other actors.
    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(who, error) => {
                tracing::error!(%error, "an actor failed");
                state.on_session_failed(who.get_id());
                state.on_retired(&myself, who.get_id());
                state.clients.remove(&who.get_id());
                // Without the audit log or the broker no call may run.
                if [state.audit.get_id(), state.broker.worker.actor().get_id()]
                    .contains(&who.get_id())
                {
                    state.begin_shutdown(&myself, None);
                }
            }
            SupervisionEvent::ActorTerminated(who, ..) => {
                state.on_session_stopped(who.get_id());
                state.on_retired(&myself, who.get_id());
                state.clients.remove(&who.get_id());
                state.start_idle_timer(&myself);
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl RootState {
    fn on_broker_event(&mut self, event: WorkerEvent<BrokerLink>) {
        match event {
            WorkerEvent::Up(generation) => {
                self.broker.worker.up(generation);
                self.send_to_sessions(|| BrokerToSession::Back(generation));
            }
            WorkerEvent::Message { message, permit: _permit } => self.on_broker_message(message),
            WorkerEvent::Down { cause: _, failed: None } => self.broker.cage = None,
            WorkerEvent::Down { cause: _, failed: Some(why) } => {
                self.send_to_sessions(|| BrokerToSession::Failed(why.clone()));
                (self.broker.failed, self.broker.cage) = (Some(why), None);
            }
        }
    }

    /// A session that ends has its last hooks judged.
    fn open_or_ending(&self, session: &SessionId) -> Option<&ActorRef<SessionMsg>> {
        let ending = || self.retiring.get(session).map(|it| &it.actor);
        self.sessions.get(session).or_else(ending)
    }

    fn on_broker_message(&mut self, message: FromBroker) {
        match message {
            FromBroker::Ready { cage } => self.broker.cage = Some(cage),
            FromBroker::Pong(_) => {}
            FromBroker::Verdict { call, verdict } => match self.open_or_ending(&call.session) {
                Some(session) => {
                    let _ = session
                        .send_message(BrokerToSession::Verdict(call, Box::new(verdict)).into());
                }
                None => tracing::warn!(%call, "a verdict for a session that is not open"),
            },
            FromBroker::Ahead { call, verdict } => {
                if let Some(session) = self.sessions.get(&call.session) {
                    let ahead = BrokerToSession::Ahead(call, Box::new(verdict));
                    let _ = session.send_message(ahead.into());
                }
            }
            FromBroker::Replied { call, reply, by, note } => {
                if let Some(session) = self.sessions.get(&call.session) {
                    let replied = Box::new(RepliedQuestion { call, reply, by, note });
                    let _ = session.send_message(BrokerToSession::Replied(replied).into());
                }
            }
            FromBroker::Rejected { call, reason } => match self.sessions.get(&call.session) {
                Some(session) => {
                    let _ =
                        session.send_message(BrokerToSession::AnswerRejected(call, reason).into());
                }
                None => tracing::warn!(%call, reason, "an answer was rejected"),
            },
            FromBroker::Log(line) => log_lines::write("broker", "every session", &line),
        }
    }

    /// Sends the rights of a session to all others: those of its sub-agents apply them.
    fn narrow_tasks(&self, parent: &SessionId, bounds: &TaskBounds) {
        self.send_to_sessions(|| TaskToSession::ParentBounds {
            parent: parent.clone(),
            bounds: Box::new(bounds.clone()),
        });
    }

    /// Sends to retiring sessions too: a client may still need them.
    fn send_to_sessions<M: Into<SessionMsg>>(&self, message: impl Fn() -> M) {
        let retiring = self.retiring.values().map(|retiring| &retiring.actor);
        for session in self.sessions.values().chain(retiring) {
            let _ = session.send_message(message().into());
        }
    }

    async fn on_client_connected(&mut self, myself: &ActorRef<RootMsg>, stream: ClientStream) {
        if self.shutdown_phase != ShutdownPhase::NotStarted {
            return;
        }
        self.stop_idle_timer();
        self.clients_admitted += 1;
        // The number begins again with each daemon; an auditor needs the place.
        let name = format!("terminal {} ({})", self.clients_admitted, stream.place());
        let sessions = self.settings.dirs.state.join("sessions");
        let plan = ClientArgs { stream, root: myself.clone(), name, sessions };
        match ClientActor::spawn_linked(None, ClientActor, plan, myself.get_cell()).await {
            Ok((client, _)) => {
                self.clients.insert(client.get_id(), client);
            }
            Err(error) => tracing::error!(%error, "a client could not be served"),
        }
    }

    fn describe(&self, reply: oneshot::Sender<Vec<ProcessRow>>) {
        let cage = self.broker.cage;
        let broker = self.broker.worker.describe();
        let ask = |(id, session): (&SessionId, &ActorRef<SessionMsg>)| {
            let (rows, answer) = oneshot::channel();
            let _ = session.send_message(RootToSession::Describe(rows).into());
            (id.clone(), answer)
        };
        let asked: Vec<_> = self.sessions.iter().map(ask).collect();
        tokio::spawn(async move {
            let mut rows = vec![supervisor_row()];
            rows.extend(broker.await.map(|row| ProcessRow { cage, ..row }));
            rows.extend(collect_process_rows(Instant::now() + REPLY_TIMEOUT, asked).await);
            let _ = reply.send(rows);
        });
    }

    fn status(&self, reply: oneshot::Sender<DaemonStatus>) {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let troubles = self.broker.failed.iter();
        let troubles = troubles.map(|why| format!("no call can be judged: {why}")).collect();
        let mut status = DaemonStatus {
            pid: std::process::id(),
            build: protocol::BUILD_ID.to_owned(),
            began: self.started_at,
            sandbox: self.describe_tier(),
            sessions: count(self.sessions.len()),
            working: 0,
            room: self.settings.room.sessions,
            limit: self.settings.room.limit.clone(),
            clients: count(self.clients.len()),
            troubles,
        };
        let is_closed = self.audit_closed.lock().is_ok_and(|closed| closed.is_some());
        let audit = is_closed.then(|| self.audit.clone());
        let glances = self.request_glances();
        if audit.is_none() && glances.is_empty() {
            // No other actor has to be asked. A client that polls is slowed down only by its own
            // replies.
            let _ = reply.send(status);
            return;
        }
        tokio::spawn(async move {
            if let Some(audit) = audit {
                status.troubles.extend(recovery::check_audit_log(&audit).await.err());
            }
            let until = Instant::now() + REPLY_TIMEOUT;
            for (session, glance) in glances {
                let why = match tokio::time::timeout_at(until, glance).await {
                    Ok(Ok(SessionSummary { state: SessionStatus::Degraded(why), .. })) => why,
                    Ok(Ok(SessionSummary {
                        state: SessionStatus::Working | SessionStatus::Background(_),
                        ..
                    })) => {
                        status.working += 1;
                        continue;
                    }
                    // It is healthy, or it ended in the meantime.
                    Ok(_) => continue,
                    Err(_) => NO_REPLY.to_owned(),
                };
                status.troubles.push(format!("session {session}: {why}"));
            }
            let _ = reply.send(status);
        });
    }

    /// Describes the cage that this host allows.
    fn describe_tier(&self) -> String {
        let tier = self.settings.host.last_known();
        let words = tier.in_words();
        match (&self.settings.cgroup, tier) {
            (Some(_), Tier::A | Tier::B) => format!("{words}, a cgroup for each command"),
            // Without a cage, a command can move itself to another cgroup.
            (Some(_), Tier::C) => {
                format!("{words}; each command begins in a cgroup of its own, and can leave it")
            }
            (None, _) => words.to_owned(),
        }
    }

    /// Requests the state of every live session.
    fn request_glances(&self) -> Vec<(SessionId, oneshot::Receiver<SessionSummary>)> {
        let ask = |(id, session): (&SessionId, &ActorRef<SessionMsg>)| {
            let (reply, glance) = oneshot::channel();
            let _ = session.send_message(RootToSession::Summarize(reply).into());
            (id.clone(), glance)
        };
        self.sessions.iter().map(ask).collect()
    }
}

/// Removes leftovers of dead supervisors. In the background, because the directory of temporary
/// files may be long.
fn clean_up_leftovers(settings: &SupervisorSettings, remover: &Remover) {
    let (root, remover) = (settings.temp_root.clone(), remover.clone());
    let sessions = settings.dirs.state.join("sessions");
    let caches = caches_dir(&settings.dirs.state);
    let state = settings.dirs.state.clone();
    tokio::task::spawn_blocking(move || written_dirs::forget_removed(&state));
    tokio::task::spawn_blocking(move || {
        private_dirs::remove_unused(&root, &sessions, &remover);
        project_caches::remove_unused(&caches, &remover);
    });
}

/// Collects the processes of these sessions. A session that is blocked on its disk is listed as
/// unresponsive.
async fn collect_process_rows(
    until: Instant,
    asked: Vec<(SessionId, oneshot::Receiver<Vec<ProcessRow>>)>,
) -> Vec<ProcessRow> {
    let mut rows = Vec::new();
    for (session, answer) in asked {
        match tokio::time::timeout_at(until, answer).await {
            Ok(found) => rows.extend(found.unwrap_or_default()),
            Err(_) => rows.push(ProcessRow {
                worker: "agentd-session".to_owned(),
                session: Some(session),
                pid: 0,
                generation: 0,
                restarts: 0,
                last_cause: Some(NO_REPLY.to_owned()),
                cage: None,
            }),
        }
    }
    rows
}

fn supervisor_row() -> ProcessRow {
    ProcessRow {
        worker: "agentd-supervisor".to_owned(),
        session: None,
        pid: std::process::id(),
        generation: 1,
        restarts: 0,
        last_cause: None,
        cage: None,
    }
}

#[cfg(test)]
#[path = "root/rig_tests.rs"]
mod rig;
#[cfg(test)]
#[path = "root/task_tests.rs"]
mod task_tests;
