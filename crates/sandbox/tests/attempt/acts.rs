//! What a hostile program tries. Each prints `ACT: done` and what it got, or `ACT: ERRNO words`.

use nix::errno::Errno;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, ExitCode};

/// Tries one act and prints how it went.
pub fn attempt(act: &str, words: &[&str]) -> ExitCode {
    match perform(act, words) {
        Ok(said) => {
            println!("{act}: done {}", said.trim());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
            println!("{act}: {errno:?} {error}");
            ExitCode::FAILURE
        }
    }
}

fn perform(act: &str, words: &[&str]) -> io::Result<String> {
    let nothing = |()| String::new();
    match (act, words) {
        ("write", [path]) => std::fs::write(path, "written by the attempt").map(nothing),
        ("append", [path]) => {
            std::fs::OpenOptions::new().append(true).open(path).map(|_| String::new())
        }
        ("truncate", [path]) => nix::unistd::truncate(*path, 0).map(nothing).map_err(Into::into),
        ("rename", [from, to]) => std::fs::rename(from, to).map(nothing),
        ("remove", [path]) => std::fs::remove_file(path).map(nothing),
        ("link", [from, to]) => std::fs::hard_link(from, to).map(nothing),
        ("chmod", [path]) => {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).map(nothing)
        }
        ("utime" | "setxattr" | "chown", [path]) => metadata(act, path),
        ("attribute", [path, name, value]) => attribute(path, name, value),
        ("read", [path]) => std::fs::read_to_string(path),
        ("read-through-link", [path, link]) => {
            std::os::unix::fs::symlink(path, link)?;
            std::fs::read_to_string(link)
        }
        ("read-through-root", [path]) => std::fs::read_to_string(format!("/proc/self/root{path}")),
        ("list", [path]) => Ok(std::fs::read_dir(path)?.count().to_string()),
        ("exec", [path]) => Command::new(path).output().map(|_| String::new()),
        ("env", [name]) => std::env::var(name).map_err(|_| Errno::ENOENT.into()),
        ("descriptor", [number]) => std::fs::read_link(format!("/proc/self/fd/{number}"))
            .map(|path| path.display().to_string()),
        _ => sockets(act, words),
    }
}

fn sockets(act: &str, words: &[&str]) -> io::Result<String> {
    match (act, words) {
        ("unix", [path]) => hello(UnixStream::connect(path)?),
        ("unix-relative", [folder, path]) => {
            std::env::set_current_dir(folder)?;
            hello(UnixStream::connect(path)?)
        }
        ("unix-abstract", [name]) => {
            hello(UnixStream::connect_addr(&UnixAddr::from_abstract_name(name)?)?)
        }
        ("unix-datagram", [path]) => {
            UnixDatagram::unbound()?.send_to(b"hello", path).map(|sent| sent.to_string())
        }
        ("unix-datagram-pair", [path]) => {
            let (one, _other) = UnixDatagram::pair()?;
            one.send_to(b"hello", path).map(|sent| sent.to_string())
        }
        ("fast-open" | "mptcp" | "raw", [address]) => unusual(act, address),
        ("unix-own", [path]) => {
            // A server and its client within one project, as test suites have them.
            let listener = UnixListener::bind(path)?;
            let client = UnixStream::connect(path)?;
            let (mut server, _) = listener.accept()?;
            let mut byte = [0];
            (&client).write_all(b"x")?;
            server.read_exact(&mut byte)?;
            Ok(String::new())
        }
        ("tcp", [address]) => hello(TcpStream::connect(address)?),
        ("udp", [address]) => {
            let address: SocketAddr = address.parse().map_err(io::Error::other)?;
            let local = if address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
            UdpSocket::bind(local)?.send_to(b"hello", address).map(|sent| sent.to_string())
        }
        ("udp-connect", [address]) => {
            let address: SocketAddr = address.parse().map_err(io::Error::other)?;
            let local = if address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
            UdpSocket::bind(local)?.connect(address).map(|()| String::new())
        }
        ("serve", [address]) => {
            let _listener = TcpListener::bind(address)?;
            TcpStream::connect(address).map(|_| String::new())
        }
        ("loopback", []) => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let _client = TcpStream::connect(listener.local_addr()?)?;
            listener.accept().map(|_| String::new())
        }
        ("resolve" | "ask-by-datagram" | "ask-by-stream", words) => crate::dns::perform(act, words),
        _ => processes(act, words),
    }
}

/// What Landlock has no right for.
fn metadata(act: &str, path: &str) -> io::Result<String> {
    let name = std::ffi::CString::new(path)?;
    match act {
        "chown" => {
            let own = nix::unistd::getuid().as_raw();
            std::os::unix::fs::chown(path, Some(own), None).map(|()| String::new())
        }
        "utime" => {
            // SAFETY: a path to read; without times it is now.
            #[allow(unsafe_code)]
            Errno::result(unsafe {
                libc::utimensat(libc::AT_FDCWD, name.as_ptr(), std::ptr::null(), 0)
            })?;
            Ok(String::new())
        }
        _ => attribute(path, "user.agentd", "x"),
    }
}

