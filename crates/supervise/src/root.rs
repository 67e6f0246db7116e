//! The supervisor actor: the root of the tree. Owns the broker, the sessions and the way out.

mod recovery;

use crate::audit_actor::{AuditActor, AuditMsg};
use crate::book::chain;
use crate::call_actor::now;
use crate::client_actor::{ClientActor, ClientMsg, ClientPlan, ClientStream};
use crate::hold::Hold;
use crate::mend::{Mended, mend};
use crate::plan::{Ground, OpenFailure, Plan, in_words, plan};
use crate::session_actor::{Glance, OpenedJournal, SessionActor, SessionMsg, SessionPlan};
use crate::slot::{Slot, SlotEvent, SlotMsg, SlotPlan};
use crate::spawn::{Permanent, Spawner};
use crate::times::SlotTimes;
use crate::{Settings, temp, to_disk};
use journal::{Header, Journal, OpenCall, Record};
use protocol::broker::{BrokerLink, FromBroker};
use protocol::client::{
    DaemonStatus, FailedKind, Opening, ProcessRow, SessionState, Start, ToClient, Unfinished,
};
use protocol::ids::SessionId;
use protocol::provider::Paper;
use protocol::session::OpenTurn;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// An open session and the word that says so.
pub(crate) type OpenedSession = (ActorRef<SessionMsg>, ToClient);

/// What the root is told.
pub(crate) enum RootMsg {
    Broker(SlotEvent<BrokerLink>),
    /// A peer that was let in.
    Client(ClientStream),
    Open {
        opening: Box<Opening>,
        papers: Vec<(Paper, OwnedFd)>,
        reply: oneshot::Sender<Result<OpenedSession, OpenFailure>>,
    },
    Find(SessionId, oneshot::Sender<Option<ActorRef<SessionMsg>>>),
    Describe(oneshot::Sender<Vec<ProcessRow>>),
    /// Start what has failed of a session again.
    Restart(SessionId, oneshot::Sender<Result<(), OpenFailure>>),
    /// How is the supervisor?
    Status(oneshot::Sender<DaemonStatus>),
    /// A client asks for the end.
    End {
        unfinished: Unfinished,
        by: ActorRef<ClientMsg>,
    },
    /// What runs is finished, or may be interrupted for this client.
    EndFor(ActorId),
    /// End everything, in order, and then this actor.
    Shutdown,
}

pub(crate) struct RootState {
    settings: Settings,
    spawner: Spawner,
    broker: ActorRef<SlotMsg<BrokerLink>>,
    audit: ActorRef<AuditMsg>,
    sessions: HashMap<SessionId, ActorRef<SessionMsg>>,
    /// Why the broker will not come back.
    broker_failed: Option<String>,
    /// Let in so far; names the next.
    let_in: u32,
    clients: HashMap<ActorId, ActorRef<ClientMsg>>,
    ending: bool,
    /// When it began, in milliseconds of Unix time.
    began: u64,
}

/// The actor.
pub(crate) struct Root;

impl Actor for Root {
    type Msg = RootMsg;
    type State = RootState;
    type Arguments = Settings;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        settings: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let log = settings.log.try_clone()?;
        let spawner = Spawner::start(settings.workers.clone(), log, settings.worker_env.clone())?;
        let cell = myself.get_cell();
        let audit_dir = settings.dirs.state.join("audit");
        let (audit, _) =
            AuditActor::spawn_linked(None, AuditActor, audit_dir, cell.clone()).await?;
        let owner = myself.clone();
        let plan = SlotPlan {
            worker: Permanent::Broker,
            session: None,
            spawner: spawner.clone(),
            times: SlotTimes::default(),
            owner: Arc::new(move |event| {
                let _ = owner.send_message(RootMsg::Broker(event));
            }),
        };
        let (broker, _) = Slot::<BrokerLink>::spawn_linked(None, Slot::new(), plan, cell).await?;
        let sessions = HashMap::new();
        Ok(RootState {
            settings,
            spawner,
            broker,
            audit,
            sessions,
            broker_failed: None,
            let_in: 0,
            clients: HashMap::new(),
            ending: false,
            began: now(),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            RootMsg::Broker(event) => state.broker(event),
            RootMsg::Client(stream) => state.client(&myself, stream).await,
            RootMsg::Open { opening, papers, reply } => {
                let _ = reply.send(state.open(&myself, *opening, papers).await);
            }
            RootMsg::Find(session, reply) => {
                let _ = reply.send(state.sessions.get(&session).cloned());
            }
            RootMsg::Describe(reply) => state.describe(reply),
            RootMsg::Restart(session, reply) => {
                let _ = reply.send(state.restart(&session));
            }
            RootMsg::Status(reply) => {
                let _ = reply.send(state.status());
            }
            RootMsg::End { unfinished: Unfinished::Interrupt, by } => {
                state.shutdown(&myself, Some(by.get_id()));
            }
            RootMsg::End { unfinished: Unfinished::Refuse, by } => state.end_if_idle(&myself, by),
            RootMsg::EndFor(client) => state.shutdown(&myself, Some(client)),
            RootMsg::Shutdown => state.shutdown(&myself, None),
        }
        Ok(())
    }

