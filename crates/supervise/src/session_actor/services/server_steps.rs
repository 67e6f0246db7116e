//! The life of a session's MCP servers: when one starts, what it offers, and what follows its end. `servers` has
//! the table of them. Each runs as a call in the background, so that the services and the call actor do the rest.
//! Reads files; the session actor sends and shows what is returned here.

use super::servers::{AfterEnd, ServerEnd, Servers};
use super::{Asker, pause_before};
use crate::messages::ServerSays;
use crate::server_pins::ServerPins;
use crate::session_actor::configured_calls::{first_request, place_of, server_env};
use call::CallInput;
use protocol::call::{Call, ToolResult};
use protocol::mcp::{ServerNews, ServerTool};
use protocol::provider::PassedFd;
use protocol::session::ToSession;
use setup::server_log_in::{self, LogInStamp};
use setup::server_tools;
use setup::session_spec::SessionSpec;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// What follows from a change of a server.
#[derive(Debug)]
pub(in crate::session_actor) enum ServerStep {
    /// For the conversation.
    News(ToSession),
    /// For the call with this number, which runs it.
    ToCall(u32, CallInput),
    Notice(String),
    /// The server at this place starts after this time.
    DueAfter(Duration, usize),
    /// The prompts that wait for a server are read again, in their order.
    ReadPrompts,
}

impl<A: Asker> Servers<A> {
    /// The conversation begins. Returns its messages about the servers that it has to start and the tools of those
    /// that run, and what else follows.
    pub(in crate::session_actor) fn begin(
        &mut self,
        spec: &mut SessionSpec,
        passed_fds: &[(PassedFd, OwnedFd)],
    ) -> (Vec<ToSession>, Vec<ServerStep>) {
        let (mut news, mut steps) = (Vec::new(), Vec::new());
        if !spec.servers().is_empty() {
            news.push(self.tools_news(spec));
        }
        for at in 0..spec.servers().len() {
            let pause = pause_before(at, first_request(spec));
            if pause > Duration::ZERO && self.starts_soon(at) {
                steps.push(ServerStep::DueAfter(pause, at));
                continue;
            }
            match self.due(at, spec, passed_fds) {
                Some(ServerStep::News(due)) => news.push(due),
                other => steps.extend(other),
            }
        }
        (news, steps)
    }

    /// The start of a server that does not run, unless a variable of it is missing.
    pub(in crate::session_actor) fn due(
        &mut self,
        at: usize,
        spec: &SessionSpec,
        passed_fds: &[(PassedFd, OwnedFd)],
    ) -> Option<ServerStep> {
        let server = spec.servers().get(at).filter(|_| self.may_start(at))?;
        if let Err(why) = server_env(passed_fds, server) {
            let text = format!("the MCP server {} does not start: {why}", server.config.name);
            self.cannot_start(at, why);
            return Some(ServerStep::Notice(text));
        }
        self.requested(at);
        let start = server.start.clone();
        Some(ServerStep::News(ToSession::Servers(ServerNews::Due(start))))
    }

    /// The tools of all servers that run, and the hooks that know them.
    fn tools_news(&self, spec: &mut SessionSpec) -> ToSession {
        let mut tools = self.tools();
        spec.hide_denied(&mut tools);
        let names: Vec<String> = tools.iter().map(|tool| tool.spec.name.clone()).collect();
        spec.know_server_tools(&names);
        let hooks = spec.setup().hooks.events.clone();
        ToSession::Servers(ServerNews::Tools { tools, hooks })
    }

    /// A call was proposed that may start a server. Returns the reason why a person has to approve that.
    pub(in crate::session_actor) fn proposed(
        &mut self,
        call: &Call,
        spec: &SessionSpec,
    ) -> Option<String> {
        let at = place_of(spec, call)?;
        self.begins(at, call.id.number, log_in_stamp(spec, at));
        self.question(call.id.number)
    }

    /// The server that this call runs says something.
    pub(in crate::session_actor) async fn says(
        &mut self,
        call: u32,
        said: ServerSays,
        spec: &mut SessionSpec,
    ) -> Vec<ServerStep> {
        match said {
            ServerSays::Tools(tools) => self.on_tools(call, &tools, spec).await,
            ServerSays::Offers(offers) => match self.offers(call, offers) {
                true => vec![ServerStep::ReadPrompts],
                false => Vec::new(),
            },
            ServerSays::Note(text) => vec![ServerStep::Notice(text)],
            ServerSays::Answered => {
                self.answered(call);
                Vec::new()
            }
        }
    }

