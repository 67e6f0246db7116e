//! Opens files without blocking and without following links. The path is resolved before; if a
//! component has become a link since, the kernel refuses it.

use crate::failure::{FailureCode, ToolFailure};
use crate::files::file_type;
use crate::files::read_set::ReadSet;
use crate::files::target_path::TargetPath;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;
use std::fs::{File, FileType, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Opens a regular file for reading, and records it in the read set.
///
/// # Errors
/// `is_directory`, `not_a_file`, `permission_denied`, `not_found`, `stale`.
pub(crate) fn open_regular(
    target: &TargetPath,
    read_set: &ReadSet,
) -> Result<(File, Metadata), ToolFailure> {
    let failed = |error| ToolFailure::io("open", &target.named, error);
    // Checked before the open, because opening a device may have side effects.
    refuse_other_kinds(&target.named, kind(target)?)?;
    let (file, meta) = open_to_read(&target.real, read_set).map_err(failed)?;
    refuse_other_kinds(&target.named, meta.file_type())?;
    Ok((file, meta))
}

/// Opens a file for reading, and records it in the read set before the first read.
///
/// # Errors
/// The system's; the read set is given up then.
pub(crate) fn open_to_read(real: &Path, read_set: &ReadSet) -> io::Result<(File, Metadata)> {
    let opened = open_no_links(AT_FDCWD, real, OFlag::O_RDONLY, Mode::empty());
    let opened = opened.map_err(io::Error::from).and_then(|fd| {
        let file = File::from(fd);
        file.metadata().map(|meta| (file, meta))
    });
    match &opened {
        Ok((_, meta)) => read_set.record_as(real, meta),
        Err(_) => read_set.mark_incomplete(),
    }
    opened
}

/// The type of an existing path.
pub(crate) fn kind(target: &TargetPath) -> Result<FileType, ToolFailure> {
    let meta = target.real.symlink_metadata();
    meta.map(|meta| meta.file_type())
        .map_err(|error| ToolFailure::io("look at", &target.named, error))
}

/// Opens a directory to work in.
pub(crate) fn open_directory(real: &Path) -> Result<OwnedFd, Errno> {
    open_no_links(AT_FDCWD, real, OFlag::O_PATH | OFlag::O_DIRECTORY, Mode::empty())
}

/// Opens without following any link, without blocking, and without acquiring a controlling
/// terminal.
pub(crate) fn open_no_links(
    dir: impl AsFd,
    path: &Path,
    flags: OFlag,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let flags = if flags.contains(OFlag::O_PATH) {
        flags & !OFlag::O_NOCTTY
    } else {
        flags | OFlag::O_NONBLOCK
    };
    let how = OpenHow::new()
        .flags(flags)
        .mode(mode)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    loop {
        match openat2(&dir, path, how) {
            // A busy kernel may ask to try again.
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            other => return other,
        }
    }
}

/// Refuses file types on which a reader would block for ever.
pub(crate) fn refuse_other_kinds(named: &str, kind: FileType) -> Result<(), ToolFailure> {
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(ToolFailure::new(
            FailureCode::IsDirectory,
            format!("{named:?} is a directory"),
            "Use ls or glob for a directory.",
        ))
    } else if kind.is_symlink() {
        Err(ToolFailure::io("open", named, io::Error::from(Errno::ELOOP)))
    } else {
        Err(ToolFailure::new(
            FailureCode::NotAFile,
            format!("{named:?} is {}, not a file", file_type::describe(kind)),
            "File tools work only on regular files.",
        ))
    }
}
