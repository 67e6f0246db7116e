//! The state of the supervisor actor.

use crate::SupervisorSettings;
use crate::audit_actor::{AuditFailure, AuditMsg};
use crate::messages::{ClientMsg, OpenRequest, SessionMsg};
use crate::remover::Remover;
use crate::worker_ref::WorkerRef;
use crate::written_dirs::WrittenDirs;
use launch::project_overlays::OverlayRegistry;
use launch::spawner::Spawner;
use protocol::broker::BrokerLink;
use protocol::confinement::Tier;
use protocol::ids::SessionId;
use ractor::{ActorId, ActorRef};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::AbortHandle;

/// The supervisor: its sessions, its clients and the actors that serve them all.
pub(crate) struct RootState {
    pub(super) settings: Arc<SupervisorSettings>,
    pub(super) spawner: Spawner,
    pub(super) remover: Remover,
    pub(super) projects: ProjectDirs,
    pub(super) broker: BrokerState,
    pub(super) audit: ActorRef<AuditMsg>,
    pub(super) audit_closed: AuditFailure,
    pub(super) sessions: HashMap<SessionId, ActorRef<SessionMsg>>,
    /// Sessions that are being opened, with further requests for them.
    pub(super) opening: HashMap<SessionId, Vec<OpenRequest>>,
    /// Sessions that end because they are idle, with requests that wait for their end.
    pub(super) retiring: HashMap<SessionId, RetiringSession>,
    /// Number of clients admitted so far; names the next one.
    pub(super) clients_admitted: u32,
    pub(super) clients: HashMap<ActorId, ActorRef<ClientMsg>>,
    pub(super) shutdown_phase: ShutdownPhase,
    pub(super) idle: IdleTimer,
    /// Start time of the supervisor, in milliseconds of Unix time.
    pub(super) started_at: u64,
}

/// Directories of projects, which their sessions share.
#[derive(Clone)]
pub(super) struct ProjectDirs {
    pub(super) overlays: OverlayRegistry,
    pub(super) written: Arc<WrittenDirs>,
}

/// The broker, and how it is.
pub(super) struct BrokerState {
    pub(super) worker: WorkerRef<BrokerLink>,
    /// Why it will not be restarted.
    pub(super) failed: Option<String>,
    /// The cage of the running broker.
    pub(super) cage: Option<Tier>,
}

/// A session that is ending.
pub(super) struct RetiringSession {
    pub(super) actor: ActorRef<SessionMsg>,
    pub(super) waiting: Vec<OpenRequest>,
}

/// Progress of the shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShutdownPhase {
    NotStarted,
    /// This many sessions are still ending.
    EndingSessions(usize),
    /// The sessions have ended; the broker is ending.
    EndingBroker,
}

/// The idle timer of the daemon.
#[derive(Debug, Default)]
pub(super) struct IdleTimer {
    /// A newer timer makes the messages of this one void.
    pub(super) number: u64,
    pub(super) handle: Option<AbortHandle>,
}
