//! One prompt, from the opening of a session to the end of its turn.
//!
//! A thread listens to the supervisor; this one takes what comes from there, from signals and from
//! the clock, in one closed enum, and writes what the view says.

use crate::connection::Connection;
use crate::transcript::{Conclusion, OpenedSession, Transcript};
use crate::view::{Moment, Shown, View};
use ipc::{ChannelError, Receiver, Sender};
use protocol::client::{FailedKind, FromClient, Opening, Rights, ToClient};
use protocol::ids::SessionId;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// Words held for a view that is slower than the supervisor, before the supervisor waits.
const QUEUE: usize = 256;
/// Longest time for a turn to end after it was asked to.
const GRACE: Duration = Duration::from_secs(4);

/// What is to be done.
#[derive(Debug)]
pub struct Task {
    /// The session.
    pub opening: Opening,
    /// The descriptors that `opening.papers` names.
    pub papers: Vec<OwnedFd>,
    /// The words for the model.
    pub prompt: String,
    /// Longest time for all of it.
    pub time_limit: Option<Duration>,
}

/// Something that comes in.
#[derive(Debug)]
pub enum Input {
    /// A word of the supervisor.
    Word(ToClient),
    /// The supervisor is gone.
    Lost(ChannelError),
    /// A signal that asks this process to end.
    Signal(i32),
    /// The time limit is reached.
    TimeOver,
}

/// Why a run was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A signal.
    Signal(i32),
    /// The time limit.
    TimeLimit,
    /// Nobody reads the output any more.
    OutputClosed,
}

/// A run that had a session.
#[derive(Debug)]
pub struct Finished {
    /// What it came to.
    pub conclusion: Conclusion,
    /// The session.
    pub session: SessionId,
    /// Why it was ended, unless by itself.
    pub stopped: Option<Stop>,
}

/// Why there was no session, or it was lost.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The supervisor did not do what was asked.
    #[error("{message}")]
    Failed {
        /// What kind.
        kind: FailedKind,
        /// In its words, with a way on.
        message: String,
    },
    /// The supervisor is gone.
    #[error("the connection to the supervisor is lost")]
    Lost(#[source] ChannelError),
    /// It was ended before the session was open.
    #[error("ended before the session was open")]
    Stopped(Stop),
}

/// Runs one prompt to its end. `signals` is given the sender into which signals go.
///
/// # Errors
/// Where there was no session, or the supervisor was lost.
pub fn run(
    connection: Connection,
    task: Task,
    view: &mut dyn View,
    signals: impl FnOnce(SyncSender<Input>),
) -> Result<Finished, RunError> {
    let began = Instant::now();
    let deadline = task.time_limit.map(|limit| began + limit);
    connection
        .send(&FromClient::Open(task.opening.clone()), &task.papers)
        .map_err(RunError::Lost)?;
    let (words, say) = connection.split();
    let (sender, inputs) = mpsc::sync_channel(QUEUE);
    signals(sender.clone());
    std::thread::spawn(move || listen(words, &sender));
    let mut run = Run { say, inputs, deadline, stopped: None, output: Output::Open, view };
    let transcript = run.open(&task)?;
    run.follow(transcript, began)
}

fn listen(mut words: Receiver<ToClient>, inputs: &SyncSender<Input>) {
    loop {
        let (input, last) = match words.recv() {
            Ok(word) => (Input::Word(word), false),
            Err(error) => (Input::Lost(error), true),
        };
        // The other end is gone when the run is over.
        if inputs.send(input).is_err() || last {
            return;
        }
    }
}

/// Whether somebody reads the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Open,
    Closed,
}

struct Run<'a> {
    say: Sender<FromClient>,
    inputs: mpsc::Receiver<Input>,
    deadline: Option<Instant>,
    stopped: Option<Stop>,
    output: Output,
    view: &'a mut dyn View,
}

