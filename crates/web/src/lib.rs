//! Network access for calls that have none themselves, and the check of where it may lead.
//!
//! Used by `agentd-web` only. [`blocked_reason`] checks an IP address. `dial` resolves a name once
//! and connects only to a checked address, or through the person's own proxy, whose words are in
//! `company_proxy`. [`Proxy`] forwards a command's connections to the hosts
//! of its allow-list; the command reaches it at its [`ProxyListener`]s. `decision_log` records the
//! decisions. [`certify`] makes the certificate that the proxy presents for hosts that it signs in
//! to, with the keys of `credentials` for the requests that `signable` names. [`Fetcher`] is the engine of the web tools: `fetch` requests
//! a page and follows redirects on its host, `body` decodes it to text, `page` extracts prose, and
//! `results` parses a page of search results.

mod blocked_ranges;
mod body;
mod certify;
mod client_hello;
mod company_proxy;
mod credentials;
mod decision_log;
mod dial;
mod fetch;
mod page;
mod proxy;
mod proxy_listener;
mod results;
mod signable;
mod tls;

pub use blocked_ranges::blocked_reason;
pub use certify::certify;
pub use fetch::{Fetcher, Judge};
pub use proxy::{Credentials, Proxy};
pub use proxy_listener::ProxyListener;
