//! A `connect` carried out here instead of by the caller, on copies of its address and socket.
//!
//! A filter cannot see an address, and looking at it and then letting the call run would let
//! another thread swap it in between. So nothing is ever continued: unix sockets are connected
//! when what the path really leads to lies beneath the granted roots, internet sockets as they
//! ask. The server on the other end sees the runner as its peer, and the runner's rights on the
//! socket file apply, not the command's. A signal does not interrupt a carried `connect`.

use super::notify_fd::Notification;
use super::proc_reader::ProcReader;
use super::socket;
use super::socket_address::{LONGEST, SocketAddress};
use super::writable::is_beneath;
use crate::seccomp::InetSockets;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// What is to become of a call.
#[derive(Debug)]
pub(super) enum Emulated<T> {
    /// Not allowed: errno and words for the record.
    Refused(i32, String),
    /// It fails for a reason that has nothing to do with the cage.
    Fails(i32),
    /// To be done.
    Ready(T),
}

/// All that a `connect` needs, ours alone.
#[derive(Debug)]
pub(super) struct PendingConnect {
    socket: OwnedFd,
    address: Vec<u8>,
    /// The socket file that the address names by its descriptor.
    _file: Option<OwnedFd>,
}

impl PendingConnect {
    /// Whether it may take long.
    pub(super) fn may_block(&self) -> bool {
        socket::waits(&self.socket)
    }

    /// Does it: 0, or the errno.
    pub(super) fn make(&self) -> i32 {
        match socket::connect(&self.socket, &self.address) {
            Ok(()) => 0,
            Err(errno) => errno as i32,
        }
    }
}

/// Copies socket and address, and decides.
pub(super) fn prepare(
    notice: &Notification,
    processes: &ProcReader,
    inet: InetSockets,
    granted: &[PathBuf],
) -> Emulated<PendingConnect> {
    match copy(notice, processes) {
        Ok((socket, address)) => decide(notice.tid, processes, socket, address, inet, granted),
        // Not dumpable: neither its sockets nor its memory may be looked at.
        Err(Errno::EPERM) => {
            Emulated::Refused(libc::EPERM, "by a program that hides its memory".to_owned())
        }
        Err(errno) => Emulated::Fails(errno as i32),
    }
}

/// In the order in which the kernel looks: the descriptor, then the address.
#[allow(clippy::cast_possible_truncation)]
fn copy(notice: &Notification, processes: &ProcReader) -> Result<(OwnedFd, Vec<u8>), Errno> {
    let fd = u32::try_from(notice.args[0] as i32).map_err(|_| Errno::EBADF)?;
    let socket = socket::take(notice.tid, fd)?;
    let length = usize::try_from(notice.args[2] as i32).map_err(|_| Errno::EINVAL)?;
    if length > LONGEST {
        return Err(Errno::EINVAL);
    }
    let address = match length {
        0 => Vec::new(),
        _ => processes.memory(notice.tid, notice.args[1], length).ok_or(Errno::EFAULT)?,
    };
    Ok((socket, address))
}

fn decide(
    tid: u32,
    processes: &ProcReader,
    socket: OwnedFd,
    address: Vec<u8>,
    inet: InetSockets,
    granted: &[PathBuf],
) -> Emulated<PendingConnect> {
    let domain = match socket::domain(&socket) {
        Ok(domain) => domain,
        Err(errno) => return Emulated::Fails(errno as i32),
    };
    let meant = SocketAddress::parse(&address);
    match (domain, inet) {
        (libc::AF_UNIX, _) => match meant {
            SocketAddress::Path(path) => match unix(tid, processes, &path, granted) {
                Ok(file) => {
                    let address = by_descriptor(&file);
                    Emulated::Ready(PendingConnect { socket, address, _file: Some(file) })
                }
                Err(carried) => carried,
            },
            SocketAddress::Abstract(_) => Emulated::Refused(libc::EACCES, meant.to_string()),
            // The kernel refuses these by itself: they lead nowhere.
            SocketAddress::Unnamed | SocketAddress::Inet(_) | SocketAddress::Other => {
                Emulated::Ready(PendingConnect { socket, address, _file: None })
            }
        },
        (libc::AF_NETLINK, _) | (libc::AF_INET | libc::AF_INET6, InetSockets::Allowed) => {
            Emulated::Ready(PendingConnect { socket, address, _file: None })
        }
        _ => Emulated::Refused(libc::EACCES, meant.to_string()),
    }
}

/// Opens what the path leads to, if that lies beneath a granted root.
fn unix(
    tid: u32,
    processes: &ProcReader,
    said: &Path,
    granted: &[PathBuf],
) -> Result<OwnedFd, Emulated<PendingConnect>> {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let file = if said.is_absolute() {
        open(said, flags, Mode::empty())
    } else {
        match processes.directory(tid, "cwd") {
            Some(cwd) => openat(cwd, said, flags, Mode::empty()),
            None => Err(Errno::ENOENT),
        }
    };
    let file = file.map_err(|errno| Emulated::Fails(errno as i32))?;
    match processes.path_of(file.as_fd()) {
        Some(real) if is_beneath(granted, &real) => Ok(file),
        Some(real) => Err(Emulated::Refused(libc::EACCES, real.display().to_string())),
        None => Err(Emulated::Refused(libc::EACCES, said.display().to_string())),
    }
}

/// A unix address that means exactly this file, whatever its path has become meanwhile.
fn by_descriptor(file: &OwnedFd) -> Vec<u8> {
    let family = libc::sa_family_t::try_from(libc::AF_UNIX).unwrap_or_default();
    let path = format!("/proc/self/fd/{}\0", file.as_raw_fd());
    [&family.to_ne_bytes(), path.as_bytes()].concat()
}
