//! The conversation as a state machine: words in, words out, no IO, no clock, no environment.
//!
//! [`Session::step`] takes one message of the supervisor and returns the messages that follow from
//! it.
//!
//! | File | Work |
//! |---|---|
//! | `stream`, `answer` | the model's answer, joined from its stream |
//! | `calls`, `batch`, `budget` | its calls, their order, and how many are left to a turn and a session |
//! | `tool_lookup` | reads calls |
//! | `deferred_tools`, `tool_search` | offers tools when they are searched; finds them by words |
//! | `builtin_tools`, `synthetic_results` | calls that need no process; results that no tool produced |
//! | `hooks`, `hook_runs` | the hooks that are due at events and after edits, and their runs |
//! | `history`, `images`, `limits` | the messages for the model, the images that a request shows, the sizes |
//! | `room`, `compact`, `old_results`, `summary` | watches the model's context, and makes room in it |
//! | `context_report` | describes the context |
//! | `pending_prompt`, `pinned`, `refresh` | commands in a slash command's text; pinned files, and their reads |
//! | `plan`, `undo`, `undo_request` | turns that end with a plan; changes that a prompt reverts |
//! | `background`, `servers` | commands that went on; starts of MCP servers |
//!
//! Used by `agentd-session` only.
//!
//! Invariants, for any messages in any order: every request is valid for the vendors; a call runs
//! only from an answer that ended with the call complete; each call of an answer is named
//! (`Called`) once and gets exactly one result.

mod answer;
mod background;
mod batch;
mod budget;
mod builtin_tools;
mod calls;
mod checklist;
mod compact;
mod context_report;
mod deferred_tools;
mod history;
mod hook_runs;
mod hooks;
mod images;
mod limits;
mod old_results;
mod pending_prompt;
mod pinned;
mod plan;
mod refresh;
mod room;
mod servers;
mod stream;
mod summary;
mod synthetic_results;
mod token_size;
mod tool_lookup;
mod tool_search;
mod truncate;
mod undo;
mod undo_request;

use answer::{PartialAnswer, RequestedCall};
use batch::Batch;
use budget::CostReached;
use history::History;
use hook_runs::WaitingCompaction;
use hooks::{HookText, Hooks};
use limits::limits;
use pending_prompt::PendingPrompt;
use pinned::PinnedFiles;
use plan::ShownPlans;
use protocol::call::Call;
use protocol::content::{ContentBlock, Message, MessageRole, ModelRequest, ToolChoice};
use protocol::context::CompactionCause;
use protocol::ids::CallId;
use protocol::judgement::ToolKind;
use protocol::log::{LogLevel, LogLine};
use protocol::session::{
    ConversationSetting, ExpandedPrompt, FromSession, JoiningWords, OpenTurn, SessionEvent,
    SessionSetup, ToSession, TurnEnd,
};
use room::RoomMade;
use servers::StartingServers;
use std::collections::{HashMap, VecDeque};
use summary::AfterSummary;
use synthetic_results::NotRun;
pub use tool_lookup::{CallError, ReadCall, Reader};
use undo::UndoableChanges;
use undo_request::UndoRequest;

/// One conversation.
#[derive(Debug)]
pub struct Session {
    setup: SessionSetup,
    /// Reads calls that a model requests.
    reader: Reader,
    /// Notes on arguments, for the results of calls that have not begun.
    notes: HashMap<CallId, String>,
    history: History,
    pinned: PinnedFiles,
    /// File changes that can be undone.
    changes: UndoableChanges,
    hooks: Hooks,
    /// Plans of the running round.
    plans: ShownPlans,
    phase: SessionPhase,
    /// Ends of background commands that came before the end of the replay, which they follow.
    early: Vec<SessionEvent>,
    /// Prompts that came while a turn ran, the oldest first.
    queue: VecDeque<(String, Option<Box<ExpandedPrompt>>)>,
    /// The number of the newest request, answered or not.
    round: u32,
    /// Facts about the running turn.
    turn: TurnFacts,
    /// Servers that start.
    servers: StartingServers,
}

