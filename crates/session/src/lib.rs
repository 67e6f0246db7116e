//! The conversation as a state machine: words in, words out, no IO, no clock, no environment.
//!
//! [`Session::step`] takes one word of the supervisor and says what follows from it. The files:
//! `answer` joins a stream to blocks, `history` is what the model is sent, `batch` orders
//! calls, `budget` counts what a turn and a session may still ask for, `own` answers those that need no process, `compact` makes room in the model's context,
//! `pinned` shows files that a person pinned and `refresh` has them read, `undo` takes changes back, `known` reads
//! calls, `hooks` runs what a person configured behind edits, `made_up` holds the results that no tool gave. Used by `agentd-session` only.
//!
//! What always holds, whatever words come in whatever order: every request is legal for the
//! vendors, a call runs only from an answer that ended with the call whole, and each call of an
//! answer is named (`Called`) once and gets exactly one result.

mod answer;
mod batch;
mod budget;
mod checklist;
mod compact;
mod cut;
mod history;
mod hooks;
mod known;
mod made_up;
mod own;
mod pinned;
mod refresh;
mod undo;

use answer::{Answer, Wanted};
use batch::Batch;
use budget::{Most, NoCalls};
use history::{History, Limits};
use hooks::Edits;
pub use known::{NoCall, ReadCall, Reader};
use known::{Reading, read};
use made_up::NotRun;
use pinned::Pinned;
use protocol::call::{Call, ToolResult};
use protocol::content::{Block, MayCall, ModelRequest, Role, StopReason, Usage};
use protocol::ids::CallId;
use protocol::judgement::ToolKind;
use protocol::provider::{Failure, FromProvider};
use protocol::session::{
    Deaths, FromSession, Happened, OpenTurn, SessionSetup, ToSession, TurnEnd,
};
use protocol::upkeep::{LogLevel, LogLine};
use std::collections::{HashMap, VecDeque};
use undo::{Changes, Undoing};

/// One conversation.
#[derive(Debug)]
pub struct Session {
    setup: SessionSetup,
    /// Reads what a model asks for.
    reader: Reader,
    /// What the results of calls that have not begun are to say of their arguments.
    notes: HashMap<CallId, String>,
    history: History,
    pinned: Pinned,
    /// What of files can be taken back.
    changes: Changes,
    /// What of the running round is to be put in form, and verified.
    edits: Edits,
    phase: Phase,
    /// Prompts that came while a turn ran, the oldest first.
    queue: VecDeque<String>,
    /// The number of the newest request, answered or not.
    round: u32,
    /// What the running turn has been told or has tried.
    turn: Turn,
    /// How often the stamps of pinned files were asked for.
    checks: u32,
}

/// What the conversation waits for.
#[derive(Debug)]
enum Phase {
    /// The end of the journal.
    Replaying,
    /// A prompt.
    Idle,
    /// The rest of an answer.
    Asking(Answer),
    /// The ends of calls.
    Calling { batch: Batch, stopping: bool },
    /// The stamps of pinned files; then those that changed are read.
    Checking,
    /// The ends of reads of pinned files; then the model is asked.
    Reading { batch: Batch, stopping: bool },
    /// The ends of calls that take changes back.
    Undoing(Undoing),
}

/// Facts about the running turn that its next decision needs.
#[derive(Debug, Default)]
struct Turn {
    /// An empty answer was asked for again.
    asked_again: bool,
    /// Room was made because the vendor found the request too long.
    made_room: bool,
    /// The model was asked for words only: what the turn may call is used up.
    last_words: bool,
}

impl Session {
    /// A conversation before its journal is replayed.
    #[must_use]
    pub fn new(setup: SessionSetup, reader: Reader) -> Self {
        Self {
            reader,
            notes: HashMap::new(),
            history: History::new(limits(&setup)),
            pinned: Pinned::new(setup.pinned.clone()),
            changes: Changes::default(),
            edits: Edits::default(),
            setup,
            phase: Phase::Replaying,
            queue: VecDeque::new(),
            round: 0,
            turn: Turn::default(),
            checks: 0,
        }
    }

