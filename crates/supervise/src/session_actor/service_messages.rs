//! The services of a session: its MCP servers, and the commands that go on in the background. The owner of both is
//! `services`; here the steps that it returns reach the conversation, the calls and people.

use super::clients::WaitingPrompt;
use super::jobs::send;
use super::services::{ServerStep, Service};
use super::state::SessionActorState;
use crate::messages::{ClientToSession, DetachedCall, ServerSays, SessionMsg, SessionTimer};
use crate::records::{decode::in_background, encode};
use call::CallInput;
use protocol::call::{Call, CallStage, ToolResult};
use protocol::session::ToSession;

impl SessionActorState {
    /// The messages about servers to a conversation that begins.
    pub(super) fn server_news(&mut self) -> Vec<ToSession> {
        let passed_fds = self.workers.provider.passed_fds();
        let (news, steps) = self.calls.services.servers.begin(&mut self.spec, passed_fds);
        self.carry_out_servers(steps);
        news
    }

    /// The servers at these places start, if they do not run. A conversation that is not replayed gets their
    /// starts with those of the others.
    pub(super) fn servers_due(&mut self, places: impl IntoIterator<Item = usize>) {
        if self.workers.conversation.has_begun() {
            for at in places {
                let servers = &mut self.calls.services.servers;
                let due = servers.due(at, &self.spec, self.workers.provider.passed_fds());
                self.carry_out_servers(due);
            }
        }
    }

    pub(super) async fn on_server_says(&mut self, call: u32, said: ServerSays) {
        let servers = &mut self.calls.services.servers;
        let steps = servers.says(call, said, &mut self.spec).await;
        self.carry_out_servers(steps);
    }

    /// A call has ended, which may have run a server.
    pub(super) fn server_ended(&mut self, call: u32, result: &ToolResult) {
        let ended = self.calls.services.servers.ended(call, result, &mut self.spec);
        let Some((lost, steps)) = ended else { return };
        for from in lost {
            // The call may have run.
            let cause = format!("lost its MCP server ({})", result.summary);
            send(&from, CallInput::ServerLost { cause });
        }
        self.carry_out_servers(steps);
    }

    fn carry_out_servers(&mut self, steps: impl IntoIterator<Item = ServerStep>) {
        for step in steps {
            match step {
                ServerStep::News(news) => self.workers.conversation.send(news),
                ServerStep::ToCall(call, input) => {
                    self.calls.running.send(&self.call_id(call), input)
                }
                ServerStep::Notice(text) => self.events.show_notice(text),
                ServerStep::DueAfter(pause, at) => {
                    let due = move || SessionMsg::Timer(SessionTimer::ServerDue(at));
                    self.own.send_after(pause, due);
                }
                ServerStep::ReadPrompts => {
                    for WaitingPrompt { client, text, form, busy } in
                        self.events.clients.take_prompts()
                    {
                        let again = ClientToSession::Prompt { client, text, form, busy };
                        let _ = self.own.send_message(again.into());
                    }
                }
            }
        }
    }

    /// A command goes on in the background: its call has its result for the model, once that is on disk.
    pub(super) async fn on_detached(&mut self, detached: DetachedCall) {
        let DetachedCall { call, text, rights, cage, network, notice } = detached;
        let Call { id, origin, tool, input: _ } = call;
        let service = Service { tool, origin: origin.clone(), rights, cage, network };
        if !self.calls.services.begins(id.number, service) {
            // A sub-agent that is waited for again: the conversation has this result.
            return;
        }
        // Later changes of the command cannot be told from those of others.
        self.workers.store.call_ended(&id, None);
        let record = encode::background((id.number, origin), text.clone());
        if self.events.record(vec![record], &mut self.calls.running).await.is_ok() {
            ipc::step!("supervisor: background durable");
            self.turn.router.progressed();
            self.workers.conversation.made_progress();
            notice.into_iter().for_each(|text| self.events.show_notice(text));
            let (stage, result) = (CallStage::InBackground, in_background(text));
            self.workers.conversation.send(ToSession::CallEnded { call: id, stage, result });
        }
        self.close_failed_turn().await;
        self.replay_if_quiet().await;
    }
}
