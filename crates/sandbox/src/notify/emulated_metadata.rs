//! Emulates changes of mode, owner and times: the notify supervisor makes the call in the caller's
//! place, on copies of its arguments.
//!
//! Landlock has no right for such changes. In tier B a command could make them by a path outside
//! the grants, or by a descriptor opened for reading. The path is in memory and a descriptor number
//! can be reassigned, so the call is never continued. The supervisor opens or copies the file,
//! checks its real path, and changes the file through that descriptor.

use super::emulated_connect::Emulated;
use super::notify_fd::Notification;
use super::predicted_write::claimed_path;
use super::proc_reader::ProcReader;
use super::socket;
use super::writable::WritablePaths;
use crate::seccomp::{FollowLink, MetadataField, MetadataTarget, TimeUnit};
use libc::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::stat::{FchmodatFlags, Mode, UtimensatFlags, fchmodat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, fchownat};
use protocol::confinement::{PathAct, Subject};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A file and the requested change.
#[derive(Debug)]
pub(super) struct MetadataChange {
    file: OwnedFd,
    to: NewMetadata,
}

/// The new values, copied from the caller.
#[derive(Debug)]
enum NewMetadata {
    Mode(Mode),
    Owner(Option<Uid>, Option<Gid>),
    Times(TimeSpec, TimeSpec),
}

impl MetadataChange {
    /// Makes the change with this process's permissions; returns 0 or the errno.
    pub(super) fn make(&self, own: BorrowedFd<'_>) -> i32 {
        // The kernel's link to the descriptor; it also works for a symbolic link itself.
        let name = self.file.as_raw_fd().to_string();
        let name = name.as_str();
        let made = match self.to {
            NewMetadata::Mode(mode) => fchmodat(own, name, mode, FchmodatFlags::FollowSymlink),
            NewMetadata::Owner(user, group) => {
                fchownat(own, name, user, group, nix::fcntl::AtFlags::empty())
            }
            NewMetadata::Times(read, written) => {
                utimensat(own, name, &read, &written, UtimensatFlags::FollowSymlink)
            }
        };
        made.map_or_else(|errno| errno as i32, |()| 0)
    }
}

/// Copies the arguments, opens the file, and decides.
pub(super) fn prepare(
    notice: &Notification,
    (subject, respect): (MetadataTarget, MetadataField),
    processes: &ProcReader,
    writable: &WritablePaths,
) -> Emulated<MetadataChange> {
    match find(notice, subject, respect, processes, writable) {
        Ok(change) => Emulated::Ready(change),
        Err(emulated) => emulated,
    }
}

fn find(
    notice: &Notification,
    subject: MetadataTarget,
    respect: MetadataField,
    processes: &ProcReader,
    writable: &WritablePaths,
) -> Result<MetadataChange, Emulated<MetadataChange>> {
    let fails = |errno: Errno| Emulated::Fails(errno as i32);
    let (to, act) = requested_change(notice, respect, processes).map_err(fails)?;
    let file = match file(notice, subject, processes) {
        Ok(file) => file,
        // The caller is not dumpable, so neither its files nor its memory may be read.
        Err(Errno::EPERM) => {
            return Err(Emulated::Refused(libc::EPERM, Subject::HiddenMemory));
        }
        Err(errno) => return Err(fails(errno)),
    };
    let real = processes.path_of(file.as_fd()).ok_or_else(|| fails(Errno::ENOENT))?;
    match writable.write_refusal(&real) {
        Some(errno) => {
            let path = real.display().to_string();
            Err(Emulated::Refused(errno, Subject::Path { path, act }))
        }
        None => Ok(MetadataChange { file, to }),
    }
}

