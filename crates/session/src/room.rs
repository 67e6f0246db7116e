//! The room in the model's context: when and how it is made, and what fills it. Part of [`Session`].

use crate::context_report::{self, RequestSize};
use crate::deferred_tools;
use crate::hooks::Compacting;
use crate::limits::limits;
use crate::summary::AfterSummary;
use crate::{Outputs, Session, SessionPhase};
use protocol::client::ModelFacts;
use protocol::context::{
    Compaction, CompactionCause, CompactionKind, ContextKind, ContextReport, NumberedSummary,
    SummaryStep,
};
use protocol::session::{FromSession, OfferedTool, SessionEvent, SessionSetup};

/// A request of the model comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoomMade {
    /// There is room, as far as it can be made.
    Now,
    /// The model is asked for a summary.
    Later,
}

impl Session {
    /// A person makes the conversation smaller. It takes effect with the next request, whatever runs
    /// now.
    pub(super) fn compact(&mut self, focus: String, out: &mut Outputs) {
        match self.phase {
            SessionPhase::Replaying => out.warn("a Compact before ReplayDone was ignored"),
            SessionPhase::Idle => {
                self.begin_compaction(CompactionCause::Person, focus, AfterSummary::Rest, out);
            }
            // It is being written, or waits for hooks.
            SessionPhase::Summarizing { .. } | SessionPhase::CompactHooks(_) => {
                let why = "the context is being shrunk already".to_owned();
                out.words.push(FromSession::NotCompacted { why });
            }
            SessionPhase::Asking(_)
            | SessionPhase::Calling { .. }
            | SessionPhase::Checking
            | SessionPhase::Joining { .. }
            | SessionPhase::Reading { .. }
            | SessionPhase::Undoing => match self.setup.context.compaction {
                CompactionKind::Summary => self.turn.wanted_summary = Some(focus),
                CompactionKind::Cut if self.hooks.has_compact_hooks(&self.setup) => {
                    self.turn.wanted_summary = Some(focus);
                }
                CompactionKind::Cut => {
                    if !self.make_room(out) {
                        out.words.push(nothing_to_leave_out());
                    }
                }
            },
        }
    }

    /// Makes room before a request, if it is needed or a person wants it.
    pub(super) fn make_room_first(&mut self, out: &mut Outputs) -> RoomMade {
        let wanted = self.turn.wanted_summary.take();
        let (cause, focus) = match wanted {
            Some(focus) => (CompactionCause::Person, focus),
            None if self.history.is_nearly_full(self.beside_messages()) => {
                (CompactionCause::Full, String::new())
            }
            None => return RoomMade::Now,
        };
        self.begin_compaction(cause, focus, AfterSummary::Ask, out)
    }

    /// Makes room, behind the hooks of `PreCompact`. Without anything to leave out none runs.
    pub(super) fn begin_compaction(
        &mut self,
        cause: CompactionCause,
        focus: String,
        then: AfterSummary,
        out: &mut Outputs,
    ) -> RoomMade {
        if self.can_make_room() {
            let of = Compacting { cause, focus: focus.clone() };
            if self.compact_hooks_begin(of, then, out) == RoomMade::Later {
                return RoomMade::Later;
            }
        }
        self.shrink(cause, focus, then, out)
    }

    /// Makes room: by long results of old calls if that is enough, else by a summary, else by the
    /// oldest messages.
    pub(super) fn shrink(
        &mut self,
        cause: CompactionCause,
        focus: String,
        then: AfterSummary,
        out: &mut Outputs,
    ) -> RoomMade {
        let beside = self.beside_messages();
        if cause == CompactionCause::Full
            // The vendor counts more than agentd: only a cut is sure to be enough.
            && !self.turn.made_room
            && let Some(cut) = self.history.results_cut(beside)
        {
            self.commit(cut, out);
            self.pinned.lay_down();
            return RoomMade::Now;
        }
        let asks = self.setup.context.compaction == CompactionKind::Summary
            && (cause == CompactionCause::Person || !self.turn.summarized);
        if asks {
            let asked = self.history.summary_asked(beside, (cause, focus));
            match (self.may_summarize(then), asked) {
                (Ok(()), Some(asked)) => {
                    self.ask_for_summary(asked, then, out);
                    return RoomMade::Later;
                }
                (Err(why), Some(_)) => out.notice(Some(format!(
                    "the model is not asked for a summary: {why}. The oldest messages are left out \
                     instead"
                ))),
                (_, None) => {}
            }
        }
        if !self.make_room(out) && cause == CompactionCause::Person {
            out.words.push(nothing_to_leave_out());
        }
        RoomMade::Now
    }

