//! One prompt, from the opening of a session to the end of its turn.
//!
//! A thread listens to the supervisor; this one takes what comes from there, from signals and from
//! the clock, in one closed enum, and writes what the view says. A supervisor that is lost is
//! followed by another, which goes on with the session from the last event that was seen.

use crate::connection::Connection;
use crate::supervisors::Supervisors;
use crate::transcript::{Conclusion, OpenedSession, Transcript};
use crate::view::{Moment, Shown, View};
use ipc::{ChannelError, Receiver, Sender};
use protocol::client::{
    Event, FailedKind, FromClient, Opening, Others, Rights, Since, Start, ToClient,
};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// Words held for a view that is slower than the supervisor, before the supervisor waits.
const QUEUE: usize = 256;
/// Longest time for a turn to end after it was asked to.
const GRACE: Duration = Duration::from_secs(4);
/// A supervisor that says nothing for so long is asked for a sign of life. It owes none while it
/// has nothing to tell, so that silence alone proves nothing.
const QUIET: Duration = Duration::from_secs(2);
/// Questions in a row that may stay unanswered. One may be our own fault: a client that was stopped
/// itself finds the answer a moment later.
const UNANSWERED: u32 = 2;
/// So many supervisors may be lost in one run. One that is killed is an accident; one that dies
/// each time it sees this session is a fault that another start does not mend.
const LIVES: u32 = 3;

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
    /// The supervisor is gone, and no other took its place.
    #[error("the connection to the supervisor is lost")]
    Lost(#[source] ChannelError),
    /// There is no supervisor to connect to.
    #[error(transparent)]
    NoSupervisor(Box<dyn std::error::Error + Send + Sync>),
    /// It was ended before the session was open.
    #[error("ended before the session was open")]
    Stopped(Stop),
}

/// Runs one prompt to its end. `signals` is given the sender into which signals go.
///
/// # Errors
/// Where there was no session, or the supervisor was lost for good.
pub fn run(
    supervisors: &mut dyn Supervisors,
    task: Task,
    view: &mut dyn View,
    signals: impl FnOnce(SyncSender<Input>),
) -> Result<Finished, RunError> {
    let began = Instant::now();
    let deadline = task.time_limit.map(|limit| began + limit);
    let (sender, inputs) = mpsc::sync_channel(QUEUE);
    signals(sender.clone());
    let ear = Ear { sender, current: Arc::default() };
    let say = begin(supervisors, &task.opening, &task.papers, &ear)?;
    let run = Run {
        supervisors,
        task,
        say,
        ear,
        inputs,
        unanswered: 0,
        deadline,
        stopped: None,
        output: Output::Open,
        view,
        seen: 0,
        prompt: Prompt::ToBeSaid,
        lives: 1,
    };
    run.go(began)
}

/// Connects, asks for the session, and has a thread listen.
fn begin(
    supervisors: &mut dyn Supervisors,
    opening: &Opening,
    papers: &[OwnedFd],
    ear: &Ear,
) -> Result<Sender<FromClient>, RunError> {
    // What the one before says from now on, its end above all, is none of ours.
    let life = ear.current.fetch_add(1, Ordering::Relaxed) + 1;
    let connection: Connection = supervisors.connect().map_err(RunError::NoSupervisor)?;
    connection.send(&FromClient::Open(opening.clone()), papers).map_err(RunError::Lost)?;
    let (words, say) = connection.split();
    let ear = ear.clone();
    std::thread::spawn(move || listen(words, &ear, life));
    Ok(say)
}

/// Where the words of the present supervisor go.
#[derive(Debug, Clone)]
struct Ear {
    sender: SyncSender<Input>,
    /// Which supervisor of this run that is.
    current: Arc<AtomicU32>,
}

