//! A network of namespaces: one for the database, one for each host, and a link from each host to the
//! database. Needs root. The soak uses it.

use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

pub struct Network {
    name: String,
    hosts: usize,
}

impl Network {
    pub fn new(hosts: usize) -> Self {
        crate::support::needs("ip");
        crate::support::needs("nsenter");
        crate::support::needs("tc");
        let network = Self { name: format!("fleet{}", std::process::id()), hosts };
        let database = network.database();
        ip(&["netns", "add", &database]);
        ip(&["-n", &database, "link", "set", "lo", "up"]);
        for host in 0..hosts {
            let name = network.of_host(host);
            ip(&["netns", "add", &name]);
            ip(&["-n", &name, "link", "set", "lo", "up"]);
            let (far, port) = (format!("to{host}"), "db");
            let link = ["-n", &database, "link", "add", &far, "type", "veth"];
            ip(&[&link[..], &["peer", "name", port, "netns", &name]].concat());
            let [here, there] = addresses(host);
            ip(&["-n", &database, "addr", "add", &format!("{here}/30"), "dev", &far]);
            ip(&["-n", &name, "addr", "add", &format!("{there}/30"), "dev", port]);
            ip(&["-n", &database, "link", "set", &far, "up"]);
            ip(&["-n", &name, "link", "set", port, "up"]);
        }
        network
    }

    /// The namespace of the database.
    pub fn database(&self) -> String {
        format!("{}-db", self.name)
    }

    /// The namespace of a host.
    pub fn of_host(&self, host: usize) -> String {
        format!("{}-{host}", self.name)
    }

    /// The address of the database, as this host reaches it.
    pub fn address_for(host: usize) -> String {
        addresses(host)[0].clone()
    }

    pub fn cut(&self, host: usize) {
        ip(&["-n", &self.database(), "link", "set", &format!("to{host}"), "down"]);
    }

    pub fn mend(&self, host: usize) {
        ip(&["-n", &self.database(), "link", "set", &format!("to{host}"), "up"]);
    }

    /// Lets so little through that requests take seconds.
    pub fn slow(&self, host: usize) {
        let slow = ["rate", "24kbit", "burst", "1600", "latency", "2s"];
        let device = format!("to{host}");
        let tc = ["-n", &self.database(), "qdisc", "add", "dev", &device, "root", "tbf"];
        run("tc", &[&tc[..], &slow].concat());
    }

    pub fn fast(&self, host: usize) {
        let device = format!("to{host}");
        run("tc", &["-n", &self.database(), "qdisc", "del", "dev", &device, "root"]);
    }

    /// Lets each host reach this port of the test at its own loopback address.
    pub fn relay(&self, port: u16) {
        for host in 0..self.hosts {
            let namespace = format!("/run/netns/{}", self.of_host(host));
            // A thread enters the namespace and ends. The listener stays there.
            let listener = std::thread::spawn(move || {
                setns(File::open(namespace).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
                TcpListener::bind(("127.0.0.1", port)).unwrap()
            });
            let listener = listener.join().unwrap();
            std::thread::spawn(move || {
                for socket in listener.incoming().flatten() {
                    std::thread::spawn(move || carry(socket, port));
                }
            });
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let hosts = (0..self.hosts).map(|host| self.of_host(host));
        for name in hosts.chain([self.database()]) {
            let _ = Command::new("ip").args(["netns", "del", &name]).status();
        }
    }
}

/// `nsenter`, which becomes the program that follows.
pub fn entering(namespace: &str) -> Vec<String> {
    vec!["nsenter".to_owned(), format!("--net=/run/netns/{namespace}"), "--".to_owned()]
}

/// Both ends of a host's link: the database's and the host's.
fn addresses(host: usize) -> [String; 2] {
    [1, 2].map(|end| format!("10.213.{host}.{end}"))
}

fn carry(near: TcpStream, port: u16) {
    let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { return };
    let copy = |from: &TcpStream, to: &TcpStream| {
        let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        })
    };
    let threads = [copy(&near, &far), copy(&far, &near)];
    for thread in threads {
        thread.join().unwrap();
    }
}

fn ip(words: &[&str]) {
    run("ip", words);
}

fn run(program: &str, words: &[&str]) {
    let done = Command::new(program).args(words).stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {words:?}: {error}");
}