/// The requested change, for the call and for the record.
#[allow(clippy::cast_possible_truncation)]
fn requested_change(
    notice: &Notification,
    respect: MetadataField,
    processes: &ProcReader,
) -> Result<(NewMetadata, PathAct), Errno> {
    let low = |at: usize| notice.args[at] as u32;
    match respect {
        MetadataField::Mode(at) => {
            Ok((NewMetadata::Mode(Mode::from_bits_truncate(low(at) & 0o7777)), PathAct::Mode))
        }
        MetadataField::Owner(at) => {
            let number = |at: usize| (low(at) != u32::MAX).then(|| low(at));
            let (user, group) = (number(at).map(Uid::from_raw), number(at + 1).map(Gid::from_raw));
            Ok((NewMetadata::Owner(user, group), PathAct::Owner))
        }
        MetadataField::Times(at, unit) => {
            let (read, written) = times(notice, at, unit, processes)?;
            Ok((NewMetadata::Times(read, written), PathAct::Times))
        }
    }
}

/// Copies both times from the caller's memory; a null pointer means now.
fn times(
    notice: &Notification,
    at: usize,
    unit: TimeUnit,
    processes: &ProcReader,
) -> Result<(TimeSpec, TimeSpec), Errno> {
    let place = notice.args[at];
    if place == 0 {
        return Ok((TimeSpec::UTIME_NOW, TimeSpec::UTIME_NOW));
    }
    let (description, fraction) = match unit {
        TimeUnit::Seconds => (2, 0),
        TimeUnit::Micros => (4, 1000),
        TimeUnit::Nanos => (4, 1),
    };
    let bytes = processes.memory(notice.tid, place, description * 8).ok_or(Errno::EFAULT)?;
    let word = |at: usize| -> Result<i64, Errno> {
        let bytes = bytes.get(at * 8..at * 8 + 8).ok_or(Errno::EFAULT)?;
        Ok(i64::from_ne_bytes(bytes.try_into().map_err(|_| Errno::EFAULT)?))
    };
    if fraction == 0 {
        return Ok((TimeSpec::new(word(0)?, 0), TimeSpec::new(word(1)?, 0)));
    }
    let time = |at: usize| -> Result<TimeSpec, Errno> {
        let part = word(at + 1)?;
        if fraction == 1000 && !(0..1_000_000).contains(&part) {
            return Err(Errno::EINVAL);
        }
        Ok(TimeSpec::new(word(at)?, part * fraction))
    };
    Ok((time(0)?, time(2)?))
}

/// Opens or copies the target file.
#[allow(clippy::cast_possible_truncation)]
fn file(
    notice: &Notification,
    subject: MetadataTarget,
    processes: &ProcReader,
) -> Result<OwnedFd, Errno> {
    let taken = |fd: i32| socket::take(notice.tid, u32::try_from(fd).map_err(|_| Errno::EBADF)?);
    let (dir, path, follow) = match subject {
        MetadataTarget::Descriptor(at) => {
            let file = taken(notice.args[at] as i32)?;
            let flags = OFlag::from_bits_truncate(fcntl(&file, FcntlArg::F_GETFL)?);
            return if flags.contains(OFlag::O_PATH) { Err(Errno::EBADF) } else { Ok(file) };
        }
        MetadataTarget::Path { dir, path, follow } => {
            (dir.map_or(AT_FDCWD, |at| notice.args[at] as i32), notice.args[path], follow)
        }
    };
    let flags = match follow {
        FollowLink::Yes => 0,
        FollowLink::No => AT_SYMLINK_NOFOLLOW,
        FollowLink::Flag(at) => notice.args[at] as i32,
    };
    // `utimensat` without a path means the descriptor.
    if path == 0 && dir != AT_FDCWD {
        return taken(dir);
    }
    let said = processes.path(notice.tid, path).ok_or(Errno::EFAULT)?;
    if said.as_os_str().is_empty() {
        return match (flags & AT_EMPTY_PATH != 0, dir) {
            (true, AT_FDCWD) => processes.directory(notice.tid, "cwd").ok_or(Errno::ENOENT),
            (true, fd) => taken(fd),
            (false, _) => Err(Errno::ENOENT),
        };
    }
    let path = claimed_path(processes, notice.tid, dir, path).ok_or(Errno::ENOENT)?;
    let end = match flags & AT_SYMLINK_NOFOLLOW {
        0 => OFlag::empty(),
        _ => OFlag::O_NOFOLLOW,
    };
    open(&path, OFlag::O_PATH | OFlag::O_CLOEXEC | end, Mode::empty())
}
