//! System calls for which nix has no safe form. For this crate only; each function is safe to call.
#![allow(unsafe_code)]

use crate::cgroup;
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A random number.
///
/// # Errors
/// The errno of getrandom.
pub(crate) fn random() -> Result<u64, Errno> {
    let mut bytes = [0u8; 8];
    // SAFETY: the kernel writes at most so many bytes to a buffer that has them.
    let read = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    // No signal interrupts a read of at most 256 bytes.
    Errno::result(read).map(|_| u64::from_ne_bytes(bytes))
}

/// Forks this process. The child runs `body` and exits with the code that it returns; it never
/// returns into the caller's code, not even by a panic.
///
/// The process should have only one thread, so that the child may allocate. Callers with more
/// threads (the guard, the host probe) say why their `body` is safe.
///
/// # Errors
/// The errno of fork.
pub(crate) fn fork(body: impl FnOnce() -> i32) -> Result<Pid, Errno> {
    // SAFETY: the copy runs `body` alone and leaves by `_exit`, so no destructor, exit handler or
    // buffered output of this process runs twice.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(70);
            // SAFETY: `_exit` takes a number and does not return.
            unsafe { libc::_exit(code) }
        }
    }
}

/// Forks into the new namespaces that `flags` name. This process stays in its own: `unshare` would
/// take from it the right to create threads.
///
/// # Errors
/// The errno of clone.
pub(crate) fn fork_into(flags: CloneFlags, body: impl FnOnce() -> i32) -> Result<Pid, Errno> {
    let flags = libc::c_long::from(flags.bits() | libc::SIGCHLD);
    // SAFETY: without a stack and without CLONE_VM this is fork, and the copy leaves by `_exit`.
    // The process has one thread, so no lock of the C library can be held by another.
    copied(Errno::result(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?, body)
}

/// Schedules this thread ahead of every ordinary one (SCHED_RR, priority 1), and none of its children.
///
/// # Errors
/// EPERM without CAP_SYS_NICE, or in a cgroup without real-time budget.
pub(crate) fn schedule_ahead() -> Result<(), Errno> {
    let ahead = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is this thread, and the kernel reads the one structure.
    let result = unsafe {
        libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const ahead)
    };
    Errno::result(result).map(drop)
}

/// True for the policy and the nice value that a process has unless somebody gave it others.
pub(crate) fn is_scheduled_as_usual() -> bool {
    // SAFETY: both take numbers; 0 is this thread.
    unsafe {
        libc::sched_getscheduler(0) == libc::SCHED_OTHER
            && libc::getpriority(libc::PRIO_PROCESS, 0) == 0
    }
}

/// Takes [`schedule_ahead`] back, if it was done.
pub(crate) fn schedule_as_usual() {
    // SAFETY: 0 is this thread.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_RR | libc::SCHED_RESET_ON_FORK {
        return;
    }
    let usual = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is this thread, and the kernel reads the one structure. The flag needs a right to be taken away.
    unsafe {
        libc::sched_setscheduler(
            0,
            libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK,
            &raw const usual,
        );
    }
}

/// Removes a System V segment, if permitted. The kernel frees it once no process has it attached.
pub(crate) fn remove_segment(id: u64) {
    let Ok(id) = i32::try_from(id) else { return };
    // SAFETY: with IPC_RMID the kernel reads no buffer.
    unsafe {
        libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut());
    }
}

/// Handles the result of clone: in the child it is zero, and the child runs `body` and exits.
pub(crate) fn copied(made: libc::c_long, body: impl FnOnce() -> i32) -> Result<Pid, Errno> {
    match made {
        0 => {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(70);
            // SAFETY: `_exit` takes a number and does not return.
            unsafe { libc::_exit(code) }
        }
        pid => i32::try_from(pid).map(Pid::from_raw).map_err(|_| Errno::EOVERFLOW),
    }
}

/// Arguments and result of the helper process of `fork_in`, in this process's memory.
struct ForkRequest<'a, F> {
    namespace: BorrowedFd<'a>,
    group: Option<BorrowedFd<'a>>,
    body: Option<F>,
    outcome: Result<Pid, Errno>,
}

/// Stack for the helper process, and for the child that continues on it.
const STACK: usize = 512 << 10;

