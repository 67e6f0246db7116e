//! The network namespace of a command as other processes of its session join it: later commands, and
//! the process that reads a page of the command's server. Used by `launch` and by those processes.

use crate::error::{CageError, CageStep};
use crate::privileges;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use protocol::tool::NamespaceKind;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// A network namespace with loopback alone, and the user namespace that owns it. It lives as long as a
/// process is in it or one of these descriptors is open.
#[derive(Debug, Default)]
pub struct NetworkNamespace {
    /// Absent where the maker had root's rights.
    user: Option<OwnedFd>,
    network: Option<OwnedFd>,
}

impl NetworkNamespace {
    /// Adds a descriptor that came from the command's runner.
    pub fn add(&mut self, kind: NamespaceKind, descriptor: OwnedFd) {
        let place = match kind {
            NamespaceKind::User => &mut self.user,
            NamespaceKind::Network => &mut self.network,
        };
        *place = Some(descriptor);
    }

    /// Its descriptors, in the order in which a process joins them.
    pub fn descriptors(&self) -> impl Iterator<Item = (NamespaceKind, &OwnedFd)> {
        let user = self.user.iter().map(|user| (NamespaceKind::User, user));
        user.chain(self.network.iter().map(|network| (NamespaceKind::Network, network)))
    }

    /// The namespaces of this process, which has just made them.
    pub(crate) fn own(user: Ownership) -> io::Result<Self> {
        let open = |name: &str| File::open(format!("/proc/self/ns/{name}")).map(OwnedFd::from);
        let user = match user {
            Ownership::Own => Some(open("user")?),
            Ownership::Host => None,
        };
        Ok(Self { user, network: Some(open("net")?) })
    }

    /// Enters them. Afterwards this process has all rights in the user namespace, and none outside; its
    /// death signal is as before. It must have one thread.
    ///
    /// # Errors
    /// `CageStep::Namespaces`: this process may be in one of them, and must end.
    pub fn join(&self) -> Result<(), CageError> {
        let failed = |errno| {
            CageError::os(CageStep::Namespaces, "joining the network of another call", errno)
                .hint("end the commands that run in the background, and try again")
        };
        let (user, network) = (self.user.as_ref(), self.network.as_ref());
        let network = network.ok_or_else(|| {
            CageError::new(CageStep::Namespaces, "the network of the other call did not arrive")
        })?;
        if let Some(user) = user {
            let signal = prctl::get_pdeathsig().map_err(failed)?;
            setns(user, CloneFlags::CLONE_NEWUSER).map_err(failed)?;
            // New credentials clear it.
            prctl::set_pdeathsig(signal).map_err(failed)?;
        }
        setns(network, CloneFlags::CLONE_NEWNET).map_err(failed)
    }
}

/// Which user namespace owns the network namespaces that this process makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// One that the command's runner made.
    Own,
    /// The host's, by root's rights.
    Host,
}

impl Ownership {
    /// That of this process, before it joins or makes any.
    pub(crate) fn present() -> Self {
        if privileges::may_administer() { Self::Host } else { Self::Own }
    }
}

/// What an earlier cage of the session passes on to the next.
#[derive(Debug, Default)]
pub struct Inherited {
    /// A copy that an earlier cage with the same overlays returned from
    /// [`Cage::take_overlay_mounts`](crate::Cage::take_overlay_mounts). No other process may mount them at the
    /// same time.
    pub overlays: Option<OwnedFd>,
    /// The network to join, where the confinement says so.
    pub network: NetworkNamespace,
}
