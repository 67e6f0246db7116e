//! The table of a session's MCP servers, in the order of the configuration: the call that runs each, its tools,
//! the calls that wait for it, and its restarts. Pure but for the clock.

use super::Asker;
use super::life::ServerLife;
use super::restarts::ServerRestarts;
use crate::server_pins::ServerPins;
use protocol::call::{Outcome, ToolResult};
use protocol::mcp::{ServedTool, ServerOffers, ServerReport};
use protocol::session::OfferedTool;
use setup::server_log_in::LogInStamp;
use setup::server_offers;
use setup::server_tools::OfferedServerTool;
use setup::session_spec::SessionServer;
use std::ops::Range;
use std::time::Duration;

/// The code of a server's end that a log-in helps against.
const WANTS_LOG_IN: &str = "login_required";

/// One server.
#[derive(Debug)]
struct KnownServer<A> {
    /// The call that runs it, from its proposal to its end.
    call: Option<u32>,
    /// It was requested and has no call yet.
    is_due: bool,
    /// It starts with the session, a moment after others.
    starts_soon: bool,
    /// Its tools, while it runs.
    tools: Vec<OfferedServerTool>,
    /// What it offers people, once it has said so.
    offers: Option<ServerOffers>,
    restarts: ServerRestarts,
    /// A change of its tools that a person has to approve before it starts again.
    change: Option<ServerChange>,
    /// The calls that were passed on to it.
    asked: Vec<A>,
    /// The log-in with which it started last.
    log_in: LogInStamp,
    /// It ended for want of another one.
    wants_log_in: bool,
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

/// What a server offers people, as far as it is known.
pub(in crate::session_actor) enum Offers<'a> {
    Known(&'a ServerOffers),
    /// It starts.
    Starting,
    /// It does not run, and was not asked to.
    Absent,
}

/// A call of a server's tool, by the server's own names.
#[derive(Debug, PartialEq)]
pub(in crate::session_actor) struct ServerRoute {
    pub(in crate::session_actor) at: usize,
    /// The call that runs the server.
    pub(in crate::session_actor) call: Option<u32>,
    /// The tool.
    pub(in crate::session_actor) own: String,
    /// Arguments that have another name for models, and their name for the server.
    pub(in crate::session_actor) renamed: Vec<(String, String)>,
}

/// The end of a server.
#[derive(Debug, PartialEq)]
pub(super) struct ServerEnd<A> {
    pub(super) at: usize,
    /// Calls that came when it took no more messages. Those with an answer take no other.
    pub(super) lost: Vec<A>,
    pub(super) then: AfterEnd,
}

/// What follows the end of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterEnd {
    /// It starts again after this pause.
    Again(Duration),
    /// It starts again once the person has logged in.
    LogIn,
    /// A person refused its start, or stopped the question about it: nobody is asked again at once.
    Refused,
    /// It ended so often without progress.
    Failed(usize),
}

/// All servers of a session.
#[derive(Debug)]
pub(in crate::session_actor) struct Servers<A> {
    known: Vec<KnownServer<A>>,
    /// The session ends: none starts any more.
    is_closed: bool,
}

impl<A: Asker> Servers<A> {
    pub(super) fn none_yet(count: usize) -> Self {
        let new = |_| KnownServer {
            call: None,
            is_due: false,
            starts_soon: false,
            tools: Vec::new(),
            offers: None,
            restarts: ServerRestarts::default(),
            change: None,
            asked: Vec::new(),
            log_in: LogInStamp::default(),
            wants_log_in: false,
            life: ServerLife::default(),
        };
        Self { known: (0..count).map(new).collect(), is_closed: false }
    }

    /// A server that does not run starts a moment after others; false if it runs.
    pub(super) fn starts_soon(&mut self, at: usize) -> bool {
        let server = self.known.get_mut(at).filter(|server| server.call.is_none());
        server.map(|server| server.starts_soon = true).is_some()
    }

    /// True if a server may be requested: it does not run, and was not requested.
    pub(super) fn may_start(&mut self, at: usize) -> bool {
        let Some(server) = self.known.get_mut(at) else { return false };
        server.starts_soon = false;
        server.call.is_none() && !server.is_due && !self.is_closed
    }

    /// The session ends.
    pub(in crate::session_actor) fn close(&mut self) {
        self.is_closed = true;
    }

