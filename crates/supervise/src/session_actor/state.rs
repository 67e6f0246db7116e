//! The state of a session actor, in parts. Each part has an owner with private fields, in a file of its own.

use super::clients::Clients;
use super::links::Workers;
use super::questions::Questions;
use super::records::SessionJournal;
use super::resources::SessionResources;
use super::session_calls::SessionCalls;
use super::shutdown::Closing;
use super::tasks::Tasks;
use crate::client_actor::feed::Feed;
use crate::messages::{ClientMsg, RootMsg, SessionMsg};
use crate::route::Router;
use crate::task_outcome::TaskOutcome;
use protocol::judgement::Audience;
use ractor::ActorRef;
use setup::session_spec::SessionSpec;
use tokio::sync::oneshot;

/// One open session.
pub(crate) struct SessionActorState {
    pub(super) own: ActorRef<SessionMsg>,
    pub(super) root: ActorRef<RootMsg>,
    pub(super) spec: SessionSpec,
    pub(super) resources: SessionResources,
    pub(super) journal: SessionJournal,
    /// The processes that serve it, and what waits for those that are away.
    pub(super) workers: Workers,
    pub(super) calls: SessionCalls,
    pub(super) clients: SessionClients,
    /// What waits for a person.
    pub(super) questions: Questions<ActorRef<ClientMsg>>,
    pub(super) turn: SessionTurn,
    /// Sub-agents, and who waits for this session if it is one.
    pub(super) tasks: SessionTasks,
    pub(super) closing: Closing<oneshot::Sender<()>>,
}

/// The tasks of a session.
pub(super) type SessionTasks =
    Tasks<ActorRef<SessionMsg>, oneshot::Sender<()>, oneshot::Sender<TaskOutcome>>;

/// The session's clients.
pub(super) type SessionClients = Clients<ActorRef<ClientMsg>, Feed>;

/// Turns and prompts.
pub(super) struct SessionTurn {
    pub(super) router: Router,
    /// A person joined while a script's turn ran: people can be asked from the next turn on.
    pub(super) next_audience: Option<Audience>,
}