    /// A session or client that ends, however it ends, takes nobody with it.
    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(who, error) => {
                tracing::error!(%error, "an actor failed");
                state.lost(who.get_id());
                state.clients.remove(&who.get_id());
                // Without its log of record or its judge nothing may go on.
                if [state.audit.get_id(), state.broker.get_id()].contains(&who.get_id()) {
                    state.shutdown(&myself, None);
                }
            }
            SupervisionEvent::ActorTerminated(who, ..) => {
                state.sessions.retain(|_, session| session.get_id() != who.get_id());
                state.clients.remove(&who.get_id());
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl RootState {
    fn broker(&mut self, event: SlotEvent<BrokerLink>) {
        match event {
            SlotEvent::Up => self.tell_sessions(|| SessionMsg::BrokerBack),
            SlotEvent::Word { word, heard: _heard } => self.broker_word(word),
            SlotEvent::Down { cause: _, failed: None } => {}
            SlotEvent::Down { cause: _, failed: Some(why) } => {
                self.tell_sessions(|| SessionMsg::BrokerFailed(why.clone()));
                self.broker_failed = Some(why);
            }
        }
    }

    fn broker_word(&self, word: FromBroker) {
        match word {
            FromBroker::Ready | FromBroker::Pong(_) => {}
            FromBroker::Verdict { call, verdict } => match self.sessions.get(&call.session) {
                Some(session) => {
                    let _ = session.send_message(SessionMsg::Verdict(call, verdict));
                }
                None => tracing::warn!(%call, "a verdict for a session that is not open"),
            },
            FromBroker::Rejected { call, reason } => {
                tracing::warn!(%call, reason, "an answer did not count");
            }
            FromBroker::Log(line) => tracing::info!(worker = "broker", "{}", line.text),
        }
    }

    fn tell_sessions(&self, message: impl Fn() -> SessionMsg) {
        for session in self.sessions.values() {
            let _ = session.send_message(message());
        }
    }

    async fn client(&mut self, myself: &ActorRef<RootMsg>, stream: ClientStream) {
        if self.ending {
            return;
        }
        self.let_in += 1;
        let name = format!("terminal {}", self.let_in);
        let plan = ClientPlan { stream, root: myself.clone(), name };
        match ClientActor::spawn_linked(None, ClientActor, plan, myself.get_cell()).await {
            Ok((client, _)) => {
                self.clients.insert(client.get_id(), client);
            }
            Err(error) => tracing::error!(%error, "a client could not be served"),
        }
    }

    async fn open(
        &mut self,
        myself: &ActorRef<RootMsg>,
        opening: Opening,
        papers: Vec<(Paper, OwnedFd)>,
    ) -> Result<OpenedSession, OpenFailure> {
        if self.ending {
            return Err(OpenFailure::new(FailedKind::Internal, "the supervisor is ending"));
        }
        let (id, begin) = match &opening.start {
            Start::Resume { session: id, .. } if self.sessions.contains_key(id) => {
                let message = format!("session {id} is open in this supervisor already");
                return Err(OpenFailure::new(FailedKind::Held, message));
            }
            Start::Resume { session, open_turn } => (session.clone(), Begin::Resumed(*open_turn)),
            Start::New => (new_id()?, Begin::New),
            Start::Fork { .. } => {
                let message = "this supervisor cannot fork a session yet";
                return Err(OpenFailure::new(FailedKind::Usage, message));
            }
        };
        let ground = Ground {
            dirs: &self.settings.dirs,
            host_tier: self.settings.host_tier,
            temp_root: &self.settings.temp_root,
        };
        let plan = plan(id.clone(), &opening, ground)?;
        let opened = self.open_journal(&plan, begin).await?;
        temp::make(&plan.confinement.temp.to_path()).map_err(|error| {
            let path = plan.confinement.temp.to_path();
            let message = format!("cannot make the directory {}: {error}", path.display());
            OpenFailure::new(FailedKind::Internal, message)
        })?;
        let word = opened_word(&plan, &opened, &self.settings);
        let times = SlotTimes::from(plan.config.daemon);
        let session = SessionPlan {
            plan,
            opened,
            papers,
            spawner: self.spawner.clone(),
            times,
            broker: self.broker.clone(),
            audit: self.audit.clone(),
        };
        let (actor, _) = SessionActor::spawn_linked(None, SessionActor, session, myself.get_cell())
            .await
            .map_err(|error| OpenFailure::new(FailedKind::Internal, error.to_string()))?;
        if let Some(why) = self.broker_failed.clone() {
            let _ = actor.send_message(SessionMsg::BrokerFailed(why));
        }
        self.sessions.insert(id, actor.clone());
        Ok((actor, word))
    }

    async fn open_journal(&self, plan: &Plan, begin: Begin) -> Result<OpenedJournal, OpenFailure> {
        let sessions = self.settings.dirs.state.join("sessions");
        let directory = sessions.join(&plan.id.0);
        match begin {
            Begin::New => {
                let journal = Journal::create(&sessions, header(plan))
                    .map_err(|error| OpenFailure::new(FailedKind::Internal, chain(&error)))?;
                let hold = hold(&directory).await?;
                Ok(OpenedJournal { journal, hold, directory, turns: 0, last: OpenTurn::Waits })
            }
            Begin::Resumed(_) if !journal::is_session_name(&plan.id.0) || !directory.is_dir() => {
                let message = format!("there is no session {}", plan.id);
                Err(OpenFailure::new(FailedKind::NotFound, message))
            }
            Begin::Resumed(open_turn) => {
                let opened =
                    Journal::open(&directory).map_err(|error| OpenFailure::from(&error))?;
                // What is found below is the past only once nothing of it lives.
                let hold = hold(&directory).await?;
                if let Some(torn) = &opened.torn {
                    tracing::warn!(kept = %torn.kept.display(), "a record cut short was set aside");
                }
                let Mended { lost, mut records, turns, last } = mend(&opened.past, open_turn);
                for (call, record) in lost.iter().zip(&mut records) {
                    if let Record::Interrupted { audit, .. } = record {
                        *audit = Some(self.audit_lost(plan, call).await?);
                    }
                }
                let mut journal = opened.journal;
                if !records.is_empty() {
                    journal
                        .append_all(&records)
                        .map_err(|error| OpenFailure::new(FailedKind::Internal, chain(&error)))?;
                }
                Ok(OpenedJournal { journal, hold, directory, turns, last })
            }
        }
    }

    /// The audit log's word on a call that was lost with its supervisor.
    async fn audit_lost(&self, plan: &Plan, call: &OpenCall) -> Result<journal::Head, OpenFailure> {
        let (done, written) = oneshot::channel();
        let ended = Box::new(to_disk::lost(&plan.id, call, now()));
        let _ = self.audit.send_message(AuditMsg::Ended { ended, done });
        let written = written.await.unwrap_or_else(|_| Err("it is gone".to_owned()));
        written.map_err(|reason| {
            let message = format!("the audit log cannot be written: {reason}");
            OpenFailure::new(FailedKind::Internal, message)
        })
    }

    fn describe(&self, reply: oneshot::Sender<Vec<ProcessRow>>) {
        let (row, broker) = oneshot::channel();
        let _ = self.broker.send_message(SlotMsg::Describe(row));
        let asked: Vec<_> = self
            .sessions
            .values()
            .map(|session| {
                let (rows, answer) = oneshot::channel();
                let _ = session.send_message(SessionMsg::Describe(rows));
                answer
            })
            .collect();
        tokio::spawn(async move {
            let mut rows = vec![own_row()];
            rows.extend(broker.await);
            for answer in asked {
                rows.extend(answer.await.unwrap_or_default());
            }
            let _ = reply.send(rows);
        });
    }

    fn status(&self) -> DaemonStatus {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let troubles = self.broker_failed.iter();
        let troubles = troubles.map(|why| format!("no call can be judged: {why}")).collect();
        DaemonStatus {
            pid: std::process::id(),
            build: protocol::BUILD_ID.to_owned(),
            began: self.began,
            sandbox: self.settings.host_words.clone(),
            sessions: count(self.sessions.len()),
            clients: count(self.clients.len()),
            troubles,
        }
    }

    /// Ends where no turn runs; otherwise says which do.
    fn end_if_idle(&self, myself: &ActorRef<RootMsg>, by: ActorRef<ClientMsg>) {
        let glances = self.glances();
        let myself = myself.clone();
        tokio::spawn(async move {
            let mut busy = Vec::new();
            for (session, glance) in glances {
                match glance.await.map(|glance| glance.state) {
                    Ok(SessionState::Working) => busy.push(format!("{session} (a turn runs)")),
                    Ok(SessionState::Asking(_)) => {
                        busy.push(format!("{session} (a question waits for an answer)"));
                    }
                    Ok(
                        SessionState::Ended
                        | SessionState::Idle
                        | SessionState::Degraded(_)
                        | SessionState::Unreadable(_),
                    )
                    | Err(_) => {}
                }
            }
            if busy.is_empty() {
                let _ = myself.send_message(RootMsg::EndFor(by.get_id()));
                return;
            }
            let message = format!(
                "work is not finished in session {}; wait for it, or end it with --force, which \
                 interrupts it",
                busy.join(", ")
            );
            let word = ToClient::Failed { kind: FailedKind::Usage, message };
            let _ = by.send_message(ClientMsg::Say(word));
        });
    }

    /// Asks every live session how it is.
    fn glances(&self) -> Vec<(SessionId, oneshot::Receiver<Glance>)> {
        let ask = |(id, session): (&SessionId, &ActorRef<SessionMsg>)| {
            let (reply, glance) = oneshot::channel();
            let _ = session.send_message(SessionMsg::Glance(reply));
            (id.clone(), glance)
        };
        self.sessions.iter().map(ask).collect()
    }

    /// Ends everything. The client that asked for it sees the end by itself.
    fn shutdown(&mut self, myself: &ActorRef<RootMsg>, asker: Option<ActorId>) {
        if std::mem::replace(&mut self.ending, true) {
            return;
        }
        // Otherwise a client would take the end for a crash and bring another supervisor up.
        let others = self.clients.iter().filter(|(id, _)| Some(**id) != asker);
        for (_, client) in others {
            let message = "agentd-supervisor was asked to end; the session is on disk".to_owned();
            let word = ToClient::Failed { kind: FailedKind::Internal, message };
            let _ = client.send_message(ClientMsg::Say(word));
        }
        let mut closed = Vec::new();
        for (_, session) in self.sessions.drain() {
            let (done, gone) = oneshot::channel();
            let _ = session.send_message(SessionMsg::Close(done));
            closed.push(gone);
        }
        let (broker, myself) = (self.broker.clone(), myself.clone());
        tokio::spawn(async move {
            for gone in closed {
                let _ = gone.await;
            }
            let (done, gone) = oneshot::channel();
            let _ = broker.send_message(SlotMsg::Stop(done));
            let _ = tokio::time::timeout(Duration::from_secs(3), gone).await;
            myself.stop(None);
        });
    }
}

fn own_row() -> ProcessRow {
    ProcessRow {
        worker: "agentd-supervisor".to_owned(),
        session: None,
        pid: std::process::id(),
        generation: 1,
        restarts: 0,
        last_cause: None,
    }
}

fn new_id() -> Result<SessionId, OpenFailure> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes)
        .map_err(|error| OpenFailure::new(FailedKind::Internal, error.to_string()))?;
    Ok(SessionId(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// Whether a session goes on or begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    New,
    Resumed(OpenTurn),
}

/// Waits, off the event loop, until no call of an earlier supervisor lives.
async fn hold(directory: &Path) -> Result<Hold, OpenFailure> {
    let directory = directory.to_owned();
    let taken = tokio::task::spawn_blocking(move || Hold::take(&directory)).await;
    let taken = taken.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    taken.map_err(|error| match error.kind() == std::io::ErrorKind::WouldBlock {
        true => OpenFailure::new(
            FailedKind::Held,
            "a call of this session that began earlier has not ended yet; try again, and see \
             `ps` for agentd-tool if it stays so",
        ),
        false => OpenFailure::new(FailedKind::Internal, chain(&error)),
    })
}

fn header(plan: &Plan) -> Header {
    Header {
        format: journal::FORMAT,
        id: plan.id.0.clone(),
        project: plan.confinement.project.to_path().into(),
        model: plan.setup.model.clone(),
        agentd: env!("CARGO_PKG_VERSION").to_owned(),
        parent: None,
    }
}

fn opened_word(plan: &Plan, opened: &OpenedJournal, settings: &Settings) -> ToClient {
    let sandbox = format!("{}; {}", settings.host_words, in_words(&plan.confinement));
    ToClient::Opened {
        session: plan.id.clone(),
        model: plan.setup.model.clone(),
        tools: plan.setup.tools.iter().map(|tool| tool.spec.name.clone()).collect(),
        mode: plan.mode,
        network: plan.network,
        sandbox,
        last_seq: opened.journal.last_seq(),
        warnings: plan.config.warnings.iter().map(ToString::to_string).collect(),
    }
}
