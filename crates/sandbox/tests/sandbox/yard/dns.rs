//! A name server of the test, on the host: what arrives is counted, and each question for an address
//! is answered with the same one.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The name that is asked for. `.test` is nobody's, so no other server knows it.
pub const NAME: &str = "cage.agentd.test";
/// What every name leads to here: an address that is kept for examples.
pub const FOUND: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
/// The kind of a question for such an address.
const A: [u8; 2] = [0, 1];

/// Answers by datagram and by stream until the test is over.
pub struct Server {
    pub address: SocketAddr,
    arrived: Arc<AtomicUsize>,
}

impl Server {
    /// Listens there; where the port is 0, at one that is free for both.
    pub fn at(address: &str) -> Self {
        let datagrams = UdpSocket::bind(address)
            .unwrap_or_else(|error| panic!("a name server can listen at {address}: {error}"));
        let address = datagrams.local_addr().unwrap();
        let streams = TcpListener::bind(address)
            .unwrap_or_else(|error| panic!("a name server can listen at {address}: {error}"));
        let arrived = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&arrived);
        thread::spawn(move || {
            let mut bytes = [0; 1500];
            while let Ok((length, from)) = datagrams.recv_from(&mut bytes) {
                count.fetch_add(length, Ordering::SeqCst);
                if let Some(answer) = answer(&bytes[..length]) {
                    let _ = datagrams.send_to(&answer, from);
                }
            }
        });
        let count = Arc::clone(&arrived);
        thread::spawn(move || {
            for stream in streams.incoming().flatten() {
                // A connection alone would already be too much.
                count.fetch_add(1, Ordering::SeqCst);
                let count = Arc::clone(&count);
                thread::spawn(move || converse(&stream, &count));
            }
        });
        Self { address, arrived }
    }

    /// How much came in since the last look. What was sent is there when its sender has ended, but
    /// may not have been taken up yet.
    pub fn arrived(&self) -> usize {
        thread::sleep(Duration::from_millis(50));
        self.arrived.swap(0, Ordering::SeqCst)
    }
}

/// Questions and answers on one connection, each behind its length.
fn converse(mut stream: &TcpStream, count: &AtomicUsize) {
    let mut length = [0; 2];
    while stream.read_exact(&mut length).is_ok() {
        let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
        if stream.read_exact(&mut question).is_err() {
            return;
        }
        count.fetch_add(question.len(), Ordering::SeqCst);
        let Some(answer) = answer(&question) else { return };
        let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
        if stream.write_all(&[&length[..], &answer].concat()).is_err() {
            return;
        }
    }
}

/// The answer: the question again and, where it asks for one, the address.
fn answer(message: &[u8]) -> Option<Vec<u8>> {
    let name = message.get(12..)?.iter().position(|&byte| byte == 0)?;
    let question = message.get(12..12 + name + 5)?;
    let found = question[name + 1..].starts_with(&A);
    let mut answer = message[..2].to_vec();
    // An answer, recursion available; one question, at most one answer.
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(found), 0, 0, 0, 0]);
    answer.extend(question);
    if found {
        // The name by reference, an address, for a second.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        answer.extend(FOUND.octets());
    }
    Some(answer)
}
