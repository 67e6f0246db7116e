//! The MCP servers of a session: when one starts, what it offers, which call answers for it, and when it
//! starts again. `services` has the table of them. Each runs as a call in the background, so that `jobs` and the
//! call actor do the rest.

mod log_ins;

use super::configured_calls::{first_request, place_of, server_env};
use super::services::pause_before;
use super::services::servers::{AfterEnd, ServerEnd};
use super::state::SessionActorState;
use crate::call_actor::refused_by_server;
use crate::messages::{CallMsg, ClientMsg, ServerSays, SessionMsg, SessionTimer};
use crate::server_pins::ServerPins;
use call::{CallInput, ServerDemand, ServerInput, ServerRequest};
use protocol::call::{Call, ToolResult};
use protocol::client::{ClientEvent, ToClient};
use protocol::ids::CallId;
use protocol::mcp::{ServerNews, ServerTool};
use protocol::session::ToSession;
use ractor::ActorRef;
use setup::server_schemas;
use setup::server_tools;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The server ends a call that makes progress after this time at the latest; a call that it does not end is
/// not awaited longer than the margin.
const LONGEST_CALL: Duration = Duration::from_secs(600);
const MARGIN: Duration = Duration::from_secs(10);

impl SessionActorState {
    /// The servers that the conversation has to start, and the tools of those that run: behind `Begin`.
    pub(super) fn server_news(&mut self) -> Vec<ToSession> {
        if self.spec.servers().is_empty() {
            return Vec::new();
        }
        let mut news = vec![self.server_tools_news()];
        for at in 0..self.spec.servers().len() {
            let pause = pause_before(at, first_request(&self.spec));
            if pause > Duration::ZERO && self.calls.services.servers.starts_soon(at) {
                let due = move || SessionMsg::Timer(SessionTimer::ServerDue(at));
                self.own.send_after(pause, due);
            } else {
                news.extend(self.server_due(at));
            }
        }
        news
    }

    /// The start of a server that does not run, unless a variable of it is missing.
    fn server_due(&mut self, at: usize) -> Option<ToSession> {
        if !self.calls.services.servers.may_start(at) || self.closing.has_begun() {
            return None;
        }
        let server = self.spec.servers().get(at)?;
        if let Err(why) = server_env(self.workers.provider.passed_fds(), server) {
            let text = format!("the MCP server {} does not start: {why}", server.config.name);
            self.calls.services.servers.cannot_start(at, why);
            self.show(&ClientEvent::Notice { text });
            return None;
        }
        let start = server.start.clone();
        self.calls.services.servers.requested(at);
        Some(ToSession::Servers(ServerNews::Due(start)))
    }

    /// The tools of all servers that run, and the hooks that know them.
    fn server_tools_news(&mut self) -> ToSession {
        let tools = self.calls.services.servers.tools();
        let names: Vec<String> = tools.iter().map(|tool| tool.spec.name.clone()).collect();
        self.spec.know_server_tools(&names);
        ToSession::Servers(ServerNews::Tools { tools, hooks: self.spec.setup.hooks.events.clone() })
    }

    /// A call was proposed that may start a server. Returns the reason why a person has to approve that.
    pub(super) fn server_begins(&mut self, call: &Call) -> Option<String> {
        let at = place_of(&self.spec, call)?;
        let log_in = self.log_in_stamp(at);
        self.calls.services.servers.begins(at, call.id.number, log_in);
        self.calls.services.servers.question(call.id.number)
    }

    pub(super) async fn on_server_says(&mut self, call: &CallId, said: ServerSays) {
        match said {
            ServerSays::Tools(tools) => self.on_server_tools(call, &tools).await,
            ServerSays::Offers(offers) => {
                if self.calls.services.servers.offers(call.number, offers) {
                    self.send_waiting_prompts();
                }
            }
            ServerSays::Note(text) => self.show(&ClientEvent::Notice { text }),
            ServerSays::Answered => self.calls.services.servers.answered(call.number),
        }
    }

