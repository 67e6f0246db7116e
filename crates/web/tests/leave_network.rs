//! The web's engine without its network, as it is while an image is decoded. A file of its own, since
//! its process has no network afterwards.
#![allow(clippy::unwrap_used)]

use protocol::company_proxy::ProxyEnvironment;
use protocol::web::{PrivateNetworks, WebAddress, WebSettings};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;
use tools::WebEngine;
use web::{Fetcher, Judge};

struct Rules;

impl Judge for Rules {
    fn may_follow(&self, _: &WebAddress) -> bool {
        true
    }

    fn is_named_by_a_rule(&self, _: &WebAddress) -> bool {
        false
    }
}

#[test]
fn no_thread_connects_anywhere_once_the_network_is_left() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let _unix = UnixListener::bind(&path).unwrap();
    let attempts = move || {
        [
            TcpStream::connect(address).map(drop),
            UdpSocket::bind("127.0.0.1:0").map(drop),
            UnixStream::connect(&path).map(drop),
        ]
        .map(|attempt| attempt.err().map(|error| error.kind()))
    };
    assert_eq!(attempts(), [None; 3], "everything can be reached before");
    // A thread that runs already is bound too.
    let (go, wait) = mpsc::channel();
    let early = std::thread::spawn({
        let attempts = attempts.clone();
        move || {
            wait.recv().unwrap();
            attempts()
        }
    });
    let settings = WebSettings {
        private: PrivateNetworks::Reached,
        search_url: "http://localhost/".to_owned(),
    };
    Fetcher::new(settings, Rules, ProxyEnvironment::default()).leave_network().unwrap();
    go.send(()).unwrap();
    for found in [attempts(), early.join().unwrap()] {
        for kind in found {
            assert!(!matches!(kind, None | Some(ErrorKind::ConnectionRefused)), "{found:?}");
        }
    }
}
