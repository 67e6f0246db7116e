//! Removes a directory that a caged process filled, however deep, wide or shut it left it.
//!
//! A recursive walk overflows its stack in a deep tree; a walk with a descriptor or path per level
//! exhausts those. This walk has one level: a directory that is not empty is moved up into the
//! directory that is being removed, and is emptied there. It needs four descriptors, eight bytes
//! for each waiting directory, and handles each entry once.

use crate::error::{CageError, CageStep};
use crate::landlock::ruleset;
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, open, openat, openat2, renameat};
use nix::sys::stat::{Mode, dev_t, fchmod, fstat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The owner may list and change a directory of this mode.
const OPEN: Mode = Mode::S_IRWXU;

/// Removes the directory `at` with all that is in it. Links are removed, not followed; file systems
/// that are mounted in it are left alone. Where something cannot be removed, everything else is.
/// A removal that was cut short leaves a directory that the next one removes.
///
/// # Errors
/// Those of the first entry that stays, and where `at` is no directory or a link.
pub fn remove_tree(at: &Path) -> io::Result<()> {
    let name = at.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let name = c_string(name)?;
    let above = at.parent().filter(|above| !above.as_os_str().is_empty());
    let above = open(above.unwrap_or(Path::new(".")), place_flags(), Mode::empty())?;
    let device = fstat(&above)?.st_dev;
    let top = directory(above.as_fd(), &name, device)?;
    Removal { device, next: 0, waiting: Vec::new(), first_error: None, top }.run()?;
    Ok(unlinkat(&above, name.as_c_str(), UnlinkatFlags::RemoveDir)?)
}

/// Lets the calling thread do nothing with files but remove and rename those below `roots`, for good.
/// Files that are open already stay usable. Gives false where this kernel's Landlock cannot hold
/// that and still allow the renames: nothing is restricted then.
///
/// # Errors
/// `CageStep::Layer` where the kernel refuses.
pub fn restrict_to_removal_in(roots: &[PathBuf]) -> Result<bool, CageError> {
    if !ruleset::abi().is_ok_and(|abi| abi >= ruleset::REFER_ABI) {
        return Ok(false);
    }
    let roots = roots.iter().map(|root| {
        open(root, place_flags(), Mode::empty())
            .map_err(|error| CageError::os(CageStep::Layer, root.display(), error))
    });
    ruleset::enforce(ruleset::removal_rules(&roots.collect::<Result<Vec<_>, _>>()?)?)?;
    Ok(true)
}

/// One directory that is being removed.
struct Removal {
    top: OwnedFd,
    /// The file system that it lies in.
    device: dev_t,
    /// The name in `top` of the next directory that is moved up.
    next: u64,
    /// The names of directories that were moved up.
    waiting: Vec<u64>,
    first_error: Option<Errno>,
}

/// Result of one pass over a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Entries are gone from it; more may have come or been passed over.
    Progress,
    Nothing,
}

impl Removal {
    /// Empties `top`.
    fn run(&mut self) -> io::Result<()> {
        loop {
            // Only the errors of the last pass count: disk space or a busy file may have become
            // free.
            self.first_error = None;
            let passed = self.top_pass()?;
            match (passed, self.first_error) {
                (Pass::Progress, _) => {}
                (Pass::Nothing, None) => return Ok(()),
                (Pass::Nothing, Some(error)) => return Err(error.into()),
            }
        }
    }

    /// Removes the entries of `top`, and after each entry the directories that were moved up from
    /// it.
    fn top_pass(&mut self) -> io::Result<Pass> {
        // Opened anew: a reader has a place of its own in the directory.
        let how = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut reader = Dir::from_fd(openat(&self.top, c".", how, Mode::empty())?)?;
        let mut passed = Pass::Nothing;
        for entry in reader.iter() {
            let entry = entry?;
            if is_dot(entry.file_name()) {
                continue;
            }
            let gone = self.entry(entry.file_name(), entry.file_type());
            passed = if gone.is_ok() { Pass::Progress } else { passed };
            self.note(gone);
            while let Some(number) = self.waiting.pop() {
                let name = c_string(OsStr::new(&number.to_string()))?;
                let gone = self.folder(&name);
                self.note(gone);
            }
        }
        Ok(passed)
    }

    fn note(&mut self, gone: Result<(), Errno>) {
        match gone {
            // Another process removes it too.
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(error) => _ = self.first_error.get_or_insert(error),
        }
    }

    /// Removes one entry of `top`.
    fn entry(&mut self, name: &CStr, kind: Option<Type>) -> Result<(), Errno> {
        match unlink(self.top.as_fd(), name, kind)? {
            Unlinked::Removed => Ok(()),
            Unlinked::IsDirectory => self.folder(name),
        }
    }

