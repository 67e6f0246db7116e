//! The figures in the modules' notes: `cargo test --release -p sandbox figures -- --ignored --nocapture`.

use super::child::{raw, under};
use super::{MARK, NEW};
use crate::notify::NotifyConfig;
use crate::notify::tests::{c, test_config};
use crate::seccomp::bpf_program::compile;
use crate::seccomp::syscall_rules::SyscallRules;
use crate::seccomp::{Arch, CompiledFilter, FilterSpec, Reporting};
use protocol::confinement::{Network, Tier};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::time::Instant;

const ROUNDS: u32 = 2_000;

#[test]
#[ignore = "prints figures; not a check"]
fn figures() {
    let (a, b) = (
        FilterSpec::command(Tier::A, Network::Off, NEW, MARK),
        FilterSpec::command(Tier::B, Network::On, NEW, MARK),
    );
    for (name, spec) in [
        ("command A", a),
        ("command B", b),
        ("command B silent", FilterSpec { reporting: Reporting::Errno, ..b }),
        ("in process", FilterSpec::in_process(Network::Off, NEW)),
    ] {
        let length = compile(&SyscallRules::new(&spec, Arch::HOST)).unwrap().len();
        println!("install {name}: {} us, {length} instructions", installed(&spec));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            drop(stream)
        }
    });
    let mut address = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    address.extend(c(&path).as_bytes_with_nul());
    let work = || {
        let own = u64::from(std::process::id());
        let at = libc::AT_FDCWD as u64;
        let (null, none) = (c"/dev/null".as_ptr() as u64, c"none/x".as_ptr() as u64);
        let write = libc::O_WRONLY as u64;
        let open = |path, flags| {
            let fd = raw(libc::SYS_openat, [at, path, flags, 0, 0, 0]);
            if fd >= 0 {
                raw(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0]);
            }
        };
        let connect = |kind: i32| {
            let socket = raw(libc::SYS_socket, [1, (libc::SOCK_STREAM | kind) as u64, 0, 0, 0, 0]);
            let (socket, length) = (socket as u64, address.len() as u64);
            let found = raw(libc::SYS_connect, [socket, address.as_ptr() as u64, length, 0, 0, 0]);
            assert_eq!(found, 0);
            raw(libc::SYS_close, [socket, 0, 0, 0, 0, 0]);
        };
        vec![
            each(|| raw(libc::SYS_getppid, [0; 6])),
            each(|| raw(libc::SYS_setns, [1; 6])),
            each(|| open(null, 0)),
            each(|| open(null, write)),
            each(|| open(none, write)),
            each(|| raw(libc::SYS_kill, [own, 0, 0, 0, 0, 0])),
            each(|| connect(libc::SOCK_NONBLOCK)),
            each(|| connect(0)),
        ]
    };
    let bare = std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    let watch = NotifyConfig {
        writable: vec!["/dev/null".into()],
        sockets: vec![std::fs::canonicalize(dir.path()).unwrap()],
        ..test_config(b)
    };
    let notified = under(watch, work).answers;
    let names = [
        "getppid (allowed)",
        "setns (refused)",
        "open to read (allowed)",
        "open to write (looked at)",
        "open of nothing, relative (looked at)",
        "kill of itself (looked at)",
        "connect, not waiting (carried)",
        "connect, waiting (carried)",
    ];
    for ((name, bare), notified) in names.iter().zip(bare).zip(notified) {
        println!("{name}: {bare} ns bare, {notified} ns under the filter");
    }
}

/// The mean in nanoseconds.
fn each<T>(mut call: impl FnMut() -> T) -> i64 {
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        let _ = call();
    }
    (begun.elapsed() / ROUNDS).as_nanos() as i64
}

/// The median of installing the spec's filter in a fresh process, in microseconds.
fn installed(spec: &FilterSpec) -> i64 {
    let filter = CompiledFilter::new(spec).unwrap();
    let mut all: Vec<i64> = (0..41)
        .map(|_| {
            let (mut read, mut write) = std::io::pipe().unwrap();
            // SAFETY: the child installs, tells how long it took, and ends.
            #[allow(unsafe_code)]
            let child = unsafe { libc::fork() };
            if child == 0 {
                let begun = Instant::now();
                let fd = filter.install().unwrap();
                let took = begun.elapsed().as_nanos() as i64;
                write.write_all(&took.to_le_bytes()).unwrap();
                drop(fd);
                // SAFETY: as above.
                #[allow(unsafe_code)]
                unsafe {
                    libc::_exit(0)
                }
            }
            let mut bytes = [0; 8];
            read.read_exact(&mut bytes).unwrap();
            // SAFETY: waits for our own child.
            #[allow(unsafe_code)]
            unsafe {
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
            i64::from_le_bytes(bytes)
        })
        .collect();
    all.sort_unstable();
    all[20] / 1000
}