fn listen(mut words: Receiver<ToClient>, ear: &Ear, life: u32) {
    loop {
        let (input, last) = match words.recv() {
            Ok(word) => (Input::Word(word), false),
            Err(error) => (Input::Lost(error), true),
        };
        // The other end is gone when the run is over.
        let past = ear.current.load(Ordering::Relaxed) != life;
        if past || ear.sender.send(input).is_err() || last {
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

/// Whether the supervisor has put the prompt on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prompt {
    ToBeSaid,
    Kept,
}

struct Run<'a> {
    supervisors: &'a mut dyn Supervisors,
    task: Task,
    say: Sender<FromClient>,
    ear: Ear,
    inputs: mpsc::Receiver<Input>,
    /// Questions for a sign of life since the last word.
    unanswered: u32,
    deadline: Option<Instant>,
    stopped: Option<Stop>,
    output: Output,
    view: &'a mut dyn View,
    /// The number of the last kept event that was seen.
    seen: u64,
    prompt: Prompt,
    /// Supervisors so far.
    lives: u32,
}

impl Run<'_> {
    fn go(mut self, began: Instant) -> Result<Finished, RunError> {
        let opened = self.open()?;
        let mut transcript = Transcript::new(opened);
        let shown = self.view.show(&transcript, Moment::Opened(transcript.opened()));
        self.write(&shown);
        self.follow(&mut transcript)?;
        let session = transcript.opened().session.clone();
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let conclusion = transcript.conclude(duration_ms, self.stopped.map(why));
        let shown = self.view.show(&transcript, Moment::Concluded(&conclusion));
        self.write(&shown);
        Ok(Finished { conclusion, session, stopped: self.stopped })
    }

    /// The next thing that comes in. A supervisor that is silent is asked whether it lives.
    fn next(&mut self) -> Input {
        loop {
            let now = Instant::now();
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(now));
            let patience = left.map_or(QUIET, |left| left.min(QUIET));
            match self.inputs.recv_timeout(patience) {
                Ok(Input::Word(ToClient::Pong(_))) => self.unanswered = 0,
                Ok(input) => {
                    self.unanswered = 0;
                    return input;
                }
                Err(RecvTimeoutError::Disconnected) => return Input::Lost(ChannelError::Closed),
                Err(RecvTimeoutError::Timeout) if left.is_some_and(|left| left <= QUIET) => {
                    return Input::TimeOver;
                }
                Err(RecvTimeoutError::Timeout) if self.unanswered >= UNANSWERED => {
                    self.unanswered = 0;
                    // Its end is known of before it comes in.
                    self.ear.current.fetch_add(1, Ordering::Relaxed);
                    self.supervisors.unanswered();
                    return Input::Lost(io::Error::from(io::ErrorKind::TimedOut).into());
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.unanswered += 1;
                    // Should this fail, the loss of the supervisor comes in by itself.
                    let _ = self.say.send(&FromClient::Ping(u64::from(self.unanswered)));
                }
            }
        }
    }

    /// Waits for the session and attaches to it, behind what was seen.
    fn open(&mut self) -> Result<OpenedSession, RunError> {
        let word = match self.next() {
            Input::Word(word) => word,
            Input::Lost(error) => return Err(RunError::Lost(error)),
            Input::Signal(signal) => {
                return Err(RunError::Stopped(Stop::Signal(signal)));
            }
            Input::TimeOver => return Err(RunError::Stopped(Stop::TimeLimit)),
        };
        match word {
            ToClient::Opened {
                session,
                model,
                tools,
                mode,
                network: _,
                sandbox,
                last_seq,
                warnings,
            } => {
                if self.lives == 1 {
                    self.seen = last_seq;
                }
                let from = self.seen.saturating_add(1);
                self.say.send(&follow(&session, from)).map_err(RunError::Lost)?;
                let project = self.task.opening.project.to_path().display().to_string();
                Ok(OpenedSession { session, project, model, tools, mode, sandbox, warnings })
            }
            ToClient::Failed { kind, message } => Err(RunError::Failed { kind, message }),
            ToClient::Welcome { .. }
            | ToClient::Refused { .. }
            | ToClient::Attached { .. }
            | ToClient::Detached { .. }
            | ToClient::Behind { .. }
            | ToClient::Page { .. }
            | ToClient::TakenBack { .. }
            | ToClient::Sessions(_)
            | ToClient::Status(_)
            | ToClient::Done
            | ToClient::Event { .. }
            | ToClient::Pong(_)
            | ToClient::Processes(_) => Err(RunError::Lost(ChannelError::OutOfTurn)),
        }
    }

    /// Follows the session until its turn is over, or whoever stops it has waited long enough.
    fn follow(&mut self, transcript: &mut Transcript) -> Result<(), RunError> {
        let session = transcript.opened().session.clone();
        while !transcript.is_over() {
            match self.next() {
                Input::Word(ToClient::Event { session: about, seq, event }) => {
                    if about == session {
                        ipc::step!("client: event seen");
                        self.seen = self.seen.max(seq);
                        self.happened(transcript, &event);
                    }
                }
                Input::Word(ToClient::Attached { .. }) => {
                    if self.prompt == Prompt::ToBeSaid {
                        let text = self.task.prompt.clone();
                        let word = FromClient::Prompt { session: session.clone(), text };
                        // Should this fail, the loss of the supervisor comes in by itself.
                        let _ = self.say.send(&word);
                        ipc::step!("client: prompt sent");
                    }
                }
                // Read too slowly: what was left out comes from the disk.
                Input::Word(ToClient::Behind { session }) => {
                    let _ = self.say.send(&follow(&session, self.seen + 1));
                }
                Input::Word(ToClient::Failed { kind, message }) => {
                    return Err(RunError::Failed { kind, message });
                }
                Input::Word(
                    ToClient::Welcome { .. }
                    | ToClient::Refused { .. }
                    | ToClient::Opened { .. }
                    | ToClient::Detached { .. }
                    | ToClient::Page { .. }
                    | ToClient::TakenBack { .. }
                    | ToClient::Sessions(_)
                    | ToClient::Status(_)
                    | ToClient::Done
                    | ToClient::Pong(_)
                    | ToClient::Processes(_),
                ) => return Err(RunError::Lost(ChannelError::OutOfTurn)),
                Input::Lost(error) if self.stopped.is_none() => {
                    self.reconnect(transcript, error)?;
                }
                Input::Lost(_) => break,
                // The second one does not wait.
                Input::Signal(_) | Input::TimeOver if self.stopped.is_some() => break,
                Input::Signal(signal) => self.stop(Stop::Signal(signal), &session),
                Input::TimeOver => self.stop(Stop::TimeLimit, &session),
            }
        }
        Ok(())
    }

    fn happened(&mut self, transcript: &mut Transcript, event: &Event) {
        if let Event::Prompt { .. } = event {
            self.prompt = Prompt::Kept;
        }
        transcript.update(event);
        let shown = self.view.show(transcript, Moment::Happened(event));
        self.write(&shown);
        if self.output == Output::Closed && self.stopped.is_none() {
            self.stop(Stop::OutputClosed, &transcript.opened().session.clone());
        }
    }

    /// Goes on with the session under another supervisor. What was streamed and not kept is void.
    fn reconnect(
        &mut self,
        transcript: &mut Transcript,
        error: ChannelError,
    ) -> Result<(), RunError> {
        if self.lives >= LIVES {
            return Err(RunError::Lost(error));
        }
        self.lives += 1;
        let reason = "the supervisor was lost; another one goes on with the session".to_owned();
        self.happened(transcript, &Event::Struck { reason });
        let opening = Opening {
            start: Start::Resume {
                session: transcript.opened().session.clone(),
                open_turn: OpenTurn::GoesOn,
            },
            ..self.task.opening.clone()
        };
        self.say = begin(self.supervisors, &opening, &self.task.papers, &self.ear)?;
        self.open().map(drop)
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

/// To see a session's events from this one on.
fn follow(session: &SessionId, from: u64) -> FromClient {
    FromClient::Attach {
        session: session.clone(),
        from: Since::Seq(from),
        rights: Rights::Full,
        others: Others::Stay,
    }
}

fn why(stop: Stop) -> &'static str {
    match stop {
        Stop::Signal(_) => "interrupted by a signal",
        Stop::TimeLimit => "the time limit of --timeout was reached",
        Stop::OutputClosed => "nobody reads the output any more",
    }
}
