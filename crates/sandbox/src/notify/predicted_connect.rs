//! Predicts which observed `connect` calls will fail because the cage leaves nothing to reach.

use super::listening_ports::{self, ListeningPorts};
use super::notify_fd::Notification;
use super::predicted_write::{PathAction, PathClaim, RootDirs};
use super::proc_reader::ProcReader;
use super::resolve::{FileKind, FinalLink, Resolved, resolve};
use super::socket;
use super::socket_address::{LONGEST, SocketAddress, stays_on_this_host};
use crate::seccomp::EntryChange;
use protocol::confinement::{Network, Subject, TEMPORARY, Tier};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Copies the address of a `connect` or `bind`; makes a relative path absolute.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn address(notice: &Notification, processes: &ProcReader) -> Option<SocketAddress> {
    let length = usize::try_from(notice.args[2] as i32).ok()?;
    let bytes = match length {
        1..=LONGEST => processes.memory(notice.tid, notice.args[1], length)?,
        _ => return None,
    };
    let address = SocketAddress::parse(&bytes);
    if let SocketAddress::Path(path) = &address
        && path.is_relative()
    {
        return Some(SocketAddress::Path(processes.link(notice.tid, "cwd")?.join(path)));
    }
    Some(address)
}

/// The port of DNS.
const DNS_PORT: u16 = 53;

/// A loopback address without a listener in the cage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoListener {
    /// A TCP address. A program on the host may listen there.
    Stream(SocketAddr),
    /// A UDP address at the DNS port: the machine's own resolver.
    Names(SocketAddr),
}

/// The loopback address of a `connect`, if no process in the cage listens there. For UDP only the
/// DNS port counts: `connect` does not test other UDP addresses.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn find_missing_listener(
    address: &SocketAddress,
    notice: &Notification,
    own: &ListeningPorts,
) -> Option<NoListener> {
    let SocketAddress::Inet(inet) = address else { return None };
    if !stays_on_this_host(inet) {
        return None;
    }
    let (is_heard, gets_names) = (own.has_tcp_listener(inet)?, inet.port() == DNS_PORT);
    if is_heard && !gets_names {
        return None;
    }
    let fd = u32::try_from(notice.args[0] as i32).ok()?;
    let socket = socket::take(notice.tid, fd).ok()?;
    match (listening_ports::is_tcp(&socket), listening_ports::is_udp(&socket)) {
        (true, _) => (!is_heard).then_some(NoListener::Stream(*inet)),
        (_, true) => {
            (gets_names && !own.has_udp_receiver(inet)?).then_some(NoListener::Names(*inet))
        }
        _ => None,
    }
}

/// Errno and subject, if a program on the host listens at an address without a listener in the
/// cage. If no program listens at all, this is not a refusal by the cage. At the DNS port it always
/// is: the lookup fails here even if the host has no resolver.
pub(super) fn predict_missing_listener(
    unheard: NoListener,
    host: &ListeningPorts,
) -> Option<(i32, Subject)> {
    let (inet, is_refusal) = match unheard {
        NoListener::Stream(inet) => (inet, host.has_tcp_listener(&inet)?),
        NoListener::Names(inet) => (inet, true),
    };
    is_refusal.then_some((libc::ECONNREFUSED, Subject::HostAddress(inet)))
}

