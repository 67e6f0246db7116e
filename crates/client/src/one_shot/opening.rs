//! The opening of a run's session, and its MCP servers where the view shows them. For `one_shot`.

use super::{Awaited, OneShot, OpenRun, RunInput, Stage, Step};
use crate::call_time::CallTime;
use crate::client_error::{ClientError, RunStop};
use crate::run_view::{Moment, ShownOpening};
use crate::transcript::{OpenedSession, Transcript};
use ipc::ChannelError;
use protocol::client::{
    BacklogFrom, ClientRights, FromClient, OtherClients, SessionQuery, ToClient,
};
use protocol::ids::SessionId;
use protocol::mcp::ServerState;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The pause between two questions about the servers.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest time that servers are awaited: the largest `startup_timeout_sec`, and a margin.
const LONGEST_START: Duration = Duration::from_secs(605);

/// An opened session until each of its servers is ready or has ended, as the first request waits too.
pub(super) struct ServerWait {
    opened: OpenedSession,
    until: Instant,
    /// When they are asked for again.
    next_query: Option<Instant>,
    /// Came meanwhile.
    stash: Vec<RunInput>,
}

impl OneShot<'_> {
    /// Waits for the opened session, and for its servers if the view shows them.
    pub(super) fn open(&mut self, input: RunInput) -> Step<Stage> {
        let opened = self.opened(input)?;
        ControlFlow::Continue(match self.view.opening() {
            ShownOpening::Session => Stage::Open(self.begin(opened)),
            ShownOpening::SessionAndServers => {
                let now = Instant::now();
                let (until, next_query) = (now + LONGEST_START, Some(now));
                Stage::Servers(Box::new(ServerWait {
                    opened,
                    until,
                    next_query,
                    stash: Vec::new(),
                }))
            }
        })
    }

    /// Takes the opening of the session, and attaches behind the last event that was received.
    pub(super) fn opened(&mut self, input: RunInput) -> Step<OpenedSession> {
        let failed = |error| ControlFlow::Break(Err(error));
        let word = match input {
            RunInput::Message(word) => word,
            RunInput::Lost(error) => return failed(ClientError::Lost(error)),
            RunInput::Next(_) => return failed(ClientError::Lost(ChannelError::OutOfTurn)),
            RunInput::Signal(signal) => {
                return failed(ClientError::Stopped(RunStop::Signal(signal)));
            }
            RunInput::TimeOver => return failed(ClientError::Stopped(RunStop::TimeLimit)),
        };
        if let ToClient::Failed { kind, message } = word {
            return failed(ClientError::Failed { kind, message });
        }
        let ToClient::Opened {
            session,
            model,
            facts,
            tools,
            mode,
            sandbox,
            last_seq,
            warnings,
            ..
        } = word
        else {
            return failed(ClientError::Lost(ChannelError::OutOfTurn));
        };
        // The run of a fleet's task may come after the end of its turn: it sees the session from its
        // beginning.
        if self.session.is_none() && self.connection.opening().seat.is_none() {
            self.last_seq = last_seq;
        }
        self.session = Some(session.clone());
        self.connection.send(&attach_from(&session, self.last_seq.saturating_add(1)));
        let project = self.connection.opening().project.to_path().display().to_string();
        ControlFlow::Continue(OpenedSession {
            session,
            project,
            model,
            facts,
            tools,
            mode,
            sandbox,
            warnings,
            servers: Vec::new(),
        })
    }

    /// Shows the opening. The first turn begins.
    fn begin(&mut self, opened: OpenedSession) -> Box<OpenRun> {
        let transcript = Transcript::new(opened);
        let shown = self.view.show(&transcript, Moment::Opened(transcript.opened()));
        self.write(&shown);
        Box::new(OpenRun {
            transcript,
            began: self.began,
            call_time: CallTime::default(),
            wrong: None,
            repaired: false,
            awaits: Awaited::Events,
            pause: None,
        })
    }

    /// Asks for the servers if they are awaited and that is due. Returns when it is due next.
    pub(super) fn query_servers(&mut self) -> Option<Instant> {
        let Stage::Servers(wait) = &mut self.stage else { return None };
        if wait.next_query.take_if(|due| *due <= Instant::now()).is_some() {
            let (session, query) = (wait.opened.session.clone(), SessionQuery::Servers);
            self.connection.send(&FromClient::Query { session, query });
        }
        wait.next_query
    }

    /// Takes the answer about the servers. All other input is for later; a signal, a lost supervisor or
    /// the end of the time ends the wait.
    pub(super) fn await_servers(
        &mut self,
        mut wait: Box<ServerWait>,
        input: RunInput,
    ) -> Step<Stage> {
        let is_over = match input {
            RunInput::Message(ToClient::Servers { servers, .. }) => {
                let now = Instant::now();
                let is_any_starting = servers.iter().any(|it| it.state == ServerState::Starts);
                wait.opened.servers = servers;
                wait.next_query = Some(now + PAUSE);
                !is_any_starting || now >= wait.until
            }
            RunInput::Message(message) => {
                let is_end = matches!(
                    message,
                    ToClient::Failed { .. } | ToClient::Detached { .. } | ToClient::Refused { .. }
                );
                wait.stash.push(RunInput::Message(message));
                is_end
            }
            input @ (RunInput::Lost(_)
            | RunInput::Signal(_)
            | RunInput::TimeOver
            | RunInput::Next(_)) => {
                wait.stash.push(input);
                true
            }
        };
        if !is_over {
            return ControlFlow::Continue(Stage::Servers(wait));
        }
        let ServerWait { opened, stash, .. } = *wait;
        let mut run = self.begin(opened);
        stash.into_iter().try_for_each(|input| self.follow(&mut run, input))?;
        ControlFlow::Continue(Stage::Open(run))
    }
}

/// To see a session's events from this one on.
pub(super) fn attach_from(session: &SessionId, from: u64) -> FromClient {
    FromClient::Attach {
        session: session.clone(),
        from: BacklogFrom::Seq(from),
        rights: ClientRights::Full,
        others: OtherClients::Stay,
    }
}