/// The event that the conversation waits for.
#[derive(Debug)]
enum SessionPhase {
    /// The end of the journal.
    Replaying,
    /// A prompt.
    Idle,
    /// The rest of an answer.
    Asking(PartialAnswer),
    /// The ends of calls.
    Calling { batch: Batch, stopping: bool },
    /// Starts of servers, then the stamps of pinned files; the changed ones are read next.
    Checking,
    /// Words of a person that join the turn; then the model is asked.
    Joining { stopping: bool },
    /// The ends of reads of pinned files; then the model is asked.
    Reading { batch: Batch, stopping: bool },
    /// The ends of calls that take changes back.
    Undoing,
    /// The rest of a summary.
    Summarizing { answer: PartialAnswer, then: AfterSummary },
    /// The end of a hook; then the conversation is made smaller.
    CompactHooks(WaitingCompaction),
}

/// Facts about the running turn that its next decision needs.
#[derive(Debug, Default)]
struct TurnFacts {
    /// An empty answer was asked for again.
    asked_again: bool,
    /// Room was made because the vendor found the request too long.
    made_room: bool,
    /// The model was asked for text only: the turn has used up its calls.
    last_words: bool,
    /// The model was asked for a summary since its newest answer.
    summarized: bool,
    /// A person wants a summary, with this focus, before the next request.
    wanted_summary: Option<String>,
    /// A person's words wait to join it.
    words_wait: bool,
}

impl Session {
    /// A conversation before its journal is replayed.
    #[must_use]
    pub fn new(setup: SessionSetup, reader: Reader) -> Self {
        Self {
            reader,
            notes: HashMap::new(),
            history: History::new(limits(&setup)),
            pinned: PinnedFiles::new(setup.pinned.clone()),
            changes: UndoableChanges::default(),
            hooks: Hooks::default(),
            plans: ShownPlans::default(),
            setup,
            phase: SessionPhase::Replaying,
            early: Vec::new(),
            queue: VecDeque::new(),
            round: 0,
            turn: TurnFacts::default(),
            servers: StartingServers::default(),
        }
    }

    /// Handles one message; returns the resulting messages, in order.
    pub fn step(&mut self, word: ToSession) -> Vec<FromSession> {
        let mut out = Outputs::default();
        match word {
            ToSession::Begin(_) => out.warn("a second Begin was ignored"),
            ToSession::Replay(happened) if self.is_replaying() => {
                self.pinned.replay(&happened);
                self.take_in(&happened);
            }
            ToSession::Replay(_) => out.warn("a Replay after ReplayDone was ignored"),
            ToSession::ReplayDone { then, compact } => self.replay_done(then, compact, &mut out),
            ToSession::Prompt { text, expanded } => {
                self.queue.push_back((text, expanded));
                self.next_turn(&mut out);
            }
            ToSession::Stream(word) => self.stream(word, &mut out),
            ToSession::ProviderDied(deaths) => self.provider_died(deaths, &mut out),
            ToSession::CallEnded { call, stage, result } => {
                self.call_ended(call, stage, result, &mut out);
            }
            // Durable already.
            ToSession::BackgroundEnded { call, tool, result } => {
                let ended = SessionEvent::BackgroundEnded { call, tool, result };
                match self.is_replaying() {
                    true => self.early.push(ended),
                    false => self.take_in(&ended),
                }
            }
            ToSession::System { text } => self.setup.system = text,
            ToSession::Model { name, max_tokens, facts } => {
                self.use_model(name, max_tokens, facts);
            }
            ToSession::Setting(setting) => self.set(setting),
            ToSession::Pinned(news) => self.pinned_news(news, &mut out),
            ToSession::Servers(news) => self.server_news(news, &mut out),
            ToSession::HooksDue(occasion) => self.hooks_due(occasion, &mut out),
            ToSession::Interrupt => {
                self.cancel_asides(&mut out);
                self.interrupt(&mut out);
            }
            ToSession::Compact { focus } => self.compact(focus, &mut out),
            ToSession::EditSummary(edit) => self.edit_summary(edit, &mut out),
            ToSession::Describe => out.words.push(FromSession::Context(self.context_report())),
            ToSession::Ping(number) => out.words.push(FromSession::Pong(number)),
            ToSession::Joining(JoiningWords::Wait) => self.turn.words_wait = true,
            ToSession::Joining(JoiningWords::Taken(texts)) => self.join(texts, &mut out),
        }
        out.words
    }

