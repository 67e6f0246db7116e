//! Removes files and directories together. Each is moved aside first, and all are moved back if one
//! cannot be removed. A single file is removed directly, so that an interrupted call leaves nothing
//! aside. For `delete`.

use crate::edit::replace::OriginalFile;
use crate::failure::{FailureCode, ToolFailure};
use crate::files::path_trace::trace_path;
use crate::files::precondition;
use crate::files::safe_open;
use crate::files::target_path::TargetPath;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, RenameFlags, renameat2};
use nix::sys::stat::fstatat;
use nix::unistd::{UnlinkatFlags, unlinkat};
use protocol::call::ProbedPath;
use sandbox::CallScope;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Something to take away.
#[derive(Debug)]
pub(crate) struct RemovalTarget {
    /// As the call wrote it.
    pub named: String,
    /// The directory that it lies in, a real path.
    pub parent: PathBuf,
    /// Its name there. A symbolic link is removed itself, not its target.
    pub name: OsString,
    pub what: RemovalKind,
}

/// The kind of entry to remove.
#[derive(Debug)]
pub(crate) enum RemovalKind {
    /// A file, as it was found.
    File(OriginalFile),
    Link,
    /// With all that is in it, as [`tree_digest`] saw it.
    Directory(String),
}

/// Limit for the temporary names that are tried.
const NAMES: usize = 100;
/// Limit for the bytes of the original name inside the temporary name, which must be a valid name
/// too.
const SHOWN_NAME: usize = 200;
/// Most entries of a directory, its own directories' included.
pub(crate) const ENTRIES: usize = 10_000;

/// Where a path itself lies: its last part is not followed. None where it has no last part.
pub(crate) fn link_path(named: &str, place: &CallScope) -> Option<PathBuf> {
    let path = Path::new(named);
    let name = path.file_name()?;
    let parent = match path.parent().and_then(Path::to_str) {
        None | Some("") => ".",
        Some(parent) => parent,
    };
    Some(trace_path(place, parent).real.join(name))
}

/// The digest of a link: of where it leads.
pub(crate) fn link_digest(path: &Path) -> Option<String> {
    use std::os::unix::ffi::OsStrExt;
    Some(precondition::digest(std::fs::read_link(path).ok()?.as_os_str().as_bytes()))
}