    /// Takes one word in; what follows from it, in order.
    pub fn step(&mut self, word: ToSession) -> Vec<FromSession> {
        let mut out = Out::default();
        match word {
            ToSession::Begin(_) => out.warn("a second Begin was ignored"),
            ToSession::Replay(happened) => match self.phase {
                Phase::Replaying => {
                    self.pinned.replay(&happened);
                    self.take_in(&happened);
                }
                Phase::Idle
                | Phase::Asking(_)
                | Phase::Calling { .. }
                | Phase::Checking
                | Phase::Reading { .. }
                | Phase::Undoing(_) => out.warn("a Replay after ReplayDone was ignored"),
            },
            ToSession::ReplayDone { then } => self.replay_done(then, &mut out),
            ToSession::Prompt { text } => {
                self.queue.push_back(text);
                self.next_turn(&mut out);
            }
            ToSession::Stream(word) => self.stream(word, &mut out),
            ToSession::ProviderDied(deaths) => self.provider_died(deaths, &mut out),
            ToSession::CallEnded { call, result } => self.call_ended(call, result, &mut out),
            ToSession::System { text } => self.setup.system = text,
            ToSession::Model { name, max_tokens, context } => {
                self.setup =
                    SessionSetup { model: name, max_tokens, context, ..self.setup.clone() };
                self.history.set_limits(limits(&self.setup));
            }
            ToSession::Pinned { files } => self.pinned.set(files),
            ToSession::PinnedStamps { check, began, stamps } => {
                self.stamped(check, began, stamps, &mut out);
            }
            ToSession::Interrupt => self.interrupt(&mut out),
            ToSession::Compact => self.compact(&mut out),
            ToSession::Ping(number) => out.words.push(FromSession::Pong(number)),
        }
        out.words
    }

