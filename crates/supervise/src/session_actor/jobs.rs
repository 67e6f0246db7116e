//! Commands and sub-agents in the background: calls that the conversation does not wait for. It got a result in their
//! place, and hears of their end later.

use super::services::{Asker, Service, ServiceEnd, no_room};
use super::state::SessionActorState;
use crate::messages::{CallMsg, DetachedCall, SessionMsg};
use crate::records::{decode::in_background, encode};
use crate::worker::actor::WorkerMsg;
use call::CallInput;
use protocol::call::{Call, CallStage, ToolResult};
use protocol::client::ClientEvent;
use protocol::ids::CallId;
use protocol::session::ToSession;
use ractor::{ActorRef, ActorStatus};
use tool_specs::JobRequest;

impl Asker for ActorRef<CallMsg> {
    fn is_waiting(&self) -> bool {
        !matches!(self.get_status(), ActorStatus::Stopping | ActorStatus::Stopped)
    }
}

impl SessionActorState {
    /// The calls that the conversation waits for.
    pub(super) fn foreground(&self) -> impl Iterator<Item = &CallId> {
        let services = &self.calls.services;
        self.calls.running.keys().filter(|call| !services.has(call.number))
    }

    /// A person lets the commands and sub-agents that run go on in the background, as far as there is room.
    pub(super) fn detach_commands(&self) {
        let room = self.calls.services.room();
        if room == 0 {
            return self.show(&ClientEvent::Notice { text: no_room() });
        }
        let is_task = |call: &&CallId| self.tasks.sub_agents.has(call.number);
        let (tasks, commands): (Vec<_>, Vec<_>) = self.foreground().partition(is_task);
        let tasks = tasks.into_iter().take(room.saturating_sub(commands.len()));
        commands.into_iter().chain(tasks).for_each(|call| self.send_call(call, CallInput::Detach));
    }

    /// A command runs longer than a conversation should wait. Where no room is left in the background, the
    /// conversation waits.
    pub(super) fn on_slow(&self, call: &CallId) {
        if self.calls.services.room() > 0 {
            self.send_call(call, CallInput::Detach);
        }
    }

    /// A command goes on in the background: its call has its result for the model, once that is on disk.
    pub(super) async fn on_detached(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        detached: DetachedCall,
    ) {
        let DetachedCall { call, text, rights, cage, network, notice } = detached;
        let Call { id, origin, tool, input: _ } = call;
        let service = Service { tool, origin: origin.clone(), rights, cage, network };
        if !self.calls.services.begins(id.number, service) {
            // A sub-agent that is waited for again: the conversation has this result.
            return;
        }
        // Later changes of the command cannot be told from those of others.
        self.end_backup(&id, None);
        let record = encode::background((id.number, origin), text.clone());
        if self.record(vec![record]).await.is_ok() {
            ipc::step!("supervisor: background durable");
            self.turn.router.progressed();
            let _ = self.workers.conversation.actor().send_message(WorkerMsg::ResetFailures);
            if let Some(text) = notice {
                self.show(&ClientEvent::Notice { text });
            }
            let result = in_background(text);
            self.send_conversation(ToSession::CallEnded {
                call: id,
                stage: CallStage::InBackground,
                result,
            });
        }
        self.close_failed_turn(myself).await;
        self.replay_if_quiet(myself).await;
    }

    /// Passes a request on to the command's call, or answers it.
    pub(super) fn on_job_request(&mut self, request: JobRequest, from: ActorRef<CallMsg>) {
        let id = CallId { session: self.spec.id.clone(), number: request.call };
        let max = self.spec.config.tools.max_result_chars;
        let services = &mut self.calls.services;
        let Some(call) = self.calls.running.get(&id) else {
            return tell(&from, services.answer_without(&request, max));
        };
        match services.ask(&request, &from, max) {
            // A call that ends now drops its messages: its end answers those that it did not.
            Ok(()) => drop(call.send_message(CallMsg::Job(request, from))),
            Err(answer) => tell(&from, answer),
        }
    }

    /// The message to the conversation about a call that has ended.
    pub(super) fn message_of_end(
        &mut self,
        call: CallId,
        result: ToolResult,
        unread: Option<String>,
    ) -> ToSession {
        let max = self.spec.config.tools.max_result_chars;
        match self.calls.services.ends(call.number, unread, &result.summary, max) {
            None => ToSession::CallEnded { call, stage: CallStage::Ended, result },
            Some(ServiceEnd { tool, answers }) => {
                answers.into_iter().for_each(|(from, answer)| tell(&from, answer));
                ToSession::BackgroundEnded { call, tool, result }
            }
        }
    }
}

fn tell(from: &ActorRef<CallMsg>, answer: ToolResult) {
    let _ = from.send_message(CallMsg::Input(CallInput::OtherAnswered(answer)));
}