    /// True once the session ends.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The conversation is asked to start it.
    pub(super) fn requested(&mut self, at: usize) {
        self.known[at].is_due = true;
    }

    pub(super) fn cannot_start(&mut self, at: usize, why: String) {
        self.known[at].life.ends(why);
    }

    /// The process of the conversation ended: what it was asked to start and did not propose is due again.
    pub(in crate::session_actor) fn not_requested(&mut self) {
        self.known.iter_mut().for_each(|server| server.is_due = false);
    }

    /// The call that starts a server was proposed, with this log-in of the person.
    pub(super) fn begins(&mut self, at: usize, call: u32, log_in: LogInStamp) {
        let Some(server) = self.known.get_mut(at) else { return };
        (server.call, server.is_due) = (Some(call), false);
        (server.log_in, server.wants_log_in) = (log_in, false);
        server.life.begins();
    }

    fn of(&mut self, call: u32) -> Option<&mut KnownServer<A>> {
        self.known.iter_mut().find(|server| server.call == Some(call))
    }

    /// The place of the server that this call runs.
    pub(super) fn place(&self, call: u32) -> Option<usize> {
        self.known.iter().position(|server| server.call == Some(call))
    }

    /// The reason why a person has to approve the start by this call, who is asked now.
    pub(super) fn question(&mut self, call: u32) -> Option<String> {
        let change = self.of(call)?.change.as_mut()?;
        change.is_asked = true;
        Some(change.reason.clone())
    }

    /// It says what it offers people. False if it does not run.
    pub(super) fn offers(&mut self, call: u32, offers: ServerOffers) -> bool {
        self.of(call).map(|server| server.offers = Some(offers)).is_some()
    }

    /// It answered a call.
    pub(super) fn answered(&mut self, call: u32) {
        if let Some(server) = self.of(call) {
            server.restarts.progressed();
        }
    }

    /// It lists its tools: true if a person has just approved these.
    pub(super) fn listed(&mut self, at: usize, now: &ServerPins) -> bool {
        let change = self.known[at].change.take();
        change.is_some_and(|change| change.is_asked && change.now == *now)
    }

    /// Its tools differ from those that a person approved: it ends, and its next start is asked about.
    pub(super) fn changed(&mut self, at: usize, now: ServerPins, reason: String) {
        self.known[at].change = Some(ServerChange { now, reason, is_asked: false });
    }

    /// Its tools may be called.
    pub(super) fn ready(&mut self, at: usize, tools: Vec<OfferedServerTool>) {
        self.known[at].tools = tools;
        self.known[at].life.is_ready();
    }

    /// The tools of all servers that run.
    pub(super) fn tools(&self) -> Vec<OfferedTool> {
        let tools = self.known.iter().flat_map(|server| &server.tools);
        tools.map(|tool| tool.offer.clone()).collect()
    }

    /// The call that runs the server of a tool, if it runs.
    pub(in crate::session_actor) fn call_of(
        &self,
        tool: &str,
        known: &[SessionServer],
    ) -> Option<u32> {
        let mut all = self.known.iter().zip(known);
        let (server, _) = all.find(|(server, known)| {
            server.tools.iter().any(|offered| offered.offer.spec.name == tool)
                || server_offers::own_name(&known.config.name, tool).is_some()
        })?;
        server.call
    }

    /// The server that has this tool now.
    pub(in crate::session_actor) fn route(
        &self,
        tool: &str,
        known: &[SessionServer],
    ) -> Option<ServerRoute> {
        let mut all = self.known.iter().zip(known).enumerate();
        all.find_map(|(at, (server, known))| {
            let own = server.tools.iter().find(|offered| offered.offer.spec.name == tool);
            let own = own.map(|tool| (tool.own.clone(), tool.renamed.clone()));
            let of_people = server_offers::own_name(&known.config.name, tool);
            let of_people = of_people.filter(|_| server.offers.is_some());
            let (own, renamed) = own.or(of_people.map(|name| (name.to_owned(), Vec::new())))?;
            Some(ServerRoute { at, call: server.call, own, renamed })
        })
    }

    /// A call is passed on to it. Its end answers those that it did not.
    pub(in crate::session_actor) fn asked(&mut self, at: usize, from: A) {
        let asked = &mut self.known[at].asked;
        asked.retain(Asker::is_waiting);
        asked.push(from);
    }

