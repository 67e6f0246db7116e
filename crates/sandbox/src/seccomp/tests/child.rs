//! A forked child under the real filter, watched by the real listener.
#![allow(unsafe_code)]

use crate::notify::{NotifyConfig, NotifySupervisor, RefusalLog};
use crate::seccomp::{CompiledFilter, FilterSpec};
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The result of a child.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The values that the body returned; fewer if it was killed before.
    pub(crate) answers: Vec<i64>,
    /// The wait status.
    pub(crate) status: i32,
    /// The child's number.
    pub(crate) pid: u32,
    /// True if the notify supervisor had ended by itself when the child was gone.
    pub(crate) alone: bool,
    /// The record of the notify supervisor.
    pub(crate) record: RefusalLog,
}

/// Makes a raw call: the result, or the errno as a negative number.
pub(crate) fn raw(nr: i64, args: [u64; 6]) -> i64 {
    // SAFETY: tests pass numbers, or pointers to memory that outlives the call.
    let result = unsafe { libc::syscall(nr, args[0], args[1], args[2], args[3], args[4], args[5]) };
    if result == -1 {
        -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap())
    } else {
        result
    }
}

/// Runs `body` in a child under the filter of `spec` with a notify supervisor, if it reports.
pub(crate) fn under(watch: NotifyConfig, body: impl FnOnce() -> Vec<i64>) -> Outcome {
    let filter = CompiledFilter::new(&watch.spec).unwrap();
    let (mut answers, out) = std::io::pipe().unwrap();
    let (go, mut start) = std::io::pipe().unwrap();
    // SAFETY: the child only runs `body`, makes calls and ends without returning here.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        drop((answers, start));
        child(&filter, out, go, body);
    }
    drop((out, go));
    let notify = read_i64(&mut answers).expect("the filter installs");
    assert!(
        notify > -2,
        "the filter was refused: {}",
        std::io::Error::from_raw_os_error(-notify as i32)
    );
    let listener =
        (notify >= 0).then(|| NotifySupervisor::start(take(pid, notify as i32), watch).unwrap());
    start.write_all(&[1]).unwrap();
    let mut results = Vec::new();
    while let Some(result) = read_i64(&mut answers) {
        results.push(result);
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    let alone = listener.as_ref().is_none_or(|listener| (0..500).any(|_| ended(listener)));
    let record = listener.map(NotifySupervisor::finish).unwrap_or_default();
    Outcome { answers: results, status, pid: pid.unsigned_abs(), alone, record }
}

/// Runs `body` in a child under a filter without a notify supervisor.
pub(crate) fn without_listener(spec: FilterSpec, body: impl FnOnce() -> Vec<i64>) -> Outcome {
    under(crate::notify::tests::test_config(spec), body)
}

fn child(
    filter: &CompiledFilter,
    mut out: PipeWriter,
    mut go: PipeReader,
    body: impl FnOnce() -> Vec<i64>,
) -> ! {
    let notify = match filter.install() {
        Ok(Some(fd)) => {
            let number = i64::from(fd.as_raw_fd());
            std::mem::forget(fd);
            number
        }
        Ok(None) => -1,
        Err(_) => {
            -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)).min(-2)
        }
    };
    let _ = out.write_all(&notify.to_le_bytes());
    let mut byte = [0];
    let _ = go.read_exact(&mut byte);
    if notify >= 0 {
        // SAFETY: the parent holds its own copy by now; ours would keep the notify supervisor from seeing
        // that we are gone.
        unsafe { libc::close(notify as i32) };
    }
    for answer in body() {
        let _ = out.write_all(&answer.to_le_bytes());
    }
    // SAFETY: ends this process without running the test harness's cleanup.
    unsafe { libc::_exit(0) }
}

/// Waits a little while if the notify supervisor has not ended.
fn ended(listener: &NotifySupervisor) -> bool {
    let ended = listener.has_ended();
    if !ended {
        std::thread::sleep(Duration::from_millis(10));
    }
    ended
}

fn read_i64(from: &mut PipeReader) -> Option<i64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes).ok()?;
    Some(i64::from_le_bytes(bytes))
}

/// Takes a copy of the child's descriptor.
pub(crate) fn take(pid: i32, fd: i32) -> OwnedFd {
    let pidfd = raw(libc::SYS_pidfd_open, [pid as u64, 0, 0, 0, 0, 0]);
    assert!(pidfd >= 0, "pidfd_open: {pidfd}");
    // SAFETY: a new descriptor without another owner.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd as i32) };
    let got = raw(libc::SYS_pidfd_getfd, [pidfd.as_raw_fd() as u64, fd as u64, 0, 0, 0, 0]);
    assert!(got >= 0, "pidfd_getfd: {got}");
    // SAFETY: as above.
    unsafe { OwnedFd::from_raw_fd(got as i32) }
}
