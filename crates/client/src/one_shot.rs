//! A script's run: prompts and their answers, from the opening of a session to the end of the last turn.
//!
//! The loop in `session_loop` passes the supervisor's messages and signals to [`OneShot`], which sends the
//! prompts and writes the output of the view. If a supervisor is lost, another one resumes the session behind
//! the last event that was received.

mod opening;
mod server_wait;
mod stop;
mod task;

use self::server_wait::ServerWait;
use self::stop::{detached_error, why};
use crate::answer_check::{AnswerCheck, AnswerFault, misfit, repair_prompt};
use crate::call_time::CallTime;
use crate::client_error::{ClientError, RunStop};
use crate::run_view::{Moment, RunView, ViewOutput};
use crate::session_connection::{LossLimit, PingWhen, SessionConnection, input_queue};
use crate::session_facts::is_progress;
use crate::session_loop::{self, NextWait, SessionUser};
use crate::supervisor_source::SupervisorSource;
use crate::transcript::{RunConclusion, Transcript};
use ipc::ChannelError;
use protocol::client::{
    AnswerForm, ClientEvent, FromClient, PromptUse, RequestFailure, ToClient, WhileBusy,
};
use protocol::ids::SessionId;
use serde_json::Value;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

pub use task::{Finished, Prompts, RunFailure, RunInput, Task};

/// Longest time for a turn to end after it was asked to.
const GRACE: Duration = Duration::from_secs(4);
/// Losses of supervisors that a run goes on after. One that is killed is an accident. One that dies
/// each time at the same step has a bug that a restart does not fix.
const LOSSES: LossLimit = LossLimit { most: 2, within: Duration::MAX };
/// Where a supervisor was lost that had another one's session to open.
const REOPENED: &str = "while the session was reopened";

/// Runs one prompt to its end. `signals` is given the sender into which signals go.
///
/// # Errors
/// Where there was no session, or the supervisor was lost for good.
pub fn run(
    supervisors: &mut dyn SupervisorSource,
    task: Task,
    view: &mut dyn RunView,
    signals: impl FnOnce(SyncSender<RunInput>),
) -> Result<Finished, RunFailure> {
    let began = Instant::now();
    let Task { opening, papers, prompt, more, form, time_limit } = task;
    let (sender, inputs) = input_queue();
    signals(sender.clone());
    let wanted = match more {
        Prompts::One => None,
        Prompts::Following(next) => Some(task::read_prompts(next, sender.clone())),
    };
    let session = (opening, papers);
    let connection = SessionConnection::open(supervisors, session, (sender, inputs), LOSSES)
        .map_err(|error| RunFailure { session: None, error })?;
    let mut run = OneShot {
        connection,
        view,
        began,
        prompt,
        sent: PromptState::Unsent,
        form,
        wanted,
        end: RunEnd { deadline: time_limit.map(|limit| began + limit), stopped: None },
        output: OutputState::Open,
        open: None,
        last_seq: 0,
    };
    let ended = session_loop::follow(&mut run);
    ended
        .map_err(|error| RunFailure { session: run.open.map(|open| open.session().clone()), error })
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

/// The end of a run from outside.
struct RunEnd {
    /// Of the whole run, or of the time that a stopped turn has to end.
    deadline: Option<Instant>,
    stopped: Option<RunStop>,
}

/// A run whose session was opened.
struct OpenRun {
    /// Of the present turn.
    transcript: Transcript,
    began: Instant,
    call_time: CallTime,
    /// The first failed turn decides the result of the run.
    wrong: Option<RunConclusion>,
    /// A misfit answer is asked for once more.
    repaired: bool,
    awaits: Awaited,
    /// Another supervisor has to open the session first.
    is_reopened: bool,
}

/// What a run waits for.
enum Awaited {
    /// The session's servers.
    Servers(ServerWait),
    /// The end of a turn.
    TurnEnd,
    /// The next prompt, behind a turn with this conclusion.
    Prompt(Box<RunConclusion>),
}

/// The end of a run, or what follows.
type Step<T = ()> = ControlFlow<Result<Finished, ClientError>, T>;

struct OneShot<'a> {
    connection: SessionConnection<'a, RunInput>,
    view: &'a mut dyn RunView,
    began: Instant,
    prompt: String,
    sent: PromptState,
    form: Option<Box<dyn AnswerCheck>>,
    /// Requests the next prompt, if there may be more than one.
    wanted: Option<SyncSender<()>>,
    end: RunEnd,
    output: OutputState,
    /// Once the session is open.
    open: Option<Box<OpenRun>>,
    /// Sequence number of the last recorded event that was received.
    last_seq: u64,
}

