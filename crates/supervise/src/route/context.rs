//! What people want of the model's context, until the conversation has answered. A new process of the
//! conversation gets it again. Part of [`Router`].

use super::{RouteStep, Router};
use protocol::client::ClientEvent;
use protocol::context::{Compaction, NumberedSummary};
use protocol::session::ToSession;

/// The wishes that are not answered, and the request of a summary.
#[derive(Debug, Default)]
pub(super) struct ContextWishes {
    /// To make it smaller, with this focus.
    compact: Option<String>,
    /// To know what fills it.
    describing: bool,
    /// To replace the text of the summary.
    edit: Option<NumberedSummary>,
    /// The model writes a summary: its words are no answer to a person.
    pub(super) summarizing: bool,
}

impl ContextWishes {
    /// The messages for a new process, to send before queued prompts.
    pub(super) fn messages(&self) -> impl Iterator<Item = ToSession> + use<> {
        let describe = self.describing.then_some(ToSession::Describe);
        let edit = self.edit.clone().map(ToSession::EditSummary);
        let room = self.compact.clone().map(|focus| ToSession::Compact { focus });
        describe.into_iter().chain(edit).chain(room)
    }

    /// The conversation recorded a step.
    pub(super) fn on_step(&mut self, step: &Compaction) {
        match step {
            Compaction::SummaryAsked { .. } => {
                self.compact = None;
                self.summarizing = true;
            }
            Compaction::Cut { .. } => self.compact = None,
            Compaction::Summarized { .. } | Compaction::SummaryFailed { .. } => {
                self.summarizing = false;
            }
            Compaction::SummaryEdited { .. } => self.edit = None,
        }
    }

    pub(super) fn described(&mut self) {
        self.describing = false;
    }

    /// The conversation does nothing about what people want.
    pub(super) fn refused(&mut self, why: &str) -> RouteStep {
        self.compact = None;
        self.edit = None;
        RouteStep::Show(ClientEvent::Notice { text: why.to_owned() })
    }
}

impl Router {
    /// A person makes the conversation that the model gets smaller. A conversation that is being
    /// replayed gets the message when it is ready, before queued prompts.
    pub(crate) fn compact(&mut self, focus: String) -> Vec<RouteStep> {
        self.context.compact = Some(focus.clone());
        self.tell_if_ready(ToSession::Compact { focus })
    }

    /// A person replaces the text of the summary, likewise.
    pub(crate) fn edit_summary(&mut self, summary: NumberedSummary) -> Vec<RouteStep> {
        self.context.edit = Some(summary.clone());
        self.tell_if_ready(ToSession::EditSummary(summary))
    }

    /// A client asks what fills the model's context. One answer serves all that wait for it.
    pub(crate) fn describe_context(&mut self) -> Vec<RouteStep> {
        match std::mem::replace(&mut self.context.describing, true) {
            true => Vec::new(),
            false => self.tell_if_ready(ToSession::Describe),
        }
    }

    fn tell_if_ready(&self, message: ToSession) -> Vec<RouteStep> {
        self.ready.then_some(RouteStep::ToSession(message)).into_iter().collect()
    }
}
