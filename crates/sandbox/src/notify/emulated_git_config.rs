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

use super::emulated_connect::Emulated;
use super::predicted_write::{PathAction, PathClaim, RootDirs};
use super::proc_reader::ProcReader;
use super::resolve::{FinalLink, Resolved, resolve};
use crate::error::{CageError, CageStep};
use crate::protected::{changes_harmlessly, leads_inside};
use crate::read_only_mounts::ReadOnlyMounter;
use crate::seccomp::NameChange;
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
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// What git writes new settings to, beside them.
const LOCK: &str = ".lock";

/// Settings that the command may change by what is harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitConfigFile {
    /// The file; a mount keeps it read-only.
    pub(crate) file: PathBuf,
    /// A directory of the same repository in which the command can write nothing; where there is none, nothing
    /// is replaced.
    pub(crate) staging_dir: Option<PathBuf>,
    /// The git folder that these are of.
    pub(crate) git_dir: PathBuf,
    /// The project and added directories.
    pub(crate) roots: Vec<PathBuf>,
}

/// Keeps others from replacing these, before mounts are made on them. Those that cannot be locked are left out.
///
/// # Errors
/// `Step::Listener` where another process is replacing one and does not end.
pub(crate) fn lock_all(kept: Vec<GitConfigFile>) -> Result<Vec<LockedGitConfig>, CageError> {
    let held = kept.into_iter().map(|kept| LockedGitConfig::of(kept).transpose());
    held.flatten().collect()
}

/// Which settings a call would replace by what git wrote beside them.
pub(super) fn find_replaced<'a>(
    held: &'a [LockedGitConfig],
    claims: &[PathClaim],
    processes: &ProcReader,
    roots: RootDirs<'_>,
) -> Option<&'a LockedGitConfig> {
    let [from, to] = claims else { return None };
    let deeds = [from.action, to.action].map(|deed| match deed {
        PathAction::Name(role, FinalLink::NotFollowed) => Some(role),
        PathAction::Name(..) | PathAction::Open(_) => None,
    });
    // Looked at before anything is resolved: nearly every rename ends here.
    let named = |held: &LockedGitConfig| to.path.file_name() == held.kept.file.file_name();
    if deeds != [Some(NameChange::Removed), Some(NameChange::Replaced)] || !held.iter().any(named) {
        return None;
    }
    let there = |claim: &PathClaim| match resolve(
        processes,
        roots.cage,
        &claim.path,
        FinalLink::NotFollowed,
    ) {
        Resolved::Exists(real, _) => Some(real),
        Resolved::Missing(_)
        | Resolved::NoParent
        | Resolved::NotSearchable(_)
        | Resolved::Unknown => None,
    };
    let (from, to) = (there(from)?, there(to)?);
    held.iter().find(|held| held.kept.file == to && lock_of(&held.kept.file) == from)
}

/// Replaces them if the change is harmless. `None` leaves the call to the kernel, which refuses it.
pub(super) fn replace_if_harmless(
    held: &LockedGitConfig,
    seals: &ReadOnlyMounter,
) -> Option<Emulated<()>> {
    match held.replace(seals) {
        Ok(ReplaceOutcome::Replaced) => Some(Emulated::Ready(())),
        Ok(ReplaceOutcome::Busy) => {
            let file = held.kept.file.display();
            let words = format!(
                "{file}, while another command runs in its repository or since a program outside replaced it"
            );
            Some(Emulated::Refused(libc::EBUSY, words))
        }
        Ok(ReplaceOutcome::Harmful) | Err(_) => None,
    }
}

/// What became of a change.
enum ReplaceOutcome {
    Replaced,
    /// It is not harmless, or there is no room for it.
    Harmful,
    /// There is another cage with this file.
    Busy,
}

/// A file that nobody else replaces.
#[derive(Debug)]
pub(crate) struct LockedGitConfig {
    kept: GitConfigFile,
    /// The file, with a lock on it that others share.
    lock: RefCell<File>,
}

impl LockedGitConfig {
    /// Where it is made anew.
    pub(crate) fn staging_dir(&self) -> Option<PathBuf> {
        self.kept.staging_dir.clone()
    }

    /// `None` where it cannot be locked: a file of another user, a file system without locks.
    fn of(kept: GitConfigFile) -> Result<Option<Self>, CageError> {
        let end = Instant::now() + LOCK_TIMEOUT;
        while Instant::now() < end {
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            let opened =
                File::options().read(true).write(true).custom_flags(flags).open(&kept.file);
            let Ok(file) = opened else { return Ok(None) };
            match set_lock(&file, libc::F_RDLCK) {
                Ok(()) if is_at(&file, &kept.file) => {
                    return Ok(Some(Self { kept, lock: RefCell::new(file) }));
                }
                Ok(()) | Err(Errno::EAGAIN) => sleep(Duration::from_millis(1)),
                Err(_) => return Ok(None),
            }
        }
        let why = format!("{} is locked by another process", kept.file.display());
        Err(CageError::new(CageStep::Listener, why).hint("end that process and try again"))
    }

    fn replace(&self, seals: &ReadOnlyMounter) -> Result<ReplaceOutcome, CageError> {
        let Some(room) = &self.kept.staging_dir else { return Ok(ReplaceOutcome::Harmful) };
        let mut lock = self.lock.borrow_mut();
        if !is_at(&lock, &self.kept.file) || set_lock(&lock, libc::F_WRLCK).is_err() {
            return Ok(ReplaceOutcome::Busy);
        }
        let replaced = self.kept.replace(room, seals);
        match replaced {
            Ok(Some(new)) => {
                *lock = new;
                Ok(ReplaceOutcome::Replaced)
            }
            Ok(None) => set_lock(&lock, libc::F_RDLCK)
                .map_err(config_error)
                .map(|()| ReplaceOutcome::Harmful),
            Err(error) => set_lock(&lock, libc::F_RDLCK).map_err(config_error).and(Err(error)),
        }
    }
}

/// Takes or changes a lock of this open file on its whole length; the lock that it has stays where that fails.
fn set_lock(file: &File, kind: i32) -> Result<(), Errno> {
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

fn config_error(error: impl Into<io::Error>) -> CageError {
    CageError::os(CageStep::Listener, "git's settings", error.into())
}

impl GitConfigFile {
    /// The new file, locked, made ready in this room; `None` where the change is not harmless.
    fn replace(&self, at: &Path, seals: &ReadOnlyMounter) -> Result<Option<File>, CageError> {
        let folder =
            directory(self.file.parent().unwrap_or(Path::new("/"))).map_err(config_error)?;
        let name = Path::new(self.file.file_name().unwrap_or_default());
        let (now, mode) = read(&folder, name).map_err(config_error)?;
        let (new, _) = read(&folder, &lock_of(name)).map_err(config_error)?;
        let inside = |path: &str| leads_inside(&self.git_dir, path, &self.roots);
        if !changes_harmlessly(&now, &new, inside) {
            return Ok(None);
        }
        let room = directory(at).map_err(config_error)?;
        let random = getrandom::u64().map_err(|_| config_error(Errno::EIO))?;
        let copy = PathBuf::from(format!("config-{random:016x}"));
        let replaced = write(&room, &copy, &new, mode).map_err(config_error).and_then(|file| {
            seals.make_read_only(&at.join(&copy))?;
            renameat(&room, &copy, &folder, name).map_err(config_error)?;
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
    set_lock(&file, libc::F_RDLCK)?;
    Ok(file)
}
