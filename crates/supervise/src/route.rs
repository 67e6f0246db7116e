//! Where each word of a session's workers goes: pure, without wildcard arms, so that a new word
//! does not compile until somebody says where it goes. The session actor carries the steps out.

use crate::call::Executor;
use protocol::call::Call;
use protocol::client::Event;
use protocol::content::ModelRequest;
use protocol::ids::CallId;
use protocol::provider::{Delta, FromProvider, ToProvider};
use protocol::session::{Deaths, FromSession, Happened, OpenTurn, ToSession, TurnEnd};
use protocol::upkeep::{LogLevel, LogLine};
use std::collections::VecDeque;

use crate::records::encode::TurnRound;

/// What to do with a word, in this order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RouteStep {
    /// On disk before anything after it; the screens see what the record says.
    Record(Happened),
    ToSession(ToSession),
    ToProvider(ToProvider),
    /// With what its result is to say of its arguments.
    StartCall(Call, TurnRound, Executor, Option<String>),
    /// Answered with the files' stamps.
    StatPinned {
        check: u32,
        files: Vec<String>,
    },
    CancelCall(CallId),
    /// All that run.
    CancelCalls,
    /// For the screens; not kept.
    Show(Event),
    /// For the log.
    Log(&'static str, LogLine),
}

/// What is known of one session's traffic.
#[derive(Debug, Default)]
pub(crate) struct Router {
    /// The conversation is replayed and takes prompts.
    ready: bool,
    /// Sent to the conversation and not yet seen on its way to disk.
    unconfirmed: VecDeque<String>,
    /// The request that the provider owes an answer to.
    asked: Option<ModelRequest>,
    /// Prompts that wait for the running turn to end, on disk.
    queue: VecDeque<String>,
    /// Whether the prompt that is not confirmed stands on disk among those that wait.
    kept: QueuedOnDisk,
    /// Requests that were given up and whose end the provider has not said yet. A conversation
    /// that was replayed counts its requests as the one before it did, so that a late word could
    /// pass for one about the request that is open now.
    cancelled_requests: u32,
    /// Provider lives lost over that request.
    lost: u32,
    /// A person wants the turn to stop, and its end is not on disk: said again to a conversation
    /// that was started anew.
    stopping: bool,
    /// A person wants room in the context, and the conversation has not answered yet: said again to
    /// one that was started anew.
    compacting: bool,
    /// What people were told of how the model is asked.
    shown_notices: Vec<String>,
    /// A prompt is on disk and the end of its turn is not.
    turn_open: bool,
    /// Counted over the session.
    place: TurnRound,
    /// Deaths of the conversation's process since the turn's last progress.
    deaths: u32,
    /// How it ended the last time, and where in the turn.
    last_death: Option<(String, String)>,
    /// How deaths cut the last turn short, until another begins.
    cut_short: Option<Deaths>,
}

/// Whether words that the conversation has not put on disk are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum QueuedOnDisk {
    #[default]
    No,
    /// As a prompt that waits.
    Yes,
}

/// Provider lives that one request may cost before it fails. The slot's own limits hold besides.
const LIVES_PER_REQUEST: u32 = 5;
/// Deaths of the conversation's process without progress that end a turn: what kills it three times
/// at the same place will kill it again, and each try awaits_answer the model anew.
const DEATHS_WITHOUT_PROGRESS: u32 = 3;

impl Router {
    /// Continues after so many turns on disk, the last of them ended, cut short or to go on.
    pub(crate) fn resumed(turns: u32, last: OpenTurn, cut_short: Option<Deaths>) -> Self {
        let turn_open = last == OpenTurn::GoesOn;
        let place = TurnRound { turn: turns, round: 0 };
        Self { place, turn_open, cut_short, ..Self::default() }
    }

    /// Whether somebody waits for something.
    pub(crate) fn is_busy(&self) -> bool {
        self.turn_open || !self.unconfirmed.is_empty()
    }

    /// Whether a turn has no end yet.
    pub(crate) fn turn_is_open(&self) -> bool {
        self.turn_open
    }