    /// The journal is replayed: prompts are accepted from now on. An interrupted turn continues or
    /// waits for the next prompt, as the supervisor orders.
    fn replay_done(&mut self, then: OpenTurn, compact: Option<String>, out: &mut Outputs) {
        if !self.is_replaying() {
            return out.warn("a second ReplayDone was ignored");
        }
        std::mem::take(&mut self.early).iter().for_each(|ended| self.take_in(ended));
        self.pinned.replayed();
        // They were shown when they came.
        drop(self.hooks.take_notices());
        let goes_on = then == OpenTurn::GoesOn && self.history.in_turn();
        let mut named = Vec::new();
        for open in self.history.unanswered() {
            let wanted = RequestedCall {
                use_id: open.use_id,
                name: open.name,
                input: open.input,
                whole: true,
            };
            let (call, reading) = match open.call {
                Some(id) => self.call(id, &wanted),
                None => self.name_call(&wanted, out),
            };
            named.push((wanted, call, reading));
        }
        let (within, none_left) = self.history.budget().within(count(named.len()));
        let mut batch = Batch::default();
        // All started calls have ended, so these were only named. They come before the calls that
        // they decide about.
        for call in self.hooks.unanswered() {
            match goes_on {
                true => batch.push(call, ToolKind::Mutation),
                false => self.answer_call(call, &NotRun::Lost, out),
            }
        }
        for (place, (wanted, call, reading)) in (0..).zip(named) {
            // A call without arguments may have been cut in the answer; the journal does not tell.
            // Such a call does not run.
            let cut = wanted.input.trim() == "{}";
            let why = match reading.order {
                _ if !goes_on => NotRun::Lost,
                Ok(_) if self.is_over() => NotRun::Rounds { most: self.setup.max_rounds.max(1) },
                _ if place >= within => NotRun::Budget(none_left),
                Ok(order) if !cut => {
                    self.notes.extend(reading.note.map(|note| (call.id.clone(), note)));
                    batch.push(call, order);
                    continue;
                }
                Ok(_) => NotRun::Lost,
                Err(why) => why,
            };
            self.answer_call(call, &why, out);
        }
        // All started calls have ended, so these were only named.
        for call in self.hooks.unanswered_after_edits() {
            match goes_on {
                true => batch.push(call, ToolKind::Mutation),
                false => self.answer_call(call, &NotRun::Lost, out),
            }
        }
        if !goes_on {
            let open = self.history.pending_prompt().map(PendingPrompt::unanswered);
            for call in open.unwrap_or_default() {
                self.answer_call(call, &NotRun::Lost, out);
            }
        }
        self.round = self.history.last_round();
        self.compaction_replayed(then, compact);
        self.phase = SessionPhase::Idle;
        out.words.push(FromSession::Ready);
        self.go_on_aside(out);
        if !goes_on {
            return self.next_turn(out);
        }
        let is_prompted = self.history.pending_prompt().is_some();
        if self.history.ends_with_answer() && batch.is_over() && !is_prompted {
            let over = self.is_over() || self.history.budget().over().is_some();
            return match over {
                true => self.end_turn(self.used_up(), out),
                false => self.finish_turn(out),
            };
        }
        if let Some(text) = self.changes.cut_short() {
            // It has no model to ask, and a person has to see a change that may be half taken back.
            return self.end_undoing(text, TurnEnd::Interrupted, out);
        }
        self.phase = SessionPhase::Calling { batch, stopping: false };
        self.go_on_calling(out);
    }

    fn is_replaying(&self) -> bool {
        matches!(self.phase, SessionPhase::Replaying)
    }

    /// True if even the text-only answer was given.
    fn is_over(&self) -> bool {
        self.history.budget().rounds() > self.setup.max_rounds.max(1)
    }

    fn rounds_used_up(&self) -> TurnEnd {
        TurnEnd::RoundsUsedUp { rounds: self.setup.max_rounds.max(1) }
    }

