//! Replaces a file's content in one step: other processes see the old or the new content.

use crate::failure::{FailureCode, ToolFailure};
use crate::files::precondition;
use crate::files::safe_open;
use crate::files::target_path::TargetPath;
use crate::tool_context::ToolContext;
use nix::errno::Errno;
use nix::fcntl::{OFlag, RenameFlags, renameat, renameat2};
use nix::sys::stat::{Mode, fchmod, fstatat, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, unlinkat};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Larger files are not taken into memory: their change is shown without a diff.
pub(crate) const LOADED_MAX: u64 = 8 << 20;

/// A file as it was found.
#[derive(Debug)]
pub(crate) struct OriginalFile {
    /// Its bytes; absent where there are more than [`LOADED_MAX`].
    pub bytes: Option<Vec<u8>>,
    /// How many there are.
    pub size: u64,
    stamp: FileIdentity,
    mode: u32,
    owner: (u32, u32),
}

/// Changes whenever another process writes or replaces the file.
#[derive(Debug, PartialEq, Eq)]
struct FileIdentity {
    inode: (u64, u64),
    size: i128,
    changed: (i64, i64),
    modified: (i64, i64),
}

/// The result of a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// There was no file.
    Created,
    /// There was one.
    Overwritten,
}

/// Reads the target: nothing, or a regular file.
///
/// # Errors
/// The errors of opening; `stale` if the file is not the judged one.
pub(crate) fn load_original(
    ctx: &ToolContext<'_>,
    target: &TargetPath,
) -> Result<Option<OriginalFile>, ToolFailure> {
    if !target.exists {
        precondition::check_unchanged(ctx.judged, &target.named, &target.real, None)?;
        return Ok(None);
    }
    let failed = |error| ToolFailure::io("read", &target.named, error);
    let (file, meta) = safe_open::open_regular(target, &ctx.extras.read_set)?;
    let (bytes, digest) = if meta.len() <= LOADED_MAX {
        let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default());
        (&file).take(LOADED_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        let digest = precondition::digest(&bytes);
        (Some(bytes), digest)
    } else {
        (None, precondition::digest_reader(&file).map_err(failed)?)
    };
    precondition::check_unchanged(ctx.judged, &target.named, &target.real, Some(&digest))?;
    let size = bytes.as_ref().map_or(meta.len(), |bytes| bytes.len() as u64);
    Ok(Some(OriginalFile {
        bytes,
        size,
        stamp: FileIdentity::of(&meta),
        mode: meta.mode(),
        owner: (meta.uid(), meta.gid()),
    }))
}

/// Replaces the file that `before` describes with `bytes`, through a new file in the same directory
/// and one rename. Creates missing directories, and removes them again on failure.
///
/// # Errors
/// Any system error; `stale` if another process has changed the file. Nothing is changed in these
/// cases.
pub(crate) fn replace(
    target: &TargetPath,
    before: Option<&OriginalFile>,
    bytes: &[u8],
) -> Result<Replaced, ToolFailure> {
    let (Some(parent), Some(name)) = (target.real.parent(), target.real.file_name()) else {
        return Err(ToolFailure::new(
            FailureCode::IsDirectory,
            format!("{:?} is a directory", target.named),
            "",
        ));
    };
    let mut made = CreatedDirs { directories: Vec::new() };
    let failed = |errno: Errno| ToolFailure::io("write", &target.named, errno.into());
    let directory = made.parents(parent).map_err(failed)?;
    let fresh = TempFile::write(&directory, before, bytes).map_err(failed)?;
    let replaced = fresh.take_the_place(name, before, target)?;
    made.directories.clear();
    Ok(replaced)
}

impl OriginalFile {
    /// Its mode bits.
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// True if this name of the directory is still the same unchanged file.
    pub fn is_still(&self, directory: impl AsFd, name: &OsStr) -> Result<bool, Errno> {
        Ok(FileIdentity::at(directory, name)?.as_ref() == Some(&self.stamp))
    }
}

impl FileIdentity {
    fn of(meta: &Metadata) -> Self {
        Self {
            inode: (meta.dev(), meta.ino()),
            size: i128::from(meta.size()),
            changed: (meta.ctime(), meta.ctime_nsec()),
            modified: (meta.mtime(), meta.mtime_nsec()),
        }
    }

