//! One prompt, from the opening of a session to the end of its turn.
//!
//! A thread listens to the supervisor; this one takes what comes from there, from signals and from
//! the clock, in one closed enum, and writes what the view says. A supervisor that is lost is
//! followed by another, which goes on with the session from the last event that was seen.

mod task;

use crate::calling::Calling;
use crate::ear::{Ear, QUIET, SLOW, UNANSWERED};
use crate::run_error::{RunError, Stop};
use crate::supervisors::{Silence, Supervisors};
use crate::transcript::{OpenedSession, Transcript};
use crate::view::{Moment, Shown, View};
use ipc::{ChannelError, Sender};
use protocol::client::{
    Event, FailedKind, FromClient, Opening, Others, Parting, Rights, Since, Start, ToClient,
};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

pub use task::{Finished, Input, Prompts, RunFailure, Task};

/// Words held for a view that is slower than the supervisor, before the supervisor waits.
const QUEUE: usize = 256;
/// Longest time for a turn to end after it was asked to.
const GRACE: Duration = Duration::from_secs(4);
/// So many supervisors may be lost without progress in between. One that is killed is an accident;
/// one that dies each time at the same place is a fault that another start does not mend.
const LOSSES: u32 = 3;
/// Where a supervisor was lost that had another one's session to open.
const REOPENED: &str = "while the session was opened again";

/// Runs one prompt to its end. `signals` is given the sender into which signals go.
///
/// # Errors
/// Where there was no session, or the supervisor was lost for good.
pub fn run(
    supervisors: &mut dyn Supervisors,
    mut task: Task,
    view: &mut dyn View,
    signals: impl FnOnce(SyncSender<Input>),
) -> Result<Finished, RunFailure> {
    let began = Instant::now();
    let deadline = task.time_limit.map(|limit| began + limit);
    let (sender, inputs) = mpsc::sync_channel(QUEUE);
    signals(sender.clone());
    let wanted = match std::mem::replace(&mut task.more, Prompts::One) {
        Prompts::One => None,
        Prompts::Following(next) => Some(read_prompts(next, sender.clone())),
    };
    let ear = Ear::new(sender);
    let say = ear
        .begin(supervisors, &task.opening, &task.papers)
        .map_err(|error| RunFailure { session: None, error })?;
    let mut run = Run {
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
        wanted,
        session: None,
        losses: 0,
        calling: Calling::default(),
    };
    run.go(began).map_err(|error| RunFailure { session: run.session.take(), error })
}

/// A thread that reads one prompt each time it is asked to, so that signals are heard meanwhile.
fn read_prompts(
    mut next: Box<dyn FnMut() -> Option<Result<String, String>> + Send>,
    inputs: SyncSender<Input>,
) -> SyncSender<()> {
    let (wanted, asked) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        while asked.recv().is_ok() {
            if inputs.send(Input::Next(next())).is_err() {
                return;
            }
        }
    });
    wanted
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
    /// Over the present connection; nothing was heard of it yet.
    Said,
    Waits,
    Kept,
}

struct Run<'a> {
    supervisors: &'a mut dyn Supervisors,
    task: Task,
    say: Sender<FromClient>,
    ear: Ear<Input>,
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
    /// Asks for the next prompt, where more than one may come.
    wanted: Option<SyncSender<()>>,
    /// Known once it is open.
    session: Option<SessionId>,
    /// Supervisors lost since the last progress.
    losses: u32,
    calling: Calling,
}

