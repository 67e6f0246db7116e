//! The opening of a run's session, and its MCP servers where the view shows them. For `one_shot`.

use super::{OneShot, RunInput};
use crate::client_error::{ClientError, RunStop};
use crate::run_view::ShownOpening;
use crate::transcript::OpenedSession;
use ipc::ChannelError;
use protocol::client::{
    BacklogFrom, ClientRights, FromClient, OtherClients, SessionQuery, ToClient,
};
use protocol::ids::SessionId;
use protocol::mcp::ServerState;
use std::collections::VecDeque;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The pause between two questions about the servers.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest time that servers are awaited: the largest `startup_timeout_sec`, and a margin.
const LONGEST_START: Duration = Duration::from_secs(605);

impl OneShot<'_> {
    /// Waits for the opened session and attaches behind the last event that was received.
    pub(super) fn open(&mut self) -> Result<OpenedSession, ClientError> {
        let word = match self.next() {
            RunInput::Message(word) => word,
            RunInput::Lost(error) => return Err(ClientError::Lost(error)),
            RunInput::Next(_) => return Err(ClientError::Lost(ChannelError::OutOfTurn)),
            RunInput::Signal(signal) => {
                return Err(ClientError::Stopped(RunStop::Signal(signal)));
            }
            RunInput::TimeOver => return Err(ClientError::Stopped(RunStop::TimeLimit)),
        };
        if let ToClient::Failed { kind, message } = word {
            return Err(ClientError::Failed { kind, message });
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
            return Err(ClientError::Lost(ChannelError::OutOfTurn));
        };
        // The run of a fleet's task may come after the end of its turn: it sees the session from its
        // beginning.
        if self.session.is_none() && self.task.opening.seat.is_none() {
            self.last_seq = last_seq;
        }
        self.session = Some(session.clone());
        let from = self.last_seq.saturating_add(1);
        self.sender.send(&follow(&session, from)).map_err(ClientError::Lost)?;
        let project = self.task.opening.project.to_path().display().to_string();
        Ok(OpenedSession {
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

    /// Waits until each server is ready or has ended, as the first request does. All other input is for
    /// later; a signal, a lost supervisor or the end of the time ends the wait.
    pub(super) fn await_servers(&mut self, opened: &mut OpenedSession) {
        if self.view.opening() == ShownOpening::Session {
            return;
        }
        let until = Instant::now() + LONGEST_START;
        let mut stash = VecDeque::new();
        let query =
            FromClient::Query { session: opened.session.clone(), query: SessionQuery::Servers };
        // If this fails, the reader thread reports the loss of the supervisor.
        let _ = self.sender.send(&query);
        loop {
            match self.next() {
                RunInput::Message(ToClient::Servers { servers, .. }) => {
                    let starts = servers.iter().any(|it| it.state == ServerState::Starts);
                    opened.servers = servers;
                    if !starts || Instant::now() >= until {
                        break;
                    }
                    sleep(PAUSE);
                    let _ = self.sender.send(&query);
                }
                RunInput::Message(message) => {
                    let is_end = matches!(
                        message,
                        ToClient::Failed { .. }
                            | ToClient::Detached { .. }
                            | ToClient::Refused { .. }
                    );
                    stash.push_back(RunInput::Message(message));
                    if is_end {
                        break;
                    }
                }
                input @ (RunInput::Lost(_)
                | RunInput::Signal(_)
                | RunInput::TimeOver
                | RunInput::Next(_)) => {
                    stash.push_back(input);
                    break;
                }
            }
        }
        self.inputs.stash = stash;
    }
}

/// To see a session's events from this one on.
pub(super) fn follow(session: &SessionId, from: u64) -> FromClient {
    FromClient::Attach {
        session: session.clone(),
        from: BacklogFrom::Seq(from),
        rights: ClientRights::Full,
        others: OtherClients::Stay,
    }
}
