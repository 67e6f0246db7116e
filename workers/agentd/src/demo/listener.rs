//! A listener on this machine that counts connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// It listens until the process ends.
#[derive(Debug)]
pub(super) struct DemoListener {
    address: SocketAddr,
    visitors: Arc<AtomicU32>,
}

impl DemoListener {
    /// Opens it on a free port of 127.0.0.1.
    pub(super) fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let visitors = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&visitors);
        std::thread::spawn(move || {
            while listener.accept().is_ok() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Ok(Self { address, visitors })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connects from outside a cage, to prove that a connection is counted.
    pub(super) fn counts_a_visitor(&self) -> bool {
        let before = self.visitors();
        let deadline = Instant::now() + Duration::from_secs(2);
        if TcpStream::connect_timeout(&self.address, Duration::from_secs(2)).is_err() {
            return false;
        }
        while self.visitors() == before {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.visitors() == before + 1
    }

    pub(super) fn visitors(&self) -> u32 {
        self.visitors.load(Ordering::SeqCst)
    }
}
