//! The wire to `agentd-store`: what a session and its project keep beside the conversation.
//!
//! `Begin` → `Ready` and `Foreword` → any number of `Do`, each answered by one `Answered`. A `Do` that was not
//! answered may be said again to a new life under the same call: what was done for it once is not
//! done again.

use crate::call::{Call, ToolResult};
use crate::confinement::{Confinement, FilePath};
use crate::ids::{CallId, SessionId};
use crate::upkeep::LogLine;
use crate::{Decode, Encode, Link};

/// The wire's name.
#[derive(Debug)]
pub enum StoreLink {}

impl Link for StoreLink {
    type To = ToStore;
    type From = FromStore;
    const NAME: &'static str = "store";
    /// A file of some MiB, or a result with its text.
    const MESSAGE_CAP: usize = 16 << 20;
}

/// What a store is begun with.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct StoreSetup {
    /// Its cage. What is in it as added directories is what it may write.
    pub confinement: Confinement,
    /// Whose session.
    pub session: SessionId,
    /// Where this project's things lie.
    pub project_store: FilePath,
    /// Where this person's things lie, whatever the project.
    pub user_store: FilePath,
}

/// From the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToStore {
    /// First and once.
    Begin(StoreSetup),
    /// An allowed call of one of the store's tools.
    Do(Call),
    /// Answered by `Pong` with the same number.
    Ping(u64),
}

/// From the worker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromStore {
    /// Confined, and ready for calls.
    Ready,
    /// What the model is told beside the system prompt: instructions of the project, and what
    /// skills there are. May be empty.
    Foreword(String),
    /// The answer to `Do`; what it did is durable.
    Answered {
        /// The call.
        call: CallId,
        /// What it came to.
        result: ToolResult,
    },
    /// Alive.
    Pong(u64),
    /// For the log.
    Log(LogLine),
}
