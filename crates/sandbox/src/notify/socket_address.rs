//! Socket addresses in the kernel's binary form. Pure.

use protocol::confinement::Subject;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Longest address that the kernel accepts, in bytes (`struct sockaddr_storage`).
pub(super) const LONGEST: usize = 128;

/// The address of a `connect` or `bind`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SocketAddress {
    /// A socket in the file system; the path as given.
    Path(PathBuf),
    /// A socket in the abstract name space.
    Abstract(String),
    /// A unix address without a name.
    Unnamed,
    /// An internet address.
    Inet(SocketAddr),
    /// Another family, or too short for its family; the kernel handles it.
    Other,
}

impl SocketAddress {
    /// Parses a `struct sockaddr`.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let Some((family, rest)) = bytes.split_first_chunk::<2>() else {
            return Self::Other;
        };
        match i32::from(u16::from_ne_bytes(*family)) {
            libc::AF_UNIX => unix(rest),
            libc::AF_INET => inet(rest).map_or(Self::Other, Self::Inet),
            libc::AF_INET6 => inet6(rest).map_or(Self::Other, Self::Inet),
            _ => Self::Other,
        }
    }
}

impl SocketAddress {
    /// For the record.
    pub(super) fn subject(self) -> Subject {
        match self {
            Self::Path(path) => Subject::UnixSocket(path.display().to_string()),
            Self::Abstract(name) => Subject::AbstractSocket(name),
            Self::Inet(address) => Subject::Address(address),
            Self::Unnamed => Subject::UnnamedSocket,
            Self::Other => Subject::OtherAddress,
        }
    }
}

/// True if a network namespace with nothing but loopback can reach it. `connect` treats the
/// unspecified address as this host.
pub(super) fn stays_on_this_host(address: &SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    ip.is_loopback() || ip.is_unspecified()
}

fn unix(rest: &[u8]) -> SocketAddress {
    match rest {
        [] => SocketAddress::Unnamed,
        [0, name @ ..] => SocketAddress::Abstract(name.escape_ascii().to_string()),
        path => {
            let end = path.iter().position(|&byte| byte == 0).unwrap_or(path.len());
            SocketAddress::Path(PathBuf::from(OsString::from_vec(path[..end].to_vec())))
        }
    }
}

fn inet(rest: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(*rest.first_chunk()?);
    let ip: [u8; 4] = rest.get(2..6)?.try_into().ok()?;
    Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(ip)), port))
}

fn inet6(rest: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(*rest.first_chunk()?);
    let ip: [u8; 16] = rest.get(6..22)?.try_into().ok()?;
    Some(SocketAddr::new(IpAddr::V6(Ipv6Addr::from(ip)), port))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn bytes(family: u16, rest: &[u8]) -> Vec<u8> {
        [&family.to_ne_bytes(), rest].concat()
    }

    #[test]
    fn addresses_in_words() {
        let long = [&[0x1F, 0x90, 0, 0, 0, 0][..], &Ipv6Addr::LOCALHOST.octets(), &[0; 4]].concat();
        for (bytes, words) in [
            (bytes(1, b"/run/docker.sock\0rest"), "/run/docker.sock"),
            (bytes(1, b"relative"), "relative"),
            (bytes(1, b"\0bus\x01"), "abstract socket @bus\\x01"),
            (bytes(1, b""), "a socket without a name"),
            (bytes(2, &[0x1F, 0x90, 127, 0, 0, 1, 0, 0]), "127.0.0.1:8080"),
            (bytes(10, &long), "[::1]:8080"),
            (bytes(2, &[0x1F]), "an address of another family"),
            (bytes(16, &[0; 10]), "an address of another family"),
        ] {
            assert_eq!(SocketAddress::parse(&bytes).subject().to_string(), words);
        }
    }

    #[test]
    fn what_stays_on_this_host() {
        for (address, stays) in [
            ("127.3.2.1:1", true),
            ("0.0.0.0:1", true),
            ("[::1]:1", true),
            ("[::]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("[::ffff:8.8.8.8]:1", false),
            ("93.184.216.34:80", false),
            ("10.0.0.1:80", false),
        ] {
            assert_eq!(stays_on_this_host(&address.parse().unwrap()), stays, "{address}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_address(bytes in proptest::collection::vec(any::<u8>(), 0..LONGEST)) {
            let _ = SocketAddress::parse(&bytes).subject().to_string();
        }
    }
}
