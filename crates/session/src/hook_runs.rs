//! Runs hooks: behind the calls of a round, beside them, and before the conversation is made smaller. `hooks` decides which.
//! Part of [`Session`].

use crate::batch::Batch;
use crate::hooks::{AsideStep, Compacting, DueRun, HookStep};
use crate::room::RoomMade;
use crate::summary::AfterSummary;
use crate::{Outputs, Session, SessionPhase};
use protocol::call::{CallOrigin, ToolResult};
use protocol::context::CompactionCause;
use protocol::hook::HookOccasion;
use protocol::ids::CallId;
use protocol::judgement::ToolKind;
use protocol::session::{FromSession, OpenTurn, SessionEvent, TurnEnd};

/// A compaction that waits for a hook.
#[derive(Debug)]
pub(crate) struct WaitingCompaction {
    hook: CallId,
    /// A person stops it.
    stopping: bool,
    of: Compacting,
    then: AfterSummary,
}

impl Session {
    /// Adds the runs that are due behind the calls of the round; true if there are any.
    pub(super) fn run_due_hooks(&mut self, out: &mut Outputs) -> bool {
        let due = self.hooks.due(&self.setup, self.reader);
        let any = !due.is_empty();
        for DueRun { origin, tool, input } in due {
            let call = self.name_own(origin, tool, input, out);
            if let SessionPhase::Calling { batch, .. } = &mut self.phase {
                batch.push(call, ToolKind::Mutation);
            }
        }
        any
    }

    /// Begins with the hooks of a prompt or of a turn's end; true if there are any.
    fn hooks_begin(&mut self, out: &mut Outputs) -> bool {
        self.phase = SessionPhase::Calling { batch: Batch::default(), stopping: false };
        self.run_due_hooks(out)
    }

    /// A prompt's turn begins: its hooks run, then the model is asked.
    pub(super) fn begin_turn(&mut self, out: &mut Outputs) {
        match self.hooks_begin(out) {
            true => self.go_on_calling(out),
            false => self.ask_behind_commands(out),
        }
    }

    /// The turn would end with the model's last words: its hooks run first.
    pub(super) fn finish_turn(&mut self, out: &mut Outputs) {
        self.hooks.turn_ends();
        match self.hooks_begin(out) {
            true => self.go_on_calling(out),
            false => self.go_on_or_end(out),
        }
    }

    /// Behind the hooks of a turn's end: it ends, or goes on for a hook's reason.
    pub(super) fn go_on_or_end(&mut self, out: &mut Outputs) {
        let budget = self.history.budget();
        let may = budget.rounds() < self.setup.max_rounds.max(1) && budget.over().is_none();
        match self.hooks.makes_go_on() && may {
            true => self.ask(out),
            false => self.end_turn(TurnEnd::Done, out),
        }
    }

    /// A turn ends before the hooks let its prompt pass: the model never gets it.
    pub(super) fn leave_unjudged_prompt_out(&mut self, happened: &SessionEvent) {
        let ends = matches!(happened, SessionEvent::TurnEnded { .. });
        if ends && self.hooks.prompt_is_unjudged(&self.setup) {
            self.history.leave_prompt_out();
            // They are for the whole session, and their hooks do not run again.
            let texts = self.hooks.texts_of_start();
            texts.iter().for_each(|text| self.history.noted(text));
        }
    }

    /// Tells the person of hooks that ended.
    pub(super) fn notices_of_hooks(&mut self, out: &mut Outputs) {
        let notices = self.hooks.take_notices().into_iter();
        out.words.extend(notices.map(|text| FromSession::Notice { text }));
    }

    /// Runs the hooks of an event that the supervisor saw.
    pub(super) fn hooks_due(&mut self, occasion: HookOccasion, out: &mut Outputs) {
        self.hooks.occurred(occasion);
        // The journal tells which of them have run, so they begin behind its end.
        if !self.is_replaying() {
            self.go_on_aside(out);
        }
    }

    /// Starts servers that are due and the next hook of each event, and reports the events whose hooks
    /// have ended.
    pub(super) fn go_on_aside(&mut self, out: &mut Outputs) {
        self.start_servers(out);
        while let Some(step) = self.hooks.next_aside(&self.setup, self.reader) {
            match step {
                AsideStep::Run(DueRun { origin, tool, input }) => {
                    let call = self.name_own(origin, tool, input, out);
                    out.run(call);
                }
                AsideStep::Ended { event, call, refusal } => {
                    out.words.push(FromSession::HooksEnded { event, call, refusal });
                }
            }
        }
    }

    /// A hook beside the round ended; its result is durable.
    pub(super) fn aside_ended(&mut self, call: CallId, result: ToolResult, out: &mut Outputs) {
        self.take_in(&SessionEvent::ended(call, CallOrigin::EventHook, result));
        self.notices_of_hooks(out);
        self.go_on_aside(out);
    }