    /// A call has ended: if it ran a server, its tools are gone.
    pub(super) fn ends(&mut self, call: u32, result: &ToolResult) -> Option<ServerEnd<A>> {
        let at = self.place(call)?;
        let server = &mut self.known[at];
        (server.call, server.tools, server.offers) = (None, Vec::new(), None);
        let lost = server.asked.drain(..).filter(Asker::is_waiting).collect();
        let is_refused = matches!(
            result.outcome,
            Outcome::Denied | Outcome::Refused { .. } | Outcome::NeverStarted
        );
        server.wants_log_in = result.code.as_deref() == Some(WANTS_LOG_IN);
        let again = server.restarts.ended(server.life.since());
        let then = match again {
            _ if server.wants_log_in => AfterEnd::LogIn,
            _ if is_refused => AfterEnd::Refused,
            Some(after) => AfterEnd::Again(after),
            None => AfterEnd::Failed(server.restarts.count()),
        };
        Some(ServerEnd { at, lost, then })
    }

    /// Notes for people who ask what has become of it: the change that it ended for, or this end, and what
    /// follows.
    pub(super) fn note_end(&mut self, at: usize, end: &str, then: &str) {
        let server = &mut self.known[at];
        let changed = server.change.as_ref().map(|change| change.reason.trim_end());
        let text = format!("{}; {then}", changed.unwrap_or(end));
        server.life.ends(text);
    }

    /// A person wants all of them started anew. Returns their places.
    pub(in crate::session_actor) fn restart(&mut self) -> Range<usize> {
        self.known.iter_mut().for_each(|server| server.restarts = ServerRestarts::default());
        0..self.known.len()
    }

    /// Those that have failed a while ago, and are tried once more when a person looks at them.
    pub(in crate::session_actor) fn tried_again(&self) -> Vec<usize> {
        let is_tried =
            |server: &KnownServer<A>| server.restarts.is_tried_again(server.life.since());
        (0..self.known.len()).filter(|at| is_tried(&self.known[*at])).collect()
    }

    /// Those that ended for want of a log-in, if the person has logged in since.
    pub(super) fn with_new_log_in(&self, stamp: impl Fn(usize) -> LogInStamp) -> Vec<usize> {
        let is_new =
            |at: &usize| self.known[*at].wants_log_in && self.known[*at].log_in != stamp(*at);
        (0..self.known.len()).filter(is_new).collect()
    }

    /// What the server at this place offers people. `begins` where the conversation has yet to be told of its
    /// servers.
    pub(in crate::session_actor) fn offered(&self, at: usize, begins: Beginning) -> Offers<'_> {
        let Some(server) = self.known.get(at) else { return Offers::Absent };
        let begins = begins == Beginning::Ahead && server.restarts.is_fresh();
        match &server.offers {
            Some(offers) => Offers::Known(offers),
            None if server.call.is_some() || server.is_due || server.starts_soon || begins => {
                Offers::Starting
            }
            None => Offers::Absent,
        }
    }

    /// The server at this place for a person who asks.
    pub(in crate::session_actor) fn report(
        &self,
        at: usize,
        known: &SessionServer,
        sandbox: impl Fn(u32) -> Option<String>,
    ) -> Option<ServerReport> {
        let server = self.known.get(at)?;
        let tools = server.tools.iter().map(|tool| ServedTool {
            name: tool.offer.spec.name.clone(),
            description: tool.description().to_owned(),
            marked: tool.marked.clone(),
        });
        Some(ServerReport {
            name: known.config.name.clone(),
            place: known.config.place.words().join(" "),
            sandbox: server.call.and_then(sandbox),
            state: server.life.state(),
            tools: tools.collect(),
            words: match &server.offers {
                Some(offers) => server_offers::words(&known.config.name, offers),
                None => Vec::new(),
            },
        })
    }
}

