//! An MCP server that the call runs: the calls of its tools, each until its answer. Used by the call actor.

use super::state::CallState;
use crate::messages::{CallMsg, CallToSession, ServerSays};
use crate::records::images;
use call::{CallInput, ServerAsk, ServerDemand, ServerInput, ServerRequest};
use launch::runner::Runner;
use protocol::call::{Outcome, RunReport, ToolResult};
use protocol::mcp::{CALL, FromServer, ServerAction, ToServer};
use protocol::tool::ToCall;
use ractor::ActorRef;

/// Most calls that wait for one server.
const MOST: usize = 64;

/// The calls that wait, by their numbers on the wire.
#[derive(Default)]
pub(super) struct ServerAsks {
    next: u64,
    waiting: Vec<(u64, ActorRef<CallMsg>)>,
}

impl ServerAsks {
    fn begin(&mut self, from: ActorRef<CallMsg>) -> u64 {
        self.next += 1;
        self.waiting.push((self.next, from));
        self.next
    }

    fn of(&self, number: u64) -> Option<&ActorRef<CallMsg>> {
        self.waiting.iter().find(|(known, _)| *known == number).map(|(_, from)| from)
    }

    fn take(&mut self, number: u64) -> Option<ActorRef<CallMsg>> {
        let at = self.waiting.iter().position(|(known, _)| *known == number)?;
        Some(self.waiting.swap_remove(at).1)
    }

    /// The server has ended: nobody knows how far the calls came.
    pub(super) fn end(&mut self, summary: &str) {
        for (_, from) in self.waiting.drain(..) {
            let cause = format!("lost its MCP server ({summary})");
            answer(&from, CallInput::ServerLost { cause });
        }
    }
}

impl CallState {
    /// Passes a call on. The call of the server itself has no input from that.
    pub(super) fn on_server_request(
        &mut self,
        request: ServerRequest,
        from: ActorRef<CallMsg>,
        timeout_ms: u64,
    ) -> Option<CallInput> {
        let ServerRequest { tool, demand } = request;
        match demand {
            ServerDemand::Call(_) if self.job.asks.waiting.len() == MOST => {
                let why = format!("{MOST} calls wait for the MCP server, which is the most");
                answer(&from, CallInput::OtherAnswered(refused_by_server(&tool, &why)));
            }
            ServerDemand::Call(_) if !self.serves() => {
                let refused = refused_by_server(&tool, "the MCP server has ended");
                answer(&from, CallInput::OtherAnswered(refused));
            }
            ServerDemand::Call(arguments) => {
                let number = self.job.asks.begin(from);
                let max_result_chars = self.args.facts.max_result_chars;
                let action = ServerAction::of(&tool);
                let call = ToServer::Call {
                    number,
                    action,
                    tool,
                    arguments,
                    timeout_ms,
                    max_result_chars,
                };
                self.tell_runner(ToCall::Server(call));
            }
            ServerDemand::Withdraw => {
                let mut waiting = self.job.asks.waiting.iter();
                let number = waiting.find(|(_, waits)| waits.get_id() == from.get_id());
                if let Some((number, _)) = number.cloned() {
                    self.job.asks.take(number);
                    self.tell_runner(ToCall::Server(ToServer::Cancel(number)));
                }
            }
            ServerDemand::Reply(ask, reply) => {
                self.tell_runner(ToCall::Server(ToServer::Reply { ask, reply }));
            }
        }
        None
    }

    /// The runner of the server takes requests. One that ends or has ended would never pass them on.
    fn serves(&self) -> bool {
        self.runner.as_ref().is_some_and(Runner::is_running)
    }

    /// The server says something.
    pub(super) fn on_server_msg(&mut self, said: FromServer) {
        match said {
            FromServer::Tools(tools) => {
                let call = self.args.facts.call.id.clone();
                let said = ServerSays::Tools(tools);
                let tools = CallToSession::ServerSays { call, said };
                let _ = self.args.session.send_message(tools.into());
            }
            FromServer::Offers(offers) => {
                let call = self.args.facts.call.id.clone();
                let said = ServerSays::Offers(offers);
                let offers = CallToSession::ServerSays { call, said };
                let _ = self.args.session.send_message(offers.into());
            }
            FromServer::Note(text) => {
                let call = self.args.facts.call.id.clone();
                let said = ServerSays::Note(text);
                let _ =
                    self.args.session.send_message(CallToSession::ServerSays { call, said }.into());
            }
            FromServer::Progress { number, text } => {
                if let Some(from) = self.job.asks.of(number) {
                    answer(from, CallInput::Output(text));
                }
            }
            FromServer::Asks { number, ask, question } => {
                if let Some(from) = self.job.asks.of(number) {
                    let asks = ServerInput::Asks(ServerAsk { ask, question });
                    answer(from, CallInput::OfServer(asks));
                }
            }
            FromServer::Unasked { number, ask } => {
                if let Some(from) = self.job.asks.of(number) {
                    answer(from, CallInput::OfServer(ServerInput::Unasked(ask)));
                }
            }
            FromServer::Answer { number, report } => {
                // A second answer, or one that nobody waits for.
                let Some(from) = self.job.asks.take(number) else { return };
                let report: RunReport =
                    images::named(*report, (CALL, self.args.confinement.profile));
                if let Outcome::Done | Outcome::Failed = report.result.outcome {
                    let call = self.args.facts.call.id.clone();
                    let said = ServerSays::Answered;
                    let _ = self
                        .args
                        .session
                        .send_message(CallToSession::ServerSays { call, said }.into());
                }
                let enforced = self.machine.enforced().cloned();
                answer(&from, CallInput::ServerAnswered(Box::new((report, enforced))));
            }
        }
    }
}

fn answer(from: &ActorRef<CallMsg>, input: CallInput) {
    let _ = from.send_message(CallMsg::Input(input));
}

/// The result of a call that its server was not asked for.
pub(crate) fn refused_by_server(tool: &str, why: &str) -> ToolResult {
    let hint = "Nothing was done. Try it again later, or do without it.";
    ToolResult::error(Outcome::Failed, "no_server", tool, why, hint)
}
