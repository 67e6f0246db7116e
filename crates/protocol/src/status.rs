//! The rows of `ls`, `ps` and `daemon status`. For the wire of [`crate::client`].

use crate::confinement::{FilePath, Tier};
use crate::ids::{CallId, SessionId};
use crate::{Decode, Encode};
pub use journal::SessionCost;

/// Where a session is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SessionStatus {
    /// On disk only.
    Ended,
    /// Live, and nothing to do.
    Idle,
    /// Live, and a turn runs.
    Working,
    /// Live, and so many commands run in the background; no turn runs.
    Background(u32),
    /// Live, and so many questions wait for a person.
    Asking(u32),
    /// It can be read only, and why.
    Degraded(String),
    /// It cannot be read, and why.
    Unreadable(String),
    /// On disk only; its last turn was cut short, and how.
    CutShort(String),
    /// Live, and nothing to do; its last turn was cut short by deaths of a process, and how.
    IdleCutShort(String),
}

impl SessionStatus {
    /// No supervisor runs it, as far as this list knows.
    #[must_use]
    pub fn is_of_disk(&self) -> bool {
        match self {
            Self::Ended | Self::Unreadable(_) | Self::CutShort(_) => true,
            Self::Idle
            | Self::Working
            | Self::Background(_)
            | Self::Asking(_)
            | Self::Degraded(_)
            | Self::IdleCutShort(_) => false,
        }
    }
}

/// A session, as `ls` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SessionRow {
    /// Its name.
    pub session: SessionId,
    /// The name that a person gave it; empty where none did.
    pub name: String,
    /// The beginning of its first prompt.
    pub title: String,
    /// Its project directory.
    pub project: FilePath,
    /// The vendor's name of the model.
    pub model: String,
    /// Where it is.
    pub state: SessionStatus,
    /// When it began, in milliseconds of Unix time.
    pub began: u64,
    /// When its last record was written, in milliseconds of Unix time.
    pub last: u64,
    /// Prompts so far; not counted where the session is long and not live.
    pub turns: Option<u32>,
    /// What its answers and its sub-agents cost.
    pub cost: SessionCost,
    /// Attached clients.
    pub clients: u32,
    /// The call that it works for, if it is a sub-agent's.
    pub parent: Option<CallId>,
}

/// A supervisor, as `daemon status` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct DaemonStatus {
    /// Its process id.
    pub pid: u32,
    /// `protocol::BUILD_ID`.
    pub build: String,
    /// When it began, in milliseconds of Unix time.
    pub began: u64,
    /// The strongest cage this host allows, in plain words.
    pub sandbox: String,
    /// Live sessions.
    pub sessions: u32,
    /// Those of them in which a turn or a command runs.
    pub working: u32,
    /// Most sessions that its limits allow.
    pub room: u64,
    /// The limit behind `room`, in words.
    pub limit: String,
    /// Connected clients.
    pub clients: u32,
    /// Problems, one sentence each.
    pub troubles: Vec<String>,
}

/// A process of agentd's, as `ps` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProcessRow {
    /// The executable's name.
    pub worker: String,
    /// Its session, for workers that have one.
    pub session: Option<SessionId>,
    /// Process ID; 0 while the worker is suspended or restarting.
    pub pid: u32,
    /// Which life this is, counted from 1.
    pub generation: u32,
    /// How often it was restarted.
    pub restarts: u32,
    /// Why it was restarted last, or that it rests.
    pub last_cause: Option<String>,
    /// The cage of its session's commands; the broker's own.
    pub cage: Option<Tier>,
}
