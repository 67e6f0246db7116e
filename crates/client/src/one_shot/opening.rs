//! The opening of a run's session, and its MCP servers where the view shows them. For `one_shot`.

use super::server_wait::ServerWait;
use super::{Awaited, OneShot, OpenRun, RunInput, Step};
use crate::call_time::CallTime;
use crate::client_error::{ClientError, RunStop};
use crate::run_view::{Moment, ShownOpening};
use crate::session_facts::SessionFacts;
use crate::transcript::{OpenedSession, Transcript};
use ipc::ChannelError;
use protocol::client::{
    BacklogFrom, ClientRights, FromClient, OtherClients, SessionQuery, ToClient,
};
use std::ops::ControlFlow;
use std::time::Instant;

impl OneShot<'_> {
    /// Takes the session's opening. Its servers are awaited if the view shows them.
    pub(super) fn open(&mut self, input: RunInput) -> Step {
        let (facts, last_seq) = self.opened(input)?;
        let opening = self.connection.opening();
        // The run of a fleet's task may come after the end of its turn: it sees the session from its
        // beginning.
        if opening.seat.is_none() {
            self.last_seq = last_seq;
        }
        let project = opening.project.to_path().display().to_string();
        let opened = OpenedSession { facts, project, servers: Vec::new() };
        let mut run = Box::new(OpenRun {
            transcript: Transcript::new(opened),
            began: self.began,
            call_time: CallTime::default(),
            wrong: None,
            repaired: false,
            awaits: Awaited::Servers(ServerWait::begin()),
            is_reopened: false,
        });
        self.attach(&run);
        if self.view.opening() == ShownOpening::Session {
            self.begin(&mut run)?;
        }
        self.open = Some(run);
        ControlFlow::Continue(())
    }

    /// Attaches behind the last event that was received.
    pub(super) fn attach(&mut self, run: &OpenRun) {
        self.connection.send(&FromClient::Attach {
            session: run.session().clone(),
            from: BacklogFrom::Seq(self.last_seq.saturating_add(1)),
            rights: ClientRights::Full,
            others: OtherClients::Stay,
        });
    }

    /// The facts of an opening, and the number of the session's last record.
    pub(super) fn opened(&self, input: RunInput) -> Step<(SessionFacts, u64)> {
        let out_of_turn = || ClientError::Lost(ChannelError::OutOfTurn);
        ControlFlow::Break(Err(match input {
            RunInput::Message(ToClient::Failed { kind, message }) => {
                ClientError::Failed { kind, message }
            }
            RunInput::Message(message) => match SessionFacts::of_opening(message) {
                Some(opened) => return ControlFlow::Continue(opened),
                None => out_of_turn(),
            },
            RunInput::Lost(error) => ClientError::Lost(error),
            RunInput::Next(_) => out_of_turn(),
            RunInput::Signal(signal) => ClientError::Stopped(RunStop::Signal(signal)),
            RunInput::TimeOver => ClientError::Stopped(RunStop::TimeLimit),
        }))
    }

    /// Asks for the servers if they are awaited and that is due. Returns when it is due next.
    pub(super) fn query_servers(&mut self) -> Option<Instant> {
        let run = self.open.as_mut()?;
        let session = run.session().clone();
        let Awaited::Servers(wait) = &mut run.awaits else { return None };
        if wait.take_due_query() {
            self.connection.send(&FromClient::Query { session, query: SessionQuery::Servers });
        }
        wait.next_query()
    }

    /// Takes the answer about the servers. All other input is for later; a signal, a lost supervisor or
    /// the end of the time ends the wait.
    pub(super) fn await_servers(&mut self, run: &mut OpenRun, input: RunInput) -> Step {
        let Awaited::Servers(wait) = &mut run.awaits else { return ControlFlow::Continue(()) };
        let is_over = if let RunInput::Message(ToClient::Servers { servers, .. }) = input {
            let is_over = wait.ends_with(&servers);
            run.transcript.opened.servers = servers;
            is_over
        } else {
            use ToClient::{Detached, Failed, Refused};
            let goes_on = matches!(&input, RunInput::Message(message)
                if !matches!(message, Failed { .. } | Detached { .. } | Refused { .. }));
            wait.stash(input);
            !goes_on
        };
        if is_over { self.begin(run) } else { ControlFlow::Continue(()) }
    }

    /// Shows the opening. The first turn begins, with the inputs that came while servers were awaited.
    fn begin(&mut self, run: &mut OpenRun) -> Step {
        let shown = self.view.show(&run.transcript, Moment::Opened(run.transcript.opened()));
        self.write(&shown);
        let awaited = std::mem::replace(&mut run.awaits, Awaited::TurnEnd);
        let Awaited::Servers(wait) = awaited else { return ControlFlow::Continue(()) };
        wait.into_stash().into_iter().try_for_each(|input| self.follow(run, input))
    }
}
