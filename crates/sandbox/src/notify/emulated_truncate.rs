//! Emulates `truncate`: the notify supervisor makes the call in the caller's place, on a copy of
//! its path.
//!
//! Landlock before ABI 3 (Linux 6.2) lets a command empty any file of its user by path. The path is
//! in the caller's memory, where another thread could change it after a check, so the call is never
//! continued. The supervisor opens the file that its copy of the path leads to, checks its real
//! path, and changes the file through that descriptor.

use super::emulated_connect::Emulated;
use super::notify_fd::Notification;
use super::predicted_write::claimed_path;
use super::proc_reader::ProcReader;
use super::writable::WritablePaths;
use libc::AT_FDCWD;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, SFlag, fstat};
use protocol::confinement::{PathAct, Subject};
use std::fs::File;
use std::os::fd::AsFd;

/// A file and its requested length.
#[derive(Debug)]
pub(super) struct PendingTruncate {
    file: File,
    bytes: u64,
}

impl PendingTruncate {
    /// Sets the length; returns 0 or the errno.
    pub(super) fn set(&self) -> i32 {
        match self.file.set_len(self.bytes) {
            Ok(()) => 0,
            Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

/// Copies the path and the length, opens the file, and decides.
pub(super) fn prepare(
    notice: &Notification,
    processes: &ProcReader,
    writable: &WritablePaths,
    most: u64,
) -> Emulated<PendingTruncate> {
    match find(notice, processes, writable, most) {
        Ok(length) => Emulated::Ready(length),
        Err(emulated) => emulated,
    }
}

/// In the kernel's order: the length, the path, the kind of file, the permission.
fn find(
    notice: &Notification,
    processes: &ProcReader,
    writable: &WritablePaths,
    most: u64,
) -> Result<PendingTruncate, Emulated<PendingTruncate>> {
    let fails = |errno: Errno| Emulated::Fails(errno as i32);
    let bytes = u64::try_from(notice.args[1].cast_signed()).map_err(|_| fails(Errno::EINVAL))?;
    let path = processes.path(notice.tid, notice.args[0]).ok_or_else(|| fails(Errno::EFAULT))?;
    let path = match path.as_os_str().is_empty() {
        true => None,
        false => claimed_path(processes, notice.tid, AT_FDCWD, notice.args[0]),
    };
    let path = path.ok_or_else(|| fails(Errno::ENOENT))?;
    let found = open(&path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).map_err(fails)?;
    let now = fstat(&found).map_err(fails)?;
    match SFlag::from_bits_truncate(now.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFREG => {}
        SFlag::S_IFDIR => return Err(fails(Errno::EISDIR)),
        _ => return Err(fails(Errno::EINVAL)),
    }
    let real = processes.path_of(found.as_fd()).ok_or_else(|| fails(Errno::ENOENT))?;
    if let Some(errno) = writable.write_refusal(&real) {
        let path = real.display().to_string();
        return Err(Emulated::Refused(errno, Subject::Path { path, act: PathAct::Length }));
    }
    // The command's file size limit is checked here, since this process has none.
    let grows = u64::try_from(now.st_size).is_ok_and(|size| bytes > size);
    if most > 0 && grows && bytes > most {
        return Err(fails(Errno::EFBIG));
    }
    let file = processes.reopen_for_writing(found.as_fd()).map_err(fails)?;
    Ok(PendingTruncate { file, bytes })
}