    /// The journal is at its end: prompts are welcome, and a turn that was cut short goes on or
    /// waits for the next of them, as the supervisor says.
    fn replay_done(&mut self, then: OpenTurn, out: &mut Out) {
        match self.phase {
            Phase::Replaying => {}
            Phase::Idle
            | Phase::Asking(_)
            | Phase::Calling { .. }
            | Phase::Checking
            | Phase::Reading { .. }
            | Phase::Undoing(_) => return out.warn("a second ReplayDone was ignored"),
        }
        self.pinned.replayed();
        let goes_on = then == OpenTurn::GoesOn && self.history.in_turn();
        let mut named = Vec::new();
        for open in self.history.unanswered() {
            let wanted =
                Wanted { use_id: open.use_id, name: open.name, input: open.input, whole: true };
            let (call, reading) = match open.call {
                Some(id) => self.call(id, &wanted),
                None => self.name_call(&wanted, out),
            };
            named.push((wanted, call, reading));
        }
        let (within, none_left) = self.history.budget().within(count(named.len()));
        let mut batch = Batch::default();
        for (place, (wanted, call, reading)) in (0..).zip(named) {
            // A call without arguments may be one that was cut in the answer, which nothing here
            // tells any more; such a call does not run.
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
        // Whatever was started has ended by now, so these were only named.
        for call in self.edits.unanswered() {
            match goes_on {
                true => batch.push(call, ToolKind::Mutation),
                false => self.answer_call(call, &NotRun::Lost, out),
            }
        }
        self.round = self.history.last_round();
        self.phase = Phase::Idle;
        out.words.push(FromSession::Ready);
        if !goes_on {
            return self.next_turn(out);
        }
        if self.history.ends_with_answer() && batch.is_over() {
            let over = self.is_over() || self.history.budget().over().is_some();
            let end = if over { self.used_up() } else { TurnEnd::Done };
            return self.end_turn(end, out);
        }
        if let Some(text) = self.changes.cut_short() {
            return self.undoing_was_cut_short(text, out);
        }
        self.phase = Phase::Calling { batch, stopping: false };
        self.go_on_calling(out);
    }

    /// Whether even the answer that may call nothing was given.
    fn is_over(&self) -> bool {
        self.history.budget().rounds() > self.setup.max_rounds.max(1)
    }

    fn rounds_used_up(&self) -> TurnEnd {
        TurnEnd::RoundsUsedUp { rounds: self.setup.max_rounds.max(1) }
    }

    /// Starts the oldest queued prompt's turn, if none runs.
    fn next_turn(&mut self, out: &mut Out) {
        while let Phase::Idle = self.phase {
            let Some(text) = self.queue.pop_front() else { return };
            let blank = text.trim().is_empty();
            let undo = undo::is_undo(&text);
            self.turn = Turn::default();
            self.pinned.outdate();
            self.pinned.show_at_end();
            self.commit(Happened::Prompt { text }, out);
            if blank {
                // Nothing to send; a vendor refuses blank text.
                self.commit(Happened::TurnEnded { end: TurnEnd::Done }, out);
            } else if undo {
                self.undo(out);
            } else {
                self.ask(out);
            }
        }
    }

    /// Asks the model, with pinned files as they were read last.
    fn ask_now(&mut self, out: &mut Out) {
        if self.history.is_nearly_full(self.beside_messages()) {
            self.make_room(out);
        }
        let mut messages = self.history.messages();
        if messages.last().is_some_and(|last| last.role == Role::Assistant) {
            // Nothing of ours can stand at the end.
            self.pinned.lay_down();
        }
        if let (Some(text), Some(first)) = (self.pinned.front(), messages.first_mut()) {
            first.blocks.insert(0, Block::Text { text });
        }
        // A turn always ends with words: behind its last round the model is asked for nothing else.
        let rounds = self.history.budget().rounds() >= self.setup.max_rounds.max(1);
        self.turn.last_words = rounds || self.history.budget().over().is_some();
        self.round = self.round.saturating_add(1);
        out.words.push(FromSession::Ask(ModelRequest {
            round: self.round,
            model: self.setup.model.clone(),
            system: self.setup.system.clone(),
            tools: self.setup.tools.iter().map(|tool| tool.spec.clone()).collect(),
            messages,
            max_tokens: self.setup.max_tokens,
            updated: self.pinned.updated(),
            calls: if self.turn.last_words { MayCall::No } else { MayCall::Yes },
        }));
        self.pinned.asked();
        self.phase = Phase::Asking(Answer::default());
    }

    /// A word of the provider. What is not about the open request is late or foreign, and ignored.
    fn stream(&mut self, word: FromProvider, out: &mut Out) {
        let Phase::Asking(answer) = &mut self.phase else { return };
        let open = self.round;
        match word {
            FromProvider::Delta { round, index, delta } if round == open => {
                if answer.add(index, delta).is_err() {
                    out.words.push(FromSession::CancelAsk);
                    let message = "The answer is larger than 32 MiB and was dropped.".to_owned();
                    let kind = Failure::Rejected;
                    self.end_turn(TurnEnd::ProviderFailed { kind, message }, out);
                }
            }
            FromProvider::Retrying { round, .. } if round == open => *answer = Answer::default(),
            FromProvider::Ended { round, stop, usage, model: _ } if round == open => {
                let answer = std::mem::take(answer);
                self.answered(answer, &stop, usage, out);
            }
            FromProvider::Failed { round, kind, message } if round == open => {
                self.failed(kind, message, out);
            }
            FromProvider::Cancelled { round } if round == open => {
                let answer = std::mem::take(answer);
                self.stopped(answer, out);
            }
            FromProvider::Delta { .. }
            | FromProvider::Retrying { .. }
            | FromProvider::Ended { .. }
            | FromProvider::Failed { .. }
            | FromProvider::Cancelled { .. }
            | FromProvider::Ready
            | FromProvider::Notice { .. }
            | FromProvider::Pong(_)
            | FromProvider::Log(_) => {}
        }
    }

    /// The request failed for good. One that was too long is made shorter and asked again: once for
    /// each answer, since what is still too long then is so for good.
    fn failed(&mut self, kind: Failure, message: String, out: &mut Out) {
        if kind == Failure::ContextFull && !self.turn.made_room && self.make_room(out) {
            self.turn.made_room = true;
            return self.ask(out);
        }
        // Those words were a courtesy: that they do not come is not why the turn ends. A recording that
        // was left is, wherever that shows.
        if self.turn.last_words && kind != Failure::RecordingDeparted {
            out.warn(&format!(
                "the last words of a turn whose budget is used up did not come: {message}"
            ));
            return self.end_turn(self.used_up(), out);
        }
        self.end_turn(TurnEnd::ProviderFailed { kind, message }, out);
    }

    /// No answer comes, since the process that owed it died too often.
    fn provider_died(&mut self, deaths: Deaths, out: &mut Out) {
        match self.phase {
            // As for a request that failed: these words were a courtesy.
            Phase::Asking(_) if self.turn.last_words => self.end_turn(self.used_up(), out),
            Phase::Asking(_) => self.end_turn(TurnEnd::ProcessDied(deaths), out),
            Phase::Replaying
            | Phase::Idle
            | Phase::Calling { .. }
            | Phase::Checking
            | Phase::Reading { .. }
            | Phase::Undoing(_) => {}
        }
    }

    /// What of the turn is used up.
    fn used_up(&self) -> TurnEnd {
        match self.history.budget().over() {
            None => self.rounds_used_up(),
            Some((NoCalls { most, of }, _)) => TurnEnd::CallsUsedUp { calls: most, of },
        }
    }

    /// The answer is whole: it is kept, its calls are named, and the turn goes on or ends.
    fn answered(&mut self, answer: Answer, stop: &StopReason, usage: Usage, out: &mut Out) {
        let behind_results = self.history.ends_with_results();
        self.pinned.show_at_end();
        self.turn.made_room = false;
        let mut taken: Vec<String> = Vec::new();
        let ended = answer.end(stop, |id| self.history.new_id(id, &mut taken));
        let empty = only_reasoning(&ended.blocks);
        let round = self.round;
        self.commit(Happened::Answer { round, blocks: ended.blocks, usage }, out);

        let runs = match stop {
            StopReason::Refusal { .. } | StopReason::ContextFull => Runs::Nothing,
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::Other(_)
                if self.is_over() =>
            {
                Runs::NoMoreRounds
            }
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::Other(_) => Runs::WithinBudget,
        };
        let called = !ended.wanted.is_empty();
        let batch = self.call_all(&ended.wanted, runs, out);
        match stop {
            StopReason::Refusal { explanation } => {
                let explanation = explanation.clone();
                self.end_turn(TurnEnd::Declined { explanation }, out);
            }
            StopReason::ContextFull => {
                self.make_room(out);
                self.end_turn(TurnEnd::Truncated, out);
            }
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::Other(_)
                if self.is_over() =>
            {
                self.end_turn(self.rounds_used_up(), out);
            }
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::Other(_)
                if called =>
            {
                self.phase = Phase::Calling { batch, stopping: false };
                self.go_on_calling(out);
            }
            StopReason::PauseTurn => self.ask(out),
            StopReason::MaxTokens => self.end_turn(TurnEnd::Truncated, out),
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::Other(_) => {
                // Vendors now and then answer results with nothing; once is worth a second try.
                if empty && behind_results && !self.turn.asked_again {
                    self.turn.asked_again = true;
                    self.pinned.show_inside();
                    self.ask(out);
                } else if self.history.budget().over().is_some() {
                    self.end_turn(self.used_up(), out);
                } else {
                    self.end_turn(TurnEnd::Done, out);
                }
            }
        }
    }

    /// Names every call of an answer, answers those that may not run, returns the others.
    fn call_all(&mut self, wanted: &[Wanted], runs: Runs, out: &mut Out) -> Batch {
        let mut named = Vec::new();
        for wanted in wanted {
            named.push(self.name_call(wanted, out));
        }
        let (within, none_left) = self.history.budget().within(count(named.len()));
        let mut batch = Batch::default();
        for (place, (call, reading)) in (0..).zip(named) {
            let why = match (runs, reading.order) {
                (Runs::Nothing, _) => NotRun::AnswerNotUsed,
                (Runs::NoMoreRounds, _) => NotRun::Rounds { most: self.setup.max_rounds.max(1) },
                (Runs::WithinBudget, _) if place >= within => NotRun::Budget(none_left),
                (Runs::WithinBudget, Err(why)) => why,
                (Runs::WithinBudget, Ok(order)) => {
                    self.notes.extend(reading.note.map(|note| (call.id.clone(), note)));
                    batch.push(call, order);
                    continue;
                }
            };
            self.answer_call(call, &why, out);
        }
        batch
    }

    fn name_call(&mut self, wanted: &Wanted, out: &mut Out) -> (Call, Reading) {
        let number = self.history.last_call().saturating_add(1);
        let id = CallId { session: self.setup.id.clone(), number };
        let (call, reading) = self.call(id, wanted);
        self.commit(Happened::Called { call: call.clone() }, out);
        (call, reading)
    }

    /// The call as the supervisor is told of it: in the words of the table of tools.
    fn call(&self, id: CallId, wanted: &Wanted) -> (Call, Reading) {
        let reading = read(wanted, &self.setup, self.reader);
        let (tool, input) = (reading.tool.clone(), reading.input.clone());
        (Call { id, use_id: wanted.use_id.clone(), tool, input }, reading)
    }

    fn answer_call(&mut self, call: Call, why: &NotRun, out: &mut Out) {
        let Call { id: call, use_id, tool, input: _ } = call;
        self.commit(Happened::Result { call, use_id, result: why.result(&tool) }, out);
    }

    /// The word that starts a call, or that answers one of the conversation's own.
    fn start(&mut self, call: Call) -> FromSession {
        let note = self.notes.remove(&call.id);
        match self.history.own_answer(&call) {
            Some(result) => FromSession::Answered { call, result: result.noted(note.as_deref()) },
            None => FromSession::Run { call, note },
        }
    }

    fn call_ended(&mut self, call: CallId, result: ToolResult, out: &mut Out) {
        if let Phase::Undoing(_) = self.phase {
            return self.undone(call, result, out);
        }
        let (Phase::Calling { batch, .. } | Phase::Reading { batch, .. }) = &mut self.phase else {
            return;
        };
        // A call that does not run here is late: it has its result already.
        let Some(Call { use_id, input, .. }) = batch.ended(&call) else { return };
        if let Phase::Reading { .. } = self.phase {
            return self.pinned_read(&input, &result, out);
        }
        // Durable already, so it is taken in but not committed again.
        self.take_in(&Happened::Result { call, use_id, result });
        self.go_on_calling(out);
    }

    /// Starts what may start; once all calls have ended, asks the model again.
    fn go_on_calling(&mut self, out: &mut Out) {
        let Phase::Calling { batch, stopping } = &mut self.phase else { return };
        if !batch.is_over() {
            let started = batch.start(self.setup.parallel);
            for call in started {
                let word = self.start(call);
                out.words.push(word);
            }
            return;
        }
        if batch.may_have_changed(|call| !own::is_own(&call.tool)) {
            self.pinned.outdate();
        }
        if !*stopping && self.run_hooks(out) {
            return self.go_on_calling(out);
        }
        let Phase::Calling { stopping, .. } = &self.phase else { return };
        if *stopping {
            self.end_turn(TurnEnd::Interrupted, out);
        } else if self.history.budget().over().is_some_and(|(_, answers)| answers > 1) {
            // It was told, and asked again all the same.
            self.end_turn(self.used_up(), out);
        } else {
            self.ask(out);
        }
    }

    /// Puts what is to be run behind the round's edits to its calls; whether there was anything.
    fn run_hooks(&mut self, out: &mut Out) -> bool {
        let SessionSetup { formatters, verifiers, .. } = &self.setup;
        let due = self.edits.due(formatters, verifiers);
        let any = !due.is_empty();
        for (tool, input) in due {
            let number = self.history.last_call().saturating_add(1);
            let id = CallId { session: self.setup.id.clone(), number };
            let call = Call { id, use_id: String::new(), tool, input };
            self.commit(Happened::Called { call: call.clone() }, out);
            if let Phase::Calling { batch, .. } = &mut self.phase {
                batch.push(call, ToolKind::Mutation);
            }
        }
        any
    }

    fn interrupt(&mut self, out: &mut Out) {
        match &mut self.phase {
            Phase::Replaying | Phase::Idle => {}
            Phase::Undoing(_) => self.stop_undoing(out),
            Phase::Checking => self.end_turn(TurnEnd::Interrupted, out),
            Phase::Asking(answer) => {
                out.words.push(FromSession::CancelAsk);
                let answer = std::mem::take(answer);
                self.stopped(answer, out);
            }
            Phase::Calling { batch, stopping } | Phase::Reading { batch, stopping } => {
                if std::mem::replace(stopping, true) {
                    return;
                }
                let dropped = batch.drop_waiting();
                out.words.extend(batch.running().into_iter().map(FromSession::CancelCall));
                for call in dropped {
                    self.answer_call(call, &NotRun::Stopped, out);
                }
                match self.phase {
                    Phase::Reading { .. } => self.go_on_reading(out),
                    Phase::Replaying
                    | Phase::Idle
                    | Phase::Checking
                    | Phase::Asking(_)
                    | Phase::Calling { .. }
                    | Phase::Undoing(_) => self.go_on_calling(out),
                }
            }
        }
    }

    /// A person wants room. It holds from the next request on, whatever runs now.
    fn compact(&mut self, out: &mut Out) {
        match self.phase {
            Phase::Idle
            | Phase::Asking(_)
            | Phase::Calling { .. }
            | Phase::Checking
            | Phase::Reading { .. }
            | Phase::Undoing(_) => {
                if !self.make_room(out) {
                    out.words.push(FromSession::NotCompacted);
                }
            }
            Phase::Replaying => out.warn("a Compact before ReplayDone was ignored"),
        }
    }

    /// Leaves the beginning of the conversation out from now on; whether there was anything.
    fn make_room(&mut self, out: &mut Out) -> bool {
        let Some(compacted) = self.history.compacted(self.beside_messages()) else { return false };
        self.commit(compacted, out);
        self.pinned.lay_down();
        true
    }

    /// Bytes of a request beside the conversation's messages.
    fn beside_messages(&self) -> usize {
        let tools = self.setup.tools.iter().map(|tool| {
            tool.spec.name.len() + tool.spec.description.len() + tool.spec.input_schema.len()
        });
        self.setup.system.len() + tools.sum::<usize>() + self.pinned.size()
    }

    /// The turn was stopped in the middle of an answer: the words that were whole are kept, and
    /// none of its calls.
    fn stopped(&mut self, answer: Answer, out: &mut Out) {
        let blocks = answer.stopped();
        if !only_reasoning(&blocks) {
            let (round, usage) = (self.round, Usage::default());
            self.commit(Happened::Answer { round, blocks, usage }, out);
        }
        self.end_turn(TurnEnd::Interrupted, out);
    }

    fn end_turn(&mut self, end: TurnEnd, out: &mut Out) {
        self.phase = Phase::Idle;
        self.commit(Happened::TurnEnded { end }, out);
        self.next_turn(out);
    }

    fn take_in(&mut self, happened: &Happened) {
        self.history.apply(happened);
        self.changes.apply(happened, &self.setup.tools);
        if let Some(finding) = self.edits.apply(happened, &self.setup.tools, self.reader) {
            self.history.add_to_result(&finding.use_id, &finding.text);
        }
        if let Happened::TurnEnded { .. } = happened
            && let Some(text) = self.changes.cut_short()
        {
            self.history.noted(&text);
        }
    }

    fn commit(&mut self, happened: Happened, out: &mut Out) {
        self.take_in(&happened);
        out.words.push(FromSession::Commit(happened));
    }
}

/// Who makes a result cuts it; this is a last bound for those that are not. A page of the web may
/// have so many characters, whatever others are cut to.
const PAGE: usize = 41_000;

/// What the model is told of before it is reached, and what a request may hold.
fn limits(setup: &SessionSetup) -> Limits {
    Limits {
        most: Most {
            rounds: setup.max_rounds.max(1),
            calls: setup.max_calls,
            session_calls: setup.max_session_calls,
        },
        result_chars: usize::try_from(setup.max_result_chars).unwrap_or(usize::MAX).max(PAGE),
        context: setup.context.and_then(|tokens| usize::try_from(tokens).ok()),
        answer_tokens: usize::try_from(setup.max_tokens).unwrap_or(usize::MAX),
    }
}

/// Calls of one answer, as they are counted.
fn count(calls: usize) -> u32 {
    u32::try_from(calls).unwrap_or(u32::MAX)
}

/// Whether these blocks say nothing to anybody.
fn only_reasoning(blocks: &[Block]) -> bool {
    blocks.iter().all(|block| matches!(block, Block::Thinking { .. }))
}

/// Whether the calls of an answer may run.
#[derive(Debug, Clone, Copy)]
enum Runs {
    Nothing,
    /// They came though none were wanted.
    NoMoreRounds,
    WithinBudget,
}

/// What a step says.
#[derive(Debug, Default)]
struct Out {
    words: Vec<FromSession>,
}

impl Out {
    fn warn(&mut self, text: &str) {
        let line = LogLine { level: LogLevel::Warn, text: text.to_owned() };
        self.words.push(FromSession::Log(line));
    }
}
