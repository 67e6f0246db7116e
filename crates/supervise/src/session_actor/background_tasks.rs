//! Sub-agents that the conversation does not wait for: when one goes to the background, and the wait for those
//! that an earlier supervisor left. `jobs` serves all calls in the background, `tasks` all sub-agents.

use super::services::Service;
use super::state::SessionActorState;
use crate::messages::SessionMsg;
use crate::records::origin;
use call::{CallInput, CallRemarks, Executor};
use journal::OpenCall;
use protocol::call::{Call, ToolResult};
use protocol::ids::CallId;
use ractor::ActorRef;
use tools::TaskRequest;

impl SessionActorState {
    /// The call or the agent's file wants it, or it went to the background under an earlier supervisor.
    fn is_for_background(&self, call: u32, request: &TaskRequest) -> bool {
        let agent = self.spec.agents().find(request.agent.as_deref());
        request.background
            || agent.is_ok_and(|agent| agent.background)
            || self.calls.services.has(call)
    }

    /// Checks that there is room, before the call is judged.
    pub(super) fn check_background_task(
        &self,
        call: u32,
        request: &TaskRequest,
    ) -> Result<(), ToolResult> {
        match self.is_for_background(call, request) {
            true => self.calls.services.check_room("task"),
            false => Ok(()),
        }
    }

    /// The sub-agent of this call begins its work: the conversation may go on.
    pub(super) fn detach_task(&self, call: u32, request: &TaskRequest) {
        if self.is_for_background(call, request) {
            let call = CallId { session: self.spec.id.clone(), number: call };
            self.send_call(&call, CallInput::Detach);
        }
    }

    /// Starts the calls that an earlier supervisor left. Each is judged again and finds the session that works
    /// for it. The conversation has the result that it runs, and is told its end.
    pub(super) async fn wait_for_left_tasks(&mut self, myself: &ActorRef<SessionMsg>) {
        for open in std::mem::take(&mut self.tasks.left) {
            let origin = origin::of_open(&open);
            let OpenCall { number, tool, input, .. } = open;
            let id = CallId { session: self.spec.id.clone(), number };
            let call = Call { id, origin: origin.clone(), tool: tool.clone(), input };
            let (place, remarks) = (self.turn.router.place(), CallRemarks::default());
            self.start_call(myself, call, place, Executor::Runner, remarks).await;
            let (rights, cage, network) = (Vec::new(), String::new(), None);
            self.calls.services.begins(number, Service { tool, origin, rights, cage, network });
        }
    }
}
