//! Where each word of a session's workers goes: pure, without wildcard arms, so that a new word
//! does not compile until somebody says where it goes. The session actor carries the steps out.

use crate::call::Answerer;
use protocol::call::Call;
use protocol::client::Event;
use protocol::content::ModelRequest;
use protocol::ids::CallId;
use protocol::provider::{Delta, Failure, FromProvider, ToProvider};
use protocol::session::{FromSession, Happened, OpenTurn, ToSession, TurnEnd};
use protocol::upkeep::{LogLevel, LogLine};
use std::collections::VecDeque;

use crate::to_disk::Place;

/// What to do with a word, in this order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// On disk before anything after it; the screens see what the record says.
    Record(Happened),
    ToSession(ToSession),
    ToProvider(ToProvider),
    StartCall(Call, Place, Answerer),
    CancelCall(CallId),
    /// All that run.
    CancelCalls,
    /// For the screens; not kept.
    Tell(Event),
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
    kept: Kept,
    /// Requests that were given up and whose end the provider has not said yet. A conversation
    /// that was replayed counts its requests as the one before it did, so that a late word could
    /// pass for one about the request that is open now.
    given_up: u32,
    /// Provider lives lost over that request.
    lost: u32,
    /// A person wants the turn to stop, and its end is not on disk: said again to a conversation
    /// that was started anew.
    stopping: bool,
    /// A person wants room in the context, and the conversation could not be told yet.
    room_wanted: bool,
    /// What people were told of how the model is asked.
    noticed: Vec<String>,
    /// A prompt is on disk and the end of its turn is not.
    turn_open: bool,
    /// Counted over the session.
    place: Place,
    /// Lives of the conversation lost in this turn.
    deaths: u32,
}

/// Whether words that the conversation has not put on disk are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kept {
    #[default]
    Not,
    /// As a prompt that waits.
    Waiting,
}

/// Provider lives that one request may cost before it fails. The slot's own limits hold besides.
const LIVES_PER_REQUEST: u32 = 5;
/// Lives of the conversation that one turn may cost before it waits for a person: what kills it
/// three times will kill it again, and each try asks the model anew.
const LIVES_PER_TURN: u32 = 3;

impl Router {
    /// Continues after so many turns on disk, the last of them ended or to go on.
    pub(crate) fn resumed(turns: u32, last: OpenTurn) -> Self {
        let turn_open = last == OpenTurn::GoesOn;
        Self { place: Place { turn: turns, round: 0 }, turn_open, ..Self::default() }
    }

    /// Whether somebody waits for something.
    pub(crate) fn awaited(&self) -> bool {
        self.turn_open || !self.unconfirmed.is_empty()
    }