/// Forks, as `fork` does, a child of this process into another PID namespace, and into a cgroup if
/// its directory is given.
///
/// Only a process that has joined a PID namespace can fork into it, and this process must not join.
/// So a helper process in our memory, as in vfork, joins the namespace and forks a child of ours.
///
/// # Errors
/// The errno of clone, setns or fork.
pub(crate) fn fork_in<F: FnOnce() -> i32>(
    namespace: BorrowedFd<'_>,
    group: Option<BorrowedFd<'_>>,
    body: F,
) -> Result<Pid, Errno> {
    extern "C" fn go<F: FnOnce() -> i32>(job: *mut libc::c_void) -> libc::c_int {
        // SAFETY: `fork_in` passes its own `Errand<F>` and stands still until we are gone.
        let job = unsafe { &mut *job.cast::<ForkRequest<'_, F>>() };
        let body = &mut job.body;
        job.outcome = setns(job.namespace, CloneFlags::CLONE_NEWPID).and_then(|()| {
            // The body must stay where it is. If it were dropped here, its descriptors would be
            // closed in our table and stay open in that of `fork_in`.
            let body = || body.take().map_or(70, |body| body());
            match job.group {
                Some(group) => cgroup::fork_within(CloneFlags::CLONE_PARENT, group, body),
                None => fork_into(CloneFlags::CLONE_PARENT, body),
            }
        });
        0
    }
    let mut job = ForkRequest { namespace, group, body: Some(body), outcome: Err(Errno::ECHILD) };
    let mut stack: Vec<u128> = vec![0; STACK / size_of::<u128>()];
    // SAFETY: the function gets the structure of its type; stack and structure live until the
    // call is over, since CLONE_VFORK holds us until the go-between has ended; the stack's end is
    // aligned to 16 bytes.
    let between = Errno::result(unsafe {
        libc::clone(
            go::<F>,
            stack.as_mut_ptr_range().end.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut job).cast(),
        )
    })?;
    waitpid(Pid::from_raw(between), None)?;
    job.outcome
}

/// A pidfd of the process `pid`: readable once it has ended.
///
/// # Errors
/// The errno from the kernel.
pub(crate) fn pidfd(pid: Pid) -> Result<OwnedFd, Errno> {
    // SAFETY: two numbers in; out comes a descriptor that no other code knows yet.
    let fd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) })?;
    let fd = RawFd::try_from(fd).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel just gave it to us and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes descriptor `to` a copy of `from` that survives exec.
///
/// # Errors
/// The errno of dup2.
pub(crate) fn put_at(from: BorrowedFd<'_>, to: RawFd) -> Result<(), Errno> {
    if from.as_raw_fd() == to {
        // dup2 onto itself would leave close-on-exec set.
        // SAFETY: F_SETFD takes a number.
        return Errno::result(unsafe { libc::fcntl(to, libc::F_SETFD, 0) }).map(drop);
    }
    // SAFETY: dup2 closes `to`, which callers name only right after fork, for the standard
    // streams that they mean to replace.
    Errno::result(unsafe { libc::dup2(from.as_raw_fd(), to) }).map(drop)
}

/// Makes the kernel send SIGCONT to this process on every event at `end`, including the close of
/// the other end. A stopped process then continues and sees the event. Unlike the parent-death
/// signal, a Landlock domain of the dying process does not block this signal, because its receiver
/// requested it.
///
/// # Errors
/// The errno of fcntl.
pub(crate) fn continue_at_event(end: BorrowedFd<'_>) -> Result<(), Errno> {
    let (fd, me) = (end.as_raw_fd(), nix::unistd::getpid().as_raw());
    for (option, value) in [(libc::F_SETOWN, me), (F_SETSIG, libc::SIGCONT)] {
        // SAFETY: both options take a number.
        Errno::result(unsafe { libc::fcntl(fd, option, value) })?;
    }
    let flags = nix::fcntl::fcntl(end, nix::fcntl::FcntlArg::F_GETFL)?;
    let flags = nix::fcntl::OFlag::from_bits_retain(flags) | nix::fcntl::OFlag::O_ASYNC;
    nix::fcntl::fcntl(end, nix::fcntl::FcntlArg::F_SETFL(flags)).map(drop)
}

/// The libc crate lacks it; the number is the same on every architecture.
const F_SETSIG: libc::c_int = 10;

