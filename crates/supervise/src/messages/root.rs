//! Messages to the supervisor actor, the root of the tree of actors.

use super::client::ClientMsg;
use super::session::{OpenRequest, SessionMsg};
use crate::client_actor::connection::ClientStream;
use crate::worker::actor::WorkerEvent;
use protocol::broker::BrokerLink;
use protocol::client::{DaemonStatus, OnUnfinished, ProcessRow, SessionEnding, SessionRow};
use protocol::ids::SessionId;
use ractor::{ActorId, ActorRef};
use setup::open_failure::OpenFailure;
use setup::session_spec::TaskBounds;
use std::collections::HashSet;
use tokio::sync::oneshot;

/// How long a session without work stays open in a supervisor of a single run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// It ends with the run.
    Run,
    /// A sub-agent's, which ends with its work.
    Task,
}

/// Messages to the supervisor actor.
pub(crate) enum RootMsg {
    BrokerEvent(WorkerEvent<BrokerLink>),
    /// From the control socket: a connection that was authenticated.
    ClientConnected(ClientStream),
    /// A client asks for a session.
    Open(Box<OpenRequest>),
    /// The session is open, or could not be opened.
    OpenFinished {
        session: SessionId,
        opened: Result<ActorRef<SessionMsg>, OpenFailure>,
        order: Box<OpenRequest>,
    },
    List(oneshot::Sender<Vec<SessionRow>>),
    EndSession {
        session: SessionId,
        ending: SessionEnding,
        reply: oneshot::Sender<Result<(), OpenFailure>>,
    },
    /// From a session: it is idle and may end.
    Retire(SessionId, Lifetime),
    /// From a session that was asked to end because it was idle: it is in use again.
    RetireRefused(SessionId),
    Remove(SessionId, oneshot::Sender<Result<(), OpenFailure>>),
    Find(SessionId, oneshot::Sender<Option<ActorRef<SessionMsg>>>),
    /// From a session: it has these rights now, which bound its sub-agents.
    NarrowTasks {
        parent: SessionId,
        bounds: Box<TaskBounds>,
    },
    Describe(oneshot::Sender<Vec<ProcessRow>>),
    /// Start the failed workers of a session again.
    Restart(SessionId, oneshot::Sender<Result<(), OpenFailure>>),
    /// Asks for the supervisor's own state.
    Status(oneshot::Sender<DaemonStatus>),
    /// A client asks the supervisor to shut down.
    ShutdownRequested {
        unfinished: OnUnfinished,
        by: ActorRef<ClientMsg>,
    },
    /// These sessions are paused and do no work: shut down for this client, if no other session is
    /// open by now.
    ShutdownIfPaused {
        by: ActorRef<ClientMsg>,
        paused: HashSet<ActorId>,
    },
    /// About the idle time of the daemon.
    Idle(IdleMsg),
    /// End everything, in order, and then this actor.
    Shutdown,
    /// A session ended in the course of a shutdown.
    SessionEnded,
    /// The sessions' time to end is over: the supervisor goes without those that wait for a disk.
    ShutdownTimeout,
}

/// About the idle time of the daemon, with the number of its timer: a later timer makes it void.
#[derive(Debug, Clone, Copy)]
pub(crate) enum IdleMsg {
    /// It is over.
    Over(u64),
    /// The same, and no session has work.
    Confirmed(u64),
}
