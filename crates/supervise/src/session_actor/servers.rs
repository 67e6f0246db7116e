//! The MCP servers of a session: when one starts, what it offers, which call answers for it, and when it
//! starts again. Each runs as a call in the background, so that `jobs` and the call actor do the rest.

mod life;
mod log_ins;
mod report;
mod restarts;
mod starts;

use super::jobs::is_waiting;
use super::state::{ReplayState, SessionActorState};
use crate::call::{CallInput, ServerDemand, ServerInput, ServerRequest};
use crate::call_actor::refused_by_server;
use crate::messages::{CallMsg, ServerSays, SessionMsg, SessionTimer};
use crate::server_pins::ServerPins;
use life::ServerLife;
use log_ins::ServerLogIn;
use protocol::call::{Call, CallOrigin, Outcome, ToolResult};
use protocol::client::ClientEvent;
use protocol::ids::CallId;
use protocol::judgement::Audience;
use protocol::mcp::{PROMPT, RESOURCE, ServerNews, ServerOffers, ServerStart, ServerTool};
use protocol::provider::PassedFd;
use protocol::session::{OfferedTool, ToSession};
use ractor::ActorRef;
use restarts::ServerRestarts;
use setup::server_offers;
use setup::server_schemas;
use setup::server_tools::{self, OfferedServerTool};
use setup::session_spec::SessionServer;
pub(super) use starts::FirstRequest;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;
use tools::{CallAbout, ServerToolCall};

/// The server ends a call that makes progress after this time at the latest; a call that it does not end is
/// not awaited longer than the margin.
const LONGEST_CALL: Duration = Duration::from_secs(600);
const MARGIN: Duration = Duration::from_secs(10);
/// Most bytes of a variable.
const MOST_BYTES: usize = 64 * 1024;

/// A server of the session, in the order of the configuration.
#[derive(Debug, Default)]
pub(super) struct RunningServer {
    /// The call that runs it, from its proposal to its end.
    pub(super) call: Option<u32>,
    /// It was requested and has no call yet.
    pub(super) is_due: bool,
    /// It starts with the session, a moment after others.
    pub(super) starts_soon: bool,
    /// Its tools, while it runs.
    tools: Vec<OfferedServerTool>,
    /// What it offers people, once it has said so.
    pub(super) offers: Option<ServerOffers>,
    pub(super) restarts: ServerRestarts,
    /// A change of its tools that a person has to approve before it starts again.
    change: Option<ServerChange>,
    /// The calls that were passed on to it.
    asked: Vec<ActorRef<CallMsg>>,
    log_in: ServerLogIn,
    life: ServerLife,
}

/// Tools that a server describes otherwise than a person approved.
#[derive(Debug)]
struct ServerChange {
    now: ServerPins,
    /// In words.
    reason: String,
    /// A question about it was put, with the start that runs: only an approval lets that run.
    is_asked: bool,
}

impl SessionActorState {
    /// The servers that the conversation has to start, and the tools of those that run: behind `Begin`.
    pub(super) fn server_news(&mut self) -> Vec<ToSession> {
        if self.spec.servers().is_empty() {
            return Vec::new();
        }
        let mut news = vec![self.server_tools_news()];
        for at in 0..self.spec.servers().len() {
            let pause = starts::pause_before(at, self.first_request());
            match self.calls.servers.get_mut(at) {
                Some(running) if running.call.is_none() && pause > Duration::ZERO => {
                    running.starts_soon = true;
                    let due = move || SessionMsg::Timer(SessionTimer::ServerDue(at));
                    self.own.send_after(pause, due);
                }
                _ => news.extend(self.server_due(at)),
            }
        }
        news
    }

    /// Whether the session's first request waits for its servers: no person would miss their tools later.
    pub(super) fn first_request(&self) -> FirstRequest {
        match (self.spec.task(), self.spec.rules.audience) {
            (None, Audience::Person) => FirstRequest::ComesAtOnce,
            (Some(_), _) | (None, Audience::NonInteractive) => FirstRequest::Waits,
        }
    }

