//! The calls of an answer, from naming to their last result: part of [`Session`]. Called by [`Session::step`].

use super::{CallsMayRun, Outputs, Session, SessionPhase, count};
use crate::answer::RequestedCall;
use crate::batch::Batch;
use crate::hooks::{DueRun, HookStep, Passed};
use crate::pending_prompt;
use crate::synthetic_results::NotRun;
use crate::tool_lookup::{ReadAttempt, read};
use crate::undo::{RESTORE, UndoStep};
use protocol::call::{Call, CallOrigin, CallStage, ToolResult};
use protocol::content::{ContentBlock, Usage};
use protocol::hook::HookEvent;
use protocol::ids::CallId;
use protocol::session::{FromSession, SessionEvent, TurnEnd};

impl Session {
    /// Names every call of an answer, answers those that may not run, and returns the others.
    pub(super) fn call_all(
        &mut self,
        wanted: &[RequestedCall],
        runs: CallsMayRun,
        out: &mut Outputs,
    ) -> Batch {
        let mut named = Vec::new();
        for wanted in wanted {
            named.push(self.name_call(wanted, out));
        }
        let (within, none_left) = self.history.budget().within(count(named.len()));
        let mut batch = Batch::default();
        for (place, (call, reading)) in (0..).zip(named) {
            let why = match (runs, reading.order) {
                (CallsMayRun::Nothing, _) => NotRun::AnswerNotUsed,
                (CallsMayRun::NoMoreRounds, _) => {
                    NotRun::Rounds { most: self.setup.max_rounds.max(1) }
                }
                (CallsMayRun::WithinBudget, _) if place >= within => NotRun::Budget(none_left),
                (CallsMayRun::WithinBudget, Err(why)) => why,
                (CallsMayRun::WithinBudget, Ok(order)) => {
                    self.notes.extend(reading.note.map(|note| (call.id.clone(), note)));
                    batch.push(call, order);
                    continue;
                }
            };
            self.answer_call(call, &why, out);
        }
        batch
    }

    pub(super) fn name_call(
        &mut self,
        wanted: &RequestedCall,
        out: &mut Outputs,
    ) -> (Call, ReadAttempt) {
        let number = self.history.last_call().saturating_add(1);
        let id = CallId { session: self.setup.id.clone(), number };
        let (call, reading) = self.call(id, wanted);
        self.commit(SessionEvent::Called { call: call.clone() }, out);
        (call, reading)
    }

    /// The call as sent to the supervisor, in the terms of the tool table.
    pub(super) fn call(&self, id: CallId, wanted: &RequestedCall) -> (Call, ReadAttempt) {
        let reading = read(wanted, &self.setup, self.reader);
        let (tool, input) = (reading.tool.clone(), reading.input.clone());
        let origin = CallOrigin::model(wanted.use_id.clone());
        (Call { id, origin, tool, input }, reading)
    }

    pub(super) fn answer_call(&mut self, call: Call, why: &NotRun, out: &mut Outputs) {
        let Call { id: call, origin, tool, input: _ } = call;
        self.commit(SessionEvent::ended(call, origin, why.result(&tool)), out);
    }

    /// The word that starts a call, or that answers one of the conversation's own.
    fn start(&mut self, call: Call, asked: Option<String>) -> FromSession {
        let note = self.notes.remove(&call.id);
        match self.history.own_answer(&call, &self.setup) {
            Some(result) => {
                let result = result.noted(note.as_deref());
                FromSession::Answered { call, result, asked }
            }
            None => FromSession::Run { call, note, asked },
        }
    }

