//! Listeners at which a command finds the proxy: one for programs that support proxies, and one for
//! each host and port to which [`redirects`] leads other programs by name. Used by `proxy`.

use crate::proxy::target::ProxyTarget;
use protocol::hosts::{HostRule, redirects};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::task::Poll;
use tokio::net::{TcpListener, TcpStream};

/// A socket at which a command finds the proxy.
#[derive(Debug)]
pub struct ProxyListener {
    socket: TcpListener,
    /// The host that programs mean when they connect here. `None` for programs that support
    /// proxies.
    host: Option<ProxyTarget>,
}

impl ProxyListener {
    /// Wraps a listening socket; its address tells which of the rules' redirects it serves.
    ///
    /// # Errors
    /// Errors of the kernel; `AddrNotAvailable` if no redirect has the socket's address.
    pub fn new(socket: std::net::TcpListener, rules: &[HostRule]) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let SocketAddr::V4(at) = socket.local_addr()? else {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        };
        let socket = TcpListener::from_std(socket)?;
        if *at.ip() == Ipv4Addr::LOCALHOST {
            return Ok(Self { socket, host: None });
        }
        let redirects = redirects(rules, at.ip().octets()[2]);
        let name = redirects.into_iter().find(|redirect| redirect.address == *at.ip());
        let name = name.ok_or(io::ErrorKind::AddrNotAvailable)?.name;
        let (place, port) = (format!("{name}:{}", at.port()), at.port());
        Ok(Self { socket, host: Some(ProxyTarget { place, name, port }) })
    }
}

/// Accepts the next connection and returns the host that it is for.
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