    /// A person stops the turn: no question is put any more.
    pub(super) fn cancel_asides(&self, out: &mut Outputs) {
        out.words.extend(self.hooks.open_about_calls().into_iter().map(FromSession::CancelCall));
    }

    /// Runs the first hook of a compaction, if there is one.
    pub(super) fn compact_hooks_begin(
        &mut self,
        of: Compacting,
        then: AfterSummary,
        out: &mut Outputs,
    ) -> RoomMade {
        match self.hooks.begin_compaction(&of, &self.setup, self.reader) {
            HookStep::Run(run) => {
                self.wait_for_hook(run, of, then, out);
                RoomMade::Later
            }
            HookStep::Open(_) | HookStep::Blocked(_) => RoomMade::Now,
        }
    }

    /// The journal is replayed. A compaction that goes on does not run again what ran for it. For any
    /// other one all hooks run.
    pub(super) fn compaction_replayed(&mut self, then: OpenTurn, wish: Option<String>) {
        match (&wish, then) {
            (None, OpenTurn::Waits) => self.hooks.compaction_over(),
            (Some(_), _) | (None, OpenTurn::GoesOn) => self.hooks.compaction_replayed(),
        }
        self.turn.wanted_summary = self.history.wanted_summary().or(wish);
    }

    fn wait_for_hook(
        &mut self,
        DueRun { origin, tool, input }: DueRun,
        of: Compacting,
        then: AfterSummary,
        out: &mut Outputs,
    ) {
        let call = self.name_own(origin, tool, input, out);
        let (hook, stopping) = (call.id.clone(), false);
        self.phase = SessionPhase::CompactHooks(WaitingCompaction { hook, stopping, of, then });
        out.run(call);
    }

    /// A call ended; its result is durable.
    pub(super) fn compact_hook_ended(
        &mut self,
        call: CallId,
        result: ToolResult,
        out: &mut Outputs,
    ) {
        let SessionPhase::CompactHooks(waiting) = &self.phase else { return };
        // Any other call has its result already.
        if waiting.hook != call {
            return;
        }
        let WaitingCompaction { stopping, of, then, .. } = waiting;
        let (stopping, of, then) = (*stopping, of.clone(), *then);
        self.take_in(&SessionEvent::ended(call, CallOrigin::EventHook, result));
        self.notices_of_hooks(out);
        if stopping {
            return self.compaction_stopped(of.cause, then, out);
        }
        match self.hooks.before_compaction(&of, &self.setup, self.reader) {
            HookStep::Run(run) => self.wait_for_hook(run, of, then, out),
            HookStep::Open(_) => self.compact_now(of, then, out),
            HookStep::Blocked(why) => match of.cause {
                CompactionCause::Person => {
                    let why = format!("the context was not shrunk: {why}");
                    out.words.push(FromSession::NotCompacted { why });
                    self.go_on_without_compaction(then, out);
                }
                CompactionCause::Full => {
                    out.notice(Some(format!(
                        "{why}. The context is full, so agentd shrinks it all the same"
                    )));
                    self.compact_now(of, then, out);
                }
            },
        }
    }

    fn compact_now(&mut self, of: Compacting, then: AfterSummary, out: &mut Outputs) {
        self.phase = SessionPhase::Idle;
        if self.shrink(of.cause, of.focus, then, out) == RoomMade::Now {
            self.go_on_without_compaction(then, out);
        }
    }

    fn go_on_without_compaction(&mut self, then: AfterSummary, out: &mut Outputs) {
        self.hooks.compaction_over();
        self.phase = SessionPhase::Idle;
        match then {
            AfterSummary::Ask => self.send_request(out),
            AfterSummary::Rest => self.next_turn(out),
        }
    }

    /// A person stops the turn, or the compaction between turns.
    pub(super) fn stop_compact_hook(&mut self, out: &mut Outputs) {
        let SessionPhase::CompactHooks(waiting) = &mut self.phase else { return };
        if !std::mem::replace(&mut waiting.stopping, true) {
            out.words.push(FromSession::CancelCall(waiting.hook.clone()));
        }
    }

    fn compaction_stopped(
        &mut self,
        cause: CompactionCause,
        then: AfterSummary,
        out: &mut Outputs,
    ) {
        self.hooks.compaction_over();
        if cause == CompactionCause::Person || then == AfterSummary::Rest {
            let why = "the context was not shrunk: you stopped it".to_owned();
            out.words.push(FromSession::NotCompacted { why });
        }
        match then {
            AfterSummary::Ask => self.end_turn(TurnEnd::Interrupted, out),
            AfterSummary::Rest => {
                self.phase = SessionPhase::Idle;
                self.next_turn(out);
            }
        }
    }
}
