//! The hosts that the proxies of a session's commands sign in to, as far as commands reach them. Used by the
//! session specification.

use protocol::confinement::{Confinement, Network};
use protocol::hosts::HostPort;

/// A sentence for the model after the description of the network, so that it does not search for
/// tokens.
pub(crate) fn describe(confinement: &Confinement, hosts: &[HostPort]) -> String {
    match reachable(confinement, hosts) {
        hosts if hosts.is_empty() => String::new(),
        hosts => format!(
            ". The proxy adds the key to requests that read from {}: commands need no token there",
            hosts.join(", ")
        ),
    }
}

/// The hosts that commands of this cage reach through a proxy.
pub(crate) fn reachable<'a>(
    confinement: &Confinement,
    hosts: impl IntoIterator<Item = &'a HostPort>,
) -> Vec<String> {
    let rules = match confinement.network {
        Network::Listed => &confinement.hosts[..],
        Network::Off | Network::On => &[],
    };
    let is_listed = |host: &&HostPort| rules.iter().any(|rule| rule.admits(&host.name, host.port));
    hosts.into_iter().filter(is_listed).map(ToString::to_string).collect()
}
