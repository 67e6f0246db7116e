//! A run's task, inputs and result.

use crate::answer_check::AnswerCheck;
use crate::client_error::{ClientError, RunStop};
use crate::session_connection::{LoopInput, SupervisorInput};
use crate::transcript::RunConclusion;
use ipc::ChannelError;
use protocol::client::{SessionRequest, ToClient};
use protocol::ids::SessionId;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;

/// The task of a run.
#[derive(Debug)]
pub struct Task {
    /// The session.
    pub opening: SessionRequest,
    /// The descriptors that `opening.papers` names.
    pub papers: Vec<OwnedFd>,
    /// The first prompt.
    pub prompt: String,
    /// Further prompts.
    pub more: Prompts,
    /// The form that each prompt's last answer must have.
    pub form: Option<Box<dyn AnswerCheck>>,
    /// Longest time for the whole run.
    pub time_limit: Option<Duration>,
}

/// Prompts after the first. Each is sent when the turn of the previous one is over.
pub enum Prompts {
    /// There are none.
    One,
    /// Reads the next prompt and blocks until it arrives. `None` at the end of input; an error for
    /// an invalid prompt.
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

/// A thread that reads one prompt on each request, so that signals are handled meanwhile.
pub(super) fn read_prompts(
    mut next: Box<dyn FnMut() -> Option<Result<String, String>> + Send>,
    inputs: SyncSender<RunInput>,
) -> SyncSender<()> {
    let (wanted, asked) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        while asked.recv().is_ok() {
            if inputs.send(RunInput::Next(next())).is_err() {
                return;
            }
        }
    });
    wanted
}

/// An input of the loop.
#[derive(Debug)]
// Each input is moved once. A box per message would cost more than it saves.
#[allow(clippy::large_enum_variant)]
pub enum RunInput {
    /// A message of the supervisor.
    Message(ToClient),
    /// The supervisor is gone.
    Lost(ChannelError),
    /// A signal that asks this process to end.
    Signal(i32),
    /// The next prompt, or the error of an invalid one. `None` at the end of input.
    Next(Option<Result<String, String>>),
    /// The time limit is reached.
    TimeOver,
}

impl From<SupervisorInput> for RunInput {
    fn from(input: SupervisorInput) -> Self {
        match input {
            SupervisorInput::Message(message) => Self::Message(message),
            SupervisorInput::Lost(error) => Self::Lost(error),
            SupervisorInput::Silent => Self::Lost(io::Error::from(io::ErrorKind::TimedOut).into()),
        }
    }
}

impl LoopInput for RunInput {
    fn is_message(&self) -> bool {
        matches!(self, Self::Message(_))
    }
}

/// A run that had a session.
#[derive(Debug)]
pub struct Finished {
    /// Its result.
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