    /// Starts the oldest queued prompt's turn, if none runs.
    fn next_turn(&mut self, out: &mut Outputs) {
        while let SessionPhase::Idle = self.phase {
            if let Some(focus) = self.turn.wanted_summary.take() {
                self.begin_compaction(CompactionCause::Person, focus, AfterSummary::Rest, out);
                continue;
            }
            let Some((text, expanded)) = self.queue.pop_front() else { return };
            let blank = text.trim().is_empty();
            let undo = UndoRequest::of(&text);
            self.turn = TurnFacts::default();
            self.pinned.outdate();
            self.pinned.show_at_end();
            self.commit(SessionEvent::Prompt { text, expanded }, out);
            if blank {
                // Nothing to send; a vendor refuses blank text.
                self.commit(SessionEvent::TurnEnded { end: TurnEnd::Done }, out);
            } else if let Some(request) = undo {
                self.phase = SessionPhase::Undoing;
                let step = self.changes.begin(request);
                self.go_on_undoing(step, out);
            } else {
                self.begin_turn(out);
            }
        }
    }

    fn set(&mut self, setting: ConversationSetting) {
        match setting {
            ConversationSetting::Mode(mode) => self.setup.mode = mode,
            ConversationSetting::Bounds(bounds) => {
                self.setup.max_session = bounds;
                self.history.set_limits(limits(&self.setup));
            }
        }
    }

    /// A person's words join the turn, which asks the model with them. They are durable.
    fn join(&mut self, texts: Vec<String>, out: &mut Outputs) {
        let SessionPhase::Joining { stopping } = self.phase else {
            return out.warn("words that the turn has no room for were ignored");
        };
        texts.into_iter().for_each(|text| self.take_in(&SessionEvent::Joined { text }));
        match stopping {
            true => self.end_turn(TurnEnd::Interrupted, out),
            false => self.ask_now(out),
        }
    }

    /// Asks the model, with pinned files as they were read last, and with the words that wait to join the turn.
    fn ask_now(&mut self, out: &mut Outputs) {
        if let Some(CostReached { spent, most }) = self.history.budget().cost_reached() {
            return self.end_turn(TurnEnd::CostReached { spent, most }, out);
        }
        if self.turn.words_wait && self.may_be_joined() {
            self.turn.words_wait = false;
            self.phase = SessionPhase::Joining { stopping: false };
            return out.words.push(FromSession::TakeJoining);
        }
        match self.make_room_first(out) {
            RoomMade::Now => self.send_request(out),
            RoomMade::Later => {}
        }
    }

    /// The next request is one that words of a person belong into: no hook has to judge them, the model may act on
    /// them, and its last message is whole.
    fn may_be_joined(&self) -> bool {
        !self.hooks.judge_prompts(&self.setup)
            && !self.asks_for_last_words()
            && !self.history.ends_with_answer()
    }

    /// A turn always ends with words: behind its last round the model is asked for nothing else.
    fn asks_for_last_words(&self) -> bool {
        let budget = self.history.budget();
        budget.rounds() >= self.setup.max_rounds.max(1) || budget.over().is_some()
    }

    fn send_request(&mut self, out: &mut Outputs) {
        let mut messages = self.history.messages();
        out.notice(images::prepare(&mut messages, &self.setup));
        if messages.last().is_some_and(|last| last.role == MessageRole::Assistant) {
            // Nothing of ours can stand at the end.
            self.pinned.lay_down();
        }
        self.turn.last_words = self.asks_for_last_words();
        let calls = if self.turn.last_words { ToolChoice::No } else { ToolChoice::Yes };
        let answer_schema = self.history.answer_schema(self.setup.facts);
        let request = ModelRequest { answer_schema, ..self.request(messages, calls) };
        self.history.asked(self.beside_messages());
        out.words
            .push(FromSession::Ask(ModelRequest { updated: self.pinned.updated(), ..request }));
        self.pinned.asked();
        self.phase = SessionPhase::Asking(PartialAnswer::default());
    }

