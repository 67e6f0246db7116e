//! The routing of a session: each message of its workers to the steps that follow, pure. No match
//! has a wildcard arm, so a new message does not compile until it has a route. The session actor
//! carries the steps out.

mod context;
mod fallback;
mod stream;

use crate::person_prompt::{PersonPrompt, TypedCommand};
use call::{CallRemarks, Executor};
use protocol::call::{Call, CallOrigin};
use protocol::client::{ClientEvent, WaitingText};
use protocol::content::ModelRequest;
use protocol::context::{Compaction, ContextReport, SummaryStep};
use protocol::hook::{HookEvent, HookRefusal};
use protocol::ids::CallId;
use protocol::log::{LogLevel, LogLine};
use protocol::provider::{FromProvider, ToProvider};
use protocol::session::{
    FromSession, JoiningWords, OpenTurn, SessionEvent, ToSession, TurnEnd, WorkerDeaths,
};
use protocol::undo_prompt::is_undo;
use std::collections::VecDeque;

use crate::records::TurnRound;
use context::ContextWishes;
use stream::{shown, strike};

/// A step of the session actor; carried out in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RouteStep {
    /// On disk before anything after it; clients are shown the record.
    Record(SessionEvent),
    ToSession(ToSession),
    ToProvider(ToProvider),
    /// The call, its place, its executor, and remarks on it.
    StartCall(Call, TurnRound, Executor, CallRemarks),
    /// The call waits for its turn; a person may be asked about it.
    AskAhead(Call),
    /// Answered with the files' stamps.
    StatPinned {
        check: u32,
        files: Vec<String>,
    },
    CancelCall(CallId),
    /// The hooks of an event have ended.
    HooksEnded {
        event: HookEvent,
        call: Option<u32>,
        refusal: Option<HookRefusal>,
    },
    /// All that the conversation waits for.
    CancelCalls,
    /// Show clients this; it is not recorded.
    Show(ClientEvent),
    /// Send this to the clients that asked for it.
    ReportContext(ContextReport),
    /// For the log.
    Log(&'static str, LogLine),
}

/// The state of one session's traffic.
#[derive(Debug, Default)]
pub(crate) struct Router {
    /// The conversation is replayed and takes prompts.
    ready: bool,
    /// Sent to the conversation and not yet seen on its way to disk.
    unconfirmed: VecDeque<PersonPrompt>,
    /// The request that the provider owes an answer to.
    asked: Option<ModelRequest>,
    /// Prompts that wait for the running turn to end, on disk.
    queue: VecDeque<PersonPrompt>,
    /// The unconfirmed prompt is on disk, among the queued ones.
    queued_on_disk: QueuedOnDisk,
    /// Cancelled requests whose end the provider has not sent yet. A replayed conversation numbers
    /// its requests as the process before it did, so a late message could pass for one about the
    /// open request.
    cancelled_requests: u32,
    /// Deaths of the provider during that request.
    provider_deaths: u32,
    /// A person stopped the turn, and its end is not on disk: sent again to a new process of the
    /// conversation.
    stopping: bool,
    /// What people want of the context, until the conversation has answered.
    context: ContextWishes,
    /// Notices of the provider that people were shown.
    shown_notices: Vec<String>,
    running: RunningTurn,
    /// Counted over the session.
    place: TurnRound,
    /// Deaths of the conversation's process since the turn's last progress.
    deaths: u32,
    /// How it ended the last time, and where in the turn.
    last_death: Option<(String, String)>,
    /// How deaths cut the last turn short, until another begins.
    cut_short: Option<WorkerDeaths>,
}

/// The turn that runs, if one does.
#[derive(Debug, Default)]
struct RunningTurn {
    /// A prompt is on disk and the end of its turn is not.
    is_open: bool,
    /// It is neither an undo nor a person's own command.
    asks_model: bool,
    /// It is that of a person's own command.
    typed: Option<TypedCommand>,
}

/// The prompt that the conversation has not recorded is on disk already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum QueuedOnDisk {
    #[default]
    No,
    Yes,
}

