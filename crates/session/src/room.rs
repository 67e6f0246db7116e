//! The room in the model's context: when it is made, and what fills it. Part of [`Session`].

use crate::context_report::{self, RequestSize};
use crate::{Outputs, Session, SessionPhase};
use protocol::context::{ContextKind, ContextReport};
use protocol::session::{FromSession, SessionSetup};

impl Session {
    /// A person compacts the context. It takes effect with the next request, whatever runs now.
    pub(super) fn compact(&mut self, out: &mut Outputs) {
        match self.phase {
            SessionPhase::Idle
            | SessionPhase::Asking(_)
            | SessionPhase::Calling { .. }
            | SessionPhase::Checking
            | SessionPhase::Reading { .. }
            | SessionPhase::Undoing(_) => {
                if !self.make_room(out) {
                    out.words.push(FromSession::NotCompacted);
                }
            }
            SessionPhase::Replaying => out.warn("a Compact before ReplayDone was ignored"),
        }
    }

    /// Drops the oldest messages from now on; true if there were any to drop.
    pub(super) fn make_room(&mut self, out: &mut Outputs) -> bool {
        let Some(compacted) = self.history.compacted(self.beside_messages()) else { return false };
        self.commit(compacted, out);
        self.pinned.lay_down();
        true
    }

    /// Bytes of a request beside the conversation's messages.
    pub(super) fn beside_messages(&self) -> usize {
        self.beside().iter().map(|(_, _, bytes)| bytes).sum()
    }

    /// Its parts, each with their number and bytes.
    fn beside(&self) -> [(ContextKind, usize, usize); 3] {
        let tools = self.setup.offered().map(|tool| {
            tool.spec.name.len() + tool.spec.description.len() + tool.spec.input_schema.len()
        });
        let (count, tools) = tools.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes));
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
        context_report::report(request, (model, facts.context, *max_tokens))
    }
}
