//! Protected names that a program outside of the cage replaces while the command runs: a person's git or
//! editor. The kernel takes the mounts of what was replaced away, in every namespace, so what lies there now
//! is closed anew, within a millisecond of the change.

use crate::read_only_mounts::ReadOnlyMounter;
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Beside what is told of it already; nix has no name for it.
const MASK_ADD: AddWatchFlags = AddWatchFlags::from_bits_retain(libc::IN_MASK_ADD);

/// What is told of a file that goes away from its name, or loses it.
const LEAVE_EVENTS: AddWatchFlags = AddWatchFlags::IN_ATTRIB
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_DONT_FOLLOW)
    .union(MASK_ADD);

/// What is told of a directory that gets a name.
const ARRIVE_EVENTS: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_DONT_FOLLOW)
    .union(MASK_ADD);

/// Names that mounts keep read-only, each with the kernel's number for what lies there; for its directory
/// where nothing does, since editors move a file away and write it anew.
#[derive(Debug)]
pub(crate) struct ProtectedWatch {
    inotify: Inotify,
    names: RefCell<Vec<(WatchDescriptor, PathBuf)>>,
}

impl ProtectedWatch {
    /// Before anything is mounted on them, so that no change is missed.
    ///
    /// # Errors
    /// Where the user has no watches left (`fs.inotify.max_user_instances`, `max_user_watches`).
    pub(crate) fn of(names: &[PathBuf]) -> Result<Self, Errno> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let watched = names.iter().map(|name| Ok((add_watch(&inotify, name)?, name.clone())));
        let names = RefCell::new(watched.collect::<Result<_, Errno>>()?);
        Ok(Self { inotify, names })
    }

    /// Closes what has come to the names since.
    pub(super) fn reseal_changed(&self, seals: &ReadOnlyMounter) {
        let events = self.inotify.read_events().unwrap_or_default();
        let mut names = self.names.borrow_mut();
        let changed = |(number, _): &mut (WatchDescriptor, PathBuf)| {
            events.iter().any(|event| event.wd == *number)
        };
        for (before, name) in names.extract_if(.., changed).collect::<Vec<_>>() {
            let now = add_watch(&self.inotify, &name);
            if now != Ok(before) {
                close(seals, &name);
            }
            // Without a number nothing more can be told of it: no watch is left, or its directory is gone.
            names.extend(now.ok().map(|now| (now, name)));
            if !names.iter().any(|(number, _)| *number == before) {
                // The file may live on elsewhere. It is forgotten already where it does not.
                let _ = self.inotify.rm_watch(before);
            }
        }
    }
}

/// Watches what lies at a name, or the directory where it would.
fn add_watch(inotify: &Inotify, name: &Path) -> Result<WatchDescriptor, Errno> {
    match inotify.add_watch(name, LEAVE_EVENTS) {
        Err(Errno::ENOENT) => {
            let around = inotify.add_watch(name.parent().ok_or(Errno::ENOENT)?, ARRIVE_EVENTS)?;
            // It may have come meanwhile.
            Ok(inotify.add_watch(name, LEAVE_EVENTS).unwrap_or(around))
        }
        found => found,
    }
}

/// Makes what lies there read-only. Where nothing does, or the cage ends, there is nothing to close.
fn close(seals: &ReadOnlyMounter, name: &Path) {
    let _ = seals.make_read_only(name);
}

impl AsFd for ProtectedWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
