//! One prompt, from the opening of a session to the end of its turn.
//!
//! One thread reads the supervisor's messages. This thread handles them, signals and timeouts as
//! one enum, and writes the output of the view. If a supervisor is lost, another one resumes the
//! session behind the last event that was received.

mod opening;
mod stop;
mod task;

use self::opening::follow;
use self::stop::{detached_error, why};
use crate::answer_check::{AnswerFault, misfit, repair_prompt};
use crate::call_time::CallTime;
use crate::client_error::{ClientError, RunStop};
use crate::event_reader::{EventReader, MAX_PINGS, SLOW_NOTE};
use crate::run_view::{Moment, RunView, ViewOutput};
use crate::silence::{PING_AFTER, SilenceAction};
use crate::supervisor_source::SupervisorSource;
use crate::transcript::Transcript;
use ipc::{ChannelError, Sender};
use protocol::client::{
    AnswerForm, ClientEvent, FromClient, RequestFailure, SessionRequest, SessionStart, ToClient,
};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

pub use task::{Finished, Prompts, RunFailure, RunInput, Task};

/// Bound on messages that the view has not handled. Then the reader blocks.
const QUEUE: usize = 256;
/// Longest time for a turn to end after it was asked to.
const GRACE: Duration = Duration::from_secs(4);
/// Most lost supervisors without progress in between. One that is killed is an accident. One that
/// dies each time at the same step has a bug that a restart does not fix.
const LOSSES: u32 = 3;
/// Where a supervisor was lost that had another one's session to open.
const REOPENED: &str = "while the session was reopened";

/// Runs one prompt to its end. `signals` is given the sender into which signals go.
///
/// # Errors
/// Where there was no session, or the supervisor was lost for good.
pub fn run(
    supervisors: &mut dyn SupervisorSource,
    mut task: Task,
    view: &mut dyn RunView,
    signals: impl FnOnce(SyncSender<RunInput>),
) -> Result<Finished, RunFailure> {
    let began = Instant::now();
    let deadline = task.time_limit.map(|limit| began + limit);
    let (sender, inputs) = mpsc::sync_channel(QUEUE);
    signals(sender.clone());
    let wanted = match std::mem::replace(&mut task.more, Prompts::One) {
        Prompts::One => None,
        Prompts::Following(next) => Some(task::read_prompts(next, sender.clone())),
    };
    let ear = EventReader::new(sender);
    let say = ear
        .connect(supervisors, &task.opening, &task.papers)
        .map_err(|error| RunFailure { session: None, error })?;
    let mut run = OneShot {
        supervisors,
        task,
        sender: say,
        reader: ear,
        inputs: InputQueue { coming: inputs, stash: VecDeque::new() },
        unanswered: 0,
        end: RunEnd { deadline, stopped: None },
        output: OutputState::Open,
        view,
        last_seq: 0,
        prompt: PromptState::Unsent,
        wanted,
        session: None,
        losses: 0,
        call_time: CallTime::default(),
    };
    run.run(began).map_err(|error| RunFailure { session: run.session.take(), error })
}

/// State of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputState {
    Open,
    Closed,
}

/// Where the prompt is: on its way, queued, or on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptState {
    Unsent,
    /// Sent over the current connection, but not confirmed yet.
    Sent,
    Queued,
    Recorded,
}

/// What a run has to handle.
struct InputQueue {
    coming: mpsc::Receiver<RunInput>,
    /// Came earlier, while the servers of the session were awaited.
    stash: VecDeque<RunInput>,
}

/// The end of a run from outside.
struct RunEnd {
    /// Of the whole run, or of the time that a stopped turn has to end.
    deadline: Option<Instant>,
    stopped: Option<RunStop>,
}

struct OneShot<'a> {
    supervisors: &'a mut dyn SupervisorSource,
    task: Task,
    sender: Sender<FromClient>,
    reader: EventReader<RunInput>,
    inputs: InputQueue,
    /// Pings since the last message.
    unanswered: u32,
    end: RunEnd,
    output: OutputState,
    view: &'a mut dyn RunView,
    /// Sequence number of the last recorded event that was received.
    last_seq: u64,
    prompt: PromptState,
    /// Requests the next prompt, if there may be more than one.
    wanted: Option<SyncSender<()>>,
    /// Known once it is open.
    session: Option<SessionId>,
    /// Supervisors lost since the last progress.
    losses: u32,
    call_time: CallTime,
}

