//! Watches protected files that a program outside the cage replaces while the command runs, such as
//! the user's git or editor. The kernel then removes the mount on the old file in every namespace.
//! So the new file is mounted read-only within a millisecond of the change.

use crate::spawn::read_only_mounts::ReadOnlyMounter;
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Adds events to an existing watch; nix has no name for it.
const MASK_ADD: AddWatchFlags = AddWatchFlags::from_bits_retain(libc::IN_MASK_ADD);

/// Events of a file that is moved, deleted or loses a name.
const LEAVE_EVENTS: AddWatchFlags = AddWatchFlags::IN_ATTRIB
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_DONT_FOLLOW)
    .union(MASK_ADD);

/// Events of a directory that gets a new name.
const ARRIVE_EVENTS: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_DONT_FOLLOW)
    .union(MASK_ADD);

/// Paths with read-only mounts, each with the inotify watch of its file. If the file is missing,
/// its directory is watched, since editors move a file away and write a new one.
#[derive(Debug)]
pub(crate) struct ProtectedWatch {
    inotify: Inotify,
    names: RefCell<Vec<(WatchDescriptor, PathBuf)>>,
}

impl ProtectedWatch {
    /// Call it before any mount is made on these paths, so that no change is missed.
    ///
    /// # Errors
    /// The user has no watches left (`fs.inotify.max_user_instances`, `max_user_watches`).
    pub(crate) fn of(names: &[PathBuf]) -> Result<Self, Errno> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let watched = names.iter().map(|name| Ok((add_watch(&inotify, name)?, name.clone())));
        let names = RefCell::new(watched.collect::<Result<_, Errno>>()?);
        Ok(Self { inotify, names })
    }

    /// Mounts read-only every file that appeared at one of the paths.
    pub(super) fn reseal_changed(&self, mounter: &ReadOnlyMounter) {
        let events = self.inotify.read_events().unwrap_or_default();
        let mut names = self.names.borrow_mut();
        let changed = |(number, _): &mut (WatchDescriptor, PathBuf)| {
            events.iter().any(|event| event.wd == *number)
        };
        for (before, name) in names.extract_if(.., changed).collect::<Vec<_>>() {
            let now = add_watch(&self.inotify, &name);
            if now != Ok(before) {
                close(mounter, &name);
            }
            // Without a watch there are no further events for it: no watch is left, or its
            // directory is gone.
            names.extend(now.ok().map(|now| (now, name)));
            if !names.iter().any(|(number, _)| *number == before) {
                // The old file may still exist elsewhere. If it does not, its watch is already
                // gone.
                let _ = self.inotify.rm_watch(before);
            }
        }
    }
}

/// Watches the file at a path, or its parent directory if it does not exist.
fn add_watch(inotify: &Inotify, name: &Path) -> Result<WatchDescriptor, Errno> {
    match inotify.add_watch(name, LEAVE_EVENTS) {
        Err(Errno::ENOENT) => {
            let around = inotify.add_watch(name.parent().ok_or(Errno::ENOENT)?, ARRIVE_EVENTS)?;
            // The file may have appeared meanwhile.
            Ok(inotify.add_watch(name, LEAVE_EVENTS).unwrap_or(around))
        }
        found => found,
    }
}

/// Mounts the file read-only. If it does not exist or the cage ends, this fails and does no harm.
fn close(mounter: &ReadOnlyMounter, name: &Path) {
    let _ = mounter.make_read_only(name);
}

impl AsFd for ProtectedWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
