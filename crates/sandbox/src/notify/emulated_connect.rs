//! Emulates `connect`: the notify supervisor makes the call in the caller's place, on copies of its
//! address and socket.
//!
//! A filter cannot read the address. If the supervisor read it and continued the call, another
//! thread could replace it in between. So the call is never continued. A unix socket is connected
//! if its real path is below the granted roots, an internet socket as requested. The server sees
//! the runner as its peer. The runner's permissions on the socket file apply, not the command's. A
//! signal does not interrupt an emulated `connect`.

use super::notify_fd::Notification;
use super::proc_reader::ProcReader;
use super::socket;
use super::socket_address::{LONGEST, SocketAddress};
use super::writable::is_beneath;
use crate::seccomp::InetSockets;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;
use protocol::confinement::Subject;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The decision about an emulated call.
#[derive(Debug)]
pub(super) enum Emulated<T> {
    /// Refused by the cage: errno, and the description for the record.
    Refused(i32, Subject),
    /// Fails for a reason other than the cage.
    Fails(i32),
    /// Allowed, and ready to be made.
    Ready(T),
}

/// Everything that the `connect` needs, in this process's memory.
#[derive(Debug)]
pub(super) struct PendingConnect {
    socket: OwnedFd,
    address: Vec<u8>,
    /// The socket file that the address names through its descriptor.
    _file: Option<OwnedFd>,
}

impl PendingConnect {
    /// True if the socket is blocking.
    pub(super) fn may_block(&self) -> bool {
        socket::waits(&self.socket)
    }

    /// Connects; returns 0 or the errno.
    pub(super) fn make(&self) -> i32 {
        match socket::connect(&self.socket, &self.address) {
            Ok(()) => 0,
            Err(errno) => errno as i32,
        }
    }
}

/// Copies the socket and the address, and decides.
pub(super) fn prepare(
    notice: &Notification,
    processes: &ProcReader,
    inet: InetSockets,
    granted: &[PathBuf],
) -> Emulated<PendingConnect> {
    match copy(notice, processes) {
        Ok((socket, address)) => decide(notice.tid, processes, socket, address, inet, granted),
        // The caller is not dumpable, so neither its sockets nor its memory may be read.
        Err(Errno::EPERM) => Emulated::Refused(libc::EPERM, Subject::HiddenMemory),
        Err(errno) => Emulated::Fails(errno as i32),
    }
}

/// In the kernel's order: the descriptor, then the address.
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
                Err(emulated) => emulated,
            },
            SocketAddress::Abstract(_) => Emulated::Refused(libc::EACCES, meant.subject()),
            // The kernel itself refuses these addresses.
            SocketAddress::Unnamed | SocketAddress::Inet(_) | SocketAddress::Other => {
                Emulated::Ready(PendingConnect { socket, address, _file: None })
            }
        },
        (libc::AF_NETLINK, _) | (libc::AF_INET | libc::AF_INET6, InetSockets::Allowed) => {
            Emulated::Ready(PendingConnect { socket, address, _file: None })
        }
        _ => Emulated::Refused(libc::EACCES, meant.subject()),
    }
}

/// Opens the socket file, if its real path is below a granted root.
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
    let refused = |path: &Path| {
        Emulated::Refused(libc::EACCES, Subject::UnixSocket(path.display().to_string()))
    };
    match processes.path_of(file.as_fd()) {
        Some(real) if is_beneath(granted, &real) => Ok(file),
        Some(real) => Err(refused(&real)),
        None => Err(refused(said)),
    }
}

/// A unix address for exactly this file, even if its path has changed meanwhile.
fn by_descriptor(file: &OwnedFd) -> Vec<u8> {
    let family = libc::sa_family_t::try_from(libc::AF_UNIX).unwrap_or_default();
    let path = format!("/proc/self/fd/{}\0", file.as_raw_fd());
    [&family.to_ne_bytes(), path.as_bytes()].concat()
}