impl OneShot<'_> {
    fn run(&mut self, began: Instant) -> Result<Finished, ClientError> {
        let mut opened = self.open()?;
        self.await_servers(&mut opened);
        let mut transcript = Transcript::new(opened);
        let shown = self.view.show(&transcript, Moment::Opened(transcript.opened()));
        self.write(&shown);
        let session = transcript.opened().session.clone();
        // The first failed turn decides the result of the run.
        let (mut began, mut wrong) = (began, None);
        // A misfit answer is asked for once more.
        let mut repaired = false;
        loop {
            self.follow(&mut transcript)?;
            let form = self.checked(&transcript);
            if let Some(Err(faults)) = &form
                && !std::mem::replace(&mut repaired, true)
            {
                self.task.prompt = repair_prompt(faults);
                transcript.reopen();
                self.send_prompt(&session);
                continue;
            }
            let took = std::mem::take(&mut self.call_time).timing(began);
            let mut conclusion = transcript.conclude(took, self.end.stopped.map(why));
            match form {
                Some(Ok(value)) => conclusion.structured = Some(value),
                Some(Err(faults)) => {
                    conclusion.fault = Some(misfit(&faults));
                    conclusion.misfit = faults;
                }
                None => {}
            }
            let shown = self.view.show(&transcript, Moment::Concluded(&conclusion));
            self.write(&shown);
            let goes_on = self.end.stopped.is_none() && conclusion.degraded.is_none();
            if !conclusion.is_good() {
                wrong = wrong.or(Some(conclusion.clone()));
            }
            if !goes_on || !self.next_prompt(&mut transcript)? {
                let conclusion = wrong.unwrap_or(conclusion);
                return Ok(Finished { conclusion, session, stopped: self.end.stopped });
            }
            (began, repaired) = (Instant::now(), false);
            transcript = Transcript::new(transcript.opened().clone());
            self.send_prompt(&session);
        }
    }

    /// The value of a normal end's answer, or its faults. `None` if no form was asked for.
    fn checked(&self, transcript: &Transcript) -> Option<Result<Value, Vec<AnswerFault>>> {
        let form = self.task.form.as_ref().filter(|_| self.end.stopped.is_none())?;
        transcript.is_done().then(|| form.check(transcript.answer()))
    }

    /// Waits for the next prompt. False if there is none.
    fn next_prompt(&mut self, transcript: &mut Transcript) -> Result<bool, ClientError> {
        let Some(wanted) = &self.wanted else { return Ok(false) };
        if wanted.send(()).is_err() {
            return Ok(false);
        }
        loop {
            match self.next() {
                RunInput::Next(Some(Ok(text))) => {
                    self.task.prompt = text;
                    return Ok(true);
                }
                RunInput::Next(Some(Err(message))) => {
                    return Err(ClientError::Failed { kind: RequestFailure::Usage, message });
                }
                RunInput::Next(None) => return Ok(false),
                RunInput::Signal(signal) => {
                    self.end.stopped = Some(RunStop::Signal(signal));
                    return Ok(false);
                }
                RunInput::TimeOver => {
                    self.end.stopped = Some(RunStop::TimeLimit);
                    return Ok(false);
                }
                RunInput::Lost(error) => self.reconnect(transcript, error)?,
                // Nothing of this session is waited for between two turns.
                RunInput::Message(_) => {}
            }
        }
    }

    /// The next input. A silent supervisor is pinged.
    fn next(&mut self) -> RunInput {
        if let Some(input) = self.inputs.stash.pop_front() {
            return input;
        }
        loop {
            let now = Instant::now();
            let left = self.end.deadline.map(|deadline| deadline.saturating_duration_since(now));
            let patience = left.map_or(PING_AFTER, |left| left.min(PING_AFTER));
            match self.inputs.coming.recv_timeout(patience) {
                Ok(RunInput::Message(ToClient::Pong(_))) => self.unanswered = 0,
                Ok(input) => {
                    self.unanswered = 0;
                    return input;
                }
                Err(RecvTimeoutError::Disconnected) => return RunInput::Lost(ChannelError::Closed),
                Err(RecvTimeoutError::Timeout) if left.is_some_and(|left| left <= PING_AFTER) => {
                    return RunInput::TimeOver;
                }
                Err(RecvTimeoutError::Timeout) if self.unanswered >= MAX_PINGS => {
                    if self.give_up_on_silence() {
                        return RunInput::Lost(io::Error::from(io::ErrorKind::TimedOut).into());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.unanswered += 1;
                    // If this fails, the reader thread reports the loss of the supervisor.
                    let _ = self.sender.send(&FromClient::Ping(u64::from(self.unanswered)));
                }
            }
        }
    }

    /// True if the silent supervisor is given up.
    fn give_up_on_silence(&mut self) -> bool {
        let checks = self.unanswered - MAX_PINGS;
        match self.reader.on_silence(self.supervisors, checks) {
            SilenceAction::Reconnect | SilenceAction::Kill => {
                self.unanswered = 0;
                return true;
            }
            SilenceAction::Wait if checks == 0 => {
                self.write(&ViewOutput { out: String::new(), err: format!("{SLOW_NOTE}\n") });
            }
            SilenceAction::Wait => {}
        }
        self.unanswered += 1;
        false
    }

    /// Handles events until the turn is over, or until a stopped turn's time is up.
    fn follow(&mut self, transcript: &mut Transcript) -> Result<(), ClientError> {
        let session = transcript.opened().session.clone();
        while !transcript.is_over() {
            match self.next() {
                RunInput::Message(ToClient::Event { session: about, seq, event }) => {
                    if about == session {
                        ipc::step!("client: event seen");
                        if seq > self.last_seq && transcript.is_progress(&event) {
                            self.losses = 0;
                        }
                        self.last_seq = self.last_seq.max(seq);
                        self.happened(transcript, &event);
                    }
                }
                RunInput::Message(ToClient::Attached { .. }) => {
                    if self.prompt == PromptState::Unsent {
                        self.send_prompt(&session);
                        ipc::step!("client: prompt sent");
                    }
                }
                RunInput::Message(ToClient::TakenBack { texts, .. }) => {
                    // It waited, and does no more: nothing of this run is left there.
                    if texts.contains(&self.task.prompt) {
                        break;
                    }
                    // The supervisor had already started the prompt's turn.
                    self.interrupt(&session);
                }
                // This client read too slowly; the supervisor sends the skipped events from disk.
                RunInput::Message(ToClient::Behind { session }) => {
                    let _ = self.sender.send(&follow(&session, self.last_seq + 1));
                }
                RunInput::Message(ToClient::Failed { kind, message }) => {
                    return Err(ClientError::Failed { kind, message });
                }
                // A signal ended the wait for it.
                RunInput::Message(ToClient::Servers { .. }) => {}
                // It was to end anyway.
                RunInput::Message(ToClient::Detached { .. }) if self.end.stopped.is_some() => break,
                RunInput::Message(ToClient::Detached { parting, reason, .. }) => {
                    return Err(detached_error(parting, &session, &reason));
                }
                RunInput::Message(
                    ToClient::Changes { .. }
                    | ToClient::Context { .. }
                    | ToClient::Welcome { .. }
                    | ToClient::Refused { .. }
                    | ToClient::Opened { .. }
                    | ToClient::Page { .. }
                    | ToClient::Sessions(_)
                    | ToClient::Status(_)
                    | ToClient::Done
                    | ToClient::Pong(_)
                    | ToClient::Processes(_),
                ) => return Err(ClientError::Lost(ChannelError::OutOfTurn)),
                RunInput::Lost(error) if self.end.stopped.is_none() => {
                    self.reconnect(transcript, error)?;
                }
                RunInput::Lost(_) => break,
                // It was not asked for.
                RunInput::Next(_) => {}
                // The second one does not wait.
                RunInput::Signal(_) | RunInput::TimeOver if self.end.stopped.is_some() => break,
                RunInput::Signal(signal) => self.stop(RunStop::Signal(signal), &session),
                RunInput::TimeOver => self.stop(RunStop::TimeLimit, &session),
            }
            // Nothing was asked for yet that would have to end.
            if self.end.stopped.is_some() && self.prompt == PromptState::Unsent {
                break;
            }
        }
        Ok(())
    }

    fn send_prompt(&mut self, session: &SessionId) {
        self.prompt = PromptState::Sent;
        let form = self
            .task
            .form
            .as_ref()
            .map(|form| AnswerForm { words: form.instruction(), schema: form.schema() });
        let (session, text) = (session.clone(), self.task.prompt.clone());
        let word = FromClient::Prompt { session, text, form };
        // If this fails, the reader thread reports the loss of the supervisor.
        let _ = self.sender.send(&word);
    }

    fn happened(&mut self, transcript: &mut Transcript, event: &ClientEvent) {
        let own = self.task.prompt.as_str();
        if matches!(event, ClientEvent::Prompt { text } if text == own) {
            self.prompt = PromptState::Recorded;
            transcript.begin_run();
        }
        // On disk, queued behind another client's turn.
        if matches!(event, ClientEvent::Queue { texts } if texts.iter().any(|text| text == own)) {
            self.prompt = PromptState::Queued;
        }
        // The end of another client's turn does not end this run.
        if matches!(event, ClientEvent::TurnEnded { .. }) && self.prompt != PromptState::Recorded {
            return;
        }
        transcript.update(event);
        self.call_time.set_open(transcript.open_calls());
        let shown = self.view.show(transcript, Moment::Happened(event));
        self.write(&shown);
        if self.output == OutputState::Closed && self.end.stopped.is_none() {
            self.stop(RunStop::OutputClosed, &transcript.opened().session.clone());
        }
    }

    /// Resumes the session under another supervisor, and again if that one is lost before the
    /// session is open. Streamed text that was not recorded is void.
    fn reconnect(
        &mut self,
        transcript: &mut Transcript,
        error: ChannelError,
    ) -> Result<(), ClientError> {
        let place = match transcript.open_calls() {
            0 => "during a request to the model",
            _ => "during a call",
        };
        self.lose(error.to_string(), place)?;
        if self.prompt == PromptState::Sent {
            self.prompt = PromptState::Unsent;
        }
        let reason = "the supervisor was lost; another one continues the session".to_owned();
        self.happened(transcript, &ClientEvent::Struck { reason });
        let session = transcript.opened().session.clone();
        let start = SessionStart::Resume { session, open_turn: OpenTurn::GoesOn };
        let opening = SessionRequest { start, ..self.task.opening.clone() };
        loop {
            match self.open_at_another(&opening) {
                Err(ClientError::Lost(error)) => self.lose(error.to_string(), REOPENED)?,
                Err(ClientError::NoSupervisor(error)) => self.lose(error.to_string(), REOPENED)?,
                opened => return opened,
            }
        }
    }

    fn open_at_another(&mut self, opening: &SessionRequest) -> Result<(), ClientError> {
        self.sender = self.reader.connect(self.supervisors, opening, &self.task.papers)?;
        self.open().map(drop)
    }

    /// Counts a supervisor that was lost; too many without progress are the run's end.
    fn lose(&mut self, how: String, place: &'static str) -> Result<(), ClientError> {
        self.losses += 1;
        if self.losses < LOSSES {
            return Ok(());
        }
        let how = self.supervisors.how_lost().unwrap_or(how);
        Err(ClientError::LostAgain { losses: self.losses, how, place })
    }

    /// Interrupts the turn and waits for its end, for a limited time.
    fn stop(&mut self, why: RunStop, session: &SessionId) {
        self.end.stopped = Some(why);
        self.end.deadline = Some(Instant::now() + GRACE);
        match self.prompt {
            PromptState::Unsent => {}
            // The running turn may belong to another client.
            PromptState::Sent | PromptState::Queued => {
                let text = self.task.prompt.clone();
                let word = FromClient::TakeBack { session: session.clone(), only: Some(text) };
                // If this fails, the reader thread reports the loss of the supervisor.
                let _ = self.sender.send(&word);
            }
            PromptState::Recorded => self.interrupt(session),
        }
    }

    fn interrupt(&self, session: &SessionId) {
        // As above.
        let _ = self.sender.send(&FromClient::Interrupt { session: session.clone() });
    }

    fn write(&mut self, shown: &ViewOutput) {
        // A closed standard error is not an error.
        let _ = io::stderr().write_all(shown.err.as_bytes());
        if self.output == OutputState::Open && !shown.out.is_empty() {
            let mut out = io::stdout().lock();
            if out.write_all(shown.out.as_bytes()).and_then(|()| out.flush()).is_err() {
                self.output = OutputState::Closed;
            }
        }
    }
}
