//! An HTTP server that counts requests by their path: an effect outside of every workspace.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub struct Counter {
    pub port: u16,
    hits: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Counter {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let hits = Arc::new(Mutex::new(BTreeMap::new()));
        let shared = Arc::clone(&hits);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || count(&socket, &shared));
            }
        });
        Self { port, hits }
    }

    /// How often this path was asked for.
    pub fn hits(&self, path: &str) -> usize {
        self.hits.lock().unwrap().get(path).copied().unwrap_or(0)
    }

    pub fn all(&self) -> BTreeMap<String, usize> {
        self.hits.lock().unwrap().clone()
    }
}

fn count(mut socket: &TcpStream, hits: &Mutex<BTreeMap<String, usize>>) {
    let mut line = String::new();
    let _ = BufReader::new(socket).read_line(&mut line);
    let Some(path) = line.split(' ').nth(1) else { return };
    *hits.lock().unwrap().entry(path.to_owned()).or_default() += 1;
    let _ = socket
        .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 8\r\n\r\ncounted\n");
}
