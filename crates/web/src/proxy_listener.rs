//! Where a command finds the proxy: a door for programs that take one, and one for each host and port that
//! programs without are led to by name ([`redirects`]). For `proxy`.

use crate::proxy::ProxyTarget;
use protocol::hosts::{HostRule, redirects};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::task::Poll;
use tokio::net::{TcpListener, TcpStream};

/// Where a command finds the proxy.
#[derive(Debug)]
pub struct ProxyListener {
    socket: TcpListener,
    /// The host that a program means which connects there. `None` is for programs that take a proxy.
    host: Option<ProxyTarget>,
}

impl ProxyListener {
    /// The door at this socket, one of those that the rules ask for.
    ///
    /// # Errors
    /// What the kernel answers; `AddrNotAvailable` where the socket lies at another redirect's address.
    pub fn new(socket: std::net::TcpListener, rules: &[HostRule]) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let SocketAddr::V4(at) = socket.local_addr()? else {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        };
        let socket = TcpListener::from_std(socket)?;
        if *at.ip() == Ipv4Addr::LOCALHOST {
            return Ok(Self { socket, host: None });
        }
        let redirects = redirects(rules);
        let name = redirects.into_iter().find(|redirect| redirect.address == *at.ip());
        let name = name.ok_or(io::ErrorKind::AddrNotAvailable)?.name;
        let (place, port) = (format!("{name}:{}", at.port()), at.port());
        Ok(Self { socket, host: Some(ProxyTarget { place, name, port }) })
    }
}

/// The next connection, and the host that it is for.
pub(crate) async fn accept(
    doors: &[ProxyListener],
) -> io::Result<(TcpStream, Option<&ProxyTarget>)> {
    std::future::poll_fn(|context| {
        for door in doors {
            if let Poll::Ready(accepted) = door.socket.poll_accept(context) {
                return Poll::Ready(accepted.map(|(stream, _)| (stream, door.host.as_ref())));
            }
        }
        Poll::Pending
    })
    .await
}
