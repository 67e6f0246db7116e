//! Messages to a client actor.

use protocol::client::{DetachReason, FromClient, ToClient};
use protocol::ids::SessionId;
use protocol::provider::PassedFd;
use std::os::fd::OwnedFd;
use tokio::sync::OwnedSemaphorePermit;

/// Messages to a client actor.
pub(crate) enum ClientMsg {
    /// Send this to the client.
    Send(ToClient),
    /// The client's feed had no room for an event of this session. The session sends it no more.
    Missed(SessionId),
    /// Send this, and the descriptors behind it.
    Hand(ToClient, Vec<OwnedFd>),
    /// The session detached the client, and why.
    Dismissed { session: SessionId, parting: DetachReason, reason: String },
    /// From the client.
    Request(Box<ClientRequest>),
    /// The actor of this session failed.
    Lost(SessionId),
    /// The connection ended, or the client broke the protocol.
    Gone(String),
}

/// A client's message with the descriptors that came with it.
pub(crate) struct ClientRequest {
    pub(crate) msg: FromClient,
    pub(crate) passed_fds: Vec<(PassedFd, OwnedFd)>,
    /// Room in the queue of unhandled requests; free again when this is dropped.
    pub(crate) _permit: OwnedSemaphorePermit,
}
