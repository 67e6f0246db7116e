//! Sockets: off is off, what is outside the grants is not reached, and loopback works in tier A.

use super::yard::{TIERS, Yard, dns, mark};
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

/// How many connections a listener that does not wait has been given, with what came.
fn arrived(listener: &UnixListener) -> usize {
    listener.set_nonblocking(true).unwrap();
    let mut count = 0;
    while listener.accept().is_ok() {
        count += 1;
    }
    count
}

#[test]
fn a_unix_socket_outside_is_not_reached() {
    for tier in TIERS {
        let yard = Yard::new();
        let path = yard.root.join("outside.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let name = format!("agentd-test-{}", mark());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let hidden = UnixListener::bind_addr(&address).unwrap();
        let text = path.to_str().unwrap();
        let project = yard.project.to_str().unwrap();
        for act in [
            &["unix", text][..],
            &["unix-relative", project, "../outside.sock"],
            &["unix-abstract", &name],
        ] {
            for network in ["off", "on"] {
                let said = yard.caged_with(tier, &["network", network], act);
                assert!(!said.starts_with("done"), "{tier} {network} {act:?}: {said}");
            }
        }
        assert_eq!(arrived(&listener), 0, "{tier}");
        assert_eq!(arrived(&hidden), 0, "{tier}");
        assert!(yard.free(&["unix", text]).starts_with("done"));
        assert!(yard.free(&["unix-abstract", &name]).starts_with("done"));
        assert_eq!(arrived(&listener) + arrived(&hidden), 2, "the controls");
    }
}

#[test]
fn a_unix_socket_inside_the_project_works() {
    for tier in TIERS {
        let yard = Yard::new();
        let own = yard.project.join("own.sock");
        let said = yard.caged(tier, &["unix-own", own.to_str().unwrap()]);
        assert!(said.starts_with("done"), "{tier}: {said}");
    }
}

#[test]
fn a_live_server_gets_nothing_while_the_network_is_off() {
    for tier in TIERS {
        let yard = Yard::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let tcp = listener.local_addr().unwrap().to_string();
        let udp = datagrams.local_addr().unwrap().to_string();
        let said = yard.caged(tier, &["tcp", &tcp]);
        assert!(!said.starts_with("done"), "{tier}: {said}");
        // A datagram into an empty namespace may seem sent.
        yard.caged(tier, &["udp", &udp]);
        assert!(listener.accept().is_err(), "{tier}");
        assert!(datagrams.recv(&mut [0; 9]).is_err(), "{tier}");

        let on = ["network", "on"];
        assert!(yard.caged_with(tier, &on, &["tcp", &tcp]).starts_with("done"), "{tier}");
        let mut bytes = String::new();
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(false).unwrap();
        stream.read_to_string(&mut bytes).unwrap();
        assert_eq!(bytes, "hello");
        assert!(yard.caged_with(tier, &on, &["udp", &udp]).starts_with("done"), "{tier}");
        assert_eq!(datagrams.recv(&mut [0; 9]).unwrap(), 5);
    }
}

#[test]
fn no_other_way_of_sending_reaches_a_live_server_while_the_network_is_off() {
    for tier in TIERS {
        let yard = Yard::new();
        let [tcp, tcp6] = ["127.0.0.1:0", "[::1]:0"].map(|at| TcpListener::bind(at).unwrap());
        let [udp, udp6] = ["127.0.0.1:0", "[::1]:0"].map(|at| UdpSocket::bind(at).unwrap());
        tcp.set_nonblocking(true).unwrap();
        tcp6.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        udp6.set_nonblocking(true).unwrap();
        let [four, six] = [&tcp, &tcp6].map(|at| at.local_addr().unwrap().to_string());
        let [udp4_at, udp6_at] = [&udp, &udp6].map(|at| at.local_addr().unwrap().to_string());
        let acts = [
            ["tcp", &six],
            ["udp", &udp6_at],
            ["fast-open", &four],
            ["mptcp", &four],
            ["raw", &udp4_at],
        ];
        for act in &acts {
            let said = yard.caged(tier, act);
            let sent_nowhere = tier == "a" && act[0] == "udp";
            assert!(!said.starts_with("done") || sent_nowhere, "{tier} {act:?}: {said}");
        }
        let arrived = || {
            let streams = [&tcp, &tcp6].map(|at| usize::from(at.accept().is_ok()));
            let datagrams = [&udp, &udp6].map(|at| usize::from(at.recv(&mut [0; 99]).is_ok()));
            streams.into_iter().chain(datagrams).sum::<usize>()
        };
        assert_eq!(arrived(), 0, "{tier}");
        for act in &acts {
            let said = yard.caged_with(tier, &["network", "on"], act);
            // Refused in every mode, since nothing of a project needs them.
            let never = ["mptcp", "raw"].contains(&act[0]);
            assert_eq!(said.starts_with("done"), !never, "{tier} {act:?}: {said}");
            assert_eq!(arrived(), usize::from(!never), "{tier} {act:?}");
            let free = yard.free(act);
            // Without a cage: raw sockets are root's, and a kernel may have been built without MPTCP.
            let kernels = match act[0] {
                "raw" => "EPERM",
                "mptcp" => "EPROTONOSUPPORT",
                _ => "nothing else",
            };
            assert!(free.starts_with("done") || free.starts_with(kernels), "{act:?}: {free}");
            arrived();
        }
    }
}

/// Names can carry secrets out: each question of a program goes to whoever answers for the name.
#[test]
fn a_name_server_is_asked_nothing_while_the_network_is_off() {
    for tier in TIERS {
        let yard = Yard::new();
        for bound in ["127.0.0.1:0", "[::1]:0"] {
            let server = dns::Server::at(bound);
            let address = server.address.to_string();
            for act in ["ask-by-datagram", "ask-by-stream"] {
                let act = [act, &address, dns::NAME];
                let said = yard.caged(tier, &act);
                assert!(!said.starts_with("done"), "{tier} {act:?}: {said}");
                assert_eq!(server.arrived(), 0, "{tier} {act:?}");
                let found = format!("done {}", dns::FOUND);
                assert_eq!(
                    yard.caged_with(tier, &["network", "on"], &act),
                    found,
                    "{tier} {act:?}"
                );
                assert_ne!(server.arrived(), 0, "{tier} {act:?}");
            }
        }
    }
}

#[test]
fn a_unix_datagram_reaches_nobody_outside() {
    for tier in TIERS {
        let yard = Yard::new();
        let path = yard.root.join("outside.sock");
        let outside = UnixDatagram::bind(&path).unwrap();
        outside.set_nonblocking(true).unwrap();
        for act in ["unix-datagram", "unix-datagram-pair"] {
            let act = [act, path.to_str().unwrap()];
            for network in ["off", "on"] {
                let said = yard.caged_with(tier, &["network", network], &act);
                assert!(!said.starts_with("done"), "{tier} {network} {act:?}: {said}");
            }
            assert!(outside.recv(&mut [0; 9]).is_err(), "{tier} {act:?}");
            assert!(yard.free(&act).starts_with("done"));
            assert_eq!(outside.recv(&mut [0; 9]).unwrap(), 5, "the control");
        }
    }
}

#[test]
fn a_listener_of_the_host_that_loopback_does_not_reach_is_a_refusal_and_a_deaf_port_is_none() {
    let yard = Yard::new();
    for bound in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
        let listener = TcpListener::bind(bound).unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = if bound.starts_with('[') {
            format!("[::1]:{port}")
        } else {
            format!("127.0.0.1:{port}")
        };
        let program = [yard.inside.to_str().unwrap(), "try", "tcp", &address];
        let told = yard.cage("a", &[], &program);
        let line = format!("Predicted connect {} {address} of the host", libc::ECONNREFUSED);
        assert_eq!(told.in_tier("a").all("refusal"), [line.as_str()], "{told:?}");
        // A server of the cage's own on the same port is reached, and so is no refusal.
        let own = yard.cage("a", &[], &[program[0], "try", "serve", &address]);
        assert!(own.printed().contains("done"), "{own:?}");
        assert!(own.all("refusal").is_empty(), "{own:?}");
        // UDP connects without anybody at the other end.
        let datagrams = yard.cage("a", &[], &[program[0], "try", "udp-connect", &address]);
        assert!(datagrams.printed().contains("done"), "{datagrams:?}");
        assert!(datagrams.all("refusal").is_empty(), "{datagrams:?}");
        drop(listener);
        let nobody = yard.cage("a", &[], &program);
        assert!(!nobody.printed().contains("done"), "{nobody:?}");
        assert!(nobody.all("refusal").is_empty(), "{nobody:?}");
    }
}