impl Run<'_> {
    fn next(&self) -> Input {
        let input = match self.deadline {
            None => self.inputs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => {
                self.inputs.recv_timeout(deadline.saturating_duration_since(Instant::now()))
            }
        };
        match input {
            Ok(input) => input,
            Err(RecvTimeoutError::Timeout) => Input::TimeOver,
            Err(RecvTimeoutError::Disconnected) => Input::Lost(ChannelError::Closed),
        }
    }

    /// Waits for the session, attaches to it and says the prompt.
    fn open(&mut self, task: &Task) -> Result<Transcript, RunError> {
        let word = match self.next() {
            Input::Word(word) => word,
            Input::Lost(error) => return Err(RunError::Lost(error)),
            Input::Signal(signal) => {
                return Err(RunError::Stopped(Stop::Signal(signal)));
            }
            Input::TimeOver => return Err(RunError::Stopped(Stop::TimeLimit)),
        };
        match word {
            ToClient::Opened { session, model, tools, mode, sandbox, last_seq, warnings } => {
                let from = last_seq.saturating_add(1);
                let attach =
                    FromClient::Attach { session: session.clone(), from, rights: Rights::Full };
                self.say.send(&attach).map_err(RunError::Lost)?;
                let text = task.prompt.clone();
                let prompt = FromClient::Prompt { session: session.clone(), text };
                self.say.send(&prompt).map_err(RunError::Lost)?;
                let project = task.opening.project.to_path().display().to_string();
                let transcript = Transcript::new(OpenedSession {
                    session,
                    project,
                    model,
                    tools,
                    mode,
                    sandbox,
                    warnings,
                });
                let shown = self.view.show(&transcript, Moment::Opened(transcript.opened()));
                self.write(&shown);
                Ok(transcript)
            }
            ToClient::Failed { kind, message } => Err(RunError::Failed { kind, message }),
            ToClient::Welcome { .. }
            | ToClient::Refused { .. }
            | ToClient::Event { .. }
            | ToClient::Processes(_) => Err(RunError::Lost(ChannelError::OutOfTurn)),
        }
    }

    /// Follows the session until its turn is over, or whoever stops it has waited long enough.
    fn follow(mut self, mut transcript: Transcript, began: Instant) -> Result<Finished, RunError> {
        let session = transcript.opened().session.clone();
        while !transcript.is_over() {
            match self.next() {
                Input::Word(ToClient::Event { session: about, seq: _, event }) => {
                    if about != session {
                        continue;
                    }
                    transcript.update(&event);
                    let shown = self.view.show(&transcript, Moment::Happened(&event));
                    self.write(&shown);
                    if self.output == Output::Closed && self.stopped.is_none() {
                        self.stop(Stop::OutputClosed, &session);
                    }
                }
                Input::Word(ToClient::Failed { kind, message }) => {
                    return Err(RunError::Failed { kind, message });
                }
                Input::Word(
                    ToClient::Welcome { .. }
                    | ToClient::Refused { .. }
                    | ToClient::Opened { .. }
                    | ToClient::Processes(_),
                ) => return Err(RunError::Lost(ChannelError::OutOfTurn)),
                Input::Lost(error) if self.stopped.is_none() => {
                    return Err(RunError::Lost(error));
                }
                Input::Lost(_) => break,
                // The second one does not wait.
                Input::Signal(_) | Input::TimeOver if self.stopped.is_some() => break,
                Input::Signal(signal) => self.stop(Stop::Signal(signal), &session),
                Input::TimeOver => self.stop(Stop::TimeLimit, &session),
            }
        }
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let why = self.stopped.map(why);
        let conclusion = transcript.conclude(duration_ms, why);
        let shown = self.view.show(&transcript, Moment::Concluded(&conclusion));
        self.write(&shown);
        Ok(Finished { conclusion, session, stopped: self.stopped })
    }

    /// Asks the turn to end, and gives it some time to.
    fn stop(&mut self, why: Stop, session: &SessionId) {
        self.stopped = Some(why);
        self.deadline = Some(Instant::now() + GRACE);
        // Should this fail, the loss of the supervisor comes in by itself.
        let _ = self.say.send(&FromClient::Interrupt { session: session.clone() });
    }

    fn write(&mut self, shown: &Shown) {
        // Nobody who closed standard error wants to hear of it.
        let _ = io::stderr().write_all(shown.err.as_bytes());
        if self.output == Output::Open && !shown.out.is_empty() {
            let mut out = io::stdout().lock();
            if out.write_all(shown.out.as_bytes()).and_then(|()| out.flush()).is_err() {
                self.output = Output::Closed;
            }
        }
    }
}

fn why(stop: Stop) -> &'static str {
    match stop {
        Stop::Signal(_) => "interrupted by a signal",
        Stop::TimeLimit => "the time limit of --timeout was reached",
        Stop::OutputClosed => "nobody reads the output any more",
    }
}