    fn at(directory: impl AsFd, name: &OsStr) -> Result<Option<Self>, Errno> {
        match fstatat(directory, name, nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Self {
                inode: (stat.st_dev, stat.st_ino),
                size: i128::from(stat.st_size),
                changed: (stat.st_ctime, stat.st_ctime_nsec),
                modified: (stat.st_mtime, stat.st_mtime_nsec),
            })),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

/// Directories made on the way, removed again unless the change came about.
struct CreatedDirs {
    directories: Vec<PathBuf>,
}

impl CreatedDirs {
    /// Opens `parent` and creates missing directories.
    fn parents(&mut self, parent: &Path) -> Result<OwnedFd, Errno> {
        match safe_open::open_directory(parent) {
            Err(Errno::ENOENT) => {}
            other => return other,
        }
        let (Some(above), Some(name)) = (parent.parent(), parent.file_name()) else {
            return Err(Errno::ENOENT);
        };
        let directory = self.parents(above)?;
        match mkdirat(&directory, name, Mode::from_bits_truncate(0o777)) {
            Ok(()) => self.directories.push(parent.to_owned()),
            // Another process has created it; it is opened like any other.
            Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno),
        }
        safe_open::open_no_links(
            &directory,
            Path::new(name),
            OFlag::O_PATH | OFlag::O_DIRECTORY,
            Mode::empty(),
        )
    }
}

impl Drop for CreatedDirs {
    fn drop(&mut self) {
        for directory in self.directories.iter().rev() {
            // A directory that other processes use by now is not empty, and stays.
            let _ = std::fs::remove_dir(directory);
        }
    }
}

/// The new file under a name of its own, removed unless it takes its place.
struct TempFile<'a> {
    directory: &'a OwnedFd,
    name: String,
    placed: bool,
}

impl<'a> TempFile<'a> {
    fn write(
        directory: &'a OwnedFd,
        before: Option<&OriginalFile>,
        bytes: &[u8],
    ) -> Result<Self, Errno> {
        // The copy of an existing file is private at first; a new file gets the mode that umask
        // leaves.
        let mode = Mode::from_bits_truncate(if before.is_some() { 0o600 } else { 0o666 });
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        let (fresh, fd) = (0..100)
            .find_map(|attempt| {
                let name = format!(".agentd-{}-{attempt}.tmp", std::process::id());
                match safe_open::open_no_links(directory, Path::new(&name), flags, mode) {
                    Err(Errno::EEXIST) => None,
                    other => Some(other.map(|fd| (Self { directory, name, placed: false }, fd))),
                }
            })
            .unwrap_or(Err(Errno::EEXIST))?;
        let mut file = File::from(fd);
        let errno =
            |error: std::io::Error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        file.write_all(bytes).map_err(errno)?;
        if let Some(before) = before {
            keep_owner(&file, before)?;
            fchmod(&file, Mode::from_bits_truncate(before.mode & 0o777))?;
        }
        // On disk before the name points to it, or a power cut leaves an empty file.
        file.sync_data().map_err(errno)?;
        Ok(fresh)
    }

    fn take_the_place(
        mut self,
        name: &OsStr,
        before: Option<&OriginalFile>,
        target: &TargetPath,
    ) -> Result<Replaced, ToolFailure> {
        let failed = |errno: Errno| ToolFailure::io("write", &target.named, errno.into());
        let now = FileIdentity::at(self.directory, name).map_err(failed)?;
        if now.as_ref() != before.map(|before| &before.stamp) {
            return Err(precondition::stale(
                &target.named,
                "changed on disk since you last read it (possibly by a command of yours)",
            ));
        }
        match before {
            Some(_) => renameat(self.directory, self.name.as_str(), self.directory, name)
                .map_err(failed)?,
            None => match self.place_new(name) {
                Err(Errno::EEXIST) => {
                    return Err(precondition::stale(
                        &target.named,
                        "was created by another process",
                    ));
                }
                other => other.map_err(failed)?,
            },
        }
        self.placed = true;
        Ok(if before.is_some() { Replaced::Overwritten } else { Replaced::Created })
    }

    /// Never replaces a file that another process has created meanwhile, if the file system
    /// supports that.
    fn place_new(&self, name: &OsStr) -> Result<(), Errno> {
        let from = self.name.as_str();
        match renameat2(self.directory, from, self.directory, name, RenameFlags::RENAME_NOREPLACE) {
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                renameat(self.directory, from, self.directory, name)
            }
            other => other,
        }
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if !self.placed {
            let _ = unlinkat(self.directory, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Gives the new file the old one's owner and group, as far as this user may.
fn keep_owner(file: &File, before: &OriginalFile) -> Result<(), Errno> {
    let meta = file.metadata().map_err(|_| Errno::EIO)?;
    let (uid, gid) = before.owner;
    if (meta.uid(), meta.gid()) == (uid, gid) {
        return Ok(());
    }
    match fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))) {
        // Another user's file in a directory of ours: the content is right, the owner cannot be
        // kept.
        Err(Errno::EPERM | Errno::EINVAL) => Ok(()),
        other => other,
    }
}
