//! The seccomp notification descriptor: receives notifications and sends answers. Its ioctls are
//! unsafe code.
#![allow(unsafe_code)]

use super::wake_cpu::WakeCpu;
use libc::{
    SECCOMP_IOCTL_NOTIF_ID_VALID, SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND,
    SECCOMP_IOCTL_NOTIF_SET_FLAGS, seccomp_notif, seccomp_notif_resp, seccomp_notif_sizes,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`, which libc does not define.
const SYNC_WAKE_UP: usize = 1;

/// A call that waits for an answer. Its registers are the kernel's copy, which the caller cannot
/// change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notification {
    /// The kernel's ID of this notification.
    pub(super) id: u64,
    /// The calling thread as this process sees it.
    pub(super) tid: u32,
    /// The system call number.
    pub(super) nr: u32,
    /// The call's arguments.
    pub(super) args: [u64; 6],
}

/// The answer to a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotifyAnswer {
    /// The kernel runs the call.
    Continue,
    /// The call fails with this errno and is not run.
    Errno(i32),
    /// The call was emulated and succeeded.
    Done,
}

impl NotifyAnswer {
    /// From the result of an emulated call: 0 or an errno.
    pub(super) fn of(errno: i32) -> Self {
        if errno == 0 { Self::Done } else { Self::Errno(errno) }
    }
}

/// The notification descriptor.
#[derive(Debug)]
pub(super) struct NotifyFd {
    fd: OwnedFd,
    /// Size of a notification of the running kernel, in 8-byte words.
    words: usize,
}

impl NotifyFd {
    /// Takes the descriptor that the filter's installation returned.
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self { fd, words: notice_words() }
    }

    /// Sets the CPU on which callers are woken.
    pub(super) fn set_wake(&self, wake: WakeCpu) {
        let flags = match wake {
            WakeCpu::AnyCpu => 0,
            WakeCpu::OurCpu => SYNC_WAKE_UP,
        };
        // Kernels before 6.6 refuse the flag, which does no harm.
        let _ =
            self.control(SECCOMP_IOCTL_NOTIF_SET_FLAGS, std::ptr::without_provenance_mut(flags));
    }

    /// Waits for the next call; `None` if its caller died meanwhile or a signal arrived.
    ///
    /// # Errors
    /// The error from the kernel; the descriptor is useless afterwards.
    pub(super) fn receive(&self) -> io::Result<Option<Notification>> {
        // The kernel requires zeros. A newer kernel may write more than our structure holds.
        let mut words = vec![0_u64; self.words];
        match self.control(SECCOMP_IOCTL_NOTIF_RECV, words.as_mut_ptr()) {
            Ok(()) => {}
            Err(error) => {
                return match error.raw_os_error() {
                    Some(libc::EINTR | libc::ENOENT) => Ok(None),
                    Some(_) | None => Err(error),
                };
            }
        }
        // SAFETY: `words` is as long as the structure and aligned to 8, and all its bits are
        // plain numbers.
        let raw = unsafe { &*words.as_ptr().cast::<seccomp_notif>() };
        Ok(Some(Notification {
            id: raw.id,
            tid: raw.pid,
            nr: raw.data.nr.cast_unsigned(),
            args: raw.data.args,
        }))
    }

    /// True if the caller still waits. Then data read before under its PID really was the caller's.
    pub(super) fn is_pending(&self, id: u64) -> bool {
        let mut id = id;
        self.control(SECCOMP_IOCTL_NOTIF_ID_VALID, &raw mut id).is_ok()
    }

    /// Sends the answer; false if the caller died meanwhile. True proves that the caller waited
    /// until now.
    pub(super) fn answer(&self, id: u64, answer: NotifyAnswer) -> bool {
        let (error, flags) = match answer {
            NotifyAnswer::Continue => (0, 1),
            NotifyAnswer::Errno(errno) => (-errno, 0),
            NotifyAnswer::Done => (0, 0),
        };
        let mut response = seccomp_notif_resp { id, val: 0, error, flags };
        let at = (&raw mut response).cast::<u64>();
        loop {
            match self.control(SECCOMP_IOCTL_NOTIF_SEND, at) {
                Ok(()) => return true,
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(_) => return false,
            }
        }
    }

    fn control(&self, request: libc::Ioctl, argument: *mut u64) -> io::Result<()> {
        // SAFETY: each request above comes with what it expects: a zeroed buffer of the kernel's
        // own size, a response, an id, or a plain number in place of the pointer.
        let result = unsafe { libc::ioctl(self.fd.as_raw_fd(), request, argument) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl AsFd for NotifyFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn notice_words() -> usize {
    let mut sizes =
        seccomp_notif_sizes { seccomp_notif: 0, seccomp_notif_resp: 0, seccomp_data: 0 };
    // SAFETY: the kernel writes three 16-bit numbers into the structure.
    unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_NOTIF_SIZES, 0, &raw mut sizes);
    }
    usize::from(sizes.seccomp_notif).max(size_of::<seccomp_notif>()).div_ceil(8)
}
