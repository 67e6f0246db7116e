//! What people want of the model's context, until the conversation has answered. A new process of the
//! conversation gets it again. Part of [`Router`].

use super::{RouteStep, Router};
use protocol::session::ToSession;

/// The wishes that are not answered.
#[derive(Debug, Default)]
pub(super) struct ContextWishes {
    /// To shrink it.
    pub(super) compacting: bool,
    /// To know what fills it.
    pub(super) describing: bool,
}

impl ContextWishes {
    /// The messages for a new process, to send before queued prompts.
    pub(super) fn messages(&self) -> impl Iterator<Item = ToSession> + use<> {
        let room = self.compacting.then_some(ToSession::Compact);
        let describe = self.describing.then_some(ToSession::Describe);
        describe.into_iter().chain(room)
    }
}

impl Router {
    /// A person shrinks the model's context. A conversation that is being replayed gets the message
    /// when it is ready, before queued prompts.
    pub(crate) fn compact(&mut self) -> Vec<RouteStep> {
        self.context.compacting = true;
        match self.ready {
            true => vec![RouteStep::ToSession(ToSession::Compact)],
            false => Vec::new(),
        }
    }

    /// A client asks what fills the model's context. One answer serves all that wait for it.
    pub(crate) fn describe_context(&mut self) -> Vec<RouteStep> {
        let asks = !std::mem::replace(&mut self.context.describing, true) && self.ready;
        asks.then_some(RouteStep::ToSession(ToSession::Describe)).into_iter().collect()
    }
}
