//! One name of a project, reached from the project down by directories only. For `snapshot`.
//!
//! A directory may become a link at any time, and the same path then names another file. Reads,
//! copies and comparisons here never follow a link.

use super::tree::TreeEntry;
use nix::fcntl::{OFlag, open, openat, readlinkat};
use nix::sys::stat::Mode;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;

/// A name in its directory.
#[derive(Debug)]
pub(super) struct ProjectPath<'a> {
    directory: OwnedFd,
    name: &'a OsStr,
}

impl<'a> ProjectPath<'a> {
    /// None if the directory is gone, or if a part of its path is not a directory.
    pub(super) fn of(project: &Path, path: &'a Path) -> Result<Option<Self>, Error> {
        let way = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let name = path.file_name().unwrap_or(OsStr::new("."));
        let reached = || -> Result<OwnedFd, Error> {
            let mut directory = open(project, way, Mode::empty())?;
            for part in path.parent().into_iter().flat_map(Path::components) {
                let next = Path::new(part.as_os_str());
                directory = openat(&directory, next, way | OFlag::O_NOFOLLOW, Mode::empty())?;
            }
            Ok(directory)
        };
        there(reached()).map(|directory| directory.map(|directory| Self { directory, name }))
    }

    /// The name, if its directory exists, and its content.
    pub(super) fn with_what_is_there(
        project: &Path,
        path: &'a Path,
        device: u64,
    ) -> Result<(Option<Self>, Option<TreeEntry>), Error> {
        let place = Self::of(project, path)?;
        let seen = place.as_ref().map(|place| place.look(device)).transpose()?;
        Ok((place, seen.flatten()))
    }

    fn open(&self, flags: OFlag) -> Result<File, Error> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(openat(&self.directory, self.name, flags, Mode::empty())?.into())
    }

    /// The content; none if nothing exists there.
    pub(super) fn look(&self, device: u64) -> Result<Option<TreeEntry>, Error> {
        let meta = self.open(OFlag::O_PATH).and_then(|file| file.metadata());
        there(meta).map(|meta| meta.map(|meta| TreeEntry::of(&meta, device)))
    }

    /// Where the link that is there leads.
    pub(super) fn leads_to(&self) -> Result<OsString, Error> {
        Ok(readlinkat(&self.directory, self.name)?)
    }

    /// The regular file that is there, to be read; none where something else is. A pipe is not
    /// waited for.
    pub(super) fn file(&self) -> Result<Option<File>, Error> {
        let file = self.open(OFlag::O_RDONLY | OFlag::O_NONBLOCK)?;
        Ok(file.metadata()?.is_file().then_some(file))
    }
}

/// Only a certain absence counts as absent; a name that could not be inspected may exist.
fn there<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
