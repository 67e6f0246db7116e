//! Emulates the rename by which git changes its configuration, if the change is harmless.
//!
//! Git writes `config.lock` and renames it over `config`, which a read-only mount prevents. So this
//! process copies and judges the new text. A harmless text is written to a new file in a directory
//! where the command cannot write (`hooks`). That file is mounted read-only there and then renamed
//! over `config` from outside the command's mounts. A mount moves with its file, so the command can
//! never change it. In another command's cage the mount of the old file would end with that file.
//! Therefore each cage holds a shared lock on the file, and a replacement needs an exclusive lock.
//! If the runner is killed, either the old or the new file remains. Zeroing a `struct flock` is
//! unsafe code.
#![allow(unsafe_code)]

use super::emulated_connect::Emulated;
use super::predicted_write::{PathAction, PathClaim, RootDirs};
use super::proc_reader::ProcReader;
use super::resolve::{FinalLink, Resolved, resolve};
use crate::error::{CageError, CageStep};
use crate::git_config_file::GitConfigFile;
use crate::protected::{changes_harmlessly, leads_inside};
use crate::seccomp::EntryChange;
use crate::spawn::read_only_mounts::ReadOnlyMounter;
use crate::sys;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use protocol::confinement::{PathAct, Subject};
use std::cell::RefCell;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer files are left to the kernel, which refuses to replace them.
const LONGEST: u64 = 1 << 20;
/// How long a cage waits for another one to replace the file, which takes one write to disk.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// Suffix of the file to which git writes the new configuration.
const LOCK: &str = ".lock";

/// Git settings files with shared locks. The cage and its notify supervisor share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct LockedGitConfigs(Arc<Mutex<Vec<LockedGitConfig>>>);

impl LockedGitConfigs {
    /// Locks these files against replacement, before mounts are made on them. Files that cannot be
    /// locked are left out.
    ///
    /// # Errors
    /// `CageStep::Listener` if another process replaces one of them and does not finish.
    pub(crate) fn lock(configs: &[GitConfigFile]) -> Result<Self, CageError> {
        let locked = Self::default();
        locked.lock_again(configs)?;
        Ok(locked)
    }

    /// The same, in place of the locks that were held before.
    ///
    /// # Errors
    /// As [`LockedGitConfigs::lock`].
    pub(crate) fn lock_again(&self, configs: &[GitConfigFile]) -> Result<(), CageError> {
        let locked = configs.iter().map(|config| LockedGitConfig::of(config.clone()).transpose());
        *self.all() = locked.flatten().collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Gives the locks up: another cage may replace the files.
    pub(crate) fn release(&self) {
        self.all().clear();
    }

    /// How many files are locked.
    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    /// The directories where new files are made.
    pub(crate) fn staging_dirs(&self) -> Vec<PathBuf> {
        self.all().iter().filter_map(|locked| locked.config.staging_dir.clone()).collect()
    }

    pub(super) fn all(&self) -> MutexGuard<'_, Vec<LockedGitConfig>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The configuration file that a rename would replace by git's lock file.
pub(super) fn find_replaced<'a>(
    locked: &'a [LockedGitConfig],
    claims: &[PathClaim],
    processes: &ProcReader,
    roots: RootDirs<'_>,
) -> Option<&'a LockedGitConfig> {
    let [from, to] = claims else { return None };
    let actions = [from.action, to.action].map(|action| match action {
        PathAction::Name(role, FinalLink::NotFollowed) => Some(role),
        PathAction::Name(..) | PathAction::Open(_) => None,
    });
    // Checked before any path is resolved, since nearly every rename ends here.
    let named = |locked: &LockedGitConfig| to.path.file_name() == locked.config.file.file_name();
    if actions != [Some(EntryChange::Removed), Some(EntryChange::Replaced)]
        || !locked.iter().any(named)
    {
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
    locked.iter().find(|locked| locked.config.file == to && lock_of(&locked.config.file) == from)
}

/// Replaces the file if the change is harmless. `None` leaves the call to the kernel, which refuses
/// it.
pub(super) fn replace_if_harmless(
    locked: &LockedGitConfig,
    mounter: &ReadOnlyMounter,
) -> Option<Emulated<()>> {
    match locked.replace(mounter) {
        Ok(ReplaceOutcome::Replaced) => Some(Emulated::Ready(())),
        Ok(ReplaceOutcome::Busy) => {
            let path = locked.config.file.display().to_string();
            let subject = Subject::Path { path, act: PathAct::Busy };
            Some(Emulated::Refused(libc::EBUSY, subject))
        }
        Ok(ReplaceOutcome::Harmful) | Err(_) => None,
    }
}

/// The result of a replacement.
enum ReplaceOutcome {
    Replaced,
    /// The change is not harmless, or there is no staging directory.
    Harmful,
    /// Another cage uses this file.
    Busy,
}

/// A configuration file with a shared lock on it.
#[derive(Debug)]
pub(super) struct LockedGitConfig {
    config: GitConfigFile,
    /// The file, with a lock that other cages share.
    lock: RefCell<File>,
}

impl LockedGitConfig {
    /// `None` if it cannot be locked: another user's file, or a file system without locks.
    fn of(config: GitConfigFile) -> Result<Option<Self>, CageError> {
        let end = Instant::now() + LOCK_TIMEOUT;
        while Instant::now() < end {
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            let opened =
                File::options().read(true).write(true).custom_flags(flags).open(&config.file);
            let Ok(file) = opened else { return Ok(None) };
            match set_lock(&file, libc::F_RDLCK) {
                Ok(()) if is_at(&file, &config.file) => {
                    return Ok(Some(Self { config, lock: RefCell::new(file) }));
                }
                Ok(()) | Err(Errno::EAGAIN) => sleep(Duration::from_millis(1)),
                Err(_) => return Ok(None),
            }
        }
        let why = format!("{} is locked by another process", config.file.display());
        Err(CageError::new(CageStep::Listener, why).hint("end that process and try again"))
    }

