//! Messages to a session's reserve actor, and the runner that it hands to a call.

use super::call::CallMsg;
use launch::runner::RunnerEvent;
use launch::session_network::SessionNetwork;
use protocol::client::ProcessRow;
use protocol::confinement::Confinement;
use protocol::ids::Generation;
use ractor::ActorRef;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Messages to a reserve actor. Where a message has a generation, it is that of the runner.
#[expect(
    clippy::large_enum_variant,
    reason = "most are events of the runner, so a box would only add an allocation"
)]
pub(crate) enum ReserveMsg {
    /// Keep a runner of this confinement. A runner of another one is ended.
    Prepare(Box<Confinement>, Option<Arc<SessionNetwork>>),
    /// End the runner: a setting changed.
    Discard,
    /// A call takes the runner, if it has this confinement. [`CallMsg::Reserve`] is the answer, once the
    /// runner's cage stands.
    Take(Box<TakeRequest>),
    /// From the runner.
    Runner(Generation, RunnerEvent),
    /// No call took that runner in time.
    Unused(Generation),
    /// Asks for the row of the runner.
    Describe(oneshot::Sender<Vec<ProcessRow>>),
    /// End the runner, then this actor.
    Stop,
    /// Every earlier event of a runner is handled: this actor ends.
    Stopped,
}

/// A call's request for the runner.
pub(crate) struct TakeRequest {
    /// Without overlays, which the reserve has taken its turn for.
    pub(crate) confinement: Confinement,
    pub(crate) call: ActorRef<CallMsg>,
    /// The call's number for the runner.
    pub(crate) generation: Generation,
}
