//! Hooks of `PreCompact`: they run before the conversation is made smaller, one after another. Part of
//! [`Session`]; `room` begins them.

use crate::event_hooks::{BeforeCompaction, Compacting};
use crate::room::RoomMade;
use crate::summary::AfterSummary;
use crate::{Outputs, Session, SessionPhase};
use protocol::call::{CallOrigin, ToolResult};
use protocol::context::CompactionCause;
use protocol::ids::CallId;
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
    /// Runs the first hook, if there is one. The automatic compactions behind one answer run them once.
    pub(super) fn compact_hooks_begin(
        &mut self,
        of: Compacting,
        then: AfterSummary,
        out: &mut Outputs,
    ) -> RoomMade {
        if of.cause == CompactionCause::Full && std::mem::replace(&mut self.turn.told_hooks, true) {
            return RoomMade::Now;
        }
        match self.event_hooks.before_compaction(&of, &self.setup) {
            BeforeCompaction::Run(tool, input) => {
                self.wait_for_hook((tool, input), of, then, out);
                RoomMade::Later
            }
            BeforeCompaction::Open | BeforeCompaction::Blocked(_) => RoomMade::Now,
        }
    }

    /// The journal is replayed. A compaction that goes on does not run again what ran for it. For any
    /// other one all hooks run.
    pub(super) fn compaction_replayed(&mut self, then: OpenTurn, wish: Option<String>) {
        match (&wish, then) {
            (None, OpenTurn::Waits) => self.event_hooks.compaction_over(),
            (Some(_), _) | (None, OpenTurn::GoesOn) => self.event_hooks.compaction_replayed(),
        }
        self.turn.wanted_summary = self.history.wanted_summary().or(wish);
    }

    fn wait_for_hook(
        &mut self,
        (tool, input): (&str, String),
        of: Compacting,
        then: AfterSummary,
        out: &mut Outputs,
    ) {
        let call = self.name_own(CallOrigin::EventHook, tool, input, out);
        let (hook, stopping) = (call.id.clone(), false);
        self.phase = SessionPhase::CompactHooks(WaitingCompaction { hook, stopping, of, then });
        out.words.push(FromSession::Run { call, note: None, asked: None });
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
        let notices = self.event_hooks.take_notices().into_iter();
        out.words.extend(notices.map(|text| FromSession::Notice { text }));
        if stopping {
            return self.compaction_stopped(of.cause, then, out);
        }
        match self.event_hooks.before_compaction(&of, &self.setup) {
            BeforeCompaction::Run(tool, input) => {
                self.wait_for_hook((tool, input), of, then, out);
            }
            BeforeCompaction::Open => self.compact_now(of, then, out),
            BeforeCompaction::Blocked(why) => match of.cause {
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
        self.event_hooks.compaction_over();
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
        self.event_hooks.compaction_over();
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
