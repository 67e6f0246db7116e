//! A directory that commands write, and in which the runner, which is outside the cage, creates
//! files. Each name is opened relative to its parent's descriptor and no link is followed, so that
//! nothing is created outside, even if a command changes the directory at the same time. For the
//! package caches.

use crate::files::safe_open::open_no_links;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// As package managers make theirs.
const FOLDER: Mode = Mode::from_bits_truncate(0o755);
const FILE: Mode = Mode::from_bits_truncate(0o644);

/// The directory, opened.
pub(crate) struct SharedDir(OwnedFd);

impl SharedDir {
    /// Opens one at a path that no command can change.
    ///
    /// # Errors
    /// The kernel's error; `ELOOP` for a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let folder = OFlag::O_PATH | OFlag::O_DIRECTORY;
        Ok(Self(open_no_links(AT_FDCWD, path, folder, Mode::empty())?))
    }

    /// The folder of this name, made where it is not there.
    ///
    /// # Errors
    /// The kernel's error; `ELOOP` or `ENOTDIR` if a command has put something else there.
    pub(crate) fn folder(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        match mkdirat(&self.0, name.as_ref(), FOLDER) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let folder = OFlag::O_PATH | OFlag::O_DIRECTORY;
        Ok(Self(open_no_links(&self.0, Path::new(name.as_ref()), folder, Mode::empty())?))
    }

    /// The folder that some names lead to, one below the other.
    ///
    /// # Errors
    /// As [`Self::folder`].
    pub(crate) fn folders(&self, path: &Path) -> io::Result<Self> {
        let start = Self(self.0.try_clone()?);
        path.iter().try_fold(start, |folder, name| folder.folder(name))
    }

    /// Creates a symbolic link to an existing path, unless the name exists.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn link(&self, name: impl AsRef<OsStr>, to: &Path) -> io::Result<()> {
        if to.symlink_metadata().is_err() {
            return Ok(());
        }
        match symlinkat(to, &self.0, name.as_ref()) {
            Ok(()) | Err(Errno::EEXIST) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Replaces the entry of this name with a new file.
    ///
    /// # Errors
    /// The kernel's error; `EISDIR` if a command has made it a directory.
    pub(crate) fn write_anew(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match unlinkat(&self.0, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let new = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        File::from(open_no_links(&self.0, Path::new(name), new, FILE)?).write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_made_stays_in_the_directory_whatever_links_lie_there() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let (shared, outside) = (base.join("shared"), base.join("outside"));
        for dir in [&shared, &outside] {
            std::fs::create_dir(dir).unwrap();
        }
        std::fs::write(outside.join("file"), "kept").unwrap();
        symlink(&outside, shared.join("folder")).unwrap();
        symlink(outside.join("file"), shared.join("file")).unwrap();
        symlink(outside.join("new"), shared.join("link")).unwrap();
        let dir = SharedDir::open(&shared).unwrap();
        assert!(dir.folder("folder").is_err());
        assert!(dir.folders(Path::new("folder/in/it")).is_err());
        dir.write_anew("file", b"ours").unwrap();
        dir.link("link", &base).unwrap();
        let names: Vec<_> = std::fs::read_dir(&outside).unwrap().flatten().collect();
        assert_eq!(names.len(), 1);
        assert_eq!(std::fs::read(outside.join("file")).unwrap(), b"kept");
        assert_eq!(std::fs::read(shared.join("file")).unwrap(), b"ours");
        assert!(SharedDir::open(&shared.join("folder")).is_err());
        // Without obstacles all of it is created.
        let made = dir.folders(Path::new("a/b")).unwrap();
        made.link("c", &outside.join("file")).unwrap();
        assert_eq!(std::fs::read(shared.join("a/b/c")).unwrap(), b"kept");
    }
}
