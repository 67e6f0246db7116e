//! Changes of names in directories that are reached without following a link. A command that still
//! runs may put a link in the place of any directory between a check and a change.

use nix::fcntl::{AT_FDCWD, OFlag, open, openat, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmod, fchmodat, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path};

/// Opens a directory by its absolute path.
///
/// # Errors
/// The kernel's: ENOTDIR where a part of the path is a link.
fn directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut opened = open("/", flags, Mode::empty())?;
    for part in path.components() {
        match part {
            Component::RootDir => {}
            Component::Normal(name) => opened = openat(&opened, name, flags, Mode::empty())?,
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
    }
    Ok(opened)
}

/// The directory of a path, opened, and the name in it.
fn split(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let parts = path.parent().zip(path.file_name());
    let (folder, name) = parts.ok_or(io::ErrorKind::InvalidInput)?;
    Ok((directory(folder)?, name))
}

/// Gives a file another name.
///
/// # Errors
/// The kernel's, as for all below.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let ((from, old), (to, new)) = (split(from)?, split(to)?);
    Ok(renameat(&from, old, &to, new)?)
}

pub(super) fn create_dir(path: &Path) -> io::Result<()> {
    let (folder, name) = split(path)?;
    Ok(mkdirat(&folder, name, Mode::from_bits_truncate(0o777))?)
}

pub(super) fn symlink(to: &Path, path: &Path) -> io::Result<()> {
    let (folder, name) = split(path)?;
    Ok(symlinkat(to, &folder, name)?)
}

/// Creates a file with this content and mode where no name is: the whole file or none.
pub(super) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (folder, name) = split(path)?;
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(&folder, name, flags, Mode::from_bits_truncate(0o600))?);
    let written = file
        .write_all(bytes)
        .and_then(|()| fchmod(&file, Mode::from_bits_truncate(mode)).map_err(io::Error::from));
    written.inspect_err(|_| {
        let _ = unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir);
    })
}

pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    let (folder, name) = split(path)?;
    Ok(unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir)?)
}

/// Gives a directory this mode.
pub(super) fn set_mode(folder: &Path, mode: u32) -> io::Result<()> {
    let opened = directory(folder)?;
    let own = format!("/proc/self/fd/{}", opened.as_raw_fd());
    let mode = Mode::from_bits_truncate(mode);
    Ok(fchmodat(AT_FDCWD, own.as_str(), mode, FchmodatFlags::FollowSymlink)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// As if a command had put a link in the place of a directory since it was looked at.
    #[test]
    fn nothing_is_changed_behind_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        let mode = |name: &str| at(name).metadata().unwrap().permissions().mode() & 0o777;
        std::fs::create_dir_all(at("keys/in")).unwrap();
        std::fs::write(at("keys/file"), "x").unwrap();
        std::os::unix::fs::symlink(at("keys"), at("link")).unwrap();
        let before = (mode("keys"), mode("keys/in"));
        rename(&at("link/file"), &at("link/moved")).unwrap_err();
        create_dir(&at("link/new")).unwrap_err();
        symlink(Path::new("x"), &at("link/new")).unwrap_err();
        write_new(&at("link/new"), b"x", 0o600).unwrap_err();
        remove_file(&at("link/file")).unwrap_err();
        set_mode(&at("link"), 0o777).unwrap_err();
        set_mode(&at("link/in"), 0o777).unwrap_err();
        assert!(at("keys/file").exists() && !at("keys/new").exists());
        assert_eq!((mode("keys"), mode("keys/in")), before);
        // The control: by its own path.
        rename(&at("keys/file"), &at("keys/moved")).unwrap();
        write_new(&at("keys/new"), b"x", 0o640).unwrap();
        write_new(&at("keys/new"), b"y", 0o640).unwrap_err();
        set_mode(&at("keys/in"), 0o711).unwrap();
        remove_file(&at("keys/moved")).unwrap();
        assert_eq!((mode("keys/new"), mode("keys/in")), (0o640, 0o711));
    }
}
