//! The state of a session actor, in parts. The files beside this one implement the actor's work on
//! it.

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
use crate::session_lock::SessionLock;
use crate::task_outcome::TaskOutcome;
use crate::worker::spawner::Spawner;
use crate::worker::timeouts::WorkerTimeouts;
use crate::worker_ref::WorkerRef;
use crate::written_dirs::WrittenDirs;
use call::FileVersions;
use protocol::broker::BrokerLink;
use protocol::call::Call;
use protocol::confinement::Tier;
use protocol::ids::CallId;
use protocol::judgement::{Audience, Rule};
use protocol::provider::{PassedFd, ProviderLink};
use protocol::session::SessionLink;
use protocol::store::{SnapshotBefore, StoreCommand, StoreLink, ToStore};
use protocol::tool::TlsIdentity;
use ractor::{ActorId, ActorRef};
use setup::session_spec::{ChosenModel, SessionSpec};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::{Semaphore, oneshot};
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
    pub(super) store: StoreState,
    pub(super) calls: SessionCalls,
    pub(super) clients: SessionClients,
    pub(super) turn: SessionTurn,
    pub(super) timers: SessionTimers,
    /// Sub-agents, and who waits for this session if it is one.
    pub(super) tasks: SessionTasks,
    /// Failures that keep it from accepting input.
    pub(super) problems: Problems,
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
    /// How far the journal was replayed to the conversation.
    pub(super) replay: ReplayState,
    pub(super) provider: WorkerRef<ProviderLink>,
    pub(super) provider_state: ProviderState,
    pub(super) store: WorkerRef<StoreLink>,
    pub(super) broker: WorkerRef<BrokerLink>,
    /// Why the broker is not started again, if it is not.
    pub(super) broker_failure: Option<String>,
}

/// The replay of the journal to the present process of the conversation.
pub(super) enum ReplayState {
    /// There is no process, as far as the session knows.
    NoProcess,
    NotStarted,
    /// Complete or under way: the process gets every message from now on.
    Started {
        _replay: RunningReplay,
    },
}

/// A replay that was started. It stops when this is dropped.
pub(super) struct RunningReplay(pub(super) Arc<Semaphore>);

impl Drop for RunningReplay {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The provider's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProviderState {
    /// It runs and is configured.
    Ready,
    /// The same, but its server or a key has changed since: the next request starts another process.
    Stale,
    /// It does not run, or is not configured. An open request is sent once it is.
    Down,
}

/// The state that the store's process depends on.
pub(super) struct StoreState {
    pub(super) instructions: Instructions,
    /// Why the store is not started again, if it is not.
    pub(super) failed: Option<String>,
    /// Calls that wait for their copies: the request to the store, and whom to answer.
    pub(super) requested: HashMap<CallId, (ToStore, oneshot::Sender<()>)>,
    /// Calls with copies, until the store has recorded their end.
    pub(super) copies: HashMap<CallId, BackupState>,
    /// Commands with a snapshot, until the store has recorded their end.
    pub(super) commands: HashMap<CallId, (StoreCommand, CommandState)>,
    /// Clients that wait for changes since a call.
    pub(super) changes: Vec<(ActorRef<ClientMsg>, u32)>,
}

/// The project's instructions, which the store reads and the conversation begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instructions {
    Pending,
    /// They were received, or did not come in time.
    Settled,
}

/// A call whose files were copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BackupState {
    Running,
    Ended,
}

/// A command whose project was captured in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandState {
    Running(SnapshotBefore),
    /// It ended at that time, in nanoseconds of Unix time.
    Ended(SnapshotBefore, i64),
}

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
pub(super) struct SessionClients {
    pub(super) attached: Vec<AttachedClient>,
    /// Clients that opened the session and have yet to attach.
    pub(super) expected: HashSet<ActorId>,
    /// Clients that wait for a report of the model's context.
    pub(super) of_context: Vec<ActorRef<ClientMsg>>,
    /// What waits for a person.
    pub(super) questions: Questions<ActorRef<ClientMsg>>,
    /// Prompts that name a server which starts.
    pub(super) waiting_prompts: Vec<WaitingPrompt>,
    /// Clients were shown the hook that does not run because the project is not trusted.
    pub(super) untrusted_hook_shown: bool,
}

impl SessionClients {
    /// None is there yet.
    pub(super) fn none_yet(questions: Questions<ActorRef<ClientMsg>>) -> Self {
        Self {
            attached: Vec::new(),
            expected: HashSet::new(),
            of_context: Vec::new(),
            questions,
            waiting_prompts: Vec::new(),
            untrusted_hook_shown: false,
        }
    }
}

/// A prompt that waits for a server.
pub(super) struct WaitingPrompt {
    pub(super) client: ActorRef<ClientMsg>,
    pub(super) text: String,
    pub(super) form: Option<protocol::client::AnswerForm>,
}

/// An attached client.
pub(super) struct AttachedClient {
    pub(super) client: ActorRef<ClientMsg>,
    pub(super) feed: Feed,
    /// It missed an event and gets no more until it attaches again: its gap begins after the last
    /// event that it got.
    pub(super) behind: AtomicBool,
}

/// Turns and prompts.
pub(super) struct SessionTurn {
    pub(super) router: Router,
    /// Rules of a slash command that allow until the turn ends.
    pub(super) allow: Vec<Rule>,
    /// Models that the session goes back to.
    pub(super) model: TurnModel,
    /// How many times the session was paused and not resumed. A paused session starts no turn.
    pub(super) pauses: u32,
    /// A person joined while a script's turn ran: people can be asked from the next turn on.
    pub(super) next_audience: Option<Audience>,
}

/// Models that the session goes back to.
#[derive(Debug, Default)]
pub(super) struct TurnModel {
    /// The session's, if the running turn has another one.
    pub(super) before_turn: Option<Box<ChosenModel>>,
    /// The model before the fallback model, until that has answered.
    pub(super) before_fallback: Option<Box<ChosenModel>>,
}

/// Timers that are running.
#[derive(Default)]
pub(super) struct SessionTimers {
    /// The next ping of the workers.
    pub(super) ping: Option<AbortHandle>,
    /// The end of an idle provider.
    pub(super) provider_idle: Option<AbortHandle>,
}

/// Failures that make a session read-only, each by itself.
#[derive(Debug, Default)]
pub(super) struct Problems {
    /// The journal cannot be written, and why.
    pub(super) disk: Option<String>,
    /// The conversation's process is not started again, and why.
    pub(super) conversation: Option<String>,
    /// The provider's likewise.
    pub(super) provider: Option<String>,
}
