//! What may be reached of the network, and how it is reached for calls that may not themselves.
//!
//! For `agentd-web` only. [`barred`] says of each address whether it is one that nothing of ours leads
//! to; `dial` looks a name up once and connects to exactly the address that was judged; [`Proxy`]
//! carries what a command asks for to the hosts of its list, at its [`ProxyListener`]s; `ledger` keeps what was decided.
//! [`certify`] makes the certificate with which the proxy answers in the name of the hosts that it signs
//! in to, with the keys of `credentials`.
//! [`Fetcher`] is the engine of the web's tools: `fetch` asks a server and follows it on its host,
//! `body` makes text of what it sent, `page` prose of that, `results` a list of a search's page.

mod blocked_ranges;
mod body;
mod certify;
mod client_hello;
mod credentials;
mod decision_log;
mod dial;
mod fetch;
mod page;
mod proxy;
mod proxy_listener;
mod results;

pub use blocked_ranges::blocked_reason;
pub use certify::certify;
pub use fetch::{Fetcher, Judge};
pub use proxy::{Credentials, Proxy};
pub use proxy_listener::ProxyListener;
