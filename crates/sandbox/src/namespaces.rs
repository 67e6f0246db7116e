//! Leaving the host's namespaces. For `launch` only, while the process has one thread.

use crate::error::{CageError, CageStep};
use crate::network_namespace::NetworkNamespace;
use crate::privileges;
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
/// started as root. If `joined` is set, it enters that network first. The user namespace is made inside
/// its owner: a bound on processes counts per user namespace.
///
/// The PID namespace itself is not left here but made for the first process in it: a process that
/// left its own by `unshare` can make no thread any more (EINVAL), and the runner needs some.
///
/// # Errors
/// `CageStep::Maps` where the user namespace was made but not set up, `CageStep::Namespaces` where the
/// network could not be joined: this process must end.
pub(crate) fn enter_user_ns(joined: Option<&NetworkNamespace>) -> Result<UserNs, CageError> {
    let privileged = privileges::may_administer();
    if let Some(joined) = joined {
        joined.join()?;
    }
    if privileged {
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

/// Addresses of loopback that commands of one network share: each has a block of its own, the one that
/// made the network the first. A block is free if all of its addresses can be bound.
pub(crate) fn free_block(wanted: &Confinement) -> u8 {
    let is_free = |block: &u8| {
        redirects(&wanted.hosts, *block).iter().all(|redirect| {
            redirect.ports.iter().all(|port| TcpListener::bind((redirect.address, *port)).is_ok())
        })
    };
    match (wanted.network, wanted.joins) {
        (Network::Listed, Some(_)) => (0..=u8::MAX).find(is_free).unwrap_or(u8::MAX),
        (Network::Listed, None) | (Network::Off | Network::On, _) => 0,
    }
}

/// Binds the sockets at which a command with an allow-list reaches the proxy: first the one that
/// its environment names, then those of `redirects`. They belong to the command's network, so call
/// this after `leave_network_and_ipc` and before this process locks itself. A returned error says
/// why there are no redirect sockets.
///
/// # Errors
/// `CageStep::Namespaces`: without the first nothing could be reached.
pub(crate) fn bind_proxy_listeners(
    network: Network,
    redirects: &[LoopbackRedirect],
) -> Result<(Vec<TcpListener>, Option<io::Error>), CageError> {
    match network {
        Network::Off | Network::On => Ok((Vec::new(), None)),
        Network::Listed => {
            let first = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| {
                CageError::os(CageStep::Namespaces, "the socket of the allow-list", error)
            })?;
            let places =
                redirects.iter().flat_map(|one| one.ports.iter().map(|port| (one.address, *port)));
            match places.map(TcpListener::bind).collect::<io::Result<Vec<_>>>() {
                Ok(more) => Ok(([first].into_iter().chain(more).collect(), None)),
                Err(error) => Ok((vec![first], Some(error))),
            }
        }
    }
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
