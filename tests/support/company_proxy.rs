//! A company's proxy for a test: it opens tunnels for `CONNECT` and forwards requests with an absolute
//! URL, each to the address that its own names lead to, and records the heads of what it was asked.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What it does with each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyHabit {
    /// Forwards it.
    Forwards,
    /// Forwards it where it has this sign-in, and else asks for it.
    WantsSignIn(&'static str),
    /// Answers this.
    Says(&'static str),
}

/// The proxy, with the heads of its requests.
#[derive(Clone)]
pub struct CompanyProxy(Arc<Mutex<Vec<String>>>);

impl CompanyProxy {
    /// Serves at this address. `names` are its own: those that it can resolve.
    pub fn serve(
        at: (Ipv4Addr, u16),
        habit: ProxyHabit,
        names: impl Fn(&str) -> Option<SocketAddr> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(at).unwrap();
        let proxy = Self(Arc::default());
        let (heads, names) = (Arc::clone(&proxy.0), Arc::new(names));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (heads, names) = (Arc::clone(&heads), Arc::clone(&names));
                // A broken connection is the client's matter.
                thread::spawn(move || drop(answer(client, habit, &heads, &*names)));
            }
        });
        proxy
    }

    /// The heads of all requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

fn answer(
    mut client: TcpStream,
    habit: ProxyHabit,
    heads: &Mutex<Vec<String>>,
    names: &dyn Fn(&str) -> Option<SocketAddr>,
) -> io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0; 1];
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte)? == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    heads.lock().unwrap().push(head.clone());
    let says = match habit {
        ProxyHabit::Forwards => None,
        ProxyHabit::WantsSignIn(basic) if head.contains(basic) => None,
        ProxyHabit::WantsSignIn(_) => Some(
            "HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\
             content-length: 0\r\n\r\n",
        ),
        ProxyHabit::Says(text) => Some(text),
    };
    if let Some(text) = says {
        return client.write_all(text.as_bytes());
    }
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let place = target.strip_prefix("http://").unwrap_or(target);
    let (place, path) = place.split_once('/').unwrap_or((place, ""));
    let place = if place.contains(':') { place.to_owned() } else { format!("{place}:80") };
    let server = names(&place).and_then(|address| TcpStream::connect(address).ok());
    let Some(mut server) = server else {
        return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
    };
    match method {
        "CONNECT" => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
        _ => {
            let rest = head.split_once("\r\n").unwrap_or_default().1;
            // One request a connection, so that the next one is read here again.
            let first = format!("{method} /{path} HTTP/1.1\r\nconnection: close\r\n{rest}");
            server.write_all(first.as_bytes())?;
        }
    }
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Write)
}