    /// The next request, with pinned files at its front.
    fn request(&mut self, mut messages: Vec<Message>, calls: ToolChoice) -> ModelRequest {
        if let (Some(text), Some(first)) = (self.pinned.front(), messages.first_mut()) {
            first.blocks.insert(0, ContentBlock::Text { text });
        }
        self.round = self.round.saturating_add(1);
        ModelRequest {
            round: self.round,
            model: self.setup.model.clone(),
            system: self.setup.system.clone(),
            tools: self.offered().into_iter().map(|tool| tool.spec).collect(),
            messages,
            max_tokens: self.setup.max_tokens,
            updated: None,
            calls,
            images: Vec::new(),
            answer_schema: None,
        }
    }

    fn interrupt(&mut self, out: &mut Outputs) {
        match &mut self.phase {
            SessionPhase::Replaying | SessionPhase::Idle => {}
            SessionPhase::Undoing => {
                out.words.extend(self.changes.stop().map(FromSession::CancelCall));
            }
            SessionPhase::CompactHooks(_) => self.stop_compact_hook(out),
            SessionPhase::Checking => self.end_turn(TurnEnd::Interrupted, out),
            SessionPhase::Joining { stopping } => *stopping = true,
            SessionPhase::Summarizing { .. } => {
                out.words.push(FromSession::CancelAsk);
                self.stop_summary(out);
            }
            SessionPhase::Asking(answer) => {
                out.words.push(FromSession::CancelAsk);
                let answer = std::mem::take(answer);
                self.stopped(answer, out);
            }
            SessionPhase::Calling { batch, stopping }
            | SessionPhase::Reading { batch, stopping } => {
                if std::mem::replace(stopping, true) {
                    return;
                }
                let dropped = batch.drop_waiting();
                out.words.extend(batch.running().into_iter().map(FromSession::CancelCall));
                for call in dropped {
                    self.answer_call(call, &NotRun::Stopped, out);
                }
                match self.phase {
                    SessionPhase::Reading { .. } => self.go_on_reading(out),
                    SessionPhase::Replaying
                    | SessionPhase::Idle
                    | SessionPhase::Checking
                    | SessionPhase::Joining { .. }
                    | SessionPhase::Asking(_)
                    | SessionPhase::Calling { .. }
                    | SessionPhase::Undoing
                    | SessionPhase::CompactHooks(_)
                    | SessionPhase::Summarizing { .. } => self.go_on_calling(out),
                }
            }
        }
    }

    fn end_turn(&mut self, end: TurnEnd, out: &mut Outputs) {
        self.phase = SessionPhase::Idle;
        self.commit(SessionEvent::TurnEnded { end }, out);
        self.next_turn(out);
    }

    fn take_in(&mut self, happened: &SessionEvent) {
        self.leave_unjudged_prompt_out(happened);
        self.history.apply(happened);
        self.plans.apply(happened);
        self.changes.apply(happened, &self.setup.tools);
        for said in self.hooks.apply(happened, &self.setup, self.reader) {
            match said {
                HookText::Result { use_id, text } => self.history.add_to_result(&use_id, &text),
                HookText::Note(text) => self.history.noted(&text),
            }
        }
        if let SessionEvent::TurnEnded { .. } = happened
            && let Some(text) = self.changes.cut_short()
        {
            self.history.noted(&text);
        }
    }

    fn commit(&mut self, happened: SessionEvent, out: &mut Outputs) {
        self.take_in(&happened);
        out.words.push(FromSession::Commit(happened));
    }
}

/// Calls of one answer, as they are counted.
fn count(calls: usize) -> u32 {
    u32::try_from(calls).unwrap_or(u32::MAX)
}

/// Whether the calls of an answer may run.
#[derive(Debug, Clone, Copy)]
enum CallsMayRun {
    Nothing,
    /// They came though none were wanted.
    NoMoreRounds,
    WithinBudget,
}

/// The output of a step.
#[derive(Debug, Default)]
struct Outputs {
    words: Vec<FromSession>,
}

impl Outputs {
    fn notice(&mut self, text: Option<String>) {
        self.words.extend(text.map(|text| FromSession::Notice { text }));
    }

    /// Starts a call that no model requested.
    fn run(&mut self, call: Call) {
        self.words.push(FromSession::Run { call, note: None, asked: None });
    }

    fn warn(&mut self, text: &str) {
        let line = LogLine { level: LogLevel::Warn, text: text.to_owned() };
        self.words.push(FromSession::Log(line));
    }
}