/// Whether the conversation was told of its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session_actor) enum Beginning {
    Ahead,
    Over,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::mcp::ServerTool;

    fn result(outcome: Outcome, code: Option<&str>) -> ToolResult {
        ToolResult {
            outcome,
            text: String::new(),
            summary: "exited".to_owned(),
            is_error: true,
            code: code.map(str::to_owned),
            images: Vec::new(),
        }
    }

    /// One server that runs as call 7.
    fn running() -> Servers<u32> {
        let mut servers = Servers::none_yet(1);
        servers.begins(0, 7, LogInStamp::default());
        servers
    }

    fn pins(name: &str) -> ServerPins {
        ServerPins::of(&[ServerTool {
            name: name.to_owned(),
            description: String::new(),
            input_schema: "{}".to_owned(),
            digest: name.to_owned(),
        }])
    }

    #[test]
    fn a_server_is_requested_once_until_its_call_ends_or_the_conversation_does() {
        let mut servers = Servers::<u32>::none_yet(1);
        assert!(servers.starts_soon(0) && servers.may_start(0));
        servers.requested(0);
        assert!(!servers.may_start(0));
        servers.not_requested();
        assert!(servers.may_start(0));
        servers.begins(0, 7, LogInStamp::default());
        servers.not_requested();
        assert!(!servers.may_start(0) && !servers.starts_soon(0));
        servers.ends(7, &result(Outcome::Crashed, None)).unwrap();
        assert!(servers.may_start(0));
        assert!(!servers.may_start(1), "there is no such server");
    }

    #[test]
    fn the_end_of_a_server_loses_the_calls_that_still_wait() {
        let mut servers = running();
        [11, 12, 13].into_iter().for_each(|from| servers.asked(0, from));
        let end = servers.ends(7, &result(Outcome::Crashed, None)).unwrap();
        assert_eq!(end.lost, [11, 13]);
        assert!(matches!(end.then, AfterEnd::Again(_)));
        assert_eq!(servers.ends(7, &result(Outcome::Crashed, None)), None);
    }

    #[test]
    fn what_follows_an_end_depends_on_its_reason() {
        for (outcome, code, then) in [
            (Outcome::Denied, None, AfterEnd::Refused),
            (Outcome::NeverStarted, None, AfterEnd::Refused),
            (Outcome::Failed, Some(WANTS_LOG_IN), AfterEnd::LogIn),
        ] {
            let end = running().ends(7, &result(outcome, code)).unwrap();
            assert_eq!(end.then, then);
        }
        let mut servers = running();
        for _ in 0..4 {
            let end = servers.ends(7, &result(Outcome::Crashed, None)).unwrap();
            assert!(matches!(end.then, AfterEnd::Again(_)));
            servers.begins(0, 7, LogInStamp::default());
        }
        let end = servers.ends(7, &result(Outcome::Crashed, None)).unwrap();
        assert_eq!(end.then, AfterEnd::Failed(5));
        assert_eq!(servers.restart(), 0..1);
        servers.begins(0, 7, LogInStamp::default());
        servers.answered(7);
        let end = servers.ends(7, &result(Outcome::Crashed, None)).unwrap();
        assert!(matches!(end.then, AfterEnd::Again(_)));
    }

    #[test]
    fn changed_tools_count_as_approved_only_behind_the_question_about_them() {
        let mut servers = running();
        assert_eq!(servers.question(7), None);
        servers.changed(0, pins("new"), "it changed\n".to_owned());
        assert!(!servers.listed(0, &pins("new")), "nobody was asked");
        servers.changed(0, pins("new"), "it changed\n".to_owned());
        servers.ends(7, &result(Outcome::Crashed, None)).unwrap();
        servers.note_end(0, "exited", "it starts again");
        servers.begins(0, 8, LogInStamp::default());
        assert_eq!(servers.question(8).as_deref(), Some("it changed\n"));
        assert!(!servers.listed(0, &pins("newer")), "a person approved others");
        servers.changed(0, pins("new"), "it changed\n".to_owned());
        servers.question(8).unwrap();
        assert!(servers.listed(0, &pins("new")));
        assert!(!servers.listed(0, &pins("new")), "once");
    }

    #[test]
    fn offers_are_awaited_from_a_server_that_starts_and_of_no_other() {
        let mut servers = Servers::<u32>::none_yet(1);
        assert!(matches!(servers.offered(0, Beginning::Ahead), Offers::Starting));
        assert!(matches!(servers.offered(0, Beginning::Over), Offers::Absent));
        servers.requested(0);
        assert!(matches!(servers.offered(0, Beginning::Over), Offers::Starting));
        servers.begins(0, 7, LogInStamp::default());
        assert!(servers.offers(7, ServerOffers::default()));
        assert!(matches!(servers.offered(0, Beginning::Over), Offers::Known(_)));
        servers.ends(7, &result(Outcome::Crashed, None)).unwrap();
        assert!(matches!(servers.offered(0, Beginning::Over), Offers::Absent));
        assert!(!servers.offers(7, ServerOffers::default()), "it does not run");
    }
}