/// Deaths of the provider that one request may cost before it fails. The limits on restarts apply, too.
const PROVIDER_DEATHS_PER_REQUEST: u32 = 5;
/// A turn ends after so many deaths of the conversation's process without progress. A cause that
/// killed it three times at the same place will kill it again, and each try is a new request to the
/// model.
const DEATHS_WITHOUT_PROGRESS: u32 = 3;

/// Where a prompt waits.
#[derive(Debug, PartialEq)]
pub(crate) enum WaitingPlace {
    /// Behind all others.
    Last,
    /// For the running turn, so before those that wait for its end: all of them, in their new order.
    Among(Vec<PersonPrompt>),
}

/// Prompts that a person takes back, and those that go on waiting.
#[derive(Debug)]
pub(crate) struct TakenPrompts {
    pub(crate) texts: Vec<String>,
    pub(crate) rest: Vec<PersonPrompt>,
}

impl Router {
    /// Continues a session with so many turns on disk. The last of them has ended, was cut short,
    /// or goes on.
    pub(crate) fn resumed(turns: u32, last: OpenTurn, cut_short: Option<WorkerDeaths>) -> Self {
        let running =
            RunningTurn { is_open: last == OpenTurn::GoesOn, asks_model: true, typed: None };
        let place = TurnRound { turn: turns, round: 0 };
        Self { place, running, cut_short, ..Self::default() }
    }

