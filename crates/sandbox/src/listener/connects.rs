//! Addresses of looked-at calls, where the cage itself leaves nothing to reach.

use super::address::{Address, LONGEST, stays_on_this_host};
use super::notice::Notice;
use super::paths::{End, Found, Kind, find};
use super::ports::{self, Ports};
use super::processes::Processes;
use super::socket;
use super::writes::{Claim, Deed, Roots};
use crate::seccomp::Role;
use protocol::confinement::{Network, Tier};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Copies the address of a `connect` or `bind`; a relative path is made absolute.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn address(notice: &Notice, processes: &Processes) -> Option<Address> {
    let length = usize::try_from(notice.args[2] as i32).ok()?;
    let bytes = match length {
        1..=LONGEST => processes.memory(notice.tid, notice.args[1], length)?,
        _ => return None,
    };
    let address = Address::parse(&bytes);
    if let Address::Path(path) = &address
        && path.is_relative()
    {
        return Some(Address::Path(processes.link(notice.tid, "cwd")?.join(path)));
    }
    Some(address)
}

/// Where names are asked for.
const NAMES: u16 = 53;

/// A loopback address where nobody in the cage listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unheard {
    /// Somebody on the host may listen there.
    Stream(SocketAddr),
    /// Of a name server, asked by a datagram: the machine's own resolver.
    Names(SocketAddr),
}

/// The loopback address that a `connect` leads to, if nobody in the cage listens there. Datagrams count
/// where they ask for names: to others `connect` says nothing.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn unheard(address: &Address, notice: &Notice, own: &Ports) -> Option<Unheard> {
    let Address::Inet(inet) = address else { return None };
    if !stays_on_this_host(inet) {
        return None;
    }
    let (is_heard, gets_names) = (own.heard(inet)?, inet.port() == NAMES);
    if is_heard && !gets_names {
        return None;
    }
    let fd = u32::try_from(notice.args[0] as i32).ok()?;
    let socket = socket::take(notice.tid, fd).ok()?;
    match (ports::is_tcp(&socket), ports::is_udp(&socket)) {
        (true, _) => (!is_heard).then_some(Unheard::Stream(*inet)),
        (_, true) => (gets_names && !own.takes(inet)?).then_some(Unheard::Names(*inet)),
        _ => None,
    }
}

/// The errno and the words, if somebody on the host listens where nobody in the cage does. A port
/// where nobody listens at all is no refusal. A resolver need not be there to be known: a lookup
/// ends here whoever would have answered.
pub(super) fn left_behind(unheard: Unheard, host: &Ports) -> Option<(i32, String)> {
    let (inet, is_refusal) = match unheard {
        Unheard::Stream(inet) => (inet, host.heard(&inet)?),
        Unheard::Names(inet) => (inet, true),
    };
    is_refusal.then(|| (libc::ECONNREFUSED, format!("{inet} of the host")))
}

/// The errno and the words, if a `connect` to the address will fail because of the cage.
pub(super) fn predict(
    address: &Address,
    processes: &Processes,
    roots: Roots<'_>,
    tier: Tier,
    network: Network,
) -> Option<(i32, String)> {
    match (address, tier, network) {
        (Address::Inet(inet), Tier::A, Network::Off | Network::Listed)
            if !stays_on_this_host(inet) =>
        {
            Some((libc::ENETUNREACH, address.to_string()))
        }
        // A socket of the host that was left out of the cage's root. One that does not exist on
        // the host either is no refusal.
        (Address::Path(path), Tier::A, _) => match find(processes, roots.cage, path, End::Followed)
        {
            Found::Nowhere | Found::Free(_) => {
                match find(processes, roots.host, path, End::Followed) {
                    Found::There(real, Kind::Socket) => {
                        Some((libc::ENOENT, real.display().to_string()))
                    }
                    Found::There(..)
                    | Found::Free(_)
                    | Found::Nowhere
                    | Found::Barred(_)
                    | Found::Unknown => None,
                }
            }
            Found::There(..) | Found::Barred(_) | Found::Unknown => None,
        },
        (
            Address::Inet(_)
            | Address::Path(_)
            | Address::Abstract(_)
            | Address::Unnamed
            | Address::Other,
            _,
            _,
        ) => None,
    }
}

/// The name that a `bind` makes, if it makes one.
pub(super) fn made(address: Address) -> Option<Claim> {
    let made = |path: PathBuf| Claim { path, deed: Deed::Name(Role::Made, End::Itself) };
    match address {
        Address::Path(path) => Some(made(path)),
        Address::Inet(_) | Address::Abstract(_) | Address::Unnamed | Address::Other => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::paths::Root;
    use super::*;
    use std::fs::File;
    use std::os::unix::net::UnixListener;

    fn predicted(address: &Address, tier: Tier, network: Network) -> Option<(i32, String)> {
        let (cage, host) = (tempfile::tempdir().unwrap(), File::open("/").unwrap());
        let processes = Processes::new(File::open("/proc").unwrap().into()).unwrap();
        let root = |file: File| Root::new(&processes, file.into()).unwrap();
        let (cage, host) = (root(File::open(cage.path()).unwrap()), root(host));
        let roots = Roots { cage: &cage, host: &host };
        predict(address, &processes, roots, tier, network)
    }

    #[test]
    fn an_empty_namespace_reaches_loopback_only() {
        let far = Address::Inet("93.184.216.34:80".parse().unwrap());
        let near = Address::Inet("127.0.0.1:80".parse().unwrap());
        let unreachable = Some((libc::ENETUNREACH, "93.184.216.34:80".to_owned()));
        assert_eq!(predicted(&far, Tier::A, Network::Off), unreachable);
        assert_eq!(predicted(&near, Tier::A, Network::Off), None);
        assert_eq!(predicted(&far, Tier::A, Network::On), None);
        assert_eq!(predicted(&far, Tier::B, Network::On), None);
    }

    #[test]
    fn a_socket_that_was_left_out_is_a_refusal_and_one_that_is_nowhere_is_none() {
        let place = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(place.path()).unwrap().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        let nowhere = Address::Path(path.with_file_name("none"));
        let left_out = Some((libc::ENOENT, path.display().to_string()));
        assert_eq!(predicted(&Address::Path(path), Tier::A, Network::On), left_out);
        assert_eq!(predicted(&nowhere, Tier::A, Network::On), None);
        assert_eq!(predicted(&Address::Abstract("x".into()), Tier::A, Network::On), None);
    }
}
