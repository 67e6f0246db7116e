//! Has servers of the Model Context Protocol started, and knows their tools: part of [`Session`]. The
//! supervisor says when a server is due. Its start is a call that no model requested; the next request
//! waits for it, which takes a second at most, since such a call goes on in the background then.

use super::{Outputs, Session, SessionPhase};
use protocol::call::{CallOrigin, CallStage, ToolResult};
use protocol::ids::CallId;
use protocol::mcp::{PREFIX, ServerNews, ServerStart};
use protocol::session::SessionEvent;

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

impl Session {
    /// Takes in news about servers.
    pub(super) fn server_news(&mut self, news: ServerNews, out: &mut Outputs) {
        match news {
            ServerNews::Due(start) if self.is_replaying() => self.servers.due.push(start),
            // The model had to do without it before.
            ServerNews::Due(start) => {
                let call = self.start_server(start, out);
                self.servers.others.push(call);
            }
            ServerNews::Tools { tools, hooks } => {
                self.setup.hooks.events = hooks;
                self.setup.tools.retain(|tool| !tool.spec.name.starts_with(PREFIX));
                self.setup.tools.extend(tools);
            }
        }
    }

    /// Requests the starts that came before the end of the replay.
    pub(super) fn start_servers(&mut self, out: &mut Outputs) {
        for start in std::mem::take(&mut self.servers.due) {
            let call = self.start_server(start, out);
            self.servers.awaited.push(call);
        }
    }

    fn start_server(&mut self, start: ServerStart, out: &mut Outputs) -> CallId {
        let ServerStart { tool, input } = start;
        let call = self.name_own(CallOrigin::ServerStart, &tool, input, out);
        let id = call.id.clone();
        out.run(call);
        id
    }

    /// True if the next request waits for a start.
    pub(super) fn awaits_servers(&self) -> bool {
        !self.servers.awaited.is_empty()
    }

    /// A call ended; true if it was the start of a server. The result is durable.
    pub(super) fn server_started(
        &mut self,
        call: &CallId,
        stage: CallStage,
        result: &ToolResult,
        out: &mut Outputs,
    ) -> bool {
        let StartingServers { awaited, others, .. } = &mut self.servers;
        let before = awaited.len() + others.len();
        awaited.retain(|open| open != call);
        others.retain(|open| open != call);
        if awaited.len() + others.len() == before {
            return false;
        }
        let (call, result) = (call.clone(), result.clone());
        let origin = CallOrigin::ServerStart;
        self.take_in(&SessionEvent::Result { call, origin, stage, result });
        if matches!(self.phase, SessionPhase::Checking) && !self.awaits_servers() {
            self.ask(out);
        }
        true
    }
}
