//! Every word between agentd's processes: one file per wire, and one file per thing that the
//! wires speak about.
//!
//! Wires (two enums each, `To…` away from the supervisor, `From…` towards it): [`session`],
//! [`provider`], [`broker`], [`store`], [`tool`], [`client`], [`fleet`]. Words: [`ids`], [`content`], [`call`],
//! [`confinement`], [`context`], [`did_you_mean`], [`error_chain`], [`hidden`], [`hosts`], [`judgement`],
//! [`log`], [`mcp`], [`pinned`], [`surrogates`].
//!
//! JSON (arguments of calls, opaque vendor blocks) travels as text in a `String`. Words that the records
//! have too are the journal's types. Types of this crate are not written to disk: but for the cage of a
//! call that runs, which no other build reads.

pub mod broker;
pub mod call;
pub mod client;
pub mod company_proxy;
pub mod confinement;
pub mod content;
pub mod context;
pub mod did_you_mean;
pub mod error_chain;
pub mod fleet;
pub mod hidden;
pub mod hook;
pub mod hosts;
pub mod ids;
pub mod judgement;
pub mod log;
pub mod mcp;
mod offered_tool;
pub mod pinned;
pub mod provider;
pub mod session;
pub mod session_name;
mod session_request;
mod status;
pub mod store;
pub mod surrogates;
pub mod tool;
pub mod undo_prompt;
pub mod web;
mod web_address;

pub(crate) use bincode::{Decode, Encode};

/// A private channel between the supervisor and one peer, named from the peer's side.
///
/// The two ends are inverse types (`ipc::Channel<L::From, L::To>` at the supervisor,
/// `ipc::Channel<L::To, L::From>` at the peer), so a word in the wrong direction does not compile.
pub trait Link {
    /// Words to the peer.
    type To: bincode::Encode + bincode::Decode<()> + Send + 'static;
    /// Words from the peer.
    type From: bincode::Encode + bincode::Decode<()> + Send + 'static;
    /// The wire's name in logs and errors.
    const NAME: &'static str;
    /// Largest whole message in bytes, after its frames are joined. Stops a peer from filling the
    /// supervisor's memory with one word.
    const MESSAGE_CAP: usize;
}

/// Build identity: package version and a digest of the wire files. Builds with different identities
/// refuse each other's messages.
pub const BUILD_ID: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("AGENTD_WIRES"));
