//! A change of git's settings, carried out here in the place of git's own rename.
//!
//! Git writes `config.lock` and renames it over `config`, which a mount keeps in its place. So the new text
//! is copied and judged here. What is harmless becomes a file of ours in a directory where the command cannot write
//! (`hooks`), is made read-only there, and is renamed over `config` from outside the command's mounts: a
//! mount moves with its file, so at no moment is there one that the command could change. In another
//! command's cage the old file's mount would end with it, so nothing is replaced while there is one: each cage
//! has a lock on the file, shared, and whoever replaces it has it alone. A runner that is
//! killed leaves the old file or the new one. Zeroing a `struct flock` is unsafe code.
#![allow(unsafe_code)]

use super::carry::Carried;
use super::paths::{End, Found, find};
use super::processes::Processes;
use super::writes::{Claim, Deed, Roots};
use crate::error::{CageError, Step};
use crate::protected::{changes_harmlessly, leads_inside};
use crate::seals::Seals;
use crate::seccomp::Role;
use crate::sys;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::cell::RefCell;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer settings are left to the kernel, which refuses to replace them.
const LONGEST: u64 = 1 << 20;
/// How long a cage waits for another one to replace them, which takes a write to the disk.
const PATIENCE: Duration = Duration::from_secs(3);
/// What git writes new settings to, beside them.
const LOCK: &str = ".lock";

/// Settings that the command may change by what is harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The file; a mount keeps it read-only.
    pub(crate) file: PathBuf,
    /// A directory of the same repository in which the command can write nothing; where there is none, nothing
    /// is replaced.
    pub(crate) room: Option<PathBuf>,
    /// The git folder that these are of.
    pub(crate) git: PathBuf,
    /// The project and added directories.
    pub(crate) roots: Vec<PathBuf>,
}

/// Keeps others from replacing these, before mounts are made on them. Those that cannot be locked are left out.
///
/// # Errors
/// `Step::Listener` where another process is replacing one and does not end.
pub(crate) fn hold(kept: Vec<Kept>) -> Result<Vec<Held>, CageError> {
    let held = kept.into_iter().map(|kept| Held::of(kept).transpose());
    held.flatten().collect()
}

/// Which settings a call would replace by what git wrote beside them.
pub(super) fn change<'a>(
    held: &'a [Held],
    claims: &[Claim],
    processes: &Processes,
    roots: Roots<'_>,
) -> Option<&'a Held> {
    let [from, to] = claims else { return None };
    let deeds = [from.deed, to.deed].map(|deed| match deed {
        Deed::Name(role, End::Itself) => Some(role),
        Deed::Name(..) | Deed::Open(_) => None,
    });
    // Looked at before anything is resolved: nearly every rename ends here.
    let named = |held: &Held| to.path.file_name() == held.kept.file.file_name();
    if deeds != [Some(Role::Removed), Some(Role::Replaced)] || !held.iter().any(named) {
        return None;
    }
    let there = |claim: &Claim| match find(processes, roots.cage, &claim.path, End::Itself) {
        Found::There(real, _) => Some(real),
        Found::Free(_) | Found::Nowhere | Found::Barred(_) | Found::Unknown => None,
    };
    let (from, to) = (there(from)?, there(to)?);
    held.iter().find(|held| held.kept.file == to && lock_of(&held.kept.file) == from)
}

/// Replaces them if the change is harmless. `None` leaves the call to the kernel, which refuses it.
pub(super) fn make(held: &Held, seals: &Seals) -> Option<Carried<()>> {
    match held.replace(seals) {
        Ok(Done::Replaced) => Some(Carried::Ready(())),
        Ok(Done::Busy) => {
            let file = held.kept.file.display();
            let words = format!(
                "{file}, while another command runs in its repository or since a program outside replaced it"
            );
            Some(Carried::Refused(libc::EBUSY, words))
        }
        Ok(Done::Harmful) | Err(_) => None,
    }
}

/// What became of a change.
enum Done {
    Replaced,
    /// It is not harmless, or there is no room for it.
    Harmful,
    /// There is another cage with this file.
    Busy,
}

/// A file that nobody else replaces.
#[derive(Debug)]
pub(crate) struct Held {
    kept: Kept,
    /// The file, with a lock on it that others share.
    lock: RefCell<File>,
}

impl Held {
    /// Where it is made anew.
    pub(crate) fn room(&self) -> Option<PathBuf> {
        self.kept.room.clone()
    }