    /// A server is ready, or its tools have changed.
    async fn on_tools(
        &mut self,
        call: u32,
        listed: &[ServerTool],
        spec: &mut SessionSpec,
    ) -> Vec<ServerStep> {
        let Some(at) = self.place(call) else { return Vec::new() };
        let Some(server) = spec.servers().get(at) else { return Vec::new() };
        let now = ServerPins::of(listed);
        let (name, file) = (server.config.name.clone(), spec.pins_file(server));
        let approved = self.listed(at, &now);
        let (mut tools, notes) = server_tools::offered(&server.config, listed);
        tools.retain(|tool| spec.has_server_tool(&tool.offer.spec.name));
        let pins = now.clone();
        // Aside, since a disk may be slow.
        let checked = tokio::task::spawn_blocking(move || check_pins(&file, &pins, approved)).await;
        match checked.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(None) => {}
            Ok(Some(change)) => {
                let reason =
                    format!("the MCP server {name} has changed since you approved it:\n{change}\n");
                let text = format!("{reason}It ends, and you are asked before it starts again");
                self.changed(at, now, reason);
                return vec![ServerStep::Notice(text), ServerStep::ToCall(call, CallInput::Cancel)];
            }
            Err(why) => {
                return vec![ServerStep::Notice(format!(
                    "the MCP server {name} is not used: the record of its tools failed: {why}"
                ))];
            }
        }
        self.ready(at, tools);
        let mut steps: Vec<_> = notes.into_iter().map(ServerStep::Notice).collect();
        steps.extend([
            ServerStep::News(self.tools_news(spec)),
            ServerStep::ToCall(call, CallInput::Detach),
        ]);
        steps
    }

    /// A call has ended with this result. If it was a server, its tools are gone, and it starts again after a while.
    /// Returns the calls that it did not answer, too.
    pub(in crate::session_actor) fn ended(
        &mut self,
        call: u32,
        result: &ToolResult,
        spec: &mut SessionSpec,
    ) -> Option<(Vec<A>, Vec<ServerStep>)> {
        let ServerEnd { at, lost, then } = self.ends(call, result)?;
        let mut steps = vec![ServerStep::News(self.tools_news(spec))];
        if !self.is_closed() {
            steps.push(ServerStep::ReadPrompts);
            steps.extend(self.after_end((at, then), &result.summary, spec));
        }
        Some((lost, steps))
    }

    fn after_end(
        &mut self,
        (at, then): (usize, AfterEnd),
        summary: &str,
        spec: &SessionSpec,
    ) -> Vec<ServerStep> {
        let Some(server) = spec.servers().get(at) else { return Vec::new() };
        let mut steps = Vec::new();
        let then = match then {
            AfterEnd::Again(after) => {
                steps.push(ServerStep::DueAfter(after, at));
                format!("it starts again in {} s", after.as_secs_f64())
            }
            AfterEnd::LogIn => {
                "it starts again with your next prompt once you have logged in".to_owned()
            }
            AfterEnd::Refused => "it does not start again in this session".to_owned(),
            AfterEnd::Failed(ends) => format!(
                "it has failed: it ended {ends} times without an answer to a call. `:mcp` tries it once more, \
                 `agentd restart {}` starts it anew",
                spec.id()
            ),
        };
        self.note_end(at, summary, &then);
        let name = &server.config.name;
        let text = format!("the MCP server {name} has ended: {summary}; {then}");
        steps.push(ServerStep::Notice(text));
        steps
    }

    /// Those that ended for want of a log-in and whose person has logged in since: a prompt, a new client and a
    /// question for the servers look for that.
    pub(in crate::session_actor) fn logged_in(&self, spec: &SessionSpec) -> Vec<usize> {
        self.with_new_log_in(|at| log_in_stamp(spec, at))
    }
}

/// The log-in that there is for the server at this place.
fn log_in_stamp(spec: &SessionSpec, at: usize) -> LogInStamp {
    let file = spec.servers().get(at).and_then(|server| spec.log_in_file(server));
    file.map(|file| server_log_in::stamp(&file)).unwrap_or_default()
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
