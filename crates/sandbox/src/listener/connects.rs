//! Addresses of looked-at calls, where the cage itself leaves nothing to reach.

use super::address::{Address, LONGEST, stays_on_this_host};
use super::notice::Notice;
use super::paths::{End, Found, Kind, find};
use super::processes::Processes;
use super::writes::{Claim, Deed, Roots};
use crate::seccomp::Role;
use protocol::confinement::{Network, Tier};
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

/// The errno and the words, if a `connect` to the address will fail because of the cage.
pub(super) fn predict(
    address: &Address,
    processes: &Processes,
    roots: Roots<'_>,
    tier: Tier,
    network: Network,
) -> Option<(i32, String)> {
    match (address, tier, network) {
        (Address::Inet(inet), Tier::A, Network::Off) if !stays_on_this_host(inet) => {
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
