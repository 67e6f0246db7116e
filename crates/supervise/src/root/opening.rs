//! Opens sessions, off the root's event loop: it reads files and waits for leftovers of an earlier
//! run of the session. Other requests for the same session wait for the same result.

use super::open_mode::{OpenMode, TaskStart};
use super::session_opener::SessionOpener;
use super::state::{RootState, ShutdownPhase};
use crate::messages::{BrokerToSession, OpenRequest, RootMsg, RootToSession, SessionMsg};
use data_encoding::HEXLOWER;
use journal::TaskHeader;
use protocol::client::{RequestFailure, SessionStart};
use protocol::ids::SessionId;
use protocol::session::OpenTurn;
use ractor::{ActorRef, ActorStatus};
use setup::open_failure::OpenFailure;
use setup::session_spec::session_of;
use std::path::Path;
use std::sync::Arc;

impl RootState {
    pub(super) fn open_session(&mut self, myself: &ActorRef<RootMsg>, order: Box<OpenRequest>) {
        if self.shutdown_phase != ShutdownPhase::NotStarted {
            return refuse(*order, shutting_down());
        }
        let found = match &order.task {
            Some(task) => {
                let TaskHeader { session, call, .. } = &*task.header;
                let id = session_of(&SessionId(session.clone()), *call);
                let start = TaskStart { header: task.header.clone(), bounds: task.bounds.clone() };
                Ok((id, OpenMode::Task(Box::new(start))))
            }
            None => open_mode(&order.opening.start, &self.settings.dirs.state.join("sessions")),
        };
        let (id, begin) = match found {
            Ok(found) => found,
            Err(failure) => return refuse(*order, failure),
        };
        if let Some(session) = self.sessions.get(&id) {
            let _ = session.send_message(RootToSession::Join(order).into());
            return;
        }
        if let Some(waiting) = self.opening.get_mut(&id) {
            return waiting.push(*order);
        }
        let Some(order) = self.wait_for_retirement(&id, *order).map(Box::new) else { return };
        if let Some(failure) = self.settings.room.refusal(self.sessions.len() + self.opening.len())
        {
            return refuse(*order, failure);
        }
        self.opening.insert(id.clone(), Vec::new());
        let opener = SessionOpener {
            settings: Arc::clone(&self.settings),
            spawner: self.spawner.clone(),
            remover: self.remover.clone(),
            projects: self.projects.clone(),
            broker: self.broker.worker.clone(),
            audit: self.audit.clone(),
            root: myself.clone(),
        };
        tokio::spawn(async move {
            let mut order = order;
            let papers = std::mem::take(&mut order.passed_fds);
            let opened = opener.open(id.clone(), &order.opening, papers, begin).await;
            let _ = opener.root.send_message(RootMsg::OpenFinished { session: id, opened, order });
        });
    }

    /// From here on every client finds the session.
    pub(super) fn on_open_finished(
        &mut self,
        myself: &ActorRef<RootMsg>,
        id: SessionId,
        opened: Result<ActorRef<SessionMsg>, OpenFailure>,
        order: OpenRequest,
    ) {
        let waiting = self.opening.remove(&id).unwrap_or_default();
        match opened {
            Ok(actor) if self.shutdown_phase != ShutdownPhase::NotStarted => {
                self.end_with_supervisor(myself, &actor);
                refuse(order, shutting_down());
            }
            Ok(actor) if actor.get_status() != ActorStatus::Stopped => {
                if let Some(why) = self.broker.failed.clone() {
                    let _ = actor.send_message(BrokerToSession::Failed(why).into());
                }
                self.sessions.insert(id, actor.clone());
                // Until now the session could not receive messages of the broker: neither its
                // restart nor a verdict. `BrokerBack` makes the session ask again.
                if self.broker.failed.is_none() {
                    let _ = actor.send_message(
                        BrokerToSession::Back(self.broker.worker.generation()).into(),
                    );
                }
                let _ = actor.send_message(RootToSession::Join(Box::new(order)).into());
            }
            Ok(_) => {
                let message = format!(
                    "session {id} ended right after its start; the log has the \
                                       reason"
                );
                refuse(order, OpenFailure::new(RequestFailure::Internal, message));
            }
            Err(failure) => refuse(order, failure),
        }
        for order in waiting {
            self.open_session(myself, Box::new(order));
        }
        self.end_broker_if_last(myself);
    }
}

fn refuse(order: OpenRequest, failure: OpenFailure) {
    // The client may have disconnected.
    let _ = order.reply.send(Err(failure));
}

fn shutting_down() -> OpenFailure {
    OpenFailure::new(RequestFailure::Ending, "the supervisor is ending; try again in a moment")
}

fn new_id() -> Result<SessionId, OpenFailure> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes)
        .map_err(|error| OpenFailure::new(RequestFailure::Internal, error.to_string()))?;
    Ok(SessionId(HEXLOWER.encode(&bytes)))
}

fn open_mode(start: &SessionStart, sessions: &Path) -> Result<(SessionId, OpenMode), OpenFailure> {
    match start {
        SessionStart::Seat { session } if !journal::is_session_name(&session.0) => {
            let message = format!("{session} is no name for a session");
            Err(OpenFailure::new(RequestFailure::Usage, message))
        }
        SessionStart::Seat { session } if sessions.join(&session.0).is_dir() => {
            Ok((session.clone(), OpenMode::Resume(OpenTurn::GoesOn)))
        }
        SessionStart::Seat { session } => Ok((session.clone(), OpenMode::New)),
        SessionStart::New => Ok((new_id()?, OpenMode::New)),
        SessionStart::Resume { session, open_turn } => {
            Ok((session.clone(), OpenMode::Resume(*open_turn)))
        }
        SessionStart::Fork { of, at } => {
            Ok((new_id()?, OpenMode::Fork { of: of.clone(), at: *at }))
        }
    }
}
