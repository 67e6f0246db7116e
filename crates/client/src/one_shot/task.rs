//! What a run is given, what comes in while it goes on, and what it is in the end.

use crate::client_error::{ClientError, RunStop};
use crate::event_reader::SupervisorInput;
use crate::transcript::RunConclusion;
use ipc::ChannelError;
use protocol::client::{Opening, ToClient};
use protocol::ids::SessionId;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// What is to be done.
#[derive(Debug)]
pub struct Task {
    /// The session.
    pub opening: Opening,
    /// The descriptors that `opening.papers` names.
    pub papers: Vec<OwnedFd>,
    /// The words for the model.
    pub prompt: String,
    /// What is said after them.
    pub more: Prompts,
    /// Longest time for all of it.
    pub time_limit: Option<Duration>,
}

/// Prompts behind the first, each said when the turn of the one before it is over.
pub enum Prompts {
    /// There is none.
    One,
    /// The next one, or why it is none; blocks until it is there, and has none at the end.
    Following(Box<dyn FnMut() -> Option<Result<String, String>> + Send>),
}

impl std::fmt::Debug for Prompts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::One => "One",
            Self::Following(_) => "Following",
        })
    }
}

/// Something that comes in.
#[derive(Debug)]
// Each is moved once; a box for each word would cost more than it saves.
#[allow(clippy::large_enum_variant)]
pub enum RunInput {
    /// A word of the supervisor.
    Message(ToClient),
    /// The supervisor is gone.
    Lost(ChannelError),
    /// A signal that asks this process to end.
    Signal(i32),
    /// The next prompt, or why it is none; nothing where there are no more.
    Next(Option<Result<String, String>>),
    /// The time limit is reached.
    TimeOver,
}

impl SupervisorInput for RunInput {
    fn message(word: ToClient) -> Self {
        Self::Message(word)
    }

    fn lost(error: ChannelError) -> Self {
        Self::Lost(error)
    }
}

/// A run that had a session.
#[derive(Debug)]
pub struct Finished {
    /// What it came to.
    pub conclusion: RunConclusion,
    /// The session.
    pub session: SessionId,
    /// Why it was ended, unless by itself.
    pub stopped: Option<RunStop>,
}

/// A run that came to no conclusion.
#[derive(Debug)]
pub struct RunFailure {
    /// The session, if one was open.
    pub session: Option<SessionId>,
    /// Why.
    pub error: ClientError,
}