/// Sets an extended attribute.
fn attribute(path: &str, name: &str, value: &str) -> io::Result<String> {
    let (path, name) = (std::ffi::CString::new(path)?, std::ffi::CString::new(name)?);
    let (at, length) = (value.as_ptr().cast(), value.len());
    // SAFETY: two names that end with a zero, and as many bytes to read as there are.
    #[allow(unsafe_code)]
    Errno::result(unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), at, length, 0) })?;
    Ok(String::new())
}

/// Ways to send beside plain TCP and UDP.
fn unusual(act: &str, address: &str) -> io::Result<String> {
    let address: std::net::SocketAddrV4 = address.parse().map_err(io::Error::other)?;
    let (kind, protocol) = match act {
        "mptcp" => (libc::SOCK_STREAM, 262),
        "raw" => (libc::SOCK_RAW, libc::IPPROTO_UDP),
        _ => (libc::SOCK_STREAM, 0),
    };
    let to = libc::sockaddr_in {
        sin_family: 2,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    };
    let (to, size) = ((&raw const to).cast(), 16);
    // SAFETY: an address of sixteen bytes and five bytes to read.
    #[allow(unsafe_code)]
    let sent = unsafe {
        let socket = Errno::result(libc::socket(libc::AF_INET, kind, protocol))?;
        if act == "mptcp" {
            Errno::result(libc::connect(socket, to, size))?;
            libc::send(socket, c"hello".as_ptr().cast(), 5, 0)
        } else {
            let flags = if act == "raw" { 0 } else { libc::MSG_FASTOPEN };
            libc::sendto(socket, c"hello".as_ptr().cast(), 5, flags, to, size)
        }
    };
    Ok(Errno::result(sent)?.to_string())
}

fn hello(mut stream: impl Write) -> io::Result<String> {
    stream.write_all(b"hello").map(|()| String::new())
}

fn processes(act: &str, words: &[&str]) -> io::Result<String> {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    let number = |text: &str| text.parse::<i32>().map_err(io::Error::other);
    match (act, words) {
        ("kill", [pid]) => {
            Ok(kill(Pid::from_raw(number(pid)?), Signal::SIGCONT).map(|()| String::new())?)
        }
        ("kill-own-child", []) => {
            let mut child = Command::new("/bin/sleep").arg("30").spawn()?;
            child.kill()?;
            child.wait().map(|_| String::new())
        }
        ("ptrace", [pid]) => {
            let pid = number(pid)?;
            // SAFETY: attaching takes a number and no memory.
            #[allow(unsafe_code)]
            Errno::result(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0) })?;
            Ok(String::new())
        }
        ("peek", [pid, address]) => peek(number(pid)?, address),
        ("memory", [pid]) => std::fs::File::open(format!("/proc/{pid}/mem")).map(|_| String::new()),
        ("environ", [pid]) => std::fs::read(format!("/proc/{pid}/environ"))
            .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " ")),
        ("bound", [pid]) => bound(number(pid)?),
        ("schedule", [pid]) => {
            let only_when_idle = libc::sched_param { sched_priority: 0 };
            let pid = number(pid)?;
            // SAFETY: one structure to read.
            #[allow(unsafe_code)]
            Errno::result(unsafe {
                libc::sched_setscheduler(pid, libc::SCHED_IDLE, &raw const only_when_idle)
            })?;
            Ok(String::new())
        }
        ("unshare", []) => {
            Ok(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER)
                .map(|()| String::new())?)
        }
        ("mount", [at]) => {
            let none: Option<&str> = None;
            let flags = nix::mount::MsFlags::empty();
            Ok(nix::mount::mount(Some("x"), *at, Some("tmpfs"), flags, none)
                .map(|()| String::new())?)
        }
        ("become-root", []) => {
            // SAFETY: a number in, nothing else.
            #[allow(unsafe_code)]
            let set = Errno::result(unsafe { libc::syscall(libc::SYS_setuid, 0) });
            set?;
            Ok(nix::unistd::getuid().to_string())
        }
        ("effective", []) => Ok(nix::unistd::geteuid().to_string()),
        ("status", [field]) => status(field),
        ("terminal", []) => std::fs::File::open("/dev/tty").map(|_| String::new()),
        _ => Err(io::Error::other(format!("no such act: {act} {words:?}"))),
    }
}

/// Reads four bytes of another process.
fn peek(pid: i32, address: &str) -> io::Result<String> {
    let address = usize::from_str_radix(address, 16).map_err(io::Error::other)?;
    let mut bytes = [0u8; 4];
    let into = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let from =
        libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: bytes.len() };
    // SAFETY: our side of the copy is `bytes`, four long; the other side is the kernel's to check.
    #[allow(unsafe_code)]
    Errno::result(unsafe {
        libc::process_vm_readv(pid, &raw const into, 1, &raw const from, 1, 0)
    })?;
    Ok(format!("{bytes:02x?}"))
}

/// Lowers another process's limit on its own CPU time, to the value it has.
fn bound(pid: i32) -> io::Result<String> {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: one structure to read, none to write.
    #[allow(unsafe_code)]
    Errno::result(unsafe {
        libc::prlimit(pid, libc::RLIMIT_CPU, &raw const limit, std::ptr::null_mut())
    })?;
    Ok(String::new())
}

/// One line of this process's status.
fn status(field: &str) -> io::Result<String> {
    let text = std::fs::read_to_string(Path::new("/proc/self/status"))?;
    text.lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .map(str::to_owned)
        .ok_or_else(|| Errno::ENODATA.into())
}
