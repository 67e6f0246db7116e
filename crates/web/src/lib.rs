//! What may be reached of the network, and how it is reached for calls that may not themselves.
//!
//! For `agentd-web` only. [`barred`] says of each address whether it is one that nothing of ours leads
//! to; `dial` looks a name up once and connects to exactly the address that was judged; [`Proxy`]
//! carries what a command asks for to the hosts of its list; `ledger` keeps what was decided.

mod dial;
mod ledger;
mod proxy;
mod ranges;

pub use proxy::Proxy;
pub use ranges::barred;