    /// Starts those calls whose hooks let them; puts hooks before the others.
    fn start_guarded(&mut self, started: Vec<Call>, out: &mut Outputs) {
        let (mut held, mut first, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
        for call in started {
            match self.hooks.before_call(&call, &self.setup, self.reader) {
                HookStep::Open(Passed { input, asked, note }) => {
                    if let Some(note) = note {
                        let before = self.notes.remove(&call.id).into_iter();
                        let notes: Vec<String> = before.chain([note]).collect();
                        self.notes.insert(call.id.clone(), notes.join("\n"));
                    }
                    let word = self.start(Call { input, ..call }, asked);
                    out.words.push(word);
                }
                HookStep::Run(DueRun { origin, tool, input }) => {
                    held.push(call.id);
                    first.push(self.name_own(origin, tool, input, out));
                }
                HookStep::Blocked(why) => {
                    blocked.push(call.id.clone());
                    self.answer_call(call, &NotRun::Hook { why }, out);
                }
            }
        }
        let SessionPhase::Calling { batch, .. } = &mut self.phase else { return };
        for call in &blocked {
            batch.ended(call);
        }
        batch.put_before(&held, first);
        if !held.is_empty() || !blocked.is_empty() {
            self.go_on_calling(out);
        }
    }

    /// Lets people be asked about calls that wait for their turn. A hook may change a call or decide about it, so that
    /// one with hooks is asked about at its turn.
    fn announce(&mut self, out: &mut Outputs) {
        let SessionPhase::Calling { batch, stopping: false } = &mut self.phase else { return };
        for call in batch.announce() {
            let own = crate::builtin_tools::is_own(&call.tool) || !call.origin.is_model();
            let step = self.hooks.before_call(&call, &self.setup, self.reader);
            let passes = matches!(&step, HookStep::Open(Passed { input, asked: None, .. }) if *input == call.input);
            if passes && !own {
                out.words.push(FromSession::Ahead { call });
            }
        }
    }

    /// Names a call that no model requested.
    pub(super) fn name_own(
        &mut self,
        origin: CallOrigin,
        tool: &str,
        input: String,
        out: &mut Outputs,
    ) -> Call {
        let number = self.history.last_call().saturating_add(1);
        let id = CallId { session: self.setup.id.clone(), number };
        let call = Call { id, origin, tool: tool.to_owned(), input };
        self.commit(SessionEvent::Called { call: call.clone() }, out);
        call
    }

    pub(super) fn call_ended(
        &mut self,
        call: CallId,
        stage: CallStage,
        result: ToolResult,
        out: &mut Outputs,
    ) {
        if self.hooks.runs_aside(&call) {
            return self.aside_ended(call, result, out);
        }
        if self.servers.ended(&call) {
            let origin = CallOrigin::ServerStart;
            self.take_in(&SessionEvent::Result { call, origin, stage, result });
            if matches!(self.phase, SessionPhase::Checking) && !self.servers.awaits() {
                self.ask(out);
            }
            return;
        }
        if let SessionPhase::CompactHooks(_) = self.phase {
            return self.compact_hook_ended(call, result, out);
        }
        if let SessionPhase::Undoing = self.phase {
            // Any other call has its result already.
            if self.changes.restored(&call, &result) {
                self.take_in(&SessionEvent::ended(call, CallOrigin::Undo, result));
                let step = self.changes.next();
                return step.into_iter().for_each(|step| self.go_on_undoing(step, out));
            }
            return;
        }
        let (SessionPhase::Calling { batch, .. } | SessionPhase::Reading { batch, .. }) =
            &mut self.phase
        else {
            return;
        };
        // A call that does not run here is late: it has its result already.
        let Some(ended) = batch.ended(&call) else { return };
        out.notice(pending_prompt::notice(&ended, &result));
        let Call { origin, input, .. } = ended;
        if let SessionPhase::Reading { .. } = self.phase {
            return self.pinned_read(&input, &result, out);
        }
        // Durable already, so it is taken in but not committed again.
        self.take_in(&SessionEvent::Result { call, origin, stage, result });
        self.notices_of_hooks(out);
        self.go_on_calling(out);
    }

    /// Starts the next call of an undo, or ends its turn.
    pub(super) fn go_on_undoing(&mut self, step: UndoStep, out: &mut Outputs) {
        match step {
            UndoStep::Restore(input) => {
                let call = self.name_own(CallOrigin::Undo, RESTORE, input, out);
                out.run(call);
            }
            UndoStep::Over { text, end } => self.end_undoing(text, end, out),
        }
    }

    /// Ends the turn of an undo with its report.
    pub(super) fn end_undoing(&mut self, text: String, end: TurnEnd, out: &mut Outputs) {
        self.answer_for_model(text, out);
        self.end_turn(end, out);
    }

    /// Records an answer that no model was asked for, so that it costs nothing.
    fn answer_for_model(&mut self, text: String, out: &mut Outputs) {
        let (round, usage, cost) = (self.round, Usage::default(), Some(0));
        let blocks = vec![ContentBlock::Text { text }];
        self.commit(SessionEvent::Answer { round, blocks, usage, cost }, out);
    }

    /// Starts the calls that may start; once all have ended, sends the next request to the model.
    pub(super) fn go_on_calling(&mut self, out: &mut Outputs) {
        let SessionPhase::Calling { batch, stopping } = &mut self.phase else { return };
        if !batch.is_over() {
            let started = batch.start(self.setup.parallel, self.setup.max_session.tasks);
            self.start_guarded(started, out);
            return self.announce(out);
        }
        let counts = |call: &Call| {
            !crate::builtin_tools::is_own(&call.tool) && call.tool != HookEvent::PreToolUse.tool()
        };
        if batch.may_have_changed(counts) {
            self.pinned.outdate();
        }
        if !*stopping && self.run_due_hooks(out) {
            return self.go_on_calling(out);
        }
        let SessionPhase::Calling { stopping, .. } = &self.phase else { return };
        if *stopping {
            self.end_turn(TurnEnd::Interrupted, out);
        } else if let Some(reason) = self.hooks.stopped() {
            self.end_turn(TurnEnd::StoppedByHook { reason }, out);
        } else if let Some(plan) = self.plans.take_refused() {
            // The plan that no person could approve is the model's last words.
            self.round = self.round.saturating_add(1);
            self.answer_for_model(plan, out);
            self.finish_turn(out);
        } else if self.hooks.is_ending() {
            self.go_on_or_end(out);
        } else if self.history.budget().over().is_some_and(|(_, answers)| answers > 1) {
            // The model was warned and requested calls again.
            self.end_turn(self.used_up(), out);
        } else {
            self.ask_behind_commands(out);
        }
    }

    /// The commands of the prompt run before the model is asked, and behind the hooks that decide
    /// about the prompt.
    pub(super) fn ask_behind_commands(&mut self, out: &mut Outputs) {
        let mut batch = Batch::default();
        for call in self.prompt_calls(out) {
            match pending_prompt::kind(&call, &self.setup.tools) {
                Some(kind) => batch.push(call, kind),
                None => {
                    let why = NotRun::NotOffered { tool: call.tool.clone() };
                    self.answer_call(call, &why, out);
                }
            }
        }
        if batch.is_over() && self.history.turn_is_typed() {
            // The model gets the output with the next prompt.
            return self.end_turn(TurnEnd::Done, out);
        }
        if batch.is_over() {
            return self.ask(out);
        }
        self.phase = SessionPhase::Calling { batch, stopping: false };
        self.go_on_calling(out);
    }

    /// The calls of the prompt that have not ended, one after another, as they stand.
    fn prompt_calls(&mut self, out: &mut Outputs) -> Vec<Call> {
        let Some(pending) = self.history.pending_prompt() else { return Vec::new() };
        let (mut open, due) = (pending.unanswered(), pending.due());
        let origin = match self.history.turn_is_typed() {
            true => CallOrigin::Person,
            false => CallOrigin::PromptPart,
        };
        for (tool, input) in due {
            open.push(self.name_own(origin.clone(), tool, input, out));
        }
        open
    }
}
