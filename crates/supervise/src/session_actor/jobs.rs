//! Calls of a session and what runs beside its turns: commands and sub-agents in the background, whose calls have
//! a result already, and MCP servers, which the calls of their tools go to. `services` has the table of them; the
//! messages of their calls go through here.

use super::services::{Asker, ServiceEnd, no_room};
use super::session_calls::SessionCalls;
use crate::call_actor::refused_by_server;
use crate::messages::CallMsg;
use call::{CallInput, ServerDemand, ServerInput, ServerRequest};
use launch::session_network::SessionNetwork;
use protocol::call::{CallStage, ToolResult};
use protocol::client::RequestFailure;
use protocol::ids::CallId;
use protocol::session::ToSession;
use ractor::{ActorRef, ActorStatus};
use setup::server_schemas;
use setup::session_spec::SessionSpec;
use std::sync::Arc;
use std::time::Duration;
use tool_specs::JobRequest;

/// The server ends a call that makes progress after this time at the latest; a call that it does not end is
/// not awaited longer than the margin.
const LONGEST_CALL: Duration = Duration::from_secs(600);
const MARGIN: Duration = Duration::from_secs(10);

impl Asker for ActorRef<CallMsg> {
    fn is_waiting(&self) -> bool {
        !matches!(self.get_status(), ActorStatus::Stopping | ActorStatus::Stopped)
    }
}

impl SessionCalls {
    /// The calls that the conversation waits for.
    pub(super) fn foreground(&self) -> impl Iterator<Item = &CallId> {
        self.running.ids().filter(|call| !self.services.has(call.number))
    }

    /// A person ends one call; the model gets the result that it was stopped.
    ///
    /// # Errors
    /// For the person: it is an MCP server, or does not run.
    pub(super) fn stop(&self, call: &CallId) -> Result<(), (RequestFailure, String)> {
        let number = call.number;
        if self.services.is_server(number) {
            let why = format!("call {number} is an MCP server, which ends with the session");
            return Err((RequestFailure::Usage, why));
        }
        if self.running.get(call).is_none() {
            let why = format!("call {number} does not run");
            return Err((RequestFailure::NotFound, why));
        }
        self.running.send(call, CallInput::Cancel);
        Ok(())
    }

    /// A person lets the commands and sub-agents that run go on in the background, as far as there is room.
    ///
    /// # Errors
    /// For the person: there is none.
    pub(super) fn detach(&self, is_task: impl Fn(u32) -> bool) -> Result<(), String> {
        let room = self.services.room();
        if room == 0 {
            return Err(no_room());
        }
        let is_task = |call: &&CallId| is_task(call.number);
        let (tasks, commands): (Vec<_>, Vec<_>) = self.foreground().partition(is_task);
        let tasks = tasks.into_iter().take(room.saturating_sub(commands.len()));
        commands
            .into_iter()
            .chain(tasks)
            .for_each(|call| self.running.send(call, CallInput::Detach));
        Ok(())
    }

    /// A command runs longer than a conversation should wait. Where no room is left in the background, the
    /// conversation waits.
    pub(super) fn is_slow(&self, call: &CallId) {
        if self.services.room() > 0 {
            self.running.send(call, CallInput::Detach);
        }
    }

    /// Passes a request on to the command's call, or answers it.
    pub(super) fn ask_job(
        &mut self,
        request: JobRequest,
        from: ActorRef<CallMsg>,
        spec: &SessionSpec,
    ) {
        let id = CallId { session: spec.id().clone(), number: request.call };
        let max = spec.config().tools.max_result_chars;
        let Some(call) = self.running.get(&id) else {
            let answer = self.services.answer_without(&request, max);
            return send(&from, CallInput::OtherAnswered(answer));
        };
        match self.services.ask(&request, &from, max) {
            // A call that ends now drops its messages: its end answers those that it did not.
            Ok(()) => drop(call.send_message(CallMsg::Job(request, from))),
            Err(answer) => send(&from, CallInput::OtherAnswered(answer)),
        }
    }

    /// Passes the call of a tool on to its server, or answers it: the server does not run.
    pub(super) fn ask_server(
        &mut self,
        mut request: ServerRequest,
        from: ActorRef<CallMsg>,
        spec: &SessionSpec,
    ) {
        let (tool, servers, known) = (&request.tool, &mut self.services.servers, spec.servers());
        let route = servers.route(tool, known);
        let Some((route, known)) = route.and_then(|it| known.get(it.at).map(|known| (it, known)))
        else {
            if let ServerDemand::Reply(..) = request.demand {
                // The end of the server ends the call.
                return;
            }
            let why =
                format!("the MCP server of {tool} does not run, or has no such tool any more");
            return send(&from, CallInput::OtherAnswered(refused_by_server(tool, &why)));
        };
        let call = route.call.map(|number| CallId { session: spec.id().clone(), number });
        let call_ms = known.config.call_ms;
        if let ServerDemand::Call(arguments) = &mut request.demand {
            request.tool = route.own;
            if !route.renamed.is_empty()
                && let Some(own) = server_schemas::own_arguments(arguments, &route.renamed)
            {
                *arguments = own;
            }
            servers.asked(route.at, from.clone());
            let late = || CallMsg::Input(CallInput::OfServer(ServerInput::Late));
            from.send_after(Duration::from_millis(call_ms).max(LONGEST_CALL) + MARGIN, late);
        }
        match call.and_then(|call| self.running.get(&call)) {
            // A server that ends now drops its messages: its end answers those that it did not.
            Some(call) => drop(call.send_message(CallMsg::Server(request, from, call_ms))),
            None => {
                send(&from, CallInput::ServerLost { cause: "lost its MCP server".to_owned() });
            }
        }
    }

    /// The runner of a service was started again, with a network of its own.
    pub(super) fn network_moved(&mut self, call: u32, network: Option<Arc<SessionNetwork>>) {
        self.services.network_moved(call, network);
        // Its maker has the same number: the clients are in the one that is gone.
        self.ports.close(call);
        self.ports.keep(&self.services.makers_of_networks());
    }

    /// The message to the conversation about a call that has ended.
    pub(super) fn message_of_end(
        &mut self,
        call: CallId,
        result: ToolResult,
        (unread, max_result_chars): (Option<String>, u32),
    ) -> ToSession {
        let end = self.services.ends(call.number, unread, &result.summary, max_result_chars);
        self.ports.keep(&self.services.makers_of_networks());
        match end {
            None => ToSession::CallEnded { call, stage: CallStage::Ended, result },
            Some(ServiceEnd { tool, answers }) => {
                for (from, answer) in answers {
                    send(&from, CallInput::OtherAnswered(answer));
                }
                ToSession::BackgroundEnded { call, tool, result }
            }
        }
    }
}

/// Sends an input to the actor of a call.
pub(super) fn send(call: &ActorRef<CallMsg>, input: CallInput) {
    let _ = call.send_message(CallMsg::Input(input));
}
