//! What people want of the model's context, until the conversation has answered. A new process of the
//! conversation gets it again. Part of [`Router`].

use super::{RouteStep, Router};
use protocol::call::{Call, CallOrigin};
use protocol::client::ClientEvent;
use protocol::context::{Compaction, NumberedSummary, SummaryStep};
use protocol::hook::HookEvent;
use protocol::session::ToSession;
use serde_json::Value;

/// The wishes that are not answered, and the request of a summary.
#[derive(Debug, Default)]
pub(super) struct ContextWishes {
    /// To make it smaller.
    compact: Option<CompactWish>,
    /// A hook runs before it is made smaller.
    hook_runs: bool,
    /// To know what fills it.
    describing: bool,
    /// To replace the text of the summary.
    edit: Option<NumberedSummary>,
    /// The model writes a summary: its words are no answer to a person.
    pub(super) summarizing: bool,
}

/// A wish to make it smaller, with this focus.
#[derive(Debug)]
struct CompactWish {
    focus: String,
    /// A process of the conversation was told. The next one gets it with the end of its replay.
    told: bool,
}

impl ContextWishes {
    /// It is being made smaller, or a person waits for that.
    pub(super) fn is_shrinking(&self) -> bool {
        self.summarizing || self.hook_runs || self.compact.is_some()
    }

    /// A call begins.
    pub(super) fn on_run(&mut self, call: &Call) {
        let input = || serde_json::from_str::<Value>(&call.input).ok();
        let event = || HookEvent::parse(input()?.get("event")?.as_str()?);
        self.hook_runs |=
            call.origin == CallOrigin::EventHook && event() == Some(HookEvent::PreCompact);
    }

    /// The process ended, or a turn.
    pub(super) fn on_end(&mut self) {
        self.hook_runs = false;
        self.summarizing = false;
    }

    /// The messages for a new process, to send before queued prompts.
    pub(super) fn messages(&mut self) -> impl Iterator<Item = ToSession> + use<> {
        let describe = self.describing.then_some(ToSession::Describe);
        let edit = self.edit.clone().map(ToSession::EditSummary);
        let room = self.compact.as_mut().filter(|wish| !wish.told).map(|wish| {
            wish.told = true;
            ToSession::Compact { focus: wish.focus.clone() }
        });
        describe.into_iter().chain(edit).chain(room)
    }

    /// The conversation recorded a step.
    pub(super) fn on_step(&mut self, step: &Compaction) {
        self.hook_runs = false;
        match step {
            Compaction::Summary(SummaryStep::Asked { .. }) => {
                self.compact = None;
                self.summarizing = true;
            }
            Compaction::Cut { .. } => self.compact = None,
            Compaction::Summary(SummaryStep::Written { .. } | SummaryStep::Failed { .. }) => {
                self.summarizing = false;
            }
            Compaction::Summary(SummaryStep::Edited { .. }) => self.edit = None,
        }
    }

    pub(super) fn described(&mut self) {
        self.describing = false;
    }

    /// The conversation does nothing about what people want.
    pub(super) fn refused(&mut self, why: &str) -> RouteStep {
        self.compact = None;
        self.hook_runs = false;
        self.edit = None;
        RouteStep::Show(ClientEvent::Notice { text: why.to_owned() })
    }
}

impl Router {
    /// A person makes the conversation that the model gets smaller. A conversation that is being
    /// replayed gets the message when it is ready, before queued prompts.
    pub(crate) fn compact(&mut self, focus: String) -> Vec<RouteStep> {
        self.context.compact = Some(CompactWish { focus: focus.clone(), told: self.ready });
        self.tell_if_ready(ToSession::Compact { focus })
    }

    /// The same, with this wish that a process of the conversation was told before.
    pub(crate) fn with_compact(mut self, focus: Option<String>) -> Self {
        self.context.compact = focus.map(|focus| CompactWish { focus, told: true });
        self
    }

    /// The wish for room that an earlier process of the conversation was told and has not answered.
    pub(crate) fn compact_told(&self) -> Option<String> {
        let wish = self.context.compact.as_ref().filter(|wish| wish.told);
        wish.map(|wish| wish.focus.clone())
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