    /// `None` where it cannot be locked: a file of another user, a file system without locks.
    fn of(kept: Kept) -> Result<Option<Self>, CageError> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            let opened =
                File::options().read(true).write(true).custom_flags(flags).open(&kept.file);
            let Ok(file) = opened else { return Ok(None) };
            match locked(&file, libc::F_RDLCK) {
                Ok(()) if is_at(&file, &kept.file) => {
                    return Ok(Some(Self { kept, lock: RefCell::new(file) }));
                }
                Ok(()) | Err(Errno::EAGAIN) => sleep(Duration::from_millis(1)),
                Err(_) => return Ok(None),
            }
        }
        let why = format!("{} is locked by another process", kept.file.display());
        Err(CageError::new(Step::Listener, why).hint("end that process and try again"))
    }

    fn replace(&self, seals: &Seals) -> Result<Done, CageError> {
        let Some(room) = &self.kept.room else { return Ok(Done::Harmful) };
        let mut lock = self.lock.borrow_mut();
        if !is_at(&lock, &self.kept.file) || locked(&lock, libc::F_WRLCK).is_err() {
            return Ok(Done::Busy);
        }
        let replaced = self.kept.replace(room, seals);
        match replaced {
            Ok(Some(new)) => {
                *lock = new;
                Ok(Done::Replaced)
            }
            Ok(None) => locked(&lock, libc::F_RDLCK).map_err(of_settings).map(|()| Done::Harmful),
            Err(error) => locked(&lock, libc::F_RDLCK).map_err(of_settings).and(Err(error)),
        }
    }
}

/// Takes or changes a lock of this open file on its whole length; the lock that it has stays where that fails.
fn locked(file: &File, kind: i32) -> Result<(), Errno> {
    // SAFETY: all of it is numbers, and zero is the right one for the range: all of the file.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock)).map(drop)
}

/// Whether the file still lies there.
fn is_at(file: &File, path: &Path) -> bool {
    let ours = file.metadata().map(|found| (found.dev(), found.ino()));
    let there = path.symlink_metadata().map(|found| (found.dev(), found.ino()));
    ours.ok().zip(there.ok()).is_some_and(|(ours, there)| ours == there)
}

fn of_settings(error: impl Into<io::Error>) -> CageError {
    CageError::os(Step::Listener, "git's settings", error.into())
}

impl Kept {
    /// The new file, locked, made ready in this room; `None` where the change is not harmless.
    fn replace(&self, at: &Path, seals: &Seals) -> Result<Option<File>, CageError> {
        let folder =
            directory(self.file.parent().unwrap_or(Path::new("/"))).map_err(of_settings)?;
        let name = Path::new(self.file.file_name().unwrap_or_default());
        let (now, mode) = read(&folder, name).map_err(of_settings)?;
        let (new, _) = read(&folder, &lock_of(name)).map_err(of_settings)?;
        let inside = |path: &str| leads_inside(&self.git, path, &self.roots);
        if !changes_harmlessly(&now, &new, inside) {
            return Ok(None);
        }
        let room = directory(at).map_err(of_settings)?;
        let random = getrandom::u64().map_err(|_| of_settings(Errno::EIO))?;
        let copy = PathBuf::from(format!("config-{random:016x}"));
        let replaced = write(&room, &copy, &new, mode).map_err(of_settings).and_then(|file| {
            seals.seal(&at.join(&copy))?;
            renameat(&room, &copy, &folder, name).map_err(of_settings)?;
            Ok(file)
        });
        match &replaced {
            // As after git's own rename. Somebody else may have removed it meanwhile.
            Ok(_) => unlinkat(&folder, &lock_of(name), UnlinkatFlags::NoRemoveDir).unwrap_or(()),
            // It may not have been made.
            Err(_) => unlinkat(&room, &copy, UnlinkatFlags::NoRemoveDir).unwrap_or(()),
        }
        replaced.map(Some)
    }
}

fn lock_of(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(LOCK);
    lock.into()
}

/// A directory of the host.
fn directory(path: &Path) -> io::Result<OwnedFd> {
    let found = sys::open_without_links(path)?;
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    Ok(openat(found, ".", flags, Mode::empty())?)
}

/// The text of a file, and its mode.
fn read(folder: impl AsFd, name: &Path) -> io::Result<(String, u32)> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.is_file() || found.len() > LONGEST {
        return Err(Errno::EINVAL.into());
    }
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text)?;
    match text.len() as u64 > LONGEST {
        true => Err(Errno::EFBIG.into()),
        false => Ok((text, found.permissions().mode() & 0o777)),
    }
}

/// A new file with this text, and a shared lock on it.
fn write(folder: impl AsFd, name: &Path, text: &str, mode: u32) -> io::Result<File> {
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(folder, name, flags, Mode::from_bits_truncate(0o600))?);
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()?;
    locked(&file, libc::F_RDLCK)?;
    Ok(file)
}
