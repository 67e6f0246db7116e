//! Emulated connections: sockets below the granted roots are reached, and no others.

use super::{TestDirs, c, lines, test_config, test_dirs};
use crate::notify::NotifyConfig;
use crate::seccomp::FilterSpec;
use crate::seccomp::tests::child::{raw, under};
use crate::seccomp::tests::{MARK, NEW};
use protocol::confinement::{Network, RefusalKind, Tier};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

fn watch_over(place: &TestDirs, network: Network) -> NotifyConfig {
    NotifyConfig {
        sockets: vec![place.project.clone()],
        network,
        ..test_config(FilterSpec::command(Tier::B, network, NEW, MARK))
    }
}

fn address(path: &Path) -> Vec<u8> {
    let mut bytes = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    bytes.extend(c(path).as_bytes_with_nul());
    bytes
}

/// The errno of a connect by a new socket, and the bytes that its peer sent.
fn connect(family: u64, address: &[u8]) -> i64 {
    let socket = raw(libc::SYS_socket, [family, 1, 0, 0, 0, 0]) as u64;
    let length = address.len() as u64;
    raw(libc::SYS_connect, [socket, address.as_ptr() as u64, length, 0, 0, 0])
}

#[test]
fn unix_sockets_are_reached_beneath_the_grants_only() {
    let place = test_dirs();
    let inside = UnixListener::bind(place.project.join("s")).unwrap();
    let outside = UnixListener::bind(place.outside.join("s")).unwrap();
    outside.set_nonblocking(true).unwrap();
    let name = format!("agentd-test-{}", std::process::id());
    let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    hidden.set_nonblocking(true).unwrap();
    symlink(place.outside.join("s"), place.project.join("link")).unwrap();
    std::fs::write(place.project.join("file"), "").unwrap();
    let project = c(&place.project);
    let greeter = std::thread::spawn(move || {
        for _ in 0..3 {
            inside.accept().unwrap().0.write_all(b"hello").unwrap();
        }
    });
    let mut abstract_address = vec![1, 0, 0];
    abstract_address.extend(name.as_bytes());
    let outcome = under(watch_over(&place, Network::Off), || {
        let mut answers = vec![
            connect(1, &address(&place.project.join("s"))),
            connect(1, &address(&place.outside.join("s"))),
            connect(1, &address(&place.project.join("../outside/s"))),
            connect(1, &address(&place.project.join("link"))),
            connect(1, &abstract_address),
            connect(1, &address(&place.project.join("none"))),
            connect(1, &address(&place.outside.join("none"))),
            connect(1, &address(&place.project.join("file"))),
            connect(1, &[1, 0]),
            raw(libc::SYS_connect, [0x7FFF, 1, 16, 0, 0, 0]),
            raw(libc::SYS_chdir, [project.as_ptr() as u64, 0, 0, 0, 0, 0]),
            connect(1, &address(Path::new("s"))),
            connect(1, &address(Path::new("../outside/s"))),
        ];
        let mut stream = UnixStream::connect(place.project.join("s")).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        answers.push(i64::from(said == "hello"));
        answers
    });
    greeter.join().unwrap();
    let no = |errno: i32| -i64::from(errno);
    let denied = no(libc::EACCES);
    let missing = no(libc::ENOENT);
    assert_eq!(outcome.answers[..5], [0, denied, denied, denied, denied]);
    assert_eq!(outcome.answers[5..7], [missing, missing]);
    assert_eq!(outcome.answers[7..10], [no(libc::ECONNREFUSED), no(libc::EINVAL), no(libc::EBADF)]);
    assert_eq!(outcome.answers[10..], [0, 0, denied, 1]);
    let path = place.outside.join("s").display().to_string();
    let hidden_words = format!("abstract socket @{name}");
    let line = |words| (RefusalKind::Refused, "connect", words, libc::EACCES);
    assert_eq!(
        lines(&outcome.record.refusals),
        [line(path.as_str()), line(hidden_words.as_str()), line(path.as_str())]
    );
    assert_eq!(outcome.record.refusals[0].count, 3);
    for listener in [outside, hidden] {
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

#[test]
fn a_program_that_hides_its_memory_is_refused_on_the_record() {
    let place = test_dirs();
    let _inside = UnixListener::bind(place.project.join("s")).unwrap();
    let outcome = under(watch_over(&place, Network::Off), || {
        let hidden = raw(libc::SYS_prctl, [libc::PR_SET_DUMPABLE as u64, 0, 0, 0, 0, 0]);
        // Root would see through it.
        let may_see = raw(libc::SYS_geteuid, [0; 6]) == 0;
        vec![hidden, connect(1, &address(&place.project.join("s"))), i64::from(may_see)]
    });
    let expected = match outcome.answers[2] {
        0 => (-i64::from(libc::EPERM), 1),
        _ => (0, 0),
    };
    assert_eq!((outcome.answers[1], outcome.record.refusals.len()), expected);
}

#[test]
fn internet_sockets_are_carried_when_the_network_is_on() {
    let place = test_dirs();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_be_bytes();
    let bytes = [&[2, 0][..], &port, &[127, 0, 0, 1], &[0; 8]].concat();
    let on = under(watch_over(&place, Network::On), || {
        let waiting = connect(2, &bytes);
        // Not waiting for the connection: it is under way or made.
        let kind = (libc::SOCK_STREAM | libc::SOCK_NONBLOCK) as u64;
        let socket = raw(libc::SYS_socket, [2, kind, 0, 0, 0, 0]) as u64;
        let length = bytes.len() as u64;
        let started = raw(libc::SYS_connect, [socket, bytes.as_ptr() as u64, length, 0, 0, 0]);
        vec![waiting, i64::from(started == 0 || started == -i64::from(libc::EINPROGRESS))]
    });
    assert_eq!((on.answers.as_slice(), lines(&on.record.refusals).len()), (&[0, 1][..], 0));
    // Bound and not listening, so that no other process can take the port either.
    let deaf = raw(libc::SYS_socket, [2, 1, 0, 0, 0, 0]) as u64;
    let mut bytes = [&[2, 0][..], &[0, 0], &[127, 0, 0, 1], &[0; 8]].concat();
    let mut length = 16_u32;
    let (at, room) = (bytes.as_mut_ptr() as u64, &raw mut length as u64);
    assert_eq!(raw(libc::SYS_bind, [deaf, at, 16, 0, 0, 0]), 0);
    assert_eq!(raw(libc::SYS_getsockname, [deaf, at, room, 0, 0, 0]), 0);
    let gone = under(watch_over(&place, Network::On), || vec![connect(2, &bytes)]);
    assert_eq!(gone.answers, [-i64::from(libc::ECONNREFUSED)]);
}

#[test]
fn a_connection_that_waits_holds_up_nobody_else() {
    let place = test_dirs();
    // A full queue: the first connection waits in it, the next has to wait for room.
    let path = place.project.join("full");
    let listener = UnixListener::bind(&path).unwrap();
    // SAFETY: takes numbers only; the socket listens already, this shortens its queue.
    #[allow(unsafe_code)]
    unsafe {
        libc::listen(listener.as_raw_fd(), 0);
    }
    let _first = UnixStream::connect(&path).unwrap();
    let go = place.project.join("go");
    let acceptor = std::thread::spawn({
        let go = go.clone();
        move || {
            while !go.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            (listener.accept().unwrap(), listener.accept().unwrap())
        }
    });
    let outcome = under(watch_over(&place, Network::Off), || {
        let begun = Instant::now();
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || connect(1, &address(&path))
        });
        std::thread::sleep(Duration::from_millis(50));
        let other = connect(1, &address(&place.outside.join("none")));
        let soon = i64::from(begun.elapsed() < Duration::from_secs(5));
        let still = i64::from(!waiting.is_finished());
        std::fs::write(&go, "").unwrap();
        vec![other, soon, still, waiting.join().unwrap()]
    });
    acceptor.join().unwrap();
    assert_eq!(outcome.answers, [-i64::from(libc::ENOENT), 1, 1, 0]);
}