    /// Whether the provider owes an answer.
    pub(crate) fn asks(&self) -> bool {
        self.asked.is_some()
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
    pub(crate) fn busy(&self) -> bool {
        self.awaited() || !self.queue.is_empty()
    }

    /// The prompts that wait, in their order.
    pub(crate) fn queue(&self) -> Vec<String> {
        self.queue.iter().cloned().collect()
    }

    /// What is to be put on disk for these words to wait there: the prompt before them too, where
    /// it is not yet. A prompt takes the place of the oldest that waits, and must not take theirs.
    pub(crate) fn queued_with(&mut self, text: &str) -> Vec<String> {
        let before = match std::mem::replace(&mut self.kept, Kept::Waiting) {
            Kept::Waiting => None,
            Kept::Not => self.unconfirmed.front().cloned(),
        };
        before.into_iter().chain([text.to_owned()]).collect()
    }

    /// A person's words that wait; they are on disk.
    pub(crate) fn enqueue(&mut self, text: String) {
        self.queue.push_back(text);
    }

    /// The person wants to change what waits; that they took it back is on disk.
    pub(crate) fn take_back(&mut self) -> Vec<String> {
        self.kept = Kept::Not;
        std::mem::take(&mut self.queue).into()
    }

    /// These wait instead of those that did; that is on disk.
    pub(crate) fn requeue(&mut self, texts: Vec<String>) {
        self.kept = Kept::Not;
        self.queue = texts.into();
    }

    /// The next of those that wait, if its turn has come.
    pub(crate) fn next_queued(&mut self) -> Option<Vec<Step>> {
        if !self.ready || self.awaited() {
            return None;
        }
        let text = self.queue.pop_front()?;
        let steps = self.prompt(text);
        self.kept = Kept::Waiting;
        Some(steps)
    }

    /// A person's words. Kept until the conversation has put them on disk, however often it dies.
    pub(crate) fn prompt(&mut self, text: String) -> Vec<Step> {
        self.kept = Kept::Not;
        self.unconfirmed.push_back(text.clone());
        match self.ready {
            true => vec![Step::ToSession(ToSession::Prompt { text })],
            false => Vec::new(),
        }
    }

    /// A person wants the turn to stop. A conversation that is being replayed hears of it when it
    /// is ready; one whose calls still run is not even that, so that they end at once and the turn
    /// does not go on.
    pub(crate) fn interrupt(&mut self) -> Vec<Step> {
        self.stopping = self.awaited();
        match self.ready {
            true => vec![Step::ToSession(ToSession::Interrupt)],
            false => vec![Step::CancelCalls],
        }
    }

    /// A person wants room in the model's context. A conversation that is being replayed hears of it
    /// when it is ready, before the prompts that wait.
    pub(crate) fn compact(&mut self) -> Vec<Step> {
        self.room_wanted = !self.ready;
        match self.ready {
            true => vec![Step::ToSession(ToSession::Compact)],
            false => Vec::new(),
        }
    }

    pub(crate) fn heard_session(&mut self, word: FromSession) -> Vec<Step> {
        match word {
            FromSession::Ready => {
                self.ready = true;
                let room = std::mem::take(&mut self.room_wanted).then_some(ToSession::Compact);
                let prompts = self.unconfirmed.iter().cloned();
                let prompts = prompts.map(|text| ToSession::Prompt { text });
                let stop = self.stopping.then_some(ToSession::Interrupt);
                room.into_iter().chain(prompts).chain(stop).map(Step::ToSession).collect()
            }
            FromSession::Commit(happened) => {
                match &happened {
                    Happened::Prompt { .. } => {
                        self.unconfirmed.pop_front();
                        self.turn_open = true;
                        self.deaths = 0;
                        self.place.turn += 1;
                    }
                    Happened::TurnEnded { .. } => {
                        self.turn_open = false;
                        self.stopping = false;
                    }
                    Happened::Answer { .. }
                    | Happened::Called { .. }
                    | Happened::Result { .. }
                    | Happened::Compacted { .. } => {}
                }
                vec![Step::Record(happened)]
            }
            FromSession::Ask(request) => {
                self.asked = Some(request.clone());
                self.place.round = request.round;
                self.lost = 0;
                vec![Step::ToProvider(ToProvider::Ask(request))]
            }
            FromSession::Run(call) => vec![Step::StartCall(call, self.place, Answerer::Runner)],
            FromSession::Answered { call, result } => {
                vec![Step::StartCall(call, self.place, Answerer::Conversation(result))]
            }
            FromSession::NotCompacted => {
                let reason = "the conversation is short, and nothing can be left out".to_owned();
                vec![Step::Tell(Event::NotCompacted { reason })]
            }
            FromSession::CancelAsk => self.give_up(),
            FromSession::CancelCall(call) => vec![Step::CancelCall(call)],
            FromSession::Pong(_) => Vec::new(),
            FromSession::Log(line) => vec![Step::Log("session", line)],
        }
    }

    pub(crate) fn heard_provider(&mut self, word: FromProvider) -> Vec<Step> {
        let open = self.asked.as_ref().map(|request| request.round);
        match word {
            FromProvider::Ready | FromProvider::Pong(_) => Vec::new(),
            FromProvider::Log(line) => vec![Step::Log("provider", line)],
            FromProvider::Notice { text } => self.notice(text),
            FromProvider::Delta { .. } | FromProvider::Retrying { .. } if self.given_up > 0 => {
                Vec::new()
            }
            FromProvider::Ended { .. }
            | FromProvider::Failed { .. }
            | FromProvider::Cancelled { .. }
                if self.given_up > 0 =>
            {
                self.given_up -= 1;
                Vec::new()
            }
            FromProvider::Delta { round, .. } if Some(round) != open => Vec::new(),
            FromProvider::Delta { round, index, delta } => {
                let shown = shown(&delta);
                let word = FromProvider::Delta { round, index, delta };
                let forward = Step::ToSession(ToSession::Stream(word));
                std::iter::once(forward).chain(shown.map(Step::Tell)).collect()
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
                vec![Step::ToSession(ToSession::Stream(word))]
            }
        }
    }

    /// Each provider life finds out for itself what people are told once.
    fn notice(&mut self, text: String) -> Vec<Step> {
        if self.noticed.contains(&text) {
            return Vec::new();
        }
        self.noticed.push(text.clone());
        let line = LogLine { level: LogLevel::Info, text: text.clone() };
        vec![Step::Log("provider", line), Step::Tell(Event::Notice { text })]
    }

    /// The provider is configured anew: what it owes is asked again.
    pub(crate) fn provider_up(&mut self) -> Vec<Step> {
        // It owes nothing that another life was asked.
        self.given_up = 0;
        let asked = self.asked.clone();
        asked.map(|request| Step::ToProvider(ToProvider::Ask(request))).into_iter().collect()
    }

    /// The provider died. What it had said of an open answer is void.
    pub(crate) fn provider_down(&mut self, cause: &str, failed: Option<&str>) -> Vec<Step> {
        self.given_up = 0;
        let Some(round) = self.asked.as_ref().map(|request| request.round) else {
            return Vec::new();
        };
        self.lost += 1;
        let gone = match failed {
            Some(why) => Some(why.to_owned()),
            None if self.lost >= LIVES_PER_REQUEST => {
                Some(format!("agentd-provider {cause}, {} times in a row", self.lost))
            }
            None => None,
        };
        match gone {
            Some(message) => {
                self.asked = None;
                let kind = Failure::Unreachable;
                let word = FromProvider::Failed { round, kind, message };
                vec![Step::ToSession(ToSession::Stream(word))]
            }
            None => {
                let reason = format!("agentd-provider {cause}");
                strike(round, self.lost + 1, LIVES_PER_REQUEST, 0, reason)
            }
        }
    }

    /// The conversation died. Its open request is dropped, what was streamed of the answer is void;
    /// its running calls go on.
    pub(crate) fn session_down(&mut self, cause: &str) -> Vec<Step> {
        self.ready = false;
        self.deaths += 1;
        let mut steps = self.give_up();
        if !steps.is_empty() {
            let reason = format!("agentd-session {cause}; the answer is asked for again");
            steps.push(Step::Tell(Event::Struck { reason }));
        }
        steps
    }

    fn give_up(&mut self) -> Vec<Step> {
        match self.asked.take() {
            Some(_) => {
                self.given_up += 1;
                vec![Step::ToProvider(ToProvider::Cancel)]
            }
            None => Vec::new(),
        }
    }

    /// The conversation is about to be replayed: whether a turn that is open goes on.
    pub(crate) fn open_turn(&self, audience: Watched) -> OpenTurn {
        match (self.turn_open, audience) {
            (true, Watched::BySomebody) if self.deaths < LIVES_PER_TURN && !self.stopping => {
                OpenTurn::GoesOn
            }
            (true, Watched::BySomebody | Watched::ByNobody) | (false, _) => OpenTurn::Waits,
        }
    }

    /// A turn that is open and does not go on is closed, visibly.
    pub(crate) fn close_turn(&mut self) -> Vec<Step> {
        match std::mem::take(&mut self.turn_open) {
            true => {
                self.stopping = false;
                vec![Step::Record(Happened::TurnEnded { end: TurnEnd::Interrupted })]
            }
            false => Vec::new(),
        }
    }
}

/// Whether anybody sees the session: nothing goes on for nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watched {
    BySomebody,
    ByNobody,
}

fn strike(round: u32, attempt: u32, of: u32, wait_ms: u64, reason: String) -> Vec<Step> {
    let told = format!("{reason}; retrying {attempt}/{of} in {:.1} s", wait_ms as f64 / 1000.0);
    let word = FromProvider::Retrying { round, attempt, of, wait_ms, reason };
    vec![Step::ToSession(ToSession::Stream(word)), Step::Tell(Event::Struck { reason: told })]
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