    /// A server is ready, or its tools have changed.
    async fn on_server_tools(&mut self, call: &CallId, listed: &[ServerTool]) {
        let Some(at) = self.calls.services.servers.place(call.number) else { return };
        let Some(server) = self.spec.servers().get(at) else { return };
        let now = ServerPins::of(listed);
        let (name, file) = (server.config.name.clone(), self.spec.pins_file(server));
        let approved = self.calls.services.servers.listed(at, &now);
        let (mut tools, notes) = server_tools::offered(&server.config, listed);
        tools.retain(|tool| self.spec.has_server_tool(&tool.offer.spec.name));
        let pins = now.clone();
        // Aside, since a disk may be slow.
        let checked = tokio::task::spawn_blocking(move || check_pins(&file, &pins, approved)).await;
        match checked.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(None) => {}
            Ok(Some(change)) => {
                let reason =
                    format!("the MCP server {name} has changed since you approved it:\n{change}\n");
                let text = format!("{reason}It ends, and you are asked before it starts again");
                self.show(&ClientEvent::Notice { text });
                self.calls.services.servers.changed(at, now, reason);
                return self.calls.running.send(call, CallInput::Cancel);
            }
            Err(why) => {
                let text = format!(
                    "the MCP server {name} is not used: the record of its tools failed: {why}"
                );
                return self.show(&ClientEvent::Notice { text });
            }
        }
        self.calls.services.servers.ready(at, tools);
        for text in notes {
            self.show(&ClientEvent::Notice { text });
        }
        let news = self.server_tools_news();
        self.workers.conversation.send(news);
        self.calls.running.send(call, CallInput::Detach);
    }

    /// A call has ended: if it was a server, its tools are gone, and it starts again after a while.
    pub(super) fn server_ended(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        call: u32,
        result: &ToolResult,
    ) {
        let ended = self.calls.services.servers.ends(call, result);
        let Some(ServerEnd { at, lost, then }) = ended else { return };
        for from in lost {
            lose(&from, format!("lost its MCP server ({})", result.summary));
        }
        let news = self.server_tools_news();
        self.workers.conversation.send(news);
        if self.closing.has_begun() {
            return;
        }
        self.send_waiting_prompts();
        let Some(name) = self.spec.servers().get(at).map(|server| server.config.name.clone())
        else {
            return;
        };
        let then = match then {
            AfterEnd::Again(after) => {
                let due = move || SessionMsg::Timer(SessionTimer::ServerDue(at));
                myself.send_after(after, due);
                format!("it starts again in {} s", after.as_secs_f64())
            }
            AfterEnd::LogIn => {
                "it starts again with your next prompt once you have logged in".to_owned()
            }
            AfterEnd::Refused => "it does not start again in this session".to_owned(),
            AfterEnd::Failed(ends) => format!(
                "it has failed: it ended {ends} times without an answer to a call. `:mcp` tries it once more, \
                 `agentd restart {}` starts it anew",
                self.spec.id
            ),
        };
        self.calls.services.servers.note_end(at, &result.summary, &then);
        let text = format!("the MCP server {name} has ended: {}; {then}", result.summary);
        self.show(&ClientEvent::Notice { text });
    }

    /// A server starts again. A conversation that is not replayed gets its start with the others.
    pub(super) fn on_server_due(&mut self, at: usize) {
        if !self.workers.conversation.has_begun() {
            return;
        }
        if let Some(due) = self.server_due(at) {
            self.workers.conversation.send(due);
        }
    }

    /// Has servers that do not run start anew, for a person who asked for that.
    pub(super) fn restart_servers(&mut self) {
        self.calls.services.servers.forget_restarts();
        for at in 0..self.calls.services.servers.count() {
            self.on_server_due(at);
        }
    }

    /// Passes the call of a tool on to its server, or answers it: the server does not run.
    pub(super) fn ask_server(&mut self, mut request: ServerRequest, from: ActorRef<CallMsg>) {
        let tool = &request.tool;
        let servers = &mut self.calls.services.servers;
        let known = self.spec.servers();
        let route = servers.route(tool, known);
        let Some((route, known)) = route.and_then(|it| known.get(it.at).map(|known| (it, known)))
        else {
            if let ServerDemand::Reply(..) = request.demand {
                // The end of the server ends the call.
                return;
            }
            let why =
                format!("the MCP server of {tool} does not run, or has no such tool any more");
            let input = CallInput::OtherAnswered(refused_by_server(tool, &why));
            let _ = from.send_message(CallMsg::Input(input));
            return;
        };
        let call = route.call.map(|number| CallId { session: self.spec.id.clone(), number });
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
        match call.and_then(|call| self.calls.running.get(&call)) {
            // A server that ends now drops its messages: its end answers those that it did not.
            Some(call) => drop(call.send_message(CallMsg::Server(request, from, call_ms))),
            None => lose(&from, "lost its MCP server".to_owned()),
        }
    }

    /// The servers for people who ask: each with its state, its cage and its tools.
    pub(super) fn report_servers(&self, client: &ActorRef<ClientMsg>) {
        let services = &self.calls.services;
        let sandbox = |call| services.cage(call).map(str::to_owned);
        let known = self.spec.servers().iter().enumerate();
        let servers = known.filter_map(|(at, known)| services.servers.report(at, known, sandbox));
        let (session, servers) = (self.spec.id.clone(), servers.collect());
        let _ = client.send_message(ClientMsg::Send(ToClient::Servers { session, servers }));
    }
}

/// The call may have run.
fn lose(from: &ActorRef<CallMsg>, cause: String) {
    let _ = from.send_message(CallMsg::Input(CallInput::ServerLost { cause }));
}

/// Compares the tools of a server with its record, which is made at its first start and with an approval.
/// Returns a change that needs one.
fn check_pins(file: &Path, now: &ServerPins, approved: bool) -> Result<Option<String>, String> {
    let failed = |error: io::Error| format!("{}: {error}", file.display());
    let known = ServerPins::load(file).map_err(failed)?;
    let change = known.as_ref().and_then(|known| known.change_to(now)).filter(|_| !approved);
    if change.is_none() && known.as_ref() != Some(now) {
        now.save(file).map_err(failed)?;
    }
    Ok(change)
}