/// Errno and subject, if a `connect` to this address will fail because of the cage.
pub(super) fn predict(
    address: &SocketAddress,
    processes: &ProcReader,
    roots: RootDirs<'_>,
    tier: Tier,
    network: Network,
) -> Option<(i32, Subject)> {
    match (address, tier, network) {
        (SocketAddress::Inet(inet), Tier::A, Network::Off | Network::Listed)
            if !stays_on_this_host(inet) =>
        {
            Some((libc::ENETUNREACH, Subject::Address(*inet)))
        }
        // The temporary directories are the session's own here: the host's socket of that name, as
        // a user's tmux has one, is another one.
        (SocketAddress::Path(path), Tier::A, _) if is_temporary(path) => None,
        // A socket of the host that is not in the cage's root. If it does not exist on the host
        // either, this is not a refusal by the cage.
        (SocketAddress::Path(path), Tier::A, _) => {
            match resolve(processes, roots.cage, path, FinalLink::Followed) {
                Resolved::NoParent | Resolved::Missing(_) => {
                    match resolve(processes, roots.host, path, FinalLink::Followed) {
                        Resolved::Exists(real, FileKind::Socket) => {
                            Some((libc::ENOENT, Subject::UnixSocket(real.display().to_string())))
                        }
                        Resolved::Exists(..)
                        | Resolved::Missing(_)
                        | Resolved::NoParent
                        | Resolved::NotSearchable(_)
                        | Resolved::Unknown => None,
                    }
                }
                Resolved::Exists(..) | Resolved::NotSearchable(_) | Resolved::Unknown => None,
            }
        }
        (
            SocketAddress::Inet(_)
            | SocketAddress::Path(_)
            | SocketAddress::Abstract(_)
            | SocketAddress::Unnamed
            | SocketAddress::Other,
            _,
            _,
        ) => None,
    }
}

/// True for a path in a directory that each session has for itself in tier A.
fn is_temporary(path: &Path) -> bool {
    TEMPORARY.iter().any(|dir| path.starts_with(dir))
}

/// The name that a `bind` creates, if any.
pub(super) fn bound_name(address: SocketAddress) -> Option<PathClaim> {
    let made = |path: PathBuf| PathClaim {
        path,
        action: PathAction::Name(EntryChange::Made, FinalLink::NotFollowed),
    };
    match address {
        SocketAddress::Path(path) => Some(made(path)),
        SocketAddress::Inet(_)
        | SocketAddress::Abstract(_)
        | SocketAddress::Unnamed
        | SocketAddress::Other => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::resolve::RootDir;
    use super::*;
    use std::fs::File;
    use std::os::unix::net::UnixListener;

    fn predicted(address: &SocketAddress, tier: Tier, network: Network) -> Option<(i32, Subject)> {
        let (cage, host) = (tempfile::tempdir().unwrap(), File::open("/").unwrap());
        let processes = ProcReader::new(File::open("/proc").unwrap().into()).unwrap();
        let root = |file: File| RootDir::new(&processes, file.into()).unwrap();
        let (cage, host) = (root(File::open(cage.path()).unwrap()), root(host));
        let roots = RootDirs { cage: &cage, host: &host };
        predict(address, &processes, roots, tier, network)
    }

    #[test]
    fn an_empty_namespace_reaches_loopback_only() {
        let far = SocketAddress::Inet("93.184.216.34:80".parse().unwrap());
        let near = SocketAddress::Inet("127.0.0.1:80".parse().unwrap());
        let address = "93.184.216.34:80".parse().unwrap();
        let unreachable = Some((libc::ENETUNREACH, Subject::Address(address)));
        assert_eq!(predicted(&far, Tier::A, Network::Off), unreachable);
        assert_eq!(predicted(&near, Tier::A, Network::Off), None);
        assert_eq!(predicted(&far, Tier::A, Network::On), None);
        assert_eq!(predicted(&far, Tier::B, Network::On), None);
    }

    #[test]
    fn a_socket_that_was_left_out_is_a_refusal_and_one_that_is_nowhere_is_none() {
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = std::fs::canonicalize(place.path()).unwrap().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        let temporary = tempfile::tempdir_in("/tmp").unwrap();
        let of_session = temporary.path().join("s");
        let _other = UnixListener::bind(&of_session).unwrap();
        assert_eq!(predicted(&SocketAddress::Path(of_session), Tier::A, Network::On), None);
        let nowhere = SocketAddress::Path(path.with_file_name("none"));
        let left_out = Some((libc::ENOENT, Subject::UnixSocket(path.display().to_string())));
        assert_eq!(predicted(&SocketAddress::Path(path), Tier::A, Network::On), left_out);
        assert_eq!(predicted(&nowhere, Tier::A, Network::On), None);
        assert_eq!(predicted(&SocketAddress::Abstract("x".into()), Tier::A, Network::On), None);
    }
}
