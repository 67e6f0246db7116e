//! Servers of the Model Context Protocol that start. The supervisor says when a server is due. Its start is a call
//! that no model requested; the next request waits for it, which takes a second at most, since such a call goes on in
//! the background then. Pure.

use protocol::ids::CallId;
use protocol::mcp::ServerStart;

/// Servers that start.
#[derive(Debug, Default)]
pub(crate) struct StartingServers {
    /// They came before the end of the replay, which they follow.
    due: Vec<ServerStart>,
    /// The calls that the next request waits for.
    awaited: Vec<CallId>,
    /// Later starts: the model had to do without the server before.
    others: Vec<CallId>,
}

impl StartingServers {
    /// A server is due behind the end of the replay.
    pub(crate) fn due_later(&mut self, start: ServerStart) {
        self.due.push(start);
    }

    /// The servers that are due now.
    pub(crate) fn take_due(&mut self) -> Vec<ServerStart> {
        std::mem::take(&mut self.due)
    }

    /// A start is a call that the next request waits for.
    pub(crate) fn awaited(&mut self, call: CallId) {
        self.awaited.push(call);
    }

    /// A start is a call that no request waits for.
    pub(crate) fn unawaited(&mut self, call: CallId) {
        self.others.push(call);
    }

    /// True if the next request waits for a start.
    pub(crate) fn awaits(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// A call ended; true if it was the start of a server.
    pub(crate) fn ended(&mut self, call: &CallId) -> bool {
        let Self { awaited, others, .. } = self;
        let before = awaited.len() + others.len();
        awaited.retain(|open| open != call);
        others.retain(|open| open != call);
        awaited.len() + others.len() < before
    }
}