/// The digest of a directory tree, without opening files: names, types, sizes, times.
///
/// # Errors
/// As [`visit_contents`].
pub(crate) fn tree_digest(directory: &Path) -> Result<String, ToolFailure> {
    let mut seen = Vec::new();
    visit_contents(&directory.to_string_lossy(), directory, ENTRIES, &mut |path, kind| {
        let below = path.strip_prefix(directory).unwrap_or(path).as_os_str().to_owned();
        let file = match path.symlink_metadata() {
            Ok(meta) if !kind.is_dir() => {
                Some((meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
            }
            Ok(_) | Err(_) => None,
        };
        seen.push(format!("{below:?} {kind:?} {file:?}\n"));
        Ok(())
    })?;
    Ok(format!("{}{}", ProbedPath::TREE, precondition::digest(seen.concat().as_bytes())))
}

/// Removes all of them, or none.
///
/// # Errors
/// Any system error; `stale` if a file has changed meanwhile. Only a directory of which the system
/// can remove a part remains half removed; the message says it.
pub(crate) fn remove(all: &[RemovalTarget]) -> Result<(), ToolFailure> {
    if let [only] = all
        && matches!(only.what, RemovalKind::File(_) | RemovalKind::Link)
    {
        return remove_single(only);
    }
    let mut aside = Vec::new();
    for (number, removal) in all.iter().enumerate() {
        aside.push(MovedAside::put(removal, number)?);
    }
    for gone in aside {
        gone.for_good()?;
    }
    Ok(())
}

/// Takes a file or link away by its own name.
fn remove_single(removal: &RemovalTarget) -> Result<(), ToolFailure> {
    let failed = |errno: Errno| ToolFailure::io("delete", &removal.named, errno.into());
    let directory = safe_open::open_directory(&removal.parent).map_err(failed)?;
    let is_still = match &removal.what {
        RemovalKind::File(before) => before.is_still(&directory, &removal.name).map_err(failed)?,
        RemovalKind::Link | RemovalKind::Directory(_) => true,
    };
    if !is_still {
        return Err(precondition::stale(
            &removal.named,
            "changed on disk since you last read it (possibly by a command of yours)",
        ));
    }
    unlinkat(&directory, removal.name.as_os_str(), UnlinkatFlags::NoRemoveDir).map_err(failed)
}

/// Removes one file if it is unchanged.
///
/// # Errors
/// Any system error; `stale` if the file has changed meanwhile.
pub(crate) fn remove_file(target: &TargetPath, found: &OriginalFile) -> Result<(), ToolFailure> {
    let (Some(parent), Some(name)) = (target.real.parent(), target.real.file_name()) else {
        return Err(crate::files::target_path::not_found(target));
    };
    let failed = |errno: Errno| ToolFailure::io("delete", &target.named, errno.into());
    let directory = safe_open::open_directory(parent).map_err(failed)?;
    if !found.is_still(&directory, name).map_err(failed)? {
        return Err(precondition::stale(
            &target.named,
            "changed on disk since you last read it (possibly by a command of yours)",
        ));
    }
    unlinkat(&directory, name, UnlinkatFlags::NoRemoveDir).map_err(failed)
}

/// Something moved aside in its own directory, moved back unless it goes for good.
struct MovedAside<'a> {
    removal: &'a RemovalTarget,
    directory: OwnedFd,
    name: String,
    moved: bool,
}

impl<'a> MovedAside<'a> {
    fn put(removal: &'a RemovalTarget, number: usize) -> Result<Self, ToolFailure> {
        let failed = |errno: Errno| ToolFailure::io("delete", &removal.named, errno.into());
        let directory = safe_open::open_directory(&removal.parent).map_err(failed)?;
        if let RemovalKind::File(before) = &removal.what
            && !before.is_still(&directory, &removal.name).map_err(failed)?
        {
            return Err(precondition::stale(
                &removal.named,
                "changed on disk since you last read it (possibly by a command of yours)",
            ));
        }
        let mut aside = Self { removal, directory, name: String::new(), moved: false };
        // A killed call may leave this name behind with its content, so the name includes the
        // original one.
        let was = removal.name.to_str().filter(|name| name.len() <= SHOWN_NAME).unwrap_or_default();
        for attempt in 0..NAMES {
            let place = format!("{}-{number}-{attempt}", std::process::id());
            aside.name = format!(".agentd-{place}.{was}.gone");
            match rename(&aside.directory, &removal.name, OsStr::new(&aside.name)) {
                Err(Errno::EEXIST) if attempt + 1 < NAMES => {}
                other => {
                    other.map_err(failed)?;
                    break;
                }
            }
        }
        aside.moved = true;
        if let RemovalKind::Directory(before) = &removal.what
            && tree_digest(&removal.parent.join(&aside.name))? != *before
        {
            return Err(precondition::stale(
                &removal.named,
                "changed on disk since you last read it (possibly by a command of yours)",
            ));
        }
        Ok(aside)
    }

    fn for_good(mut self) -> Result<(), ToolFailure> {
        let gone = match self.removal.what {
            RemovalKind::File(_) | RemovalKind::Link => {
                unlinkat(&self.directory, self.name.as_str(), UnlinkatFlags::NoRemoveDir)
                    .map_err(|errno| ToolFailure::io("delete", &self.removal.named, errno.into()))
            }
            RemovalKind::Directory(_) => {
                std::fs::remove_dir_all(self.removal.parent.join(&self.name)).map_err(|error| {
                    let failure = ToolFailure::io("delete all of", &self.removal.named, error);
                    let hint = "Part of the directory may be deleted. List it with ls.";
                    ToolFailure { hint: hint.to_owned(), ..failure }
                })
            }
        };
        self.moved = gone.is_err();
        gone
    }
}

impl Drop for MovedAside<'_> {
    fn drop(&mut self) {
        if self.moved {
            // If another process has taken the name meanwhile, its file is kept and ours stays
            // aside.
            let _ = rename(&self.directory, OsStr::new(&self.name), &self.removal.name);
        }
    }
}

/// Never over something that is there.
fn rename(directory: &OwnedFd, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    match renameat2(directory, from, directory, to, RenameFlags::RENAME_NOREPLACE) {
        // For a file system without this guarantee, at least existing entries are detected.
        Err(Errno::EINVAL | Errno::ENOSYS) => {
            match fstatat(directory, to, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(_) => Err(Errno::EEXIST),
                Err(Errno::ENOENT) => nix::fcntl::renameat(directory, from, directory, to),
                Err(errno) => Err(errno),
            }
        }
        other => other,
    }
}

/// Visits everything in a directory; an entry that `check` refuses prevents the removal.
///
/// # Errors
/// `too_large` above `most` entries; any error of `check`.
pub(crate) fn visit_contents(
    named: &str,
    real: &Path,
    most: usize,
    check: &mut dyn FnMut(&Path, std::fs::FileType) -> Result<(), ToolFailure>,
) -> Result<(), ToolFailure> {
    let mut left = vec![real.to_owned()];
    let mut seen = 0;
    while let Some(directory) = left.pop() {
        let failed = |error| ToolFailure::io("look into", named, error);
        let mut entries: Vec<_> =
            directory.read_dir().map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            seen += 1;
            if seen > most {
                return Err(ToolFailure::new(
                    FailureCode::TooLarge,
                    format!("{named:?} contains more than {most} files and directories"),
                    "Use bash with rm -r, which may need the user's approval.",
                ));
            }
            let kind = entry.file_type().map_err(failed)?;
            check(&entry.path(), kind)?;
            if kind.is_dir() {
                left.push(entry.path());
            }
        }
    }
    Ok(())
}