    /// The start of a server that does not run, unless a variable of it is missing.
    fn server_due(&mut self, at: usize) -> Option<ToSession> {
        let running = self.calls.servers.get_mut(at)?;
        running.starts_soon = false;
        if running.call.is_some() || running.is_due || self.closing.has_begun() {
            return None;
        }
        let server = self.spec.servers().get(at)?;
        if let Err(why) = self.server_env(server) {
            let text = format!("the MCP server {} does not start: {why}", server.config.name);
            self.calls.servers[at].life.ends(why);
            self.show(&ClientEvent::Notice { text });
            return None;
        }
        let start = server.start.clone();
        self.calls.servers[at].is_due = true;
        Some(ToSession::Servers(ServerNews::Due(start)))
    }

    /// The environment of a server. The variables that clients passed are read here and nowhere else.
    pub(super) fn server_env(
        &self,
        server: &SessionServer,
    ) -> Result<Vec<(String, String)>, String> {
        server.env(|name| {
            let is_it =
                |kind: &PassedFd| matches!(kind, PassedFd::ServerVariable(it) if it == name);
            let (_, file) = self.resources.passed_fds.iter().find(|(kind, _)| is_it(kind))?;
            value_of(file)
        })
    }

    /// The process of the conversation ended: what it was asked to start and did not propose is due again.
    pub(super) fn servers_not_requested(&mut self) {
        self.calls.servers.iter_mut().for_each(|server| server.is_due = false);
    }

    /// The tools of all servers that run, and the hooks that know them.
    fn server_tools_news(&mut self) -> ToSession {
        let tools = self.calls.servers.iter().flat_map(|server| &server.tools);
        let tools: Vec<OfferedTool> = tools.map(|tool| tool.offer.clone()).collect();
        let names: Vec<String> = tools.iter().map(|tool| tool.spec.name.clone()).collect();
        self.spec.know_server_tools(&names);
        ToSession::Servers(ServerNews::Tools { tools, hooks: self.spec.setup.hooks.events.clone() })
    }

    /// The server of the session that a call starts.
    pub(super) fn server_of(&self, call: &Call) -> Option<&SessionServer> {
        let is_it = |server: &&SessionServer| {
            let ServerStart { tool, input } = &server.start;
            *tool == call.tool && *input == call.input
        };
        let of_start = call.origin == CallOrigin::ServerStart;
        self.spec.servers().iter().filter(|_| of_start).find(is_it)
    }

    /// A call was proposed that starts a server.
    pub(super) fn server_begins(&mut self, call: &Call) {
        let Some(name) = self.server_of(call).map(|server| server.config.name.clone()) else {
            return;
        };
        let at = self.spec.servers().iter().position(|server| server.config.name == name);
        if let Some(running) = at.and_then(|at| self.calls.servers.get_mut(at)) {
            (running.call, running.is_due) = (Some(call.id.number), false);
            running.life.begins();
        }
        if let Some(at) = at {
            self.note_log_in(at);
        }
    }

    /// The reason why a person has to approve the start of a server.
    pub(super) fn server_question(&mut self, call: &Call) -> Option<String> {
        let is_of = |server: &&mut RunningServer| server.call == Some(call.id.number);
        let running = self.calls.servers.iter_mut().find(is_of)?;
        let change = running.change.as_mut()?;
        change.is_asked = true;
        Some(change.reason.clone())
    }

    pub(super) async fn on_server_says(&mut self, call: &CallId, said: ServerSays) {
        match said {
            ServerSays::Tools(tools) => self.on_server_tools(call, &tools).await,
            ServerSays::Offers(offers) => {
                let is_of = |server: &&mut RunningServer| server.call == Some(call.number);
                let Some(running) = self.calls.servers.iter_mut().find(is_of) else { return };
                running.offers = Some(offers);
                self.send_waiting_prompts();
            }
            ServerSays::Note(text) => self.show(&ClientEvent::Notice { text }),
            ServerSays::Answered => {
                let is_of = |server: &&mut RunningServer| server.call == Some(call.number);
                if let Some(running) = self.calls.servers.iter_mut().find(is_of) {
                    running.restarts.progressed();
                }
            }
        }
    }