#[test]
fn a_socket_in_a_place_that_is_only_readable_is_not_reached_or_named() {
    for tier in TIERS {
        let yard = Yard::new();
        let programs = yard.home.join(".local/bin");
        std::fs::create_dir_all(&programs).unwrap();
        let path = programs.join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let said = yard.caged(tier, &["unix", path.to_str().unwrap()]);
        let limits = yard.shell(tier, ":");
        let named = limits.all("limit").iter().any(|limit| limit.contains("readable directories"));
        assert_eq!(said.starts_with("done"), named, "{tier}: {said} {limits:?}");
        assert_eq!(arrived(&listener), usize::from(named), "{tier}");
    }
}

#[test]
fn loopback_works_inside_tier_a_and_its_absence_is_named_in_tier_b() {
    let yard = Yard::new();
    assert!(yard.caged("a", &["loopback"]).starts_with("done"));
    assert!(!yard.caged("b", &["loopback"]).starts_with("done"));
    let told = yard.shell("b", ":");
    assert!(told.all("limit").iter().any(|limit| limit.contains("loopback")));
    assert_eq!(told.one("network"), "off (no INET sockets)");
    assert_eq!(yard.shell("a", ":").one("network"), "off (own namespace)");
    assert_eq!(yard.cage("a", &["network", "on"], &["true"]).one("network"), "on");
}