impl Run<'_> {
    fn go(&mut self, began: Instant) -> Result<Finished, RunError> {
        let opened = self.open()?;
        let mut transcript = Transcript::new(opened);
        let shown = self.view.show(&transcript, Moment::Opened(transcript.opened()));
        self.write(&shown);
        let session = transcript.opened().session.clone();
        // The first turn that went wrong is what the run came to.
        let (mut began, mut wrong) = (began, None);
        loop {
            self.follow(&mut transcript)?;
            let took = std::mem::take(&mut self.calling).took(began);
            let conclusion = transcript.conclude(took, self.stopped.map(why));
            let shown = self.view.show(&transcript, Moment::Concluded(&conclusion));
            self.write(&shown);
            let goes_on = self.stopped.is_none() && conclusion.degraded.is_none();
            if !conclusion.is_good() {
                wrong = wrong.or(Some(conclusion.clone()));
            }
            if !goes_on || !self.next_prompt(&mut transcript)? {
                let conclusion = wrong.unwrap_or(conclusion);
                return Ok(Finished { conclusion, session, stopped: self.stopped });
            }
            began = Instant::now();
            transcript = Transcript::new(transcript.opened().clone());
            self.say_prompt(&session);
        }
    }

    /// Waits for the next prompt; whether there is one.
    fn next_prompt(&mut self, transcript: &mut Transcript) -> Result<bool, RunError> {
        let Some(wanted) = &self.wanted else { return Ok(false) };
        if wanted.send(()).is_err() {
            return Ok(false);
        }
        loop {
            match self.next() {
                Input::Next(Some(Ok(text))) => {
                    self.task.prompt = text;
                    return Ok(true);
                }
                Input::Next(Some(Err(message))) => {
                    return Err(RunError::Failed { kind: FailedKind::Usage, message });
                }
                Input::Next(None) => return Ok(false),
                Input::Signal(signal) => {
                    self.stopped = Some(Stop::Signal(signal));
                    return Ok(false);
                }
                Input::TimeOver => {
                    self.stopped = Some(Stop::TimeLimit);
                    return Ok(false);
                }
                Input::Lost(error) => self.reconnect(transcript, error)?,
                // Nothing of this session is waited for between two turns.
                Input::Word(_) => {}
            }
        }
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
                    if self.is_lost() {
                        return Input::Lost(io::Error::from(io::ErrorKind::TimedOut).into());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.unanswered += 1;
                    // Should this fail, the loss of the supervisor comes in by itself.
                    let _ = self.say.send(&FromClient::Ping(u64::from(self.unanswered)));
                }
            }
        }
    }

    /// Whether a supervisor that does not answer is given up.
    fn is_lost(&mut self) -> bool {
        let look = self.unanswered - UNANSWERED;
        match self.ear.unanswered(self.supervisors, look) {
            Silence::Deaf | Silence::Stuck => {
                self.unanswered = 0;
                return true;
            }
            Silence::Slow if look == 0 => {
                self.write(&Shown { out: String::new(), err: format!("{SLOW}\n") });
            }
            Silence::Slow => {}
        }
        self.unanswered += 1;
        false
    }

    /// Waits for the session and attaches to it, behind what was seen.
    fn open(&mut self) -> Result<OpenedSession, RunError> {
        let word = match self.next() {
            Input::Word(word) => word,
            Input::Lost(error) => return Err(RunError::Lost(error)),
            Input::Next(_) => return Err(RunError::Lost(ChannelError::OutOfTurn)),
            Input::Signal(signal) => {
                return Err(RunError::Stopped(Stop::Signal(signal)));
            }
            Input::TimeOver => return Err(RunError::Stopped(Stop::TimeLimit)),
        };
        if let ToClient::Failed { kind, message } = word {
            return Err(RunError::Failed { kind, message });
        }
        let ToClient::Opened {
            session,
            model,
            facts,
            tools,
            mode,
            sandbox,
            last_seq,
            warnings,
            ..
        } = word
        else {
            return Err(RunError::Lost(ChannelError::OutOfTurn));
        };
        if self.session.is_none() {
            self.seen = last_seq;
        }
        self.session = Some(session.clone());
        let from = self.seen.saturating_add(1);
        self.say.send(&follow(&session, from)).map_err(RunError::Lost)?;
        let project = self.task.opening.project.to_path().display().to_string();
        Ok(OpenedSession { session, project, model, facts, tools, mode, sandbox, warnings })
    }

    /// Follows the session until its turn is over, or whoever stops it has waited long enough.
    fn follow(&mut self, transcript: &mut Transcript) -> Result<(), RunError> {
        let session = transcript.opened().session.clone();
        while !transcript.is_over() {
            match self.next() {
                Input::Word(ToClient::Event { session: about, seq, event }) => {
                    if about == session {
                        ipc::step!("client: event seen");
                        if seq > self.seen && transcript.is_progress(&event) {
                            self.losses = 0;
                        }
                        self.seen = self.seen.max(seq);
                        self.happened(transcript, &event);
                    }
                }
                Input::Word(ToClient::Attached { .. }) => {
                    if self.prompt == Prompt::ToBeSaid {
                        self.say_prompt(&session);
                        ipc::step!("client: prompt sent");
                    }
                }
                Input::Word(ToClient::TakenBack { texts, .. }) => {
                    // It waited, and does no more: nothing of this run is left there.
                    if texts.contains(&self.task.prompt) {
                        break;
                    }
                    // Its turn had come already.
                    self.interrupt(&session);
                }
                // Read too slowly: what was left out comes from the disk.
                Input::Word(ToClient::Behind { session }) => {
                    let _ = self.say.send(&follow(&session, self.seen + 1));
                }
                Input::Word(ToClient::Failed { kind, message }) => {
                    return Err(RunError::Failed { kind, message });
                }
                // It was to end anyway.
                Input::Word(ToClient::Detached { .. }) if self.stopped.is_some() => break,
                Input::Word(ToClient::Detached { parting, reason, .. }) => {
                    return Err(sent_away(parting, &session, &reason));
                }
                Input::Word(
                    ToClient::Welcome { .. }
                    | ToClient::Refused { .. }
                    | ToClient::Opened { .. }
                    | ToClient::Page { .. }
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
                // It was not asked for.
                Input::Next(_) => {}
                // The second one does not wait.
                Input::Signal(_) | Input::TimeOver if self.stopped.is_some() => break,
                Input::Signal(signal) => self.stop(Stop::Signal(signal), &session),
                Input::TimeOver => self.stop(Stop::TimeLimit, &session),
            }
            // Nothing was asked for yet that would have to end.
            if self.stopped.is_some() && self.prompt == Prompt::ToBeSaid {
                break;
            }
        }
        Ok(())
    }

    fn say_prompt(&mut self, session: &SessionId) {
        self.prompt = Prompt::Said;
        let word = FromClient::Prompt { session: session.clone(), text: self.task.prompt.clone() };
        // Should this fail, the loss of the supervisor comes in by itself.
        let _ = self.say.send(&word);
    }

    fn happened(&mut self, transcript: &mut Transcript, event: &Event) {
        let own = self.task.prompt.as_str();
        if matches!(event, Event::Prompt { text } if text == own) {
            self.prompt = Prompt::Kept;
        }
        // On disk already, behind a turn that somebody else began.
        if matches!(event, Event::Queue { texts } if texts.iter().any(|text| text == own)) {
            self.prompt = Prompt::Waits;
        }
        // The end of somebody else's turn is not the end of this run.
        if matches!(event, Event::TurnEnded { .. }) && self.prompt != Prompt::Kept {
            return;
        }
        transcript.update(event);
        self.calling.now(transcript.open_calls());
        let shown = self.view.show(transcript, Moment::Happened(event));
        self.write(&shown);
        if self.output == Output::Closed && self.stopped.is_none() {
            self.stop(Stop::OutputClosed, &transcript.opened().session.clone());
        }
    }

    /// Goes on with the session under another supervisor, and another where that one is lost before
    /// the session is open. What was streamed and not kept is void.
    fn reconnect(
        &mut self,
        transcript: &mut Transcript,
        error: ChannelError,
    ) -> Result<(), RunError> {
        let place = match transcript.open_calls() {
            0 => "while the model was asked",
            _ => "while a call ran",
        };
        self.lose(error.to_string(), place)?;
        if self.prompt == Prompt::Said {
            self.prompt = Prompt::ToBeSaid;
        }
        let reason = "the supervisor was lost; another one goes on with the session".to_owned();
        self.happened(transcript, &Event::Struck { reason });
        let session = transcript.opened().session.clone();
        let start = Start::Resume { session, open_turn: OpenTurn::GoesOn };
        let opening = Opening { start, ..self.task.opening.clone() };
        loop {
            match self.open_at_another(&opening) {
                Err(RunError::Lost(error)) => self.lose(error.to_string(), REOPENED)?,
                Err(RunError::NoSupervisor(error)) => self.lose(error.to_string(), REOPENED)?,
                opened => return opened,
            }
        }
    }

    fn open_at_another(&mut self, opening: &Opening) -> Result<(), RunError> {
        self.say = self.ear.begin(self.supervisors, opening, &self.task.papers)?;
        self.open().map(drop)
    }

    /// Counts a supervisor that was lost; too many without progress are the run's end.
    fn lose(&mut self, how: String, place: &'static str) -> Result<(), RunError> {
        self.losses += 1;
        if self.losses < LOSSES {
            return Ok(());
        }
        let how = self.supervisors.how_lost().unwrap_or(how);
        Err(RunError::LostAgain { losses: self.losses, how, place })
    }

    /// Asks the turn to end, and gives it some time to.
    fn stop(&mut self, why: Stop, session: &SessionId) {
        self.stopped = Some(why);
        self.deadline = Some(Instant::now() + GRACE);
        match self.prompt {
            Prompt::ToBeSaid => {}
            // The turn that runs may be somebody else's.
            Prompt::Said | Prompt::Waits => {
                let text = self.task.prompt.clone();
                let word = FromClient::Withdraw { session: session.clone(), text };
                // Should this fail, the loss of the supervisor comes in by itself.
                let _ = self.say.send(&word);
            }
            Prompt::Kept => self.interrupt(session),
        }
    }

    fn interrupt(&self, session: &SessionId) {
        // As above.
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

/// What a run comes to whose session is not there for it any more.
fn sent_away(parting: Parting, session: &SessionId, reason: &str) -> RunError {
    let kind = match parting {
        Parting::TakenOver => FailedKind::Held,
        Parting::Ended => FailedKind::Ending,
        Parting::Failed => FailedKind::Internal,
    };
    let message =
        format!("{reason}. `agentd show {session}` reads it, `--resume {session}` goes on");
    RunError::Failed { kind, message }
}

fn why(stop: Stop) -> &'static str {
    match stop {
        Stop::Signal(_) => "interrupted by a signal",
        Stop::TimeLimit => "the time limit of --timeout was reached",
        Stop::OutputClosed => "nobody reads the output any more",
    }
}
