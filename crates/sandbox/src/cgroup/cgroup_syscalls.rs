//! The two cgroup system calls for which nix has no safe form. Used by this folder and by `sys`.
#![allow(unsafe_code)]

use crate::sys;
use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::unistd::Pid;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Forks this process, as `sys::fork_into` does, into the cgroup with this directory. The new
/// process is a member from its first instruction on, and is never moved, which would take the
/// kernel milliseconds.
///
/// # Errors
/// The errno of clone3; ENOSYS if a container's filter refuses it.
pub(crate) fn fork_within(
    flags: CloneFlags,
    group: BorrowedFd<'_>,
    body: impl FnOnce() -> i32,
) -> Result<Pid, Errno> {
    // SAFETY: all of it is numbers, and zero is the right one for what is not set.
    let mut how: libc::clone_args = unsafe { std::mem::zeroed() };
    how.flags = u64::from(flags.bits().unsigned_abs()) | CLONE_INTO_CGROUP;
    how.cgroup = u64::from(group.as_raw_fd().unsigned_abs());
    // With CLONE_PARENT the kernel takes the exit signal of the caller and refuses an explicit one.
    if !flags.contains(CloneFlags::CLONE_PARENT) {
        how.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
    }
    // SAFETY: as above; the structure has the size that is passed with it and outlives the call.
    let made = Errno::result(unsafe {
        libc::syscall(libc::SYS_clone3, &raw const how, size_of::<libc::clone_args>())
    })?;
    sys::copied(made, body)
}

/// The C library's headers do not define it for all kernels that have it.
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// The value of an extended attribute; `None` if the file has none or this process may not read it.
pub(crate) fn attribute(path: &Path, name: &CStr) -> Option<Vec<u8>> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut value = vec![0_u8; 64];
    // SAFETY: both names are null-terminated, the buffer has the length that is passed with it, and
    // all of them outlive the call.
    let length = Errno::result(unsafe {
        libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len())
    });
    value.truncate(usize::try_from(length.ok()?).ok()?);
    Some(value)
}
