//! System calls that no program of a project makes, each with arguments that can do no harm. Used
//! by `attacks`.
#![allow(unsafe_code)]

use nix::errno::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;

/// Makes a system call with all arguments zero.
///
/// # Errors
/// The errno from the filter or the kernel.
pub(super) fn call_with_nothing(number: libc::c_long) -> Result<i64, Errno> {
    // SAFETY: the calls that `acts` names read memory behind a null pointer, which the kernel answers
    // by EFAULT, or take numbers, of which zero names nothing.
    Errno::result(unsafe { libc::syscall(number, 0, 0, 0, 0, 0, 0) })
}

/// Calls `getpid` by the 32-bit interface. In a cage the kernel kills the process for it.
///
/// # Errors
/// This machine has no 32-bit interface.
#[cfg(target_arch = "x86_64")]
pub(super) fn call_by_int80() -> Result<(), Errno> {
    let mut answer: i64 = 20;
    // SAFETY: getpid takes nothing and changes nothing but the register of its answer.
    unsafe { std::arch::asm!("int 0x80", inout("rax") answer, options(nostack)) };
    if answer > 0 { Ok(()) } else { Err(Errno::ENOSYS) }
}

/// Other machines have no second system call interface.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn call_by_int80() -> Result<(), Errno> {
    Err(Errno::ENOSYS)
}

/// Sends TIOCSTI to `/dev/null`. Since that is not a terminal, the kernel answers ENOTTY: this
/// counts as success, because the request passed the filter.
///
/// # Errors
/// The errno from the filter.
pub(super) fn type_into_terminal() -> Result<(), Errno> {
    let nothing = File::open("/dev/null").map_err(|_| Errno::ENOENT)?;
    let byte = b'x';
    // SAFETY: one byte to read, which outlives the call.
    let answer = unsafe { libc::ioctl(nothing.as_raw_fd(), libc::TIOCSTI, &raw const byte) };
    if Errno::result(answer) == Err(Errno::ENOTTY) { Ok(()) } else { Err(Errno::last()) }
}

/// Sets a resource limit of another process to unlimited, which it usually is.
///
/// # Errors
/// The errno from the filter or the kernel.
pub(super) fn limit_other_process(pid: i32) -> Result<(), Errno> {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: one structure to read, none to write.
    Errno::result(unsafe {
        libc::prlimit(pid, libc::RLIMIT_CPU, &raw const limit, std::ptr::null_mut())
    })
    .map(drop)
}
