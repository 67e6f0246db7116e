//! The attacks of a hostile program, one a match arm. The self test runs each attack as the program
//! of a cage, and once without a cage as the control.

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, openat2};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, setsid};
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::raw;
use crate::sys;

/// A process left by `linger` exits by itself after this time if nothing kills it.
const LINGER_TIME: Duration = Duration::from_secs(6);

/// Exit code: the attack succeeded.
pub(super) const DONE: i32 = 0;
/// Exit code: the attack was refused.
pub(super) const REFUSED: i32 = 1;
/// Exit code: unknown attack. The self test and this file disagree.
pub(super) const UNKNOWN: i32 = 2;

/// Runs one attack; prints the kernel's error if it was refused.
pub(super) fn perform(words: &[&str]) -> i32 {
    let done = match words {
        ["write", path] => fs::write(path, "changed by an attempt"),
        ["empty", path] => empty(path),
        ["chmod", path] => fs::set_permissions(path, Permissions::from_mode(0o751)),
        ["spoil", path] => spoil(path),
        ["read", path] => fs::read(path).map(drop),
        ["inet", address] => TcpStream::connect(address).map(drop),
        ["ask", server] => send_dns_query(server),
        ["unix", path] => UnixStream::connect(path).map(drop),
        ["abstract", name] => SocketAddr::from_abstract_name(name)
            .and_then(|address| UnixStream::connect_addr(&address))
            .map(drop),
        ["surface"] => surface(),
        ["foreign"] => raw::call_by_int80().map_err(Into::into),
        ["inject"] => raw::type_into_terminal().map_err(Into::into),
        ["touch", pid] => reach_process(pid),
        ["powers"] => has_capabilities(),
        ["linger", path] => linger(path),
        _ => return UNKNOWN,
    };
    match done {
        Ok(()) => DONE,
        Err(error) => {
            println!("{error}");
            REFUSED
        }
    }
}

/// Tries every way to empty a file without a descriptor for writing. One success is enough.
fn empty(path: &str) -> io::Result<()> {
    let neither = || {
        let mode = libc::O_ACCMODE | libc::O_TRUNC;
        nix::fcntl::open(path, OFlag::from_bits_retain(mode), Mode::empty()).map(drop)
    };
    let hidden = || {
        let how = OpenHow::new().flags(OFlag::from_bits_retain(libc::O_ACCMODE | libc::O_TRUNC));
        openat2(AT_FDCWD, path, how).map(drop)
    };
    let reading = || nix::fcntl::open(path, OFlag::O_TRUNC, Mode::empty()).map(drop);
    let by_path = || nix::unistd::truncate(path, 0);
    let tried = [neither(), hidden(), reading(), by_path()];
    if tried.iter().any(Result::is_ok) { Ok(()) } else { Ok(tried[3]?) }
}

/// Tries every way to change a file except its mode. One success is enough.
fn spoil(path: &str) -> io::Result<()> {
    let other = format!("{path}-other");
    let tried = [
        fs::hard_link(path, &other).and_then(|()| fs::write(&other, "changed by an attempt")),
        fs::write(path, "changed by an attempt"),
        fs::rename(path, &other),
        fs::write(path, "made anew by an attempt"),
        fs::remove_file(path),
    ];
    tried.into_iter().reduce(Result::or).unwrap_or(Ok(()))
}

/// Sends the header of a DNS query. Success only means that the datagram was sent, not that it
/// arrived.
fn send_dns_query(server: &str) -> io::Result<()> {
    let question = [0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?.send_to(&question, server).map(drop)
}

/// Makes system calls that no program of a project needs, each with arguments that can do no harm.
/// The filter answers EPERM or ENOSYS. Any other answer comes from the kernel, so the call passed
/// the filter.
fn surface() -> io::Result<()> {
    let mut through = Vec::new();
    for (name, number) in [
        ("mount", libc::SYS_mount),
        ("umount2", libc::SYS_umount2),
        ("keyctl", libc::SYS_keyctl),
        ("add_key", libc::SYS_add_key),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("bpf", libc::SYS_bpf),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("fsopen", libc::SYS_fsopen),
        ("move_pages", libc::SYS_move_pages),
        ("open_by_handle_at", libc::SYS_open_by_handle_at),
    ] {
        match raw::call_with_nothing(number) {
            Err(Errno::EPERM | Errno::ENOSYS) => {}
            Ok(_) | Err(_) => through.push(name),
        }
    }
    if through.is_empty() {
        return Err(Errno::EPERM.into());
    }
    println!("reached the kernel: {}", through.join(", "));
    Ok(())
}

/// Tries to signal a process outside, to set a resource limit of it and to read its environment.
/// One success is enough.
fn reach_process(pid: &str) -> io::Result<()> {
    let number: i32 = pid.parse().map_err(io::Error::other)?;
    let signalled = kill(Pid::from_raw(number), Signal::SIGCONT);
    let bounded = raw::limit_other_process(number);
    let read = fs::read(format!("/proc/{pid}/environ")).map(drop);
    signalled.or(bounded).map_err(io::Error::from).or(read)
}

/// Succeeds if this process has a capability, or could gain one by exec.
fn has_capabilities() -> io::Result<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    let value = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim()
    };
    let none = |name: &str| value(name).chars().all(|digit| digit == '0');
    if none("CapEff:") && none("CapPrm:") && none("CapInh:") && value("NoNewPrivs:") == "1" {
        return Err(Errno::EPERM.into());
    }
    Ok(())
}

/// Leaves a process that has its own session, ignores SIGTERM and writes to `path` as long as it
/// lives.
fn linger(path: &str) -> io::Result<()> {
    let mut ticks = File::create(path)?;
    sys::fork(move || {
        let _ = setsid();
        let _ = sys::handle(Signal::SIGTERM, nix::sys::signal::SigHandler::SigIgn);
        let grandchild = sys::fork(move || {
            let begun = Instant::now();
            while begun.elapsed() < LINGER_TIME {
                let _ = ticks.write_all(b".");
                sleep(Duration::from_millis(5));
            }
            0
        });
        i32::from(grandchild.is_err())
    })?;
    // Gives the process time to write its first byte.
    sleep(Duration::from_millis(60));
    Ok(())
}
