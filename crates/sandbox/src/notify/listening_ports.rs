//! The listening TCP and UDP ports of the host and of the cage's network. The host's are read
//! through descriptors that were opened before the process left its network.

use super::socket;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

/// `TCP_LISTEN` in the kernel's table.
const LISTENING: &str = "0A";
/// `TCP_CLOSE`: in the UDP table it marks an unconnected socket, which receives from any sender.
const UNCONNECTED: &str = "07";

/// The kernel's socket tables of the network namespace in which this process opened them.
#[derive(Debug)]
pub(crate) struct ListeningPorts {
    tcp: Vec<File>,
    udp: Vec<File>,
}

impl ListeningPorts {
    /// Opens the tables of this process's network namespace.
    ///
    /// # Errors
    /// `proc` does not contain them.
    pub(crate) fn open(proc: impl AsFd) -> io::Result<Self> {
        let table = |name: &str| {
            let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
            openat(&proc, name, flags, Mode::empty()).map(File::from)
        };
        let both = |first: &str, second: &str| {
            // A kernel without IPv6 has no second table.
            table(first)
                .map(|first| [Some(first), table(second).ok()].into_iter().flatten().collect())
        };
        Ok(Self {
            tcp: both("self/net/tcp", "self/net/tcp6")?,
            udp: both("self/net/udp", "self/net/udp6")?,
        })
    }

    /// True if a TCP socket listens at this address of this host; `None` if that is unknown.
    pub(super) fn has_tcp_listener(&self, address: &SocketAddr) -> Option<bool> {
        for mut table in &self.tcp {
            table.rewind().ok()?;
            // The first line names the columns. Listening sockets come next. All others come after
            // them and are not read: a busy test suite leaves thousands.
            for line in BufReader::with_capacity(4096, table).lines().skip(1) {
                match listener(&line.ok()?, LISTENING) {
                    Some(at) if accepts(&at, address) => return Some(true),
                    Some(_) => {}
                    None => break,
                }
            }
        }
        Some(false)
    }

    /// True if a UDP socket receives datagrams at this address of this host; `None` if that is
    /// unknown.
    pub(super) fn has_udp_receiver(&self, address: &SocketAddr) -> Option<bool> {
        for mut table in &self.udp {
            table.rewind().ok()?;
            for line in BufReader::with_capacity(4096, table).lines().skip(1) {
                if listener(&line.ok()?, UNCONNECTED).is_some_and(|at| accepts(&at, address)) {
                    return Some(true);
                }
            }
        }
        Some(false)
    }
}

/// True for a TCP socket. Other sockets can `connect` without a peer.
pub(super) fn is_tcp(socket: &OwnedFd) -> bool {
    socket::protocol(socket) == Ok(libc::IPPROTO_TCP)
}

/// True for a UDP socket.
pub(super) fn is_udp(socket: &OwnedFd) -> bool {
    socket::protocol(socket) == Ok(libc::IPPROTO_UDP)
}

/// True if a listener at `at` accepts connections to `wanted`. A listener on all IPv6 addresses is
/// assumed to accept IPv4 too, because the table does not say.
fn accepts(at: &SocketAddr, wanted: &SocketAddr) -> bool {
    let (own, other) = (at.ip().to_canonical(), wanted.ip().to_canonical());
    let everywhere = match own {
        IpAddr::V4(ip) => ip.is_unspecified() && other.is_ipv4(),
        IpAddr::V6(ip) => ip.is_unspecified(),
    };
    // `connect` treats the unspecified address as this host's loopback.
    let here = other.is_unspecified() && own.is_loopback() && own.is_ipv4() == other.is_ipv4();
    at.port() == wanted.port() && (everywhere || own == other || here)
}

/// The local address of a table line, if its socket is in the wanted state.
fn listener(line: &str, wanted: &str) -> Option<SocketAddr> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, state) = (fields.next()?, fields.nth(1)?);
    if state != wanted {
        return None;
    }
    let (ip, port) = local.split_once(':')?;
    // The 32-bit words of the address, in the CPU's byte order.
    let words: Vec<[u8; 4]> = (0..ip.len() / 8)
        .map(|at| Some(u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes()))
        .collect::<Option<_>>()?;
    let ip = match words.as_slice() {
        [word] => IpAddr::V4(Ipv4Addr::from(*word)),
        [a, b, c, d] => {
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from([*a, *b, *c, *d].concat()).ok()?))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_listener_is_found_and_its_absence_too() {
        let ports = ListeningPorts::open(File::open("/proc").unwrap()).unwrap();
        // More sockets than one read returns.
        let _others: Vec<_> = (0..100).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        for bound in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(bound).unwrap();
            let address = listener.local_addr().unwrap();
            let _client = TcpStream::connect(address).unwrap();
            assert_eq!(ports.has_tcp_listener(&address), Some(true), "{address}");
            drop(listener);
            assert_eq!(
                ports.has_tcp_listener(&address),
                Some(false),
                "the connection is none: {address}"
            );
        }
    }

    #[test]
    fn a_socket_of_udp_takes_datagrams_until_it_is_connected() {
        let ports = ListeningPorts::open(File::open("/proc").unwrap()).unwrap();
        for bound in ["127.0.0.1:0", "[::1]:0"] {
            let socket = UdpSocket::bind(bound).unwrap();
            let address = socket.local_addr().unwrap();
            assert_eq!(ports.has_udp_receiver(&address), Some(true), "{address}");
            assert_eq!(
                ports.has_tcp_listener(&address),
                Some(false),
                "it is none of TCP: {address}"
            );
            socket.connect(address).unwrap();
            assert_eq!(ports.has_udp_receiver(&address), Some(false), "{address}");
        }
    }

    #[test]
    fn who_hears_whom() {
        for (at, wanted, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("0.0.0.0:80", "127.0.0.2:80", true),
            ("0.0.0.0:80", "[::1]:80", false),
            ("[::]:80", "[::1]:80", true),
            ("[::]:80", "127.0.0.1:80", true),
            ("[::1]:80", "127.0.0.1:80", false),
            ("127.0.0.1:80", "[::ffff:127.0.0.1]:80", true),
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("[::1]:80", "0.0.0.0:80", false),
        ] {
            let (at, wanted) = (at.parse().unwrap(), wanted.parse().unwrap());
            assert_eq!(accepts(&at, &wanted), expected, "{at} {wanted}");
        }
    }

    #[test]
    fn only_listening_sockets_count() {
        let line = |state: &str| format!("   0: 0100007F:1F90 00000000:0000 {state} 00000000:0");
        #[cfg(target_endian = "little")]
        assert_eq!(listener(&line("0A"), LISTENING), Some("127.0.0.1:8080".parse().unwrap()));
        assert_eq!(listener(&line("01"), LISTENING), None);
        assert_eq!(listener("  sl  local_address rem_address   st tx_queue", LISTENING), None);
        assert_eq!(listener("", LISTENING), None);
    }
}