/// Closes every descriptor from 3 up except those in `keep`. For a forked process: the owners of
/// the closed descriptors must not be used again.
///
/// # Errors
/// The errno from the kernel.
pub(crate) fn close_all_but(keep: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut kept: Vec<u32> = keep.iter().map(|fd| fd.as_raw_fd().unsigned_abs()).collect();
    kept.sort_unstable();
    let firsts = std::iter::once(3).chain(kept.iter().map(|fd| fd + 1));
    let lasts = kept.iter().map(|fd| fd - 1).chain([u32::MAX]);
    for (first, last) in firsts.zip(lasts) {
        if first <= last {
            // SAFETY: numbers in; the callers are processes that leave by exec or `_exit` and
            // use none of the closed descriptors again.
            Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })?;
        }
    }
    Ok(())
}

/// Closes every descriptor from 3 up. For the start of a program, before it opens anything: the
/// closed descriptors were inherited and have no owner here.
///
/// # Errors
/// The errno from the kernel.
pub(crate) fn close_inherited() -> Result<(), Errno> {
    // SAFETY: numbers in; the caller has opened nothing yet, so that nothing owns what is closed.
    Errno::result(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) }).map(drop)
}

/// Resets every signal to its default and unblocks all. The Rust run-time ignores SIGPIPE, and a
/// command must not inherit that.
pub(crate) fn default_signals() {
    for signal in 1..=64 {
        // SAFETY: SIG_DFL is no code of ours; KILL, STOP and libc's own two answer EINVAL.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: an all-zero set is a valid empty set; only this thread's mask changes.
    unsafe {
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Discards everything that this process prints.
///
/// # Errors
/// The errno from the kernel.
pub(crate) fn silence() -> Result<(), Errno> {
    let nothing = std::fs::File::options().write(true).open("/dev/null");
    let nothing = nothing.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))?;
    put_at(nothing.as_fd(), 1)?;
    put_at(nothing.as_fd(), 2)
}

/// Sets the handler of a signal.
///
/// # Errors
/// The errno from the kernel.
pub(crate) fn handle(
    signal: nix::sys::signal::Signal,
    handler: nix::sys::signal::SigHandler,
) -> Result<(), Errno> {
    // SAFETY: the one handler of this crate is an empty function.
    unsafe { nix::sys::signal::signal(signal, handler) }.map(drop)
}

/// Executes a program; returns only on failure. `mark` goes into the fourth argument register,
/// which the kernel ignores and the filter reads.
pub(crate) fn exec(path: &CStr, argv: &[CString], env: &[CString], mark: u64) -> Errno {
    let list = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, env) = (list(argv), list(env));
    // SAFETY: a null-terminated string and two null-terminated lists of such, which outlive the
    // call; the last is a number.
    unsafe {
        libc::syscall(libc::SYS_execve, path.as_ptr(), argv.as_ptr(), env.as_ptr(), mark);
    }
    Errno::last()
}

/// Opens a path with `O_PATH`, and fails if it contains a symbolic link.
///
/// # Errors
/// ELOOP if there is a link; otherwise the errno from the kernel.
pub(crate) fn open_without_links(path: &Path) -> Result<OwnedFd, Errno> {
    let path = c_path(path)?;
    // SAFETY: all of it is numbers, and zero is the right one for the mode.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = u64::from((libc::O_PATH | libc::O_CLOEXEC).unsigned_abs());
    how.resolve = libc::RESOLVE_NO_SYMLINKS;
    // SAFETY: the path is null-terminated, the structure has the size that is passed with it, and
    // both outlive the call.
    let fd = Errno::result(unsafe {
        libc::syscall(
            libc::SYS_openat2,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    })?;
    let fd = RawFd::try_from(fd).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel just gave it to us and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn c_path(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)
}

/// Header of capset(2), version 3.
#[repr(C)]
struct CapHeader {
    version: u32,
    pid: i32,
}

/// One half of the capability sets of capset(2).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct CapHalf {
    pub effective: u32,
    pub permitted: u32,
    pub inheritable: u32,
}

const CAP_VERSION_3: u32 = 0x2008_0522;

/// This thread's capabilities, low half first.
///
/// # Errors
/// The errno from the kernel.
pub(crate) fn capabilities() -> Result<[CapHalf; 2], Errno> {
    let mut header = CapHeader { version: CAP_VERSION_3, pid: 0 };
    let mut halves = [CapHalf::default(); 2];
    // SAFETY: both structures have the kernel's layout for version 3 and outlive the call.
    Errno::result(unsafe {
        libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr())
    })?;
    Ok(halves)
}

