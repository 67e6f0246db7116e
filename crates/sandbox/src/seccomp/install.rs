//! Installs a filter program on this process; the file of this folder with unsafe code.
#![allow(unsafe_code)]

use super::install_error::InstallError;
use seccompiler::{BpfProgramRef, sock_filter};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Installs the program on the calling thread and returns the notification descriptor.
///
/// # Errors
/// [`InstallError`]; then no program was installed.
pub(super) fn with_listener(program: BpfProgramRef<'_>) -> Result<OwnedFd, InstallError> {
    forbid_new_privileges().map_err(InstallError::NoNewPrivs)?;
    let best =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let found = match add(program, best) {
        // Kernels before 5.19 do not know the second flag: there a signal may restart a call.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            add(program, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)
        }
        found => found,
    };
    found.map_err(InstallError::Listener)
}

/// True if only a fatal signal interrupts a call that waits for the notify supervisor: from Linux
/// 5.19 on. Before, any signal interrupts it.
pub(crate) fn supports_killable_wait() -> bool {
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let nothing: *const SockFprog = std::ptr::null();
    // SAFETY: without a program nothing is added: the kernel looks at the flags (EINVAL) and then for
    // the program (EFAULT).
    unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, nothing);
    }
    io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

fn forbid_new_privileges() -> io::Result<()> {
    // SAFETY: this prctl takes numbers only.
    let result = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `struct sock_fprog` of the kernel.
#[repr(C)]
struct SockFprog {
    len: u16,
    code: *const sock_filter,
}

fn add(program: BpfProgramRef<'_>, flags: libc::c_ulong) -> io::Result<OwnedFd> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let description = SockFprog { len, code: program.as_ptr() };
    // SAFETY: the kernel copies `len` instructions from `code`, which the slice holds.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const description,
        )
    };
    let fd = i32::try_from(result).unwrap_or(-1);
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: with NEW_LISTENER the result is a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
