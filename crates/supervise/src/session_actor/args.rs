//! The arguments of a session actor.

use crate::audit_actor::AuditMsg;
use crate::fleet_seat::Seated;
use crate::messages::RootMsg;
use crate::person_prompt::{PersonPrompt, TypedCommand};
use crate::project_caches::CacheLease;
use crate::worker_ref::WorkerRef;
use crate::written_dirs::WrittenDirs;
use call::{FileVersions, PendingQuestion};
use journal::OpenCall;
use launch::session_lock::SessionLock;
use launch::spawner::Spawner;
use launch::timeouts::WorkerTimeouts;
use protocol::broker::BrokerLink;
use protocol::client::SettingChange;
use protocol::judgement::Rule;
use protocol::provider::PassedFd;
use protocol::session::{OpenTurn, TaskUse, WorkerDeaths};
use protocol::tool::TlsIdentity;
use ractor::ActorRef;
use setup::session_spec::SessionSpec;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of a session actor.
pub(crate) struct SessionArgs {
    pub(crate) plan: SessionSpec,
    /// Keeps the package caches of its project.
    pub(crate) caches: Option<CacheLease>,
    /// Keeps cleaners of `/tmp` away from its private directories.
    pub(crate) private: Option<File>,
    pub(crate) opened: OpenedJournal,
    pub(crate) passed_fds: Vec<(PassedFd, OwnedFd)>,
    /// The certificate with which its proxies stand in for hosts that they sign in to.
    pub(crate) identity: Option<Arc<TlsIdentity>>,
    pub(crate) spawner: Spawner,
    pub(crate) times: WorkerTimeouts,
    /// The directories that calls of any session write.
    pub(crate) written: Arc<WrittenDirs>,
    pub(crate) broker: WorkerRef<BrokerLink>,
    pub(crate) audit: ActorRef<AuditMsg>,
    pub(crate) root: ActorRef<RootMsg>,
    /// Its seat in a fleet.
    pub(crate) fleet: Option<Seated>,
}

/// What a slash command or a skill gives to its turn, which is open.
#[derive(Debug, Default)]
pub(crate) struct OpenTurnGrants {
    /// Rules that allow.
    pub(crate) allow: Vec<Rule>,
    /// The name of another model than the session's.
    pub(crate) model: Option<String>,
    /// It is the turn of a person's own command instead.
    pub(crate) typed: Option<TypedCommand>,
}

/// What people want and the conversation has not done.
#[derive(Debug, Default)]
pub(crate) struct WaitingWishes {
    /// Prompts.
    pub(crate) queue: VecDeque<PersonPrompt>,
    /// Room in the context, with this focus. Hooks ran for it.
    pub(crate) compact: Option<String>,
}

/// The sub-agents of a session that is opened.
#[derive(Debug, Default)]
pub(crate) struct OpenedTasks {
    /// Calls of those in the background. They have no end, and are waited for again.
    pub(crate) left: Vec<OpenCall>,
    /// Everything that all of them have used.
    pub(crate) used: TaskUse,
}

/// A session's journal, new or repaired, and the state that its records give.
pub(crate) struct OpenedJournal {
    pub(crate) journal: journal::Journal,
    pub(crate) hold: SessionLock,
    pub(crate) directory: PathBuf,
    /// The number of turns in it.
    pub(crate) turns: u32,
    /// The last turn is open and goes on, or waits.
    pub(crate) last: OpenTurn,
    /// The deaths that cut the last turn short, if they did and it does not go on.
    pub(crate) cut_short: Option<WorkerDeaths>,
    /// Questions without an answer, by their calls.
    pub(crate) pending_questions: Vec<(u32, PendingQuestion)>,
    pub(crate) waiting: WaitingWishes,
    /// What the prompt of an open turn grants.
    pub(crate) turn: OpenTurnGrants,
    /// Settings that people changed.
    pub(crate) changes: Vec<SettingChange>,
    /// Rules that people gave for the session.
    pub(crate) remembered_rules: Vec<Rule>,
    /// The file versions that the model knows.
    pub(crate) file_versions: FileVersions,
    /// Protected files that calls changed and that no person has accepted.
    pub(crate) tampered: Vec<String>,
    pub(crate) tasks: OpenedTasks,
    /// Protected files that were restored while the session was opened, and how.
    pub(crate) repaired: Vec<String>,
}