    /// A server is ready, or its tools have changed.
    async fn on_server_tools(&mut self, call: &CallId, listed: &[ServerTool]) {
        let is_of = |server: &RunningServer| server.call == Some(call.number);
        let Some(at) = self.calls.servers.iter().position(is_of) else { return };
        let Some(server) = self.spec.servers().get(at) else { return };
        let now = ServerPins::of(listed);
        let (name, file) = (server.config.name.clone(), self.spec.pins_file(server));
        let approved = self.calls.servers[at].change.take();
        let approved = approved.is_some_and(|change| change.is_asked && change.now == now);
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
                let change = ServerChange { now, reason, is_asked: false };
                self.calls.servers[at].change = Some(change);
                return self.send_call(call, CallInput::Cancel);
            }
            Err(why) => {
                let text = format!(
                    "the MCP server {name} is not used: the record of its tools failed: {why}"
                );
                return self.show(&ClientEvent::Notice { text });
            }
        }
        self.calls.servers[at].tools = tools;
        self.calls.servers[at].life.is_ready();
        for text in notes {
            self.show(&ClientEvent::Notice { text });
        }
        let news = self.server_tools_news();
        self.send_conversation(news);
        self.send_call(call, CallInput::Detach);
    }

    /// A call has ended: if it was a server, its tools are gone, and it starts again after a while.
    pub(super) fn server_ended(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        call: u32,
        result: &ToolResult,
    ) {
        let Some(at) = self.calls.servers.iter().position(|server| server.call == Some(call))
        else {
            return;
        };
        let server = &mut self.calls.servers[at];
        (server.call, server.tools, server.offers) = (None, Vec::new(), None);
        // Some came to its call when that took no more messages. Those with an answer take no other.
        for from in server.asked.drain(..).filter(is_waiting) {
            lose(&from, format!("lost its MCP server ({})", result.summary));
        }
        // A person who stops the question about its start is not asked again at once.
        let is_refused = matches!(
            result.outcome,
            Outcome::Denied | Outcome::Refused { .. } | Outcome::NeverStarted
        );
        let wants_log_in = server.ends_for_log_in(result);
        let again = server.restarts.ended(server.life.since());
        let again = again.filter(|_| !is_refused && !wants_log_in);
        let ends = server.restarts.count();
        let news = self.server_tools_news();
        self.send_conversation(news);
        if self.closing.has_begun() {
            return;
        }
        self.send_waiting_prompts();
        let Some(name) = self.spec.servers().get(at).map(|server| server.config.name.clone())
        else {
            return;
        };
        let then = match again {
            Some(after) => {
                let due = move || SessionMsg::Timer(SessionTimer::ServerDue(at));
                myself.send_after(after, due);
                format!("it starts again in {} s", after.as_secs_f64())
            }
            None if wants_log_in => {
                "it starts again with your next prompt once you have logged in".to_owned()
            }
            None if is_refused => "it does not start again in this session".to_owned(),
            None => format!(
                "it has failed: it ended {ends} times without an answer to a call. `:mcp` tries it once more, \
                 `agentd restart {}` starts it anew",
                self.spec.id
            ),
        };
        let running = &mut self.calls.servers[at];
        let changed = running.change.as_ref().map(|change| change.reason.trim_end().to_owned());
        running.life.ends(format!("{}; {then}", changed.as_ref().unwrap_or(&result.summary)));
        let text = format!("the MCP server {name} has ended: {}; {then}", result.summary);
        self.show(&ClientEvent::Notice { text });
    }

    /// A server starts again. A conversation that is not replayed gets its start with the others.
    pub(super) fn on_server_due(&mut self, at: usize) {
        if !matches!(self.workers.replay, ReplayState::Started { .. }) {
            return;
        }
        if let Some(due) = self.server_due(at) {
            self.send_conversation(due);
        }
    }

    /// Has servers that do not run start anew, for a person who asked for that.
    pub(super) fn restart_servers(&mut self) {
        for at in 0..self.calls.servers.len() {
            if let Some(running) = self.calls.servers.get_mut(at) {
                running.restarts = ServerRestarts::default();
            }
            self.on_server_due(at);
        }
    }

    /// The call that runs the server of a tool.
    pub(super) fn server_call(&self, tool: &str) -> Option<u32> {
        let is_it = |offered: &OfferedServerTool| offered.offer.spec.name == tool;
        let all = self.calls.servers.iter().zip(self.spec.servers());
        let mut all = all.filter(|(running, server)| {
            running.tools.iter().any(is_it)
                || server_offers::own_name(&server.config.name, tool).is_some()
        });
        all.next()?.0.call
    }

    /// Checks that a sub-agent was given the server's tool that it calls. A person may name its resources and
    /// prompts.
    ///
    /// # Errors
    /// The tool.
    pub(super) fn check_server_tool(
        &self,
        call: &Call,
        about: Option<&CallAbout>,
    ) -> Result<(), String> {
        let Some(CallAbout::Server(ServerToolCall { tool, .. })) = about else { return Ok(()) };
        let is_named_by_person = call.origin == CallOrigin::PromptPart
            && (tool.ends_with(RESOURCE) || tool.ends_with(PROMPT));
        if is_named_by_person || self.spec.has_server_tool(tool) {
            return Ok(());
        }
        Err(format!("this sub-agent was not given the tool {tool}"))
    }

    /// Passes the call of a tool on to its server, or answers it: the server does not run.
    pub(super) fn ask_server(&mut self, mut request: ServerRequest, from: ActorRef<CallMsg>) {
        let tool = &request.tool;
        let is_it = |offered: &&OfferedServerTool| offered.offer.spec.name == *tool;
        let found =
            self.calls.servers.iter_mut().zip(self.spec.servers()).find_map(|(running, server)| {
                let of_people = server_offers::own_name(&server.config.name, tool);
                let of_people = of_people.filter(|_| running.offers.is_some());
                let own = running.tools.iter().find(is_it);
                let own = own.map(|tool| (tool.own.clone(), tool.renamed.clone()));
                let own = own.or(of_people.map(|name| (name.to_owned(), Vec::new())))?;
                Some((running, server, own))
            });
        let Some((running, server, (own, renamed))) = found else {
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
        running.asked.retain(is_waiting);
        let call = running.call.map(|number| CallId { session: self.spec.id.clone(), number });
        let call_ms = server.config.call_ms;
        if let ServerDemand::Call(arguments) = &mut request.demand {
            request.tool = own;
            if !renamed.is_empty()
                && let Some(own) = server_schemas::own_arguments(arguments, &renamed)
            {
                *arguments = own;
            }
            running.asked.push(from.clone());
            let late = || CallMsg::Input(CallInput::OfServer(ServerInput::Late));
            from.send_after(Duration::from_millis(call_ms).max(LONGEST_CALL) + MARGIN, late);
        }
        match call.and_then(|call| self.calls.running.get(&call)) {
            // A server that ends now drops its messages: its end answers those that it did not.
            Some(call) => drop(call.send_message(CallMsg::Server(request, from, call_ms))),
            None => lose(&from, "lost its MCP server".to_owned()),
        }
    }

    /// Commands and sub-agents in the background; servers are not counted among them.
    pub(super) fn jobs_in_background(&self) -> usize {
        self.calls.background.values().filter(|job| !job.is_server()).count()
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

/// The text in a sealed memory file.
fn value_of(file: &OwnedFd) -> Option<String> {
    let file = File::from(file.try_clone().ok()?);
    let mut bytes = vec![0; MOST_BYTES];
    let length = file.read_at(&mut bytes, 0).ok()?;
    bytes.truncate(length);
    String::from_utf8(bytes).ok()
}
