//! The network namespace that calls of a session share while a command of it runs in the background, so
//! that they reach its servers. Made by the call that goes on in the background, kept by the session, and
//! joined by later calls. It lives as long as any of them.

use call::CallFacts;
use protocol::confinement::{Confinement, Level, Network, Profile, Tier};
use protocol::hosts::HostRule;
use protocol::tool::{Handover, NamespaceKind};
use sandbox::NetworkNamespace;
use std::io;
use std::os::fd::OwnedFd;

/// The network of a background command.
#[derive(Debug)]
pub struct SessionNetwork {
    /// The call that made it.
    pub call: u32,
    /// Its network and its list of hosts. A call with others would get rights through the servers and
    /// the proxy in it.
    network: Network,
    hosts: Vec<HostRule>,
    namespace: NetworkNamespace,
}

impl SessionNetwork {
    /// The network of this call, unless it has the host's or joined another, or the call has rights that
    /// the session does not have: its servers could act with them for calls that nobody judged so.
    pub fn of(
        facts: &CallFacts,
        confinement: &Confinement,
        namespace: NetworkNamespace,
    ) -> Option<Self> {
        namespace.descriptors().next()?;
        if confinement.profile != Profile::Command || !facts.extra_rights.is_empty() {
            return None;
        }
        let call = facts.call.id.number;
        let (network, hosts) = (confinement.network, confinement.hosts.clone());
        Some(Self { call, network, hosts, namespace })
    }

    /// Its descriptors, in the order in which a process joins them.
    pub fn descriptors(&self) -> io::Result<Vec<(NamespaceKind, OwnedFd)>> {
        let all = self.namespace.descriptors();
        all.map(|(kind, descriptor)| Ok((kind, descriptor.try_clone()?))).collect()
    }

    /// The same for a runner.
    pub fn handed(&self) -> io::Result<Vec<(Handover, OwnedFd)>> {
        let all = self.descriptors()?.into_iter();
        Ok(all.map(|(kind, descriptor)| (Handover::Join(kind), descriptor)).collect())
    }

    /// True if a command with this confinement joins it.
    pub fn takes(&self, wanted: &Confinement) -> bool {
        let caged = wanted.highest_tier == Tier::A && wanted.level != Level::Uncaged;
        let same = self.network == wanted.network
            && match wanted.network {
                Network::Off => true,
                Network::Listed => self.hosts == wanted.hosts,
                Network::On => false,
            };
        wanted.profile == Profile::Command && caged && same
    }
}