    /// The error says why the budget forbids a request for a summary.
    fn may_summarize(&self, then: AfterSummary) -> Result<(), &'static str> {
        let budget = self.history.budget();
        if budget.cost_reached().is_some() {
            return Err("the session's limit of cost is reached");
        }
        // The summary is a round, and the turn needs one behind it.
        let left = self.setup.max_rounds.max(1).saturating_sub(budget.rounds());
        match then {
            AfterSummary::Ask if left < 2 => Err("the rounds of this turn are used up"),
            AfterSummary::Ask | AfterSummary::Rest => Ok(()),
        }
    }

    /// True if a compaction would leave something out.
    pub(super) fn can_make_room(&self) -> bool {
        self.history.compacted(self.beside_messages()).is_some()
    }

    /// Drops the oldest messages from now on; true if there were any to drop.
    pub(super) fn make_room(&mut self, out: &mut Outputs) -> bool {
        let Some(compacted) = self.history.compacted(self.beside_messages()) else { return false };
        self.commit(compacted, out);
        self.pinned.lay_down();
        true
    }

    /// A person replaces the text of the summary that they have read.
    pub(super) fn edit_summary(&mut self, edit: NumberedSummary, out: &mut Outputs) {
        let why = match self.history.summary() {
            _ if edit.text.trim().is_empty() => "a summary cannot be empty",
            None => "there is no summary",
            Some(newest) if newest.number != edit.number => {
                "another one has replaced it meanwhile; :context summary shows it"
            }
            Some(_) => {
                let step = Compaction::Summary(SummaryStep::Edited { text: edit.text });
                return self.commit(SessionEvent::Compacted(step), out);
            }
        };
        let why = format!("the summary is not changed: {why}");
        out.words.push(FromSession::NotCompacted { why });
    }

    /// Another model is asked from now on. Its vendor counts otherwise.
    pub(super) fn use_model(&mut self, model: String, max_tokens: u32, facts: ModelFacts) {
        if model != self.setup.model {
            self.history.forget_count();
        }
        self.setup = SessionSetup { model, max_tokens, facts, ..self.setup.clone() };
        self.history.set_limits(limits(&self.setup));
    }

    /// The tools of the next request.
    pub(super) fn offered(&self) -> Vec<OfferedTool> {
        deferred_tools::offered(&self.setup, self.history.loaded_tools())
    }

    /// Bytes of a request beside the conversation's messages.
    pub(super) fn beside_messages(&self) -> usize {
        self.beside().iter().map(|(_, _, bytes)| bytes).sum()
    }

    /// Its parts, each with their number and bytes.
    fn beside(&self) -> [(ContextKind, usize, usize); 3] {
        let tools = self.offered();
        let (count, tools) = (tools.len(), tools.iter().map(deferred_tools::size).sum());
        [
            (ContextKind::System, 1, self.setup.system.len()),
            (ContextKind::Tools, count, tools),
            (ContextKind::Pinned, self.pinned.count(), self.pinned.size()),
        ]
    }

    /// What fills the model's context.
    pub(super) fn context_report(&self) -> ContextReport {
        let request = RequestSize {
            messages: self.history.as_messages(),
            beside: self.beside(),
            counted: self.history.counted(),
            tokens: self.history.tokens(self.beside_messages()),
        };
        let SessionSetup { model, facts, max_tokens, .. } = &self.setup;
        let report = context_report::report(request, (model, facts.context, *max_tokens));
        let (summary, unread) = (self.history.summary().cloned(), self.pinned.unread());
        ContextReport { summary, unread, ..report }
    }
}

fn nothing_to_leave_out() -> FromSession {
    let why = "the context was not shrunk: the conversation is short: nothing can be left out";
    FromSession::NotCompacted { why: why.to_owned() }
}