impl<'a> SessionUser<'a> for OneShot<'a> {
    type Input = RunInput;
    type End = Result<Finished, ClientError>;

    fn connection(&mut self) -> &mut SessionConnection<'a, RunInput> {
        &mut self.connection
    }

    fn prepare(&mut self) -> Step<NextWait> {
        let now = Instant::now();
        if self.end.deadline.is_some_and(|deadline| deadline <= now) {
            self.take(RunInput::TimeOver)?;
        }
        let query = self.query_servers();
        let due = [self.end.deadline, query].into_iter().flatten().min();
        let most = due.map(|due| due.saturating_duration_since(now));
        ControlFlow::Continue(NextWait { most, ping: PingWhen::Always })
    }

    fn take(&mut self, input: RunInput) -> Step {
        if matches!(input, RunInput::Message(ToClient::Pong(_))) {
            return ControlFlow::Continue(());
        }
        let Some(mut run) = self.open.take() else { return self.open(input) };
        let step = self.follow(&mut run, input);
        self.open = Some(run);
        step
    }

    fn note(&mut self, text: &str) {
        self.write(&ViewOutput { out: String::new(), err: format!("{text}\n") });
    }
}

impl OneShot<'_> {
    fn follow(&mut self, run: &mut OpenRun, input: RunInput) -> Step {
        match run.awaits {
            _ if run.is_reopened => self.reopen(run, input),
            Awaited::Servers(_) => self.await_servers(run, input),
            Awaited::TurnEnd => self.follow_turn(run, input),
            Awaited::Prompt(_) => self.follow_pause(run, input),
        }
    }

    /// Another supervisor opens the session.
    fn reopen(&mut self, run: &mut OpenRun, input: RunInput) -> Step {
        match input {
            RunInput::Lost(error) => {
                self.count_loss(error.to_string(), REOPENED)?;
                self.resume(run)
            }
            RunInput::Next(next) => self.next_prompt(run, next),
            input @ (RunInput::Message(_) | RunInput::Signal(_) | RunInput::TimeOver) => {
                self.opened(input)?;
                run.is_reopened = false;
                self.attach(run);
                ControlFlow::Continue(())
            }
        }
    }

    /// The next prompt is awaited.
    fn follow_pause(&mut self, run: &mut OpenRun, input: RunInput) -> Step {
        match input {
            RunInput::Next(next) => self.next_prompt(run, next),
            RunInput::Signal(signal) => self.finish(run, Some(RunStop::Signal(signal))),
            RunInput::TimeOver => self.finish(run, Some(RunStop::TimeLimit)),
            RunInput::Lost(error) => self.reconnect(run, error),
            // Nothing of this session is waited for between two turns.
            RunInput::Message(_) => ControlFlow::Continue(()),
        }
    }

    /// Begins the turn of the next prompt, or ends the run.
    fn next_prompt(&mut self, run: &mut OpenRun, next: Option<Result<String, String>>) -> Step {
        match next {
            None => return self.finish(run, None),
            Some(Err(message)) => {
                let kind = RequestFailure::Usage;
                return ControlFlow::Break(Err(ClientError::Failed { kind, message }));
            }
            Some(Ok(text)) => self.prompt = text,
        }
        (run.began, run.repaired, run.awaits) = (Instant::now(), false, Awaited::TurnEnd);
        run.transcript = Transcript::new(run.transcript.opened().clone());
        match run.is_reopened {
            true => self.sent = PromptState::Unsent,
            false => self.send_prompt(run),
        }
        ControlFlow::Continue(())
    }

    /// Handles an input until the turn is over, or until a stopped turn's time is up.
    fn follow_turn(&mut self, run: &mut OpenRun, input: RunInput) -> Step {
        let is_over = match input {
            RunInput::Message(message) => self.on_message(run, message)?,
            RunInput::Lost(error) if self.end.stopped.is_none() => {
                self.reconnect(run, error)?;
                false
            }
            RunInput::Lost(_) => true,
            // It was not asked for.
            RunInput::Next(_) => false,
            // The second one does not wait.
            RunInput::Signal(_) | RunInput::TimeOver if self.end.stopped.is_some() => true,
            RunInput::Signal(signal) => {
                self.stop(RunStop::Signal(signal), run);
                false
            }
            RunInput::TimeOver => {
                self.stop(RunStop::TimeLimit, run);
                false
            }
        };
        // Nothing was asked for yet that would have to end.
        let is_unasked = self.end.stopped.is_some() && self.sent == PromptState::Unsent;
        match is_over || is_unasked || run.transcript.is_over() {
            true => self.end_turn(run),
            false => ControlFlow::Continue(()),
        }
    }

    /// Handles a message during a turn. True if it ends the turn for this client.
    fn on_message(&mut self, run: &mut OpenRun, message: ToClient) -> Step<bool> {
        let session = run.session();
        match message {
            ToClient::Event { session: about, seq, event } if about == *session => {
                ipc::step!("client: event seen");
                if seq > self.last_seq && is_progress(&event, |call| run.transcript.calls.get(call))
                {
                    self.connection.forget_losses();
                }
                self.last_seq = self.last_seq.max(seq);
                self.happened(run, &event);
            }
            ToClient::Attached { .. } => {
                if self.sent == PromptState::Unsent {
                    self.send_prompt(run);
                    ipc::step!("client: prompt sent");
                }
            }
            // It waited, and does no more: nothing of this run is left there.
            ToClient::TakenBack { texts, .. } if texts.contains(&self.prompt) => {
                return ControlFlow::Continue(true);
            }
            // The supervisor had already started the prompt's turn.
            ToClient::TakenBack { .. } => self.interrupt(run),
            // This client read too slowly; the supervisor sends the skipped events from disk.
            ToClient::Behind { .. } => self.attach(run),
            ToClient::Failed { kind, message } => {
                return ControlFlow::Break(Err(ClientError::Failed { kind, message }));
            }
            // Events of another session; servers whose wait a signal ended.
            ToClient::Event { .. } | ToClient::Servers { .. } | ToClient::Pong(_) => {}
            // It was to end anyway.
            ToClient::Detached { .. } if self.end.stopped.is_some() => {
                return ControlFlow::Continue(true);
            }
            ToClient::Detached { parting, reason, .. } => {
                return ControlFlow::Break(Err(detached_error(parting, session, &reason)));
            }
            ToClient::Changes { .. }
            | ToClient::Context { .. }
            | ToClient::Welcome { .. }
            | ToClient::Refused { .. }
            | ToClient::Opened { .. }
            | ToClient::Page { .. }
            | ToClient::Sessions(_)
            | ToClient::Status(_)
            | ToClient::Done
            | ToClient::NetworkOpened { .. }
            | ToClient::NetworkClosed { .. }
            | ToClient::Processes(_) => {
                return ControlFlow::Break(Err(ClientError::Lost(ChannelError::OutOfTurn)));
            }
        }
        ControlFlow::Continue(false)
    }

    /// Shows the conclusion of a turn, and waits for the next prompt if there may be one. An answer
    /// without the form that it must have is asked for once more.
    fn end_turn(&mut self, run: &mut OpenRun) -> Step {
        let form = self.checked(&run.transcript);
        if let Some(Err(faults)) = &form
            && !std::mem::replace(&mut run.repaired, true)
        {
            self.prompt = repair_prompt(faults);
            run.transcript.reopen();
            self.send_prompt(run);
            return ControlFlow::Continue(());
        }
        let took = std::mem::take(&mut run.call_time).timing(run.began);
        let mut conclusion = run.transcript.conclude(took, self.end.stopped.map(why));
        match form {
            Some(Ok(value)) => conclusion.structured = Some(value),
            Some(Err(faults)) => {
                conclusion.fault = Some(misfit(&faults));
                conclusion.misfit = faults;
            }
            None => {}
        }
        let shown = self.view.show(&run.transcript, Moment::Concluded(&conclusion));
        self.write(&shown);
        let goes_on = self.end.stopped.is_none() && conclusion.degraded.is_none();
        if !conclusion.is_good() {
            run.wrong.get_or_insert_with(|| conclusion.clone());
        }
        run.awaits = Awaited::Prompt(Box::new(conclusion));
        match &self.wanted {
            Some(wanted) if goes_on && wanted.send(()).is_ok() => ControlFlow::Continue(()),
            Some(_) | None => self.finish(run, self.end.stopped),
        }
    }

    /// The value of a normal end's answer, or its faults. `None` if no form was asked for.
    fn checked(&self, transcript: &Transcript) -> Option<Result<Value, Vec<AnswerFault>>> {
        let form = self.form.as_ref().filter(|_| self.end.stopped.is_none())?;
        transcript.is_done().then(|| form.check(transcript.answer()))
    }

    /// Ends the run behind a turn.
    fn finish(&self, run: &OpenRun, stopped: Option<RunStop>) -> Step {
        let Awaited::Prompt(last) = &run.awaits else { return ControlFlow::Continue(()) };
        let conclusion = run.wrong.clone().unwrap_or_else(|| (**last).clone());
        ControlFlow::Break(Ok(Finished { conclusion, session: run.session().clone(), stopped }))
    }

    fn send_prompt(&mut self, run: &OpenRun) {
        self.sent = PromptState::Sent;
        let form = self
            .form
            .as_ref()
            .map(|form| AnswerForm { words: form.instruction(), schema: form.schema() });
        let (session, text) = (run.session().clone(), self.prompt.clone());
        self.connection.send(&FromClient::Prompt { session, text, form, busy: WhileBusy::Queue });
    }

    fn happened(&mut self, run: &mut OpenRun, event: &ClientEvent) {
        let own = self.prompt.as_str();
        if matches!(event, ClientEvent::Prompt { text, of: PromptUse::Prompt } if text == own) {
            self.sent = PromptState::Recorded;
            run.transcript.begin_run();
        }
        // On disk, queued behind another client's turn.
        if matches!(event, ClientEvent::Queue { waiting } if waiting.iter().any(|it| it.text == own))
        {
            self.sent = PromptState::Queued;
        }
        // The end of another client's turn does not end this run.
        if matches!(event, ClientEvent::TurnEnded { .. }) && self.sent != PromptState::Recorded {
            return;
        }
        run.transcript.update(event);
        run.call_time.set_open(run.transcript.open_calls());
        let shown = self.view.show(&run.transcript, Moment::Happened(event));
        self.write(&shown);
        if self.output == OutputState::Closed && self.end.stopped.is_none() {
            self.stop(RunStop::OutputClosed, run);
        }
    }

    /// Resumes the session under another supervisor. Streamed text that was not recorded is void.
    fn reconnect(&mut self, run: &mut OpenRun, error: ChannelError) -> Step {
        let place = match run.transcript.open_calls() {
            0 => "during a request to the model",
            _ => "during a call",
        };
        self.count_loss(error.to_string(), place)?;
        if self.sent == PromptState::Sent {
            self.sent = PromptState::Unsent;
        }
        let reason = "the supervisor was lost; another one continues the session".to_owned();
        self.happened(run, &ClientEvent::Struck { reason, next: None });
        self.resume(run)
    }

    /// Asks another supervisor to open the session, and again if that one is lost.
    fn resume(&mut self, run: &mut OpenRun) -> Step {
        run.is_reopened = true;
        while let Err(error) = self.connection.resume(run.session().clone()) {
            match error {
                ClientError::Lost(error) => self.count_loss(error.to_string(), REOPENED)?,
                ClientError::NoSupervisor(error) => self.count_loss(error.to_string(), REOPENED)?,
                error @ (ClientError::Failed { .. }
                | ClientError::LostAgain { .. }
                | ClientError::Stopped(_)) => return ControlFlow::Break(Err(error)),
            }
        }
        ControlFlow::Continue(())
    }

    /// Counts a supervisor that was lost; too many without progress are the run's end.
    fn count_loss(&mut self, how: String, place: &'static str) -> Step {
        let Some(losses) = self.connection.count_loss() else {
            return ControlFlow::Continue(());
        };
        let how = self.connection.how_lost().unwrap_or(how);
        ControlFlow::Break(Err(ClientError::LostAgain { losses, how, place }))
    }

    /// Interrupts the turn and waits for its end, for a limited time.
    fn stop(&mut self, why: RunStop, run: &OpenRun) {
        self.end.stopped = Some(why);
        self.end.deadline = Some(Instant::now() + GRACE);
        match self.sent {
            PromptState::Unsent => {}
            // The running turn may belong to another client.
            PromptState::Sent | PromptState::Queued => {
                let (session, only) = (run.session().clone(), Some(self.prompt.clone()));
                self.connection.send(&FromClient::TakeBack { session, only });
            }
            PromptState::Recorded => self.interrupt(run),
        }
    }

    fn interrupt(&mut self, run: &OpenRun) {
        self.connection.send(&FromClient::Interrupt { session: run.session().clone() });
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

impl OpenRun {
    fn session(&self) -> &SessionId {
        &self.transcript.opened().facts.session
    }
}