    /// Removes a directory in `top`, whose own directories are moved up where they are not empty.
    fn folder(&mut self, name: &CStr) -> Result<(), Errno> {
        let removed = || unlinkat(&self.top, name, UnlinkatFlags::RemoveDir);
        if removed().is_ok() {
            return Ok(());
        }
        let mut reader = Dir::from_fd(directory(self.top.as_fd(), name, self.device)?)?;
        while self.folder_pass(&mut reader)? == Pass::Progress {}
        let removed = || unlinkat(&self.top, name, UnlinkatFlags::RemoveDir);
        removed()
    }

    fn folder_pass(&mut self, reader: &mut Dir) -> Result<Pass, Errno> {
        let folder = reader.as_fd().try_clone_to_owned().map_err(|_| Errno::EMFILE)?;
        let mut passed = Pass::Nothing;
        for entry in reader.iter() {
            let entry = entry?;
            let name = entry.file_name();
            if is_dot(name) {
                continue;
            }
            let gone = match unlink(folder.as_fd(), name, entry.file_type()) {
                Ok(Unlinked::Removed) => Ok(()),
                Ok(Unlinked::IsDirectory) => self.move_up(folder.as_fd(), name),
                Err(error) => Err(error),
            };
            passed = if gone.is_ok() { Pass::Progress } else { passed };
            self.note(gone);
        }
        Ok(passed)
    }

    /// Removes a directory of `folder` where it is empty, else moves it into `top`.
    fn move_up(&mut self, folder: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        if unlinkat(folder, name, UnlinkatFlags::RemoveDir).is_ok() {
            return Ok(());
        }
        let mut shut = true;
        loop {
            let number = self.next;
            let up = c_string(OsStr::new(&number.to_string())).map_err(|_| Errno::EINVAL)?;
            match renameat(folder, name, &self.top, up.as_c_str()) {
                Ok(()) => {
                    self.next += 1;
                    self.waiting.push(number);
                    return Ok(());
                }
                // The name is taken, by a call or by a removal that was cut short.
                Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR) => self.next += 1,
                // A directory that moves is itself written to.
                Err(Errno::EACCES) if shut => {
                    open_up(folder, name, self.device)?;
                    shut = false;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Result of unlinking an entry.
enum Unlinked {
    Removed,
    /// It is a directory.
    IsDirectory,
}

/// Removes an entry that is no directory.
fn unlink(folder: BorrowedFd<'_>, name: &CStr, kind: Option<Type>) -> Result<Unlinked, Errno> {
    if kind == Some(Type::Directory) {
        return Ok(Unlinked::IsDirectory);
    }
    match unlinkat(folder, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) => Ok(Unlinked::Removed),
        Err(Errno::EISDIR) => Ok(Unlinked::IsDirectory),
        Err(error) => Err(error),
    }
}

/// Opens a directory in which everything can be removed, if its owner may do that.
fn directory(above: BorrowedFd<'_>, name: &CStr, device: dev_t) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let opened = match open_here(above, name, flags, device) {
        Err(Errno::EACCES) => {
            open_up(above, name, device)?;
            open_here(above, name, flags, device)?
        }
        other => other?,
    };
    let mode = Mode::from_bits_truncate(fstat(&opened)?.st_mode);
    if !mode.contains(OPEN) {
        // Where it may not, each entry says why it stays.
        let _ = fchmod(&opened, OPEN);
    }
    Ok(opened)
}

/// Lets its owner into a directory. By its descriptor, since a name may be a link by now.
fn open_up(above: BorrowedFd<'_>, name: &CStr, device: dev_t) -> Result<(), Errno> {
    let place = open_here(above, name, place_flags() | OFlag::O_NOFOLLOW, device)?;
    let own = format!("/proc/self/fd/{}", place.as_raw_fd());
    nix::sys::stat::fchmodat(
        AT_FDCWD,
        own.as_str(),
        OPEN,
        nix::sys::stat::FchmodatFlags::FollowSymlink,
    )
}

fn place_flags() -> OFlag {
    OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC
}

/// Opens a name of this directory unless something else is mounted there.
fn open_here(
    above: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlag,
    device: dev_t,
) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlag::RESOLVE_NO_XDEV
        | ResolveFlag::RESOLVE_NO_SYMLINKS
        | ResolveFlag::RESOLVE_BENEATH;
    match openat2(above, name, OpenHow::new().flags(flags).resolve(resolve)) {
        // A filter of system calls around all of ours that does not know it.
        Err(Errno::ENOSYS | Errno::EPERM) => {
            let opened = openat(above, name, flags, Mode::empty())?;
            match fstat(&opened)?.st_dev == device {
                true => Ok(opened),
                false => Err(Errno::EXDEV),
            }
        }
        other => other,
    }
}

fn is_dot(name: &CStr) -> bool {
    name == c"." || name == c".."
}

fn c_string(name: &OsStr) -> io::Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(name.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
#[path = "removal_tests.rs"]
mod tests;