    /// Whether the provider owes an answer.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.asked.is_some()
    }

    /// Where in the conversation a call of now stands.
    pub(crate) fn place(&self) -> TurnRound {
        self.place
    }

    /// Prompts so far.
    pub(crate) fn turns(&self) -> u32 {
        self.place.turn
    }

    /// The same, with prompts that waited already.
    pub(crate) fn with_queue(mut self, queue: VecDeque<String>) -> Self {
        self.queue = queue;
        self
    }

    /// Whether a prompt would have to wait.
    pub(crate) fn must_queue(&self) -> bool {
        self.is_busy() || !self.queue.is_empty()
    }

    /// The prompts that wait, in their order.
    pub(crate) fn queue(&self) -> Vec<String> {
        self.queue.iter().cloned().collect()
    }

    /// What is to be put on disk for these words to wait there: the prompt before them too, where
    /// it is not yet. A prompt takes the place of the oldest that waits, and must not take theirs.
    pub(crate) fn queued_with(&mut self, text: &str) -> Vec<String> {
        let before = match std::mem::replace(&mut self.kept, QueuedOnDisk::Yes) {
            QueuedOnDisk::Yes => None,
            QueuedOnDisk::No => self.unconfirmed.front().cloned(),
        };
        before.into_iter().chain([text.to_owned()]).collect()
    }

    /// A person's words that wait; they are on disk.
    pub(crate) fn enqueue(&mut self, text: String) {
        self.queue.push_back(text);
    }

    /// The person wants to change what waits; that they took it back is on disk.
    pub(crate) fn take_back(&mut self) -> Vec<String> {
        self.kept = QueuedOnDisk::No;
        std::mem::take(&mut self.queue).into()
    }

    /// These wait instead of those that did; that is on disk.
    pub(crate) fn requeue(&mut self, texts: Vec<String>) {
        self.kept = QueuedOnDisk::No;
        self.queue = texts.into();
    }

    /// The next of those that wait, if its turn has come.
    pub(crate) fn next_queued(&mut self) -> Option<Vec<RouteStep>> {
        if !self.ready || self.is_busy() {
            return None;
        }
        let text = self.queue.pop_front()?;
        let steps = self.prompt(text);
        self.kept = QueuedOnDisk::Yes;
        Some(steps)
    }

    /// A person's words. QueuedOnDisk until the conversation has put them on disk, however often it dies.
    pub(crate) fn prompt(&mut self, text: String) -> Vec<RouteStep> {
        self.kept = QueuedOnDisk::No;
        self.unconfirmed.push_back(text.clone());
        match self.ready {
            true => vec![RouteStep::ToSession(ToSession::Prompt { text })],
            false => Vec::new(),
        }
    }

    /// A person wants the turn to stop. A conversation that is being replayed hears of it when it
    /// is ready; one whose calls still run is not even that, so that they end at once and the turn
    /// does not go on.
    pub(crate) fn interrupt(&mut self) -> Vec<RouteStep> {
        self.stopping = self.is_busy();
        match self.ready {
            true => vec![RouteStep::ToSession(ToSession::Interrupt)],
            false => vec![RouteStep::CancelCalls],
        }
    }

    /// A person wants room in the model's context. A conversation that is being replayed hears of it
    /// when it is ready, before the prompts that wait.
    pub(crate) fn compact(&mut self) -> Vec<RouteStep> {
        self.compacting = true;
        match self.ready {
            true => vec![RouteStep::ToSession(ToSession::Compact)],
            false => Vec::new(),
        }
    }

    pub(crate) fn on_session_msg(&mut self, word: FromSession) -> Vec<RouteStep> {
        match word {
            FromSession::Ready => {
                self.ready = true;
                let room = self.compacting.then_some(ToSession::Compact);
                let prompts = self.unconfirmed.iter().cloned();
                let prompts = prompts.map(|text| ToSession::Prompt { text });
                let stop = self.stopping.then_some(ToSession::Interrupt);
                room.into_iter().chain(prompts).chain(stop).map(RouteStep::ToSession).collect()
            }
            FromSession::Commit(happened) => {
                if is_progress(&happened) {
                    self.progressed();
                }
                match &happened {
                    Happened::Prompt { .. } => {
                        self.unconfirmed.pop_front();
                        self.turn_open = true;
                        self.cut_short = None;
                        self.place = TurnRound { turn: self.place.turn + 1, round: 0 };
                    }
                    Happened::TurnEnded { end } => {
                        self.turn_open = false;
                        self.stopping = false;
                        if let TurnEnd::ProcessDied(deaths) = end {
                            self.cut_short = Some(deaths.clone());
                        }
                    }
                    Happened::Compacted { .. } => self.compacting = false,
                    Happened::Answer { .. } | Happened::Called { .. } | Happened::Result { .. } => {
                    }
                }
                vec![RouteStep::Record(happened)]
            }
            FromSession::Ask(request) => {
                self.asked = Some(request.clone());
                self.place.round = request.round;
                self.lost = 0;
                vec![RouteStep::ToProvider(ToProvider::Ask(request))]
            }
            FromSession::StatPinned { check, files } => {
                vec![RouteStep::StatPinned { check, files }]
            }
            FromSession::Run { call, note } => {
                vec![RouteStep::StartCall(call, self.place, Executor::Runner, note)]
            }
            FromSession::Answered { call, result } => {
                vec![RouteStep::StartCall(call, self.place, Executor::Conversation(result), None)]
            }
            FromSession::NotCompacted => {
                self.compacting = false;
                let reason = "the conversation is short, and nothing can be left out".to_owned();
                vec![RouteStep::Show(Event::NotCompacted { reason })]
            }
            FromSession::CancelAsk => self.cancel_request(),
            FromSession::CancelCall(call) => vec![RouteStep::CancelCall(call)],
            FromSession::Pong(_) => Vec::new(),
            FromSession::Log(line) => vec![RouteStep::Log("session", line)],
        }
    }

    pub(crate) fn on_provider_msg(&mut self, word: FromProvider) -> Vec<RouteStep> {
        let open = self.asked.as_ref().map(|request| request.round);
        match word {
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
                let shown = shown(&delta);
                let word = FromProvider::Delta { round, index, delta };
                let forward = RouteStep::ToSession(ToSession::Stream(word));
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
            word @ (FromProvider::Ended { .. }
            | FromProvider::Failed { .. }
            | FromProvider::Cancelled { .. }) => {
                self.asked = None;
                vec![RouteStep::ToSession(ToSession::Stream(word))]
            }
        }
    }

    /// Each provider life finds out for itself what people are told once.
    fn notice(&mut self, text: String) -> Vec<RouteStep> {
        if self.shown_notices.contains(&text) {
            return Vec::new();
        }
        self.shown_notices.push(text.clone());
        let line = LogLine { level: LogLevel::Info, text: text.clone() };
        vec![RouteStep::Log("provider", line), RouteStep::Show(Event::Notice { text })]
    }

    /// The provider is configured anew: what it owes is asked again.
    pub(crate) fn provider_up(&mut self) -> Vec<RouteStep> {
        // It owes nothing that another life was asked.
        self.cancelled_requests = 0;
        let asked = self.asked.clone();
        asked.map(|request| RouteStep::ToProvider(ToProvider::Ask(request))).into_iter().collect()
    }

    /// The provider died. What it had said of an open answer is void.
    pub(crate) fn provider_down(&mut self, cause: &str, failed: Option<&str>) -> Vec<RouteStep> {
        self.cancelled_requests = 0;
        let Some(round) = self.asked.as_ref().map(|request| request.round) else {
            return Vec::new();
        };
        self.lost += 1;
        if failed.is_some() || self.lost >= LIVES_PER_REQUEST {
            return self.provider_gone(cause);
        }
        strike(round, self.lost + 1, LIVES_PER_REQUEST, 0, format!("agentd-provider {cause}"))
    }

    /// No provider answers the open request any more: the turn ends.
    pub(crate) fn provider_gone(&mut self, cause: &str) -> Vec<RouteStep> {
        let deaths = Deaths {
            process: "agentd-provider".to_owned(),
            cause: cause.to_owned(),
            count: self.lost,
            place: self.place_in_turn(&[]),
        };
        self.asked = None;
        vec![RouteStep::ToSession(ToSession::ProviderDied(deaths))]
    }

    /// Where the turn is, in words for people; with the calls that run.
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

    /// The turn moved on: what the conversation's process died of before is no loop.
    pub(crate) fn progressed(&mut self) {
        self.deaths = 0;
    }

    /// The conversation died. Its open request is dropped, what was streamed of the answer is void;
    /// its running calls go on, unless a person wanted the turn to stop: the one that was told may not
    /// have ended them.
    pub(crate) fn session_down(&mut self, cause: &str, calls: &[u32]) -> Vec<RouteStep> {
        self.deaths += 1;
        self.last_death = Some((cause.to_owned(), self.place_in_turn(calls)));
        self.ready = false;
        let mut steps = self.cancel_request();
        if !steps.is_empty() {
            let reason = format!("agentd-session {cause}; the answer is asked for again");
            steps.push(RouteStep::Show(Event::Struck { reason }));
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

    /// The conversation is about to be replayed: whether a turn that is open goes on.
    pub(crate) fn open_turn(&self) -> OpenTurn {
        match self.turn_open && !self.stopping && self.deaths < DEATHS_WITHOUT_PROGRESS {
            true => OpenTurn::GoesOn,
            false => OpenTurn::Waits,
        }
    }

    /// A turn that is open and does not go on is closed, visibly: a person stopped it, or its
    /// conversation died too often.
    pub(crate) fn close_turn(&mut self) -> Vec<RouteStep> {
        if !std::mem::take(&mut self.turn_open) {
            return Vec::new();
        }
        let stopped = std::mem::take(&mut self.stopping);
        let end = match self.last_death.take().filter(|_| !stopped) {
            Some((cause, place)) => {
                let process = "agentd-session".to_owned();
                TurnEnd::ProcessDied(Deaths { process, cause, count: self.deaths, place })
            }
            None => TurnEnd::Interrupted,
        };
        if let TurnEnd::ProcessDied(deaths) = &end {
            self.cut_short = Some(deaths.clone());
        }
        vec![RouteStep::Record(Happened::TurnEnded { end })]
    }

    /// How deaths cut the last turn short, if they did.
    pub(crate) fn cut_short(&self) -> Option<&Deaths> {
        self.cut_short.as_ref()
    }
}

/// Whether a record moves the turn on. The read of a pinned file does not: each new process of a
/// conversation makes it again. Nor does a turn's end, which no death after it is part of.
pub(crate) fn is_progress(happened: &Happened) -> bool {
    match happened {
        Happened::Called { call } => !is_pinned_read(&call.tool, &call.use_id),
        Happened::Result { use_id, .. } => !use_id.is_empty(),
        Happened::Prompt { .. } | Happened::Answer { .. } | Happened::Compacted { .. } => true,
        Happened::TurnEnded { .. } => false,
    }
}

/// Whether a call reads a pinned file: no model asked for it.
pub(crate) fn is_pinned_read(tool: &str, use_id: &str) -> bool {
    use_id.is_empty() && tool == "read"
}

fn strike(round: u32, attempt: u32, of: u32, wait_ms: u64, reason: String) -> Vec<RouteStep> {
    let told = format!("{reason}; retrying {attempt}/{of} in {:.1} s", wait_ms as f64 / 1000.0);
    let word = FromProvider::Retrying { round, attempt, of, wait_ms, reason };
    vec![
        RouteStep::ToSession(ToSession::Stream(word)),
        RouteStep::Show(Event::Struck { reason: told }),
    ]
}

fn shown(delta: &Delta) -> Option<Event> {
    match delta {
        Delta::Text(text) => Some(Event::TextDelta { text: text.clone() }),
        Delta::Thinking(_)
        | Delta::ThinkingDone { .. }
        | Delta::ToolStart { .. }
        | Delta::ToolInput(_)
        | Delta::BlockDone => None,
    }
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
