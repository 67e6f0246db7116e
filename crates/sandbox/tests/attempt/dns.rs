//! Asking for the address of a name: by the system's resolver, or a server by hand as `dig` does.
//! Done means that there was an answer.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tries it; the address that was found.
pub fn perform(act: &str, words: &[&str]) -> io::Result<String> {
    match (act, words) {
        ("resolve", [name]) => {
            let found = (*name, 0).to_socket_addrs()?.next();
            found.map(|found| found.ip().to_string()).ok_or(io::ErrorKind::NotFound.into())
        }
        ("ask-by-datagram", [server, name]) => {
            let server: SocketAddr = server.parse().map_err(io::Error::other)?;
            let own = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(own)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.connect(server)?;
            socket.send(&question(name))?;
            let mut answer = [0; 512];
            let length = socket.recv(&mut answer)?;
            address(&answer[..length])
        }
        ("ask-by-stream", [server, name]) => {
            let mut stream = TcpStream::connect(server)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            let question = question(name);
            let length = u16::try_from(question.len()).map_err(io::Error::other)?.to_be_bytes();
            stream.write_all(&[&length[..], &question].concat())?;
            let mut length = [0; 2];
            stream.read_exact(&mut length)?;
            let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut answer)?;
            address(&answer)
        }
        _ => Err(io::Error::other(format!("no such act: {act} {words:?}"))),
    }
}

/// Which address of the Internet the name has, please.
fn question(name: &str) -> Vec<u8> {
    let mut message = vec![0xa9, 0xd0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        message.push(u8::try_from(label.len()).expect("a short label"));
        message.extend(label.as_bytes());
    }
    message.extend([0, 0, 1, 0, 1]);
    message
}

/// The address at the end of an answer.
fn address(answer: &[u8]) -> io::Result<String> {
    match answer {
        [0xa9, 0xd0, .., a, b, c, d] => Ok(Ipv4Addr::new(*a, *b, *c, *d).to_string()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
