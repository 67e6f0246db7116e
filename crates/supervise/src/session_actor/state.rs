//! The state of a session actor, in parts. Each part has an owner with private fields, in a file of its own.

use super::events::SessionEvents;
use super::links::Workers;
use super::questions::Questions;
use super::resources::SessionResources;
use super::session_calls::SessionCalls;
use super::shutdown::Closing;
use super::tasks::SubAgents;
use crate::messages::{ClientMsg, RootMsg, SessionMsg};
use crate::route::Router;
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
    /// Its journal, and all that learn of its events.
    pub(super) events: SessionEvents,
    /// The processes that serve it, and what waits for those that are away.
    pub(super) workers: Workers,
    pub(super) calls: SessionCalls,
    /// What waits for a person.
    pub(super) questions: Questions<ActorRef<ClientMsg>>,
    pub(super) turn: SessionTurn,
    pub(super) sub_agents: SubAgents<ActorRef<SessionMsg>, oneshot::Sender<()>>,
    pub(super) closing: Closing<oneshot::Sender<()>>,
}

/// Turns and prompts.
pub(super) struct SessionTurn {
    pub(super) router: Router,
    /// A person joined while a script's turn ran: people can be asked from the next turn on.
    pub(super) next_audience: Option<Audience>,
}
