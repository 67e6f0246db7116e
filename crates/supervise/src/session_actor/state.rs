//! The state of a session actor, in parts. The files beside this one implement the actor's work on
//! it.

use super::clients::Clients;
use super::links::Links;
use super::links::replay::RunningReplay;
use super::questions::Questions;
use super::services::Services;
use super::tasks::Tasks;
use crate::audit_actor::AuditMsg;
use crate::client_actor::feed::Feed;
use crate::fleet_seat::HeldLease;
use crate::journal_writer::JournalWriter;
use crate::messages::{CallMsg, ClientMsg, ReserveMsg, RootMsg, SessionMsg};
use crate::project_caches::CacheLease;
use crate::route::Router;
use crate::task_outcome::TaskOutcome;
use crate::worker_ref::WorkerRef;
use crate::written_dirs::WrittenDirs;
use call::FileVersions;
use launch::session_lock::SessionLock;
use launch::spawner::Spawner;
use launch::timeouts::WorkerTimeouts;
use protocol::broker::BrokerLink;
use protocol::call::Call;
use protocol::confinement::Tier;
use protocol::ids::CallId;
use protocol::judgement::Audience;
use protocol::provider::{PassedFd, ProviderLink};
use protocol::session::SessionLink;
use protocol::store::StoreLink;
use protocol::tool::TlsIdentity;
use ractor::ActorRef;
use setup::session_spec::SessionSpec;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// One open session.
pub(crate) struct SessionActorState {
    pub(super) own: ActorRef<SessionMsg>,
    pub(super) root: ActorRef<RootMsg>,
    pub(super) audit: ActorRef<AuditMsg>,
    pub(super) spec: SessionSpec,
    pub(super) resources: SessionResources,
    pub(super) journal: SessionJournal,
    pub(super) workers: SessionWorkers,
    /// Which of them are away, and what waits for them.
    pub(super) links: SessionLinks,
    pub(super) calls: SessionCalls,
    pub(super) clients: SessionClients,
    /// What waits for a person.
    pub(super) questions: Questions<ActorRef<ClientMsg>>,
    pub(super) turn: SessionTurn,
    pub(super) timers: SessionTimers,
    /// Sub-agents, and who waits for this session if it is one.
    pub(super) tasks: SessionTasks,
    pub(super) closing: Closing,
}

/// The end of the session.
#[derive(Default)]
pub(super) struct Closing {
    /// Answered when the session has ended; not empty once it is ending.
    pub(super) asked: Vec<oneshot::Sender<()>>,
    pub(super) phase: ClosingPhase,
}

/// How far the end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ClosingPhase {
    #[default]
    Open,
    /// The hooks of the end run; calls of the conversation do not begin.
    Hooks,
    /// Calls and workers are ended.
    Processes,
}

impl Closing {
    /// The session is ending.
    pub(super) fn has_begun(&self) -> bool {
        !self.asked.is_empty()
    }
}

/// Files, locks and settings that the session was opened with.
pub(super) struct SessionResources {
    /// Keeps the package caches of its project.
    pub(super) caches: Option<CacheLease>,
    /// Keeps cleaners of `/tmp` away from its private directories.
    pub(super) _private: Option<File>,
    pub(super) lock: SessionLock,
    /// Keys and recordings that clients passed as descriptors.
    pub(super) passed_fds: Vec<(PassedFd, OwnedFd)>,
    /// The certificate of its proxies, for hosts that they sign in to.
    pub(super) identity: Option<Arc<TlsIdentity>>,
    pub(super) spawner: Spawner,
    pub(super) times: WorkerTimeouts,
    /// The directories that calls of any session write.
    pub(super) written: Arc<WrittenDirs>,
}

/// The session's journal.
pub(super) struct SessionJournal {
    pub(super) writer: JournalWriter,
    pub(super) directory: PathBuf,
    /// The number of the last record.
    pub(super) last_seq: u64,
}

/// The processes that serve the session. The broker serves every session.
pub(super) struct SessionWorkers {
    pub(super) conversation: WorkerRef<SessionLink>,
    pub(super) provider: WorkerRef<ProviderLink>,
    pub(super) store: WorkerRef<StoreLink>,
    pub(super) broker: WorkerRef<BrokerLink>,
}

/// The state of the links to the processes.
pub(super) type SessionLinks =
    Links<oneshot::Sender<()>, ActorRef<ClientMsg>, AbortHandle, RunningReplay>;

/// The session's calls, and facts about files that outlast them.
pub(super) struct SessionCalls {
    /// The lease under which they run.
    pub(super) lease: HeldLease,
    pub(super) running: HashMap<CallId, ActorRef<CallMsg>>,
    /// Those among them that the conversation does not wait for, and the MCP servers.
    pub(super) services: Services<ActorRef<CallMsg>>,
    /// Has the next command's runner; absent where the configuration wants none.
    pub(super) reserve: Option<ActorRef<ReserveMsg>>,
    /// Calls that may end without a verdict.
    pub(super) unjudged: Unjudged,
    /// The versions of files that the model has read or written.
    pub(super) file_versions: FileVersions,
    /// Protected files that a call changed: a person is asked before the next command.
    pub(super) tampered: Vec<String>,
    /// Places that calls are not granted, as clients were shown.
    pub(super) left_out: BTreeSet<String>,
    /// The tier of commands: at first the highest that the host and the configuration allow, then
    /// that of the last command.
    pub(super) tier: Tier,
}

impl SessionCalls {
    /// Those of a session that has just been opened.
    pub(super) fn new(
        spec: &SessionSpec,
        (file_versions, tampered): (FileVersions, Vec<String>),
        lease: HeldLease,
    ) -> Self {
        Self {
            lease,
            running: HashMap::new(),
            services: Services::none_yet(spec.servers().len()),
            reserve: None,
            unjudged: Unjudged::default(),
            file_versions,
            tampered,
            left_out: spec.left_out.iter().cloned().collect(),
            tier: spec.confinement.highest_tier,
        }
    }
}

/// The tasks of a session.
pub(super) type SessionTasks =
    Tasks<ActorRef<SessionMsg>, oneshot::Sender<()>, oneshot::Sender<TaskOutcome>>;

/// Calls that were proposed and have no actor.
#[derive(Default)]
pub(super) struct Unjudged(pub(super) HashMap<CallId, Call>);

/// The session's clients.
pub(super) type SessionClients = Clients<ActorRef<ClientMsg>, Feed>;

/// Turns and prompts.
pub(super) struct SessionTurn {
    pub(super) router: Router,
    /// How many times the session was paused and not resumed. A paused session starts no turn.
    pub(super) pauses: u32,
    /// A person joined while a script's turn ran: people can be asked from the next turn on.
    pub(super) next_audience: Option<Audience>,
}

/// Timers that are running.
#[derive(Default)]
pub(super) struct SessionTimers {
    /// The next ping of the workers.
    pub(super) ping: Option<AbortHandle>,
}