    /// A turn is open, the context is made smaller, or a prompt is on its way to the conversation.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.is_open || self.context.is_shrinking() || !self.unconfirmed.is_empty()
    }

    /// The last turn has not ended.
    pub(crate) fn turn_is_open(&self) -> bool {
        self.running.is_open
    }

    /// The provider has not answered the last request.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.asked.is_some()
    }

    /// The turn and the round that a call belongs to now.
    pub(crate) fn place(&self) -> TurnRound {
        self.place
    }

    /// Prompts so far.
    pub(crate) fn turns(&self) -> u32 {
        self.place.turn
    }

    /// The same, with prompts that waited already.
    pub(crate) fn with_queue(mut self, queue: VecDeque<PersonPrompt>) -> Self {
        self.queue = queue;
        self
    }

    /// The same, in the turn of this command.
    pub(crate) fn with_typed(mut self, typed: Option<TypedCommand>) -> Self {
        self.running.asks_model = typed.is_none();
        self.running.typed = typed;
        self
    }

    /// The command that a person typed in place of the running turn's prompt.
    pub(crate) fn typed(&mut self) -> Option<&mut TypedCommand> {
        self.running.typed.as_mut()
    }

    /// A new prompt must wait.
    pub(crate) fn must_queue(&self) -> bool {
        self.is_busy() || !self.queue.is_empty()
    }

    /// The prompts that wait, in their order.
    pub(crate) fn queue(&self) -> Vec<PersonPrompt> {
        self.queue.iter().cloned().collect()
    }

    /// The prompts that wait, as they were typed.
    pub(crate) fn waiting_texts(&self) -> Vec<WaitingText> {
        let text = |prompt: &PersonPrompt| {
            let (text, busy) = (prompt.text.clone(), prompt.busy);
            WaitingText { text, busy }
        };
        self.queue.iter().map(text).collect()
    }

    /// True if the running turn, or the one that begins, asks the model.
    pub(crate) fn may_be_joined(&self) -> bool {
        match self.unconfirmed.front() {
            Some(prompt) => prompt.asks_model(),
            None => self.running.is_open && self.running.asks_model,
        }
    }

    /// Where this prompt waits.
    pub(crate) fn place_of(&self, prompt: &PersonPrompt) -> WaitingPlace {
        let place = self.queue.iter().position(|waiting| !waiting.steers());
        match place.filter(|_| prompt.steers()) {
            Some(place) => {
                let mut all = self.queue();
                all.insert(place, prompt.clone());
                WaitingPlace::Among(all)
            }
            None => WaitingPlace::Last,
        }
    }

    /// Tells the conversation of words that wait to join its turn, if any do.
    pub(crate) fn steer(&mut self) -> Vec<RouteStep> {
        let told = self.words_wait().filter(|_| self.ready && self.running.is_open);
        told.map(RouteStep::ToSession).into_iter().collect()
    }

    /// That words wait to join a turn. A conversation that goes on with one hears it before the end of its replay.
    pub(crate) fn words_wait(&self) -> Option<ToSession> {
        let waits = self.queue.front().is_some_and(PersonPrompt::steers);
        waits.then_some(ToSession::Joining(JoiningWords::Wait))
    }

    /// Gives the conversation the words that wait to join its turn. Each is on disk before it has them.
    /// A turn that ends, or has ended, takes none.
    fn join(&mut self) -> Vec<RouteStep> {
        let mut texts = Vec::new();
        let may = self.running.is_open && !self.stopping && self.unconfirmed.is_empty();
        while may && self.queue.front().is_some_and(PersonPrompt::steers) {
            texts.extend(self.queue.pop_front().map(|prompt| prompt.text));
        }
        let record = |text: &String| RouteStep::Record(SessionEvent::Joined { text: text.clone() });
        let mut steps: Vec<_> = texts.iter().map(record).collect();
        if !texts.is_empty() {
            steps.push(RouteStep::Show(ClientEvent::Queue { waiting: self.waiting_texts() }));
        }
        steps.push(RouteStep::ToSession(ToSession::Joining(JoiningWords::Taken(texts))));
        steps
    }

    /// The prompts that a person wants back to edit them: all that wait, or the newest one with this text alone.
    /// None if there is none.
    pub(crate) fn taken_back(&self, only: Option<&str>) -> Option<TakenPrompts> {
        let mut rest = self.queue();
        let taken = match only {
            Some(text) => {
                let place = rest.iter().rposition(|waiting| waiting.text == text)?;
                vec![rest.remove(place)]
            }
            None => std::mem::take(&mut rest),
        };
        let texts: Vec<_> = taken.into_iter().map(|prompt| prompt.text).collect();
        (!texts.is_empty()).then_some(TakenPrompts { texts, rest })
    }

    /// The records that put this prompt on disk as a queued one. An unconfirmed prompt that is not
    /// on disk goes first: when the conversation records a prompt, the oldest queued one is
    /// dropped, and that must not be this one.
    pub(crate) fn queued_with(&mut self, prompt: &PersonPrompt) -> Vec<PersonPrompt> {
        let before = match std::mem::replace(&mut self.queued_on_disk, QueuedOnDisk::Yes) {
            QueuedOnDisk::Yes => None,
            QueuedOnDisk::No => self.unconfirmed.front().cloned(),
        };
        before.into_iter().chain([prompt.clone()]).collect()
    }

    /// Queues a prompt; its record is on disk.
    pub(crate) fn enqueue(&mut self, prompt: PersonPrompt) {
        self.queue.push_back(prompt);
    }

    /// The prompts that wait on disk where these wait here: before them is the one on its way to the conversation,
    /// since the oldest on disk is dropped when that is recorded.
    pub(crate) fn on_disk(&self, prompts: Vec<PersonPrompt>) -> Vec<PersonPrompt> {
        self.unconfirmed.front().cloned().into_iter().chain(prompts).collect()
    }

    /// Replaces the queued prompts; the record of [`Self::on_disk`] is there.
    pub(crate) fn requeue(&mut self, prompts: Vec<PersonPrompt>) {
        self.queued_on_disk = QueuedOnDisk::Yes;
        self.queue = prompts.into();
    }

    /// Sends the oldest queued prompt, if no turn is open.
    pub(crate) fn next_queued(&mut self) -> Option<Vec<RouteStep>> {
        if !self.ready || self.is_busy() {
            return None;
        }
        let prompt = self.queue.pop_front()?;
        let steps = self.prompt(prompt);
        self.queued_on_disk = QueuedOnDisk::Yes;
        Some(steps)
    }

    /// Sends a prompt. It is kept until the conversation has recorded it, however often that dies.
    pub(crate) fn prompt(&mut self, prompt: impl Into<PersonPrompt>) -> Vec<RouteStep> {
        self.queued_on_disk = QueuedOnDisk::No;
        let prompt = prompt.into();
        self.unconfirmed.push_back(prompt.clone());
        let PersonPrompt { text, expanded, busy: _ } = prompt;
        match self.ready {
            true => vec![RouteStep::ToSession(ToSession::Prompt { text, expanded })],
            false => Vec::new(),
        }
    }

    /// A person stops the turn. A conversation that is being replayed gets the message when it is
    /// ready. One that waits for its calls is not replayed yet: the calls are cancelled, and the
    /// turn does not go on.
    pub(crate) fn interrupt(&mut self) -> Vec<RouteStep> {
        self.stopping = self.is_busy();
        match self.ready {
            true => vec![RouteStep::ToSession(ToSession::Interrupt)],
            false => vec![RouteStep::CancelCalls],
        }
    }

    pub(crate) fn on_session_msg(&mut self, message: FromSession) -> Vec<RouteStep> {
        match message {
            FromSession::Ready => {
                self.ready = true;
                let of_context = self.context.messages();
                let prompts = self.unconfirmed.iter().cloned();
                let prompts = prompts.map(|PersonPrompt { text, expanded, busy: _ }| {
                    ToSession::Prompt { text, expanded }
                });
                let stop = self.stopping.then_some(ToSession::Interrupt);
                let messages = of_context.chain(prompts).chain(stop).map(RouteStep::ToSession);
                messages.collect::<Vec<_>>().into_iter().chain(self.steer()).collect()
            }
            // A person's words are for the supervisor to record.
            FromSession::Commit(SessionEvent::Joined { .. }) => {
                let text = "words that no person sent were not recorded".to_owned();
                vec![RouteStep::Log("session", LogLine { level: LogLevel::Warn, text })]
            }
            FromSession::TakeJoining => self.join(),
            FromSession::Commit(mut happened) => {
                if is_progress(&happened) {
                    self.progressed();
                }
                let mut behind = Vec::new();
                match &mut happened {
                    SessionEvent::Prompt { text, expanded } => {
                        // The supervisor grants the rules of a slash command, so its own copy counts.
                        let sent = self.unconfirmed.pop_front().filter(|sent| sent.text == *text);
                        *expanded = sent.and_then(|sent| sent.expanded);
                        self.running.typed = expanded.as_deref().and_then(TypedCommand::of);
                        self.running.asks_model = self.running.typed.is_none() && !is_undo(text);
                        self.running.is_open = true;
                        self.cut_short = None;
                        self.place = TurnRound { turn: self.place.turn + 1, round: 0 };
                        behind = self.steer();
                    }
                    SessionEvent::TurnEnded { end } => {
                        (self.running.is_open, self.stopping) = (false, false);
                        self.running.typed = None;
                        self.context.on_end();
                        if let TurnEnd::ProcessDied(deaths) = end {
                            self.cut_short = Some(deaths.clone());
                        }
                    }
                    SessionEvent::Compacted(step) => {
                        self.context.on_step(step);
                        // Between turns, nothing else ends it.
                        self.stopping &= self.is_busy();
                    }
                    SessionEvent::Answer { .. }
                    | SessionEvent::Called { .. }
                    | SessionEvent::BackgroundEnded { .. }
                    | SessionEvent::Joined { .. }
                    | SessionEvent::Result { .. } => {}
                }
                std::iter::once(RouteStep::Record(happened)).chain(behind).collect()
            }
            FromSession::Ask(request) => {
                self.asked = Some(request.clone());
                self.place.round = request.round;
                self.provider_deaths = 0;
                vec![RouteStep::ToProvider(ToProvider::Ask(request))]
            }
            FromSession::StatPinned { check, files } => {
                vec![RouteStep::StatPinned { check, files }]
            }
            FromSession::Run { call, note, asked } => {
                let remarks = CallRemarks { note, asked };
                self.context.on_run(&call);
                vec![RouteStep::StartCall(call, self.place, Executor::Runner, remarks)]
            }
            FromSession::Ahead { call } => vec![RouteStep::AskAhead(call)],
            FromSession::Answered { call, result, asked } => {
                let remarks = CallRemarks { note: None, asked };
                let by = Executor::Conversation(result);
                vec![RouteStep::StartCall(call, self.place, by, remarks)]
            }
            FromSession::Notice { text } => {
                let line = LogLine { level: LogLevel::Info, text: text.clone() };
                let event = ClientEvent::Notice { text };
                vec![RouteStep::Log("session", line), RouteStep::Show(event)]
            }
            FromSession::HooksEnded { event, call, refusal } => {
                vec![RouteStep::HooksEnded { event, call, refusal }]
            }
            FromSession::NotCompacted { why } => {
                let step = self.context.refused(&why);
                self.stopping &= self.is_busy();
                vec![step]
            }
            FromSession::Context(report) => {
                self.context.described();
                vec![RouteStep::ReportContext(report)]
            }
            FromSession::CancelAsk => self.cancel_request(),
            FromSession::CancelCall(call) => vec![RouteStep::CancelCall(call)],
            FromSession::Pong(_) => Vec::new(),
            FromSession::Log(line) => vec![RouteStep::Log("session", line)],
        }
    }

    pub(crate) fn on_provider_msg(&mut self, message: FromProvider) -> Vec<RouteStep> {
        let open = self.asked.as_ref().map(|request| request.round);
        match message {
            FromProvider::Ready | FromProvider::Pong(_) => Vec::new(),
            FromProvider::Log(line) => vec![RouteStep::Log("provider", line)],
            FromProvider::Notice { text } => self.notice(text),
            FromProvider::Delta { .. } | FromProvider::Retrying { .. }
                if self.cancelled_requests > 0 =>
            {
                Vec::new()
            }
            FromProvider::Ended { .. }
            | FromProvider::Failed { .. }
            | FromProvider::Cancelled { .. }
                if self.cancelled_requests > 0 =>
            {
                self.cancelled_requests -= 1;
                Vec::new()
            }
            FromProvider::Delta { round, .. } if Some(round) != open => Vec::new(),
            FromProvider::Delta { round, index, delta } => {
                let shown = shown(&delta).filter(|_| !self.context.summarizing);
                let message = FromProvider::Delta { round, index, delta };
                let forward = RouteStep::ToSession(ToSession::Stream(message));
                std::iter::once(forward).chain(shown.map(RouteStep::Show)).collect()
            }
            FromProvider::Retrying { round, .. } if Some(round) != open => Vec::new(),
            FromProvider::Retrying { round, attempt, of, wait_ms, reason } => {
                strike(round, attempt, of, wait_ms, reason)
            }
            FromProvider::Ended { round, .. }
            | FromProvider::Failed { round, .. }
            | FromProvider::Cancelled { round }
                if Some(round) != open =>
            {
                Vec::new()
            }
            message @ (FromProvider::Ended { .. }
            | FromProvider::Failed { .. }
            | FromProvider::Cancelled { .. }) => {
                self.asked = None;
                vec![RouteStep::ToSession(ToSession::Stream(message))]
            }
        }
    }

    /// Shows a notice once. Each new process of the provider sends it again.
    fn notice(&mut self, text: String) -> Vec<RouteStep> {
        if self.shown_notices.contains(&text) {
            return Vec::new();
        }
        self.shown_notices.push(text.clone());
        let line = LogLine { level: LogLevel::Info, text: text.clone() };
        vec![RouteStep::Log("provider", line), RouteStep::Show(ClientEvent::Notice { text })]
    }

    /// A new provider process is configured: the open request is sent again.
    pub(crate) fn provider_up(&mut self) -> Vec<RouteStep> {
        // A new process has no cancelled requests.
        self.cancelled_requests = 0;
        let asked = self.asked.clone();
        asked.map(|request| RouteStep::ToProvider(ToProvider::Ask(request))).into_iter().collect()
    }

    /// The provider died. The part of the open answer that it sent is void.
    pub(crate) fn provider_down(&mut self, cause: &str, failed: Option<&str>) -> Vec<RouteStep> {
        self.cancelled_requests = 0;
        let Some(round) = self.asked.as_ref().map(|request| request.round) else {
            return Vec::new();
        };
        self.provider_deaths += 1;
        if failed.is_some() || self.provider_deaths >= PROVIDER_DEATHS_PER_REQUEST {
            return self.provider_gone(cause);
        }
        strike(
            round,
            self.provider_deaths + 1,
            PROVIDER_DEATHS_PER_REQUEST,
            0,
            format!("agentd-provider {cause}"),
        )
    }

    /// No provider answers the open request any more: the turn ends.
    pub(crate) fn provider_gone(&mut self, cause: &str) -> Vec<RouteStep> {
        let deaths = WorkerDeaths {
            process: "agentd-provider".to_owned(),
            cause: cause.to_owned(),
            count: self.provider_deaths,
            place: self.place_in_turn(&[]),
        };
        self.asked = None;
        vec![RouteStep::ToSession(ToSession::ProviderDied(deaths))]
    }

    /// The progress of the turn, as people read it, with its running calls.
    fn place_in_turn(&self, calls: &[u32]) -> String {
        let TurnRound { turn, round } = self.place;
        let at = format!("in turn {turn}");
        match (calls.iter().min(), &self.asked) {
            (Some(call), _) => format!("{at} while call {call} ran"),
            (None, Some(_)) => format!("{at} while the model answered request {round}"),
            (None, None) if !self.ready => format!("{at} while it read its journal"),
            (None, None) => at,
        }
    }

    /// The turn advanced: earlier deaths of the conversation's process no longer count.
    pub(crate) fn progressed(&mut self) {
        self.deaths = 0;
    }

    /// The conversation's process died. Its open request is dropped, and the streamed part of the
    /// answer is void. Its calls go on, unless a person stopped the turn: the dead process may not
    /// have cancelled them.
    pub(crate) fn session_down(&mut self, cause: &str, calls: &[u32]) -> Vec<RouteStep> {
        self.deaths += 1;
        self.last_death = Some((cause.to_owned(), self.place_in_turn(calls)));
        self.ready = false;
        self.context.on_end();
        let mut steps = self.cancel_request();
        if !steps.is_empty() {
            let reason = format!("agentd-session {cause}; the request is sent again");
            steps.push(RouteStep::Show(ClientEvent::Struck { reason, next: None }));
        }
        steps.extend(self.stopping.then_some(RouteStep::CancelCalls));
        steps
    }

    fn cancel_request(&mut self) -> Vec<RouteStep> {
        match self.asked.take() {
            Some(_) => {
                self.cancelled_requests += 1;
                vec![RouteStep::ToProvider(ToProvider::Cancel)]
            }
            None => Vec::new(),
        }
    }

    /// The fate of an open turn, for a conversation that is about to be replayed.
    pub(crate) fn open_turn(&self) -> OpenTurn {
        match self.running.is_open && !self.stopping && self.deaths < DEATHS_WITHOUT_PROGRESS {
            true => OpenTurn::GoesOn,
            false => OpenTurn::Waits,
        }
    }

    /// A turn that is open and does not go on is closed, visibly: a person stopped it, or its
    /// conversation died too often.
    pub(crate) fn close_turn(&mut self) -> Vec<RouteStep> {
        if !std::mem::take(&mut self.running.is_open) {
            return Vec::new();
        }
        let stopped = std::mem::take(&mut self.stopping);
        let end = match self.last_death.take().filter(|_| !stopped) {
            Some((cause, place)) => {
                let process = "agentd-session".to_owned();
                TurnEnd::ProcessDied(WorkerDeaths { process, cause, count: self.deaths, place })
            }
            None => TurnEnd::Interrupted,
        };
        if let TurnEnd::ProcessDied(deaths) = &end {
            self.cut_short = Some(deaths.clone());
        }
        vec![RouteStep::Record(SessionEvent::TurnEnded { end })]
    }

    /// How deaths cut the last turn short, if they did.
    pub(crate) fn cut_short(&self) -> Option<&WorkerDeaths> {
        self.cut_short.as_ref()
    }
}

/// A record that advances the turn. The read of a pinned file does not, since each new conversation
/// process repeats it. Nor does a turn's end, which no later death is part of.
pub(crate) fn is_progress(happened: &SessionEvent) -> bool {
    match happened {
        SessionEvent::Called { call } => call.origin != CallOrigin::PinnedRead,
        SessionEvent::Result { origin, .. } => origin.is_model(),
        SessionEvent::Prompt { .. }
        | SessionEvent::Joined { .. }
        | SessionEvent::Answer { .. }
        | SessionEvent::BackgroundEnded { .. } => true,
        // Each new conversation process asks for the summary again.
        SessionEvent::Compacted(step) => {
            !matches!(step, Compaction::Summary(SummaryStep::Asked { .. }))
        }
        SessionEvent::TurnEnded { .. } => false,
    }
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
