//! The calls of an answer, from naming to their last result: part of [`Session`]. Called by [`Session::step`].

use super::{CallsMayRun, Outputs, Session, SessionPhase, count};
use crate::answer::RequestedCall;
use crate::batch::Batch;
use crate::event_hooks::Guarded;
use crate::pending_prompt;
use crate::synthetic_results::NotRun;
use crate::tool_lookup::{ReadAttempt, read};
use protocol::call::{Call, CallOrigin, CallStage, ToolResult};
use protocol::hook::{HookEvent, SessionHooks};
use protocol::ids::CallId;
use protocol::judgement::ToolKind;
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
        match self.history.own_answer(&call, &self.setup.tools) {
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
            match self.event_hooks.guard(&call, &self.setup, self.reader) {
                Guarded::Open { input, asked, note } => {
                    if let Some(note) = note {
                        let before = self.notes.remove(&call.id).into_iter();
                        let notes: Vec<String> = before.chain([note]).collect();
                        self.notes.insert(call.id.clone(), notes.join("\n"));
                    }
                    let word = self.start(Call { input, ..call }, asked);
                    out.words.push(word);
                }
                Guarded::Behind(tool, input) => {
                    held.push(call.id);
                    first.push(self.name_own(CallOrigin::EventHook, tool, input, out));
                }
                Guarded::Blocked(why) => {
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
        if self.event_hooks.aside_ended(&call) {
            return self.aside_ended(call, result, out);
        }
        if self.server_started(&call, stage, &result, out) {
            return;
        }
        if let SessionPhase::CompactHooks(_) = self.phase {
            return self.compact_hook_ended(call, result, out);
        }
        if let SessionPhase::Undoing(_) = self.phase {
            return self.undone(call, result, out);
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
        let notices = self.event_hooks.take_notices().into_iter();
        out.words.extend(notices.map(|text| FromSession::Notice { text }));
        self.go_on_calling(out);
    }

    /// Starts the calls that may start; once all have ended, sends the next request to the model.
    pub(super) fn go_on_calling(&mut self, out: &mut Outputs) {
        let SessionPhase::Calling { batch, stopping } = &mut self.phase else { return };
        if !batch.is_over() {
            let started = batch.start(self.setup.parallel, self.setup.max_session.tasks);
            return self.start_guarded(started, out);
        }
        let counts = |call: &Call| {
            !crate::builtin_tools::is_own(&call.tool) && call.tool != HookEvent::PreToolUse.tool()
        };
        if batch.may_have_changed(counts) {
            self.pinned.outdate();
        }
        if !*stopping && (self.run_event_hooks(out) || self.run_hooks(out)) {
            return self.go_on_calling(out);
        }
        let SessionPhase::Calling { stopping, .. } = &self.phase else { return };
        if *stopping {
            self.end_turn(TurnEnd::Interrupted, out);
        } else if let Some(reason) = self.event_hooks.stopped() {
            let reason = reason.to_owned();
            self.end_turn(TurnEnd::StoppedByHook { reason }, out);
        } else if let Some(plan) = self.plans.take_refused() {
            self.end_with_plan(plan, out);
        } else if self.event_hooks.is_ending() {
            self.go_on_or_end(out);
        } else if self.history.budget().over().is_some_and(|(_, answers)| answers > 1) {
            // The model was warned and requested calls again.
            self.end_turn(self.used_up(), out);
        } else {
            self.ask_behind_commands(out);
        }
    }

    /// A turn ends before the hooks let its prompt pass: the model never gets it.
    pub(super) fn leave_unjudged_prompt_out(&mut self, happened: &SessionEvent) {
        let ends = matches!(happened, SessionEvent::TurnEnded { .. });
        if ends && self.event_hooks.prompt_is_unjudged(&self.setup) {
            self.history.leave_prompt_out();
            // They are for the whole session, and their hooks do not run again.
            let texts = self.event_hooks.texts_of_start();
            texts.iter().for_each(|text| self.history.noted(text));
        }
    }

    /// A prompt's turn begins: its hooks run, then the model is asked.
    pub(super) fn begin_turn(&mut self, out: &mut Outputs) {
        match self.hooks_begin(out) {
            true => self.go_on_calling(out),
            false => self.ask_behind_commands(out),
        }
    }

    /// The commands of the prompt run before the model is asked, and behind the hooks that decide
    /// about the prompt.
    fn ask_behind_commands(&mut self, out: &mut Outputs) {
        if !self.run_prompt_commands(out) {
            self.ask(out);
        }
    }

    /// The turn would end with the model's last words: its hooks run first.
    pub(super) fn finish_turn(&mut self, out: &mut Outputs) {
        self.event_hooks.turn_ends();
        match self.hooks_begin(out) {
            true => self.go_on_calling(out),
            false => self.go_on_or_end(out),
        }
    }

    /// Names the first hook that is due; true if there is one.
    fn hooks_begin(&mut self, out: &mut Outputs) -> bool {
        self.phase = SessionPhase::Calling { batch: Batch::default(), stopping: false };
        self.run_event_hooks(out)
    }

    /// Behind the hooks of a turn's end: it ends, or goes on for a hook's reason.
    fn go_on_or_end(&mut self, out: &mut Outputs) {
        let budget = self.history.budget();
        let may = budget.rounds() < self.setup.max_rounds.max(1) && budget.over().is_none();
        match self.event_hooks.makes_go_on() && may {
            true => self.ask(out),
            false => self.end_turn(TurnEnd::Done, out),
        }
    }

    /// Adds the next run of a hook that no call waits for; true if there is one.
    fn run_event_hooks(&mut self, out: &mut Outputs) -> bool {
        let Some((tool, input)) = self.event_hooks.due(&self.setup, self.reader) else {
            return false;
        };
        let call = self.name_own(CallOrigin::EventHook, tool, input, out);
        if let SessionPhase::Calling { batch, .. } = &mut self.phase {
            batch.push(call, ToolKind::Mutation);
        }
        true
    }

    /// Adds the runs of formatters and verifiers for the round's edits to its calls; true if there
    /// are any.
    pub(super) fn run_hooks(&mut self, out: &mut Outputs) -> bool {
        let SessionHooks { formatters, verifiers, .. } = &self.setup.hooks;
        let due = self.edits.due(formatters, verifiers);
        let any = !due.is_empty();
        for (tool, input) in due {
            let call = self.name_own(CallOrigin::EditHook, &tool, input, out);
            if let SessionPhase::Calling { batch, .. } = &mut self.phase {
                batch.push(call, ToolKind::Mutation);
            }
        }
        any
    }
}
