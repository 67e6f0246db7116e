//! The state of a session actor, in parts. Each part has an owner with private fields, in a file of its own.

use super::cages::KnownCages;
use super::clients::Clients;
use super::closing::Closing;
use super::links::Workers;
use super::questions::Questions;
use super::records::SessionJournal;
use super::reserve::Reserve;
use super::running_calls::RunningCalls;
use super::services::Services;
use super::tampered_files::TamperedFiles;
use super::tasks::Tasks;
use super::unjudged::Unjudged;
use crate::audit_actor::AuditMsg;
use crate::client_actor::feed::Feed;
use crate::messages::{CallMsg, ClientMsg, RootMsg, SessionMsg};
use crate::project_caches::CacheLease;
use crate::route::Router;
use crate::task_outcome::TaskOutcome;
use crate::written_dirs::WrittenDirs;
use call::FileVersions;
use launch::session_lock::SessionLock;
use launch::spawner::Spawner;
use launch::timeouts::WorkerTimeouts;
use protocol::judgement::Audience;
use protocol::tool::TlsIdentity;
use ractor::ActorRef;
use setup::session_spec::SessionSpec;
use std::fs::File;
use std::sync::Arc;
use tokio::sync::oneshot;

/// One open session.
pub(crate) struct SessionActorState {
    pub(super) own: ActorRef<SessionMsg>,
    pub(super) root: ActorRef<RootMsg>,
    pub(super) spec: SessionSpec,
    pub(super) resources: SessionResources,
    pub(super) journal: SessionJournal,
    /// The processes that serve it, and what waits for those that are away.
    pub(super) workers: Workers,
    pub(super) calls: SessionCalls,
    pub(super) clients: SessionClients,
    /// What waits for a person.
    pub(super) questions: Questions<ActorRef<ClientMsg>>,
    pub(super) turn: SessionTurn,
    /// Sub-agents, and who waits for this session if it is one.
    pub(super) tasks: SessionTasks,
    pub(super) closing: Closing<oneshot::Sender<()>>,
}

/// Files, locks and settings that the session was opened with.
pub(super) struct SessionResources {
    pub(super) audit: ActorRef<AuditMsg>,
    /// Keeps the package caches of its project.
    pub(super) caches: Option<CacheLease>,
    /// Keeps cleaners of `/tmp` away from its private directories.
    pub(super) _private: Option<File>,
    pub(super) lock: SessionLock,
    /// The certificate of its proxies, for hosts that they sign in to.
    pub(super) identity: Option<Arc<TlsIdentity>>,
    pub(super) spawner: Spawner,
    pub(super) times: WorkerTimeouts,
    /// The directories that calls of any session write.
    pub(super) written: Arc<WrittenDirs>,
}

impl SessionResources {
    /// Reads the directories that calls of other projects write. A call starts only if they can be read.
    pub(super) fn reread_written_dirs(&self, spec: &mut SessionSpec) {
        match self.written.all() {
            Ok(dirs) => spec.confinement.written_elsewhere = dirs,
            Err(error) => tracing::warn!(%error, "the list of written directories"),
        }
    }
}

/// The session's calls, and facts about files that outlast them.
pub(super) struct SessionCalls {
    pub(super) running: RunningCalls,
    /// Those among them that the conversation does not wait for, and the MCP servers.
    pub(super) services: Services<ActorRef<CallMsg>>,
    /// Has the next command's runner.
    pub(super) reserve: Reserve,
    /// Calls that may end without a verdict.
    pub(super) unjudged: Unjudged,
    /// The versions of files that the model has read or written.
    pub(super) file_versions: FileVersions,
    /// Protected files that a call changed.
    pub(super) tampered: TamperedFiles,
    /// What clients know of their cages.
    pub(super) cages: KnownCages,
}

/// The tasks of a session.
pub(super) type SessionTasks =
    Tasks<ActorRef<SessionMsg>, oneshot::Sender<()>, oneshot::Sender<TaskOutcome>>;

/// The session's clients.
pub(super) type SessionClients = Clients<ActorRef<ClientMsg>, Feed>;

/// Turns and prompts.
pub(super) struct SessionTurn {
    pub(super) router: Router,
    /// A person joined while a script's turn ran: people can be asked from the next turn on.
    pub(super) next_audience: Option<Audience>,
}