    fn replace(&self, mounter: &ReadOnlyMounter) -> Result<ReplaceOutcome, CageError> {
        let Some(staging) = &self.config.staging_dir else { return Ok(ReplaceOutcome::Harmful) };
        let mut lock = self.lock.borrow_mut();
        if !is_at(&lock, &self.config.file) || set_lock(&lock, libc::F_WRLCK).is_err() {
            return Ok(ReplaceOutcome::Busy);
        }
        let replaced = make_and_move(&self.config, staging, mounter);
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

/// Sets a lock on the whole open file. If that fails, its present lock remains.
fn set_lock(file: &File, kind: i32) -> Result<(), Errno> {
    // SAFETY: all of it is numbers, and zero is the right one for the range: all of the file.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock)).map(drop)
}

/// True if the path still leads to this file.
fn is_at(file: &File, path: &Path) -> bool {
    let ours = file.metadata().map(|found| (found.dev(), found.ino()));
    let there = path.symlink_metadata().map(|found| (found.dev(), found.ino()));
    ours.ok().zip(there.ok()).is_some_and(|(ours, there)| ours == there)
}

fn config_error(error: impl Into<io::Error>) -> CageError {
    CageError::os(CageStep::Listener, "git's settings", error.into())
}

/// Makes the new file in the staging directory, locked, and moves it into place; `None` if the
/// change is not harmless.
fn make_and_move(
    config: &GitConfigFile,
    at: &Path,
    mounter: &ReadOnlyMounter,
) -> Result<Option<File>, CageError> {
    let folder = directory(config.file.parent().unwrap_or(Path::new("/"))).map_err(config_error)?;
    let name = Path::new(config.file.file_name().unwrap_or_default());
    let (now, mode) = read(&folder, name).map_err(config_error)?;
    let (new, _) = read(&folder, &lock_of(name)).map_err(config_error)?;
    let inside = |path: &str| leads_inside(&config.git_dir, path, &config.roots);
    if !changes_harmlessly(&now, &new, inside) {
        return Ok(None);
    }
    let staging = directory(at).map_err(config_error)?;
    let random = sys::random().map_err(config_error)?;
    let copy = PathBuf::from(format!("config-{random:016x}"));
    let replaced = write(&staging, &copy, &new, mode).map_err(config_error).and_then(|file| {
        mounter.make_read_only(&at.join(&copy))?;
        renameat(&staging, &copy, &folder, name).map_err(config_error)?;
        Ok(file)
    });
    match &replaced {
        // As after git's own rename. Another process may have removed it meanwhile.
        Ok(_) => unlinkat(&folder, &lock_of(name), UnlinkatFlags::NoRemoveDir).unwrap_or(()),
        // The file may not exist.
        Err(_) => unlinkat(&staging, &copy, UnlinkatFlags::NoRemoveDir).unwrap_or(()),
    }
    replaced.map(Some)
}

fn lock_of(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(LOCK);
    lock.into()
}

/// Opens a directory of the host.
fn directory(path: &Path) -> io::Result<OwnedFd> {
    let found = sys::open_without_links(path)?;
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    Ok(openat(found, ".", flags, Mode::empty())?)
}

/// The text and the mode of a file.
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

/// Creates a file with this text, and takes a shared lock on it.
fn write(folder: impl AsFd, name: &Path, text: &str, mode: u32) -> io::Result<File> {
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(folder, name, flags, Mode::from_bits_truncate(0o600))?);
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()?;
    set_lock(&file, libc::F_RDLCK)?;
    Ok(file)
}