/// Drops all capabilities of this thread except these of the first 32.
///
/// # Errors
/// The errno from the kernel.
pub(crate) fn keep_capabilities(low: u32) -> Result<(), Errno> {
    let mut header = CapHeader { version: CAP_VERSION_3, pid: 0 };
    let low = CapHalf { effective: low, permitted: low, ..CapHalf::default() };
    let kept = [low, CapHalf::default()];
    // SAFETY: both structures have the kernel's layout for version 3 and outlive the call.
    Errno::result(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, kept.as_ptr()) })
        .map(drop)
}

/// A prctl whose arguments are all numbers.
///
/// # Errors
/// The errno from the kernel.
pub(crate) fn prctl(option: i32, first: u64, second: u64) -> Result<i32, Errno> {
    // SAFETY: callers in this crate name options that take numbers, no pointers.
    Errno::result(unsafe { libc::prctl(option, first, second, 0, 0) })
}

/// The arguments of mount_setattr(2), first version.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

const MOUNT_ATTR_RDONLY: u64 = 0x1;
const MOUNT_ATTR_NODEV: u64 = 0x4;
const MOUNT_ATTR_NOEXEC: u64 = 0x8;
const AT_RECURSIVE: u32 = 0x8000;

/// The mounts to which a restriction applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountDepth {
    This,
    AllBelow,
}

/// The actions that a mount forbids in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountRestriction {
    /// Changes of files and directories. Device nodes, FIFOs and sockets can still be written to.
    Writes,
    /// Also opening devices.
    WritesAndDevices,
    /// Also starting programs.
    WritesDevicesAndPrograms,
}

/// Restricts the mount whose root directory is open here.
///
/// # Errors
/// The errno from the kernel: ENOSYS before Linux 5.12.
pub(crate) fn restrict(
    mount: BorrowedFd<'_>,
    taken: MountRestriction,
    depth: MountDepth,
) -> Result<(), Errno> {
    let set = match taken {
        MountRestriction::Writes => MOUNT_ATTR_RDONLY,
        MountRestriction::WritesAndDevices => MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV,
        MountRestriction::WritesDevicesAndPrograms => {
            MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC
        }
    };
    let attr = MountAttr { set, clear: 0, propagation: 0, user_namespace: 0 };
    let flags = libc::AT_EMPTY_PATH.unsigned_abs()
        | match depth {
            MountDepth::This => 0,
            MountDepth::AllBelow => AT_RECURSIVE,
        };
    // SAFETY: the path is empty and null-terminated, the structure has the size that is passed with
    // it, and both outlive the call.
    Errno::result(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// Of open_tree(2) and move_mount(2), from `linux/mount.h`.
const OPEN_TREE_CLONE: u32 = 1;
const MOVE_MOUNT_F_EMPTY_PATH: u32 = 0x4;
const MOVE_MOUNT_T_EMPTY_PATH: u32 = 0x40;

/// A copy of the mount tree at an open directory, including the mounts below it, not attached
/// anywhere yet. In a user namespace the kernel refuses a copy without the mounts below.
///
/// # Errors
/// The errno from the kernel: ENOSYS before Linux 5.2.
pub(crate) fn copied_tree(place: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let close = libc::O_CLOEXEC.unsigned_abs();
    let flags = OPEN_TREE_CLONE | close | AT_RECURSIVE | libc::AT_EMPTY_PATH.unsigned_abs();
    // SAFETY: the path is empty and null-terminated; the descriptor is borrowed.
    let fd = Errno::result(unsafe {
        libc::syscall(libc::SYS_open_tree, place.as_raw_fd(), c"".as_ptr(), flags)
    })?;
    let fd = RawFd::try_from(fd).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel just gave it to us and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Attaches such a tree at an open directory.
///
/// # Errors
/// The errno from the kernel.
pub(crate) fn attach(tree: BorrowedFd<'_>, place: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: both paths are empty and null-terminated; the descriptors are borrowed.
    Errno::result(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            place.as_raw_fd(),
            c"".as_ptr(),
            flags,
        )
    })
    .map(drop)
}

/// Switches the loopback interface of this network namespace on.
///
/// # Errors
/// The errno from the kernel.
pub(crate) fn loopback_up() -> Result<(), Errno> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: an all-zero `ifreq` is a valid one with an empty name.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags =
        libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(|_| Errno::EINVAL)?;
    // SAFETY: SIOCSIFFLAGS reads one `ifreq`, which outlives the call.
    Errno::result(unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    })
    .map(drop)
}
