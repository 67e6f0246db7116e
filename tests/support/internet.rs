//! A private internet for a test: a network namespace whose loopback has public and private
//! addresses, a name server with the test's answers, and servers that record their clients. The
//! executables, the system's resolver and the addresses are the real ones.

use super::{is_root, needs};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Set where the test runs inside.
const INSIDE: &str = "AGENTD_TEST_INTERNET";

/// A public address, of a server that is allowed.
pub const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);
/// Another one.
pub const OTHER: Ipv4Addr = Ipv4Addr::new(151, 101, 1, 69);
/// In a private network.
pub const PRIVATE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
/// Where clouds keep credentials.
pub const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

/// A public address of IPv6, of a server that is allowed; [`with_ipv6`] brings it up.
pub const PUBLIC_V6: Ipv6Addr =
    Ipv6Addr::new(0x2606, 0x2800, 0x220, 1, 0x248, 0x1893, 0x25c8, 0x1946);
/// One in a private network of IPv6; likewise.
pub const PRIVATE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);

/// Runs the body of the test of this name in a private internet. It runs in another process of this
/// program, since a process belongs to one network namespace.
#[track_caller]
pub fn within(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        set_up();
        return body();
    }
    needs("unshare");
    needs("ip");
    needs("mount");
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount"]);
    if !is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let program = std::env::current_exe().unwrap();
    // The full name has the test's modules before it.
    let listed = Command::new(&program).args(["--list", "--include-ignored"]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut named = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    let test = named.find(|name| name.rsplit("::").next() == Some(test)).unwrap_or(test);
    let output = command
        .arg(&program)
        .args(["--exact", test, "--nocapture", "--include-ignored", "--test-threads", "1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "inside:\n{out}\n{err}");
    assert!(out.contains("1 passed"), "nothing of that name ran: {out}\n{err}");
}

/// Gives this internet addresses of IPv6 too.
pub fn with_ipv6() {
    for address in [PUBLIC_V6, PRIVATE_V6] {
        run("ip", &["-6", "address", "add", &format!("{address}/128"), "dev", "lo", "nodad"]);
    }
}

/// Puts this administrator's configuration in its place, for every process of this test alone.
pub fn with_managed(text: &str) {
    let copy = tempfile::Builder::new().prefix("agentd-etc").tempdir().unwrap().keep();
    // Files that only root can read are left out.
    let _ = Command::new("cp").args(["-r", "--no-target-directory", "/etc"]).arg(&copy).output();
    std::fs::create_dir_all(copy.join("agentd")).unwrap();
    std::fs::write(copy.join("agentd/config.toml"), text).unwrap();
    run("mount", &["--bind", copy.to_str().unwrap(), "/etc"]);
}

#[track_caller]
fn run(program: &str, arguments: &[&str]) {
    let ran = Command::new(program).args(arguments).output().unwrap();
    let err = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{program} {arguments:?}: {err}");
}

fn set_up() {
    run("ip", &["link", "set", "lo", "up"]);
    for address in [PUBLIC, OTHER, PRIVATE, METADATA] {
        run("ip", &["address", "add", &format!("{address}/32"), "dev", "lo"]);
    }
    let kept = tempfile::Builder::new().prefix("agentd-i").tempdir().unwrap().keep();
    for (name, text) in [
        (
            "resolv.conf",
            "nameserver 127.0.0.1\nsearch lan.test\noptions ndots:5 timeout:2 attempts:1\n",
        ),
        ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    ] {
        let own = kept.join(name);
        std::fs::write(&own, text).unwrap();
        run("mount", &["--bind", own.to_str().unwrap(), &format!("/etc/{name}")]);
    }
    // Mounted files live on without their names.
    let _ = std::fs::remove_dir_all(&kept);
}

/// A name server, with how often each name was asked for.
#[derive(Clone)]
pub struct Names(Arc<Mutex<HashMap<String, usize>>>);

impl Names {
    /// Answers with the addresses of `says`, which is given the name and how often its address of IPv4
    /// was asked for before; a name without addresses does not exist.
    pub fn serve<A: Into<IpAddr>>(says: impl Fn(&str, usize) -> Vec<A> + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:53").unwrap();
        let names = Self(Arc::default());
        let asked = names.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                if let Some(answer) = asked.answer(&buffer[..length], &says) {
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        names
    }

    /// How often the address of a name was asked for.
    pub fn asked(&self, name: &str) -> usize {
        self.0.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    fn answer<A: Into<IpAddr>>(
        &self,
        query: &[u8],
        says: &impl Fn(&str, usize) -> Vec<A>,
    ) -> Option<Vec<u8>> {
        let mut labels = Vec::new();
        let mut at = 12;
        while query.get(at).copied()? > 0 {
            let length = usize::from(query[at]);
            labels.push(String::from_utf8_lossy(query.get(at + 1..=at + length)?).into_owned());
            at += length + 1;
        }
        let name = labels.join(".").to_lowercase();
        let question = query.get(12..at + 5)?;
        let kind = u16::from_be_bytes([query[at + 1], query[at + 2]]);
        let before = match kind {
            1 => {
                let mut asked = self.0.lock().unwrap();
                let times = asked.entry(name.clone()).or_default();
                *times += 1;
                *times - 1
            }
            _ => 0,
        };
        let known: Vec<IpAddr> = says(&name, before).into_iter().map(Into::into).collect();
        let addresses: Vec<Vec<u8>> = known
            .iter()
            .filter_map(|address| match (kind, address) {
                (1, IpAddr::V4(address)) => Some(address.octets().to_vec()),
                (28, IpAddr::V6(address)) => Some(address.octets().to_vec()),
                _ => None,
            })
            .collect();
        let count = u16::try_from(addresses.len()).unwrap();
        let mut answer = query[..2].to_vec();
        answer.extend(if known.is_empty() { [0x81, 0x83] } else { [0x81, 0x80] });
        answer.extend([0, 1]);
        answer.extend(count.to_be_bytes());
        answer.extend([0; 4]);
        answer.extend(question);
        for address in addresses {
            answer.extend([0xc0, 12]);
            answer.extend(kind.to_be_bytes());
            answer.extend([0, 1, 0, 0, 0, 0, 0]);
            answer.push(u8::try_from(address.len()).unwrap());
            answer.extend(address);
        }
        Some(answer)
    }
}

/// A server of the small internet, with the heads of the requests it got.
#[derive(Clone)]
pub struct Site(Arc<Mutex<Vec<String>>>);

impl Site {
    /// Answers each request at this address with the result of `says` for its head.
    pub fn serve(
        address: impl Into<IpAddr>,
        port: u16,
        says: impl Fn(&str) -> String + Send + 'static,
    ) -> Self {
        Self::sends(address, port, move |head, mut to| {
            let _ = to.write_all(says(head).as_bytes());
        })
    }

    /// Gives each request's head and connection to `does`, which writes the answer; one request
    /// after the other.
    pub fn sends(
        address: impl Into<IpAddr>,
        port: u16,
        does: impl Fn(&str, &TcpStream) + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind(SocketAddr::new(address.into(), port)).unwrap();
        let site = Self(Arc::default());
        let heads = Arc::clone(&site.0);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A connection counts though nothing comes over it.
                let head = head(&stream);
                heads.lock().unwrap().push(head.clone());
                does(&head, &stream);
            }
        });
        site
    }

    /// The heads of all connections so far.
    pub fn heads(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A page with this text.
pub fn page(text: &str) -> String {
    let length = text.len();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}")
}

/// A page that leads elsewhere.
pub fn leads_to(url: &str) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nlocation: {url}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )
}

fn head(mut stream: &TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut head = Vec::new();
    let mut byte = [0; 1];
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}
