//! Protected names that a program outside of the cage replaces while the command runs: a person's git or
//! editor. The kernel takes the mounts of what was replaced away, in every namespace, so what lies there now
//! is closed anew, within a millisecond of the change.

use crate::seals::Seals;
use nix::errno::Errno;
use nix::poll::PollTimeout;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Milliseconds between two looks at names where nothing lies: editors move a file away and write it anew.
const LOOK: u8 = 10;

/// What is told of a file that goes away from its name, or loses it.
const LEAVES: AddWatchFlags = AddWatchFlags::IN_ATTRIB
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_DONT_FOLLOW);

/// Names that mounts keep read-only, and what lies there.
#[derive(Debug)]
pub(crate) struct Watched {
    inotify: Inotify,
    there: RefCell<Vec<(WatchDescriptor, PathBuf)>>,
    /// Nothing lies there.
    absent: RefCell<Vec<PathBuf>>,
}

impl Watched {
    /// Before anything is mounted on them, so that no change is missed.
    ///
    /// # Errors
    /// Where the user has no watches left (`fs.inotify.max_user_instances`, `max_user_watches`).
    pub(crate) fn of(names: &[PathBuf]) -> Result<Self, Errno> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let there = names.iter().map(|name| Ok((inotify.add_watch(name, LEAVES)?, name.clone())));
        let there = RefCell::new(there.collect::<Result<_, Errno>>()?);
        Ok(Self { inotify, there, absent: RefCell::default() })
    }

    /// How long to wait for the next change.
    pub(super) fn patience(&self) -> PollTimeout {
        if self.absent.borrow().is_empty() { PollTimeout::NONE } else { PollTimeout::from(LOOK) }
    }

    /// Closes what has come to the names since.
    pub(super) fn close(&self, seals: &Seals) {
        let events = self.inotify.read_events().unwrap_or_default();
        let mut there = self.there.borrow_mut();
        let left = |(number, _): &mut (WatchDescriptor, PathBuf)| {
            events.iter().any(|event| event.wd == *number)
        };
        let left: Vec<_> = there.extract_if(.., left).collect();
        let left = left.into_iter().map(|(number, name)| (Some(number), name));
        let absent = self.absent.take().into_iter().map(|name| (None, name));
        for (before, name) in left.chain(absent).collect::<Vec<_>>() {
            match self.inotify.add_watch(&name, LEAVES) {
                // Its mode was changed, no more.
                Ok(number) if before == Some(number) => there.push((number, name)),
                Ok(number) => {
                    self.forget(before);
                    close(seals, &name);
                    there.push((number, name));
                }
                Err(Errno::ENOENT | Errno::ENOTDIR) => {
                    self.forget(before);
                    self.absent.borrow_mut().push(name);
                }
                // Another user's by now, or no watch is left: nothing more can be told of it.
                Err(_) => close(seals, &name),
            }
        }
    }

    /// The file may live on elsewhere.
    fn forget(&self, number: Option<WatchDescriptor>) {
        // It is forgotten already where the file is gone.
        let _ = number.map(|number| self.inotify.rm_watch(number));
    }
}

/// Each record says that such a name may be open for a while; this one stays so only where the cage ends.
fn close(seals: &Seals, name: &Path) {
    let _ = seals.seal(name);
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
