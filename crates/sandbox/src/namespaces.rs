//! Leaving the host's namespaces. For `launch` only, while the process has one thread.

use crate::error::{CageError, CageStep};
use crate::network_namespace::{NetworkNamespace, Ownership};
use crate::sys;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, getgid, getuid};
use protocol::confinement::{Confinement, Network};
use protocol::hosts::{LoopbackRedirect, redirects};
use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// How this process got the right to make namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserNs {
    /// With the capabilities that this process had: it was started as root.
    NotNeeded,
    /// By a user namespace of its own, which maps this user and group to themselves.
    Entered,
    /// It did not, and nothing has changed.
    Refused(Errno),
}

/// Gets the right to make namespaces, by a user namespace of our own where this process was not
/// started as root. A process that joined a network makes one too, inside the network's owner.
///
/// The PID namespace itself is not left here but made for the first process in it: a process that
/// left its own by `unshare` can make no thread any more (EINVAL), and the runner needs some.
///
/// # Errors
/// `CageStep::Maps` where the user namespace was made but not set up: this process must end.
pub(crate) fn enter_user_ns(ownership: Ownership) -> Result<UserNs, CageError> {
    if ownership == Ownership::Host {
        return Ok(UserNs::NotNeeded);
    }
    let (user, group) = (getuid(), getgid());
    let signal = prctl::get_pdeathsig().map_err(maps_error)?;
    if let Err(errno) = unshare(CloneFlags::CLONE_NEWUSER) {
        return Ok(UserNs::Refused(errno));
    }
    // The map files belong to root while this process is not dumpable.
    let dumpable = prctl::get_dumpable().map_err(maps_error)?;
    prctl::set_dumpable(true).map_err(maps_error)?;
    let written = write_maps(user, group);
    prctl::set_dumpable(dumpable).map_err(maps_error)?;
    written?;
    // Changing credentials may have cleared it.
    prctl::set_pdeathsig(signal).map_err(maps_error)?;
    Ok(UserNs::Entered)
}

/// Leaves the host's System V IPC namespace, and its network namespace unless the network is on or this
/// process has joined one. A new network takes half a millisecond, while the first process of the PID
/// namespace builds the root. Returns lost guarantees.
///
/// # Errors
/// `CageStep::Namespaces`.
pub(crate) fn leave_network_and_ipc(wanted: &Confinement) -> Result<Vec<String>, CageError> {
    let leave = |flags| {
        unshare(flags)
            .map_err(|error| CageError::os(CageStep::Namespaces, "leaving network and IPC", error))
    };
    match (wanted.network, wanted.joins) {
        (Network::Off | Network::Listed, None) => {
            leave(CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWNET)?;
            let lost = |errno| vec![format!("Loopback could not be switched on: {errno}.")];
            Ok(sys::loopback_up().err().map(lost).unwrap_or_default())
        }
        (Network::Off | Network::Listed, Some(_)) | (Network::On, _) => {
            leave(CloneFlags::CLONE_NEWIPC)?;
            Ok(Vec::new())
        }
    }
}

/// The sockets at which a command with an allow-list reaches the proxy, and the names that lead there.
#[derive(Default)]
pub(crate) struct ProxyDoors {
    /// First the one that the command's environment names, then those of `redirects`.
    pub listeners: Vec<TcpListener>,
    pub redirects: Vec<LoopbackRedirect>,
    /// Why there are no redirect sockets.
    pub refused: Option<io::Error>,
}

impl ProxyDoors {
    /// Binds them. They belong to the command's network, so call this inside it and before this process
    /// locks itself.
    ///
    /// # Errors
    /// `CageStep::Namespaces`: without the first socket nothing could be reached.
    pub(crate) fn bind(
        network: Network,
        redirects: Vec<LoopbackRedirect>,
    ) -> Result<Self, CageError> {
        match network {
            Network::Off | Network::On => return Ok(Self::default()),
            Network::Listed => {}
        }
        let first = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| {
            CageError::os(CageStep::Namespaces, "the socket of the allow-list", error)
        })?;
        let places =
            redirects.iter().flat_map(|one| one.ports.iter().map(|port| (one.address, *port)));
        let more = places.map(TcpListener::bind).collect::<io::Result<Vec<_>>>();
        let (more, refused) = match more {
            Ok(more) => (more, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        Ok(Self { listeners: std::iter::once(first).chain(more).collect(), redirects, refused })
    }
}

/// Joins the network of an earlier call. Binds the sockets of the proxy while this process has the rights
/// of the network's owner: web ports need them. Commands in one network have a block of addresses each.
///
/// # Errors
/// As [`NetworkNamespace::join`] and [`ProxyDoors::bind`].
pub(crate) fn join(
    network: &NetworkNamespace,
    wanted: &Confinement,
) -> Result<ProxyDoors, CageError> {
    network.join()?;
    for block in 0..=u8::MAX {
        let doors = ProxyDoors::bind(wanted.network, redirects(&wanted.hosts, block))?;
        match &doors.refused {
            Some(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Some(_) | None => return Ok(doors),
        }
    }
    let doors = ProxyDoors::bind(wanted.network, Vec::new())?;
    Ok(ProxyDoors { refused: Some(io::ErrorKind::AddrInUse.into()), ..doors })
}

/// The names for the record.
pub(crate) fn namespace_names(left: UserNs, wanted: &Confinement) -> Vec<String> {
    let user = (left == UserNs::Entered).then_some("user");
    let net = (wanted.network != Network::On).then_some("net");
    user.into_iter().chain(["mount", "pid", "ipc"]).chain(net).map(str::to_owned).collect()
}

/// Maps this user and group to themselves. An unprivileged process may map only itself, and only
/// after it gave up setting groups.
fn write_maps(user: Uid, group: Gid) -> Result<(), CageError> {
    let write = |file: &str, text: String| {
        std::fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| CageError::os(CageStep::Maps, file, error))
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))
}

fn maps_error(errno: Errno) -> CageError {
    CageError::os(CageStep::Maps, "prctl", errno)
}
