//! Copies another process's sockets, and calls `connect` with raw bytes: unsafe code.
#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `PIDFD_THREAD`: refers to the descriptor table of this very thread, from Linux 6.9 on.
const THREAD: u32 = libc::O_EXCL.cast_unsigned();

/// A copy of descriptor `fd` of the process `tid`; both refer to the same socket.
///
/// # Errors
/// EBADF if there is no such descriptor, EPERM if it may not be copied.
pub(super) fn take(tid: u32, fd: u32) -> Result<OwnedFd, Errno> {
    let process = match open(tid, THREAD) {
        Err(Errno::EINVAL) => open(tid, 0),
        found => found,
    }?;
    // SAFETY: takes numbers only.
    let found = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) };
    take_fd(found)
}

/// The address family of a socket.
///
/// # Errors
/// ENOTSOCK.
pub(super) fn domain(socket: &OwnedFd) -> Result<i32, Errno> {
    made_for(socket, libc::SO_DOMAIN)
}

/// The protocol of a socket.
///
/// # Errors
/// ENOTSOCK.
pub(super) fn protocol(socket: &OwnedFd) -> Result<i32, Errno> {
    made_for(socket, libc::SO_PROTOCOL)
}

fn made_for(socket: &OwnedFd, what: libc::c_int) -> Result<i32, Errno> {
    let mut found = 0_i32;
    let mut length = libc::socklen_t::try_from(size_of::<i32>()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: `found` has room for the `length` bytes that are asked for.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            what,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    Errno::result(result).map(|_| found)
}

/// True if operations on it block.
pub(super) fn waits(socket: &OwnedFd) -> bool {
    fcntl(socket, FcntlArg::F_GETFL)
        .is_ok_and(|flags| !OFlag::from_bits_truncate(flags).contains(OFlag::O_NONBLOCK))
}

/// Connects to the address in these bytes.
///
/// # Errors
/// The errno from the kernel.
pub(super) fn connect(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the kernel reads `length` bytes, which the slice holds, and needs no alignment.
    let result = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    Errno::result(result).map(drop)
}

fn open(tid: u32, flags: u32) -> Result<OwnedFd, Errno> {
    // SAFETY: takes numbers only.
    take_fd(unsafe { libc::syscall(libc::SYS_pidfd_open, tid, flags) })
}

fn take_fd(result: libc::c_long) -> Result<OwnedFd, Errno> {
    let fd = i32::try_from(Errno::result(result)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: both callers' system calls return a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
