//! Mount points in the root of tier A. Commands of the session may write in its private directories
//! while the root of another call is built. So no symbolic link is followed on the way to a mount
//! point.

use crate::sys;
use nix::errno::Errno;
use nix::fcntl::{OFlag, RenameFlags, open, openat, renameat2};
use nix::sys::stat::{Mode, SFlag, fchmod, fstat, mkdirat};
use nix::unistd::symlinkat;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Type of a mount point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountPointKind {
    Dir,
    File,
}

/// Mode of a directory that is made on the way. A private one is as closed as a home.
const FOLDER: Mode = Mode::from_bits_truncate(0o755);
/// Attempts at a path, and at each name of it, while commands of other calls change it.
const TRIES: usize = 16;

/// The private directories of a root, in which commands may have put anything in the way of a mount.
#[derive(Debug, Default, Clone)]
pub(crate) struct PrivateDirs {
    pub(crate) dirs: Vec<PathBuf>,
    /// All other mounts. A directory within a private one belongs to the user if such a mount is
    /// nearer.
    pub(crate) others: Vec<PathBuf>,
}

impl PrivateDirs {
    /// The mounts around a path and its parts.
    fn around(&self, at: &Path) -> MountsAround {
        let around = |mounts: &[PathBuf]| {
            let around = mounts.iter().filter(|mount| at.starts_with(mount));
            around.map(|mount| mount.components().count()).collect()
        };
        MountsAround { private: around(&self.dirs), others: around(&self.others) }
    }
}

/// The mounts around one path, by the number of names from the root to them, the root included.
struct MountsAround {
    private: Vec<usize>,
    others: Vec<usize>,
}

impl MountsAround {
    /// True if the nearest mount around the first so many names of the path is private.
    fn is_private(&self, names: usize) -> bool {
        let nearest =
            |mounts: &[usize]| mounts.iter().copied().filter(|mount| *mount <= names).max();
        nearest(&self.private) > nearest(&self.others)
    }
}

/// Opens the mount point and creates the missing parts of its path. In a private directory a file
/// that a command put in the way is renamed.
///
/// # Errors
/// The kernel's; `ENOTDIR` for a file in the way outside private directories; `EAGAIN` if commands
/// of other calls keep changing the path.
pub(crate) fn open_or_create(
    at: &Path,
    shape: MountPointKind,
    private: &PrivateDirs,
) -> Result<OwnedFd, Errno> {
    retry_if_removed(|| open_path(at, shape, private))
}

/// As [`open_or_create`], but only if the result is the very file that `host` opens, not another
/// file of the same path.
///
/// # Errors
/// As [`make`], `EAGAIN` too where it is something else.
pub(crate) fn open_verified(
    host: impl Fn() -> Result<OwnedFd, Errno>,
    at: &Path,
    shape: MountPointKind,
    private: &PrivateDirs,
) -> Result<OwnedFd, Errno> {
    let identity = |place: &OwnedFd| fstat(place).map(|found| (found.st_dev, found.st_ino));
    retry_if_removed(|| {
        let place = open_path(at, shape, private)?;
        if identity(&place)? == identity(&host()?)? { Ok(place) } else { Err(Errno::ENOENT) }
    })
}

/// Repeats an operation that fails because a directory on its path was removed meanwhile.
fn retry_if_removed<T>(act: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut tries = std::iter::repeat_with(act).take(TRIES);
    tries.find(|done| !matches!(done, Err(Errno::ENOENT))).unwrap_or(Err(Errno::EAGAIN))
}

/// The way from the root, name by name. Outside private directories one call opens a way that exists.
fn open_path(at: &Path, shape: MountPointKind, private: &PrivateDirs) -> Result<OwnedFd, Errno> {
    let mounts = private.around(at);
    if mounts.private.is_empty()
        && let Ok(place) = sys::open_without_links(at)
        && kind_of(&place)? == Some(shape)
    {
        return Ok(place);
    }
    let names: Vec<&OsStr> = at.iter().skip(1).collect();
    let mut place =
        open("/", OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let mut is_private = mounts.is_private(1);
    for (number, name) in names.iter().enumerate() {
        let shape = if number + 1 == names.len() { shape } else { MountPointKind::Dir };
        let next = open_or_create_entry(&place, name, shape, is_private.then_some(MayRename))?;
        is_private = mounts.is_private(number + 2);
        if is_private {
            // A failure needs no handling: without the right to change the mode this user cannot
            // enter the directory either, and the kernel refuses the command's access.
            let _ = reopen_dir(&place, name, &next);
        }
        place = next;
    }
    Ok(place)
}

/// Makes a directory of the session accessible again after a command removed its owner's rights.
/// Otherwise no later call could reach the mounts below it, the project among them.
fn reopen_dir(folder: &OwnedFd, name: &OsStr, place: &OwnedFd) -> Result<(), Errno> {
    let found = fstat(place)?;
    let mode = Mode::from_bits_truncate(found.st_mode);
    let is_folder = found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits();
    if !is_folder || mode.contains(Mode::S_IRWXU) {
        return Ok(());
    }
    // Modes are not changed by a descriptor without access.
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let opened = openat(folder, name, flags, Mode::empty())?;
    let again = fstat(&opened)?;
    if (again.st_dev, again.st_ino) == (found.st_dev, found.st_ino) {
        fchmod(&opened, mode | Mode::S_IRWXU)?;
    }
    Ok(())
}

/// Permission to rename a file that is in the way.
struct MayRename;

/// One name further.
fn open_or_create_entry(
    folder: &OwnedFd,
    name: &OsStr,
    shape: MountPointKind,
    renames: Option<MayRename>,
) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    for _ in 0..TRIES {
        match openat(folder, name, flags, Mode::empty()) {
            Ok(place) if kind_of(&place)? == Some(shape) => return Ok(place),
            Ok(_) if renames.is_some() => rename_aside(folder, name)?,
            Ok(_) => return Err(Errno::ENOTDIR),
            Err(Errno::ENOENT) => {}
            Err(errno) => return Err(errno),
        }
        let made = match shape {
            MountPointKind::Dir => mkdirat(folder, name, FOLDER),
            MountPointKind::File => {
                let new = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
                openat(folder, name, new, Mode::S_IRUSR | Mode::S_IWUSR).map(drop)
            }
        };
        match made {
            // Another call created it first, by building its root or by a command.
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::EAGAIN)
}

/// Makes a symbolic link, unless something is there.
///
/// # Errors
/// As [`make`].
pub(crate) fn create_link(at: &Path, to: &Path, private: &PrivateDirs) -> Result<(), Errno> {
    let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
        return Err(Errno::EINVAL);
    };
    retry_if_removed(|| {
        let folder = open_path(parent, MountPointKind::Dir, private)?;
        match symlinkat(to, &folder, name) {
            Err(Errno::EEXIST | Errno::EROFS) => Ok(()),
            made => made,
        }
    })
}

fn kind_of(place: &OwnedFd) -> Result<Option<MountPointKind>, Errno> {
    let kind = SFlag::from_bits_truncate(fstat(place)?.st_mode) & SFlag::S_IFMT;
    Ok(match kind {
        SFlag::S_IFDIR => Some(MountPointKind::Dir),
        SFlag::S_IFLNK => None,
        // Devices, sockets and files are mounted on files.
        _ => Some(MountPointKind::File),
    })
}

/// A command of the session may have made it, so it is kept, by a name that none can take in advance.
fn rename_aside(folder: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    let number = sys::random()?;
    let mut aside = name.to_owned();
    aside.push(format!(".aside-{number:016x}"));
    let flags = RenameFlags::RENAME_NOREPLACE;
    match renameat2(folder, name, folder, aside.as_os_str(), flags) {
        // It was removed meanwhile, or the new name happens to be taken: the next attempt looks
        // again.
        Ok(()) | Err(Errno::ENOENT | Errno::EEXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Where the host's tree hangs while the new root is built.
pub(super) const OLD: &str = "/.old";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// The renamed file in this folder.
    fn aside(folder: &Path, name: &str) -> PathBuf {
        let prefix = format!("{name}.aside-");
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let mut found =
            entries.filter(|entry| entry.file_name().to_str().unwrap().starts_with(&prefix));
        found.next().unwrap().path()
    }

    /// The home as a private directory, and the mounts within it.
    fn private(home: &Path, others: &[PathBuf]) -> PrivateDirs {
        PrivateDirs { dirs: vec![home.to_owned()], others: others.to_vec() }
    }

    #[test]
    fn no_link_is_followed_and_what_is_in_the_way_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (home, outside) = (base.join("home"), base.join("outside"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        symlink(&outside, home.join(".config")).unwrap();
        let private = private(&home, &[]);
        open_or_create(&home.join(".config/git/ignore"), MountPointKind::File, &private).unwrap();
        assert!(home.join(".config/git/ignore").is_file());
        assert!(aside(&home, ".config").is_symlink());
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
        // Elsewhere it is an error, and nothing is made behind the link.
        symlink(&outside, base.join("link")).unwrap();
        assert!(open_or_create(&base.join("link/git"), MountPointKind::Dir, &private).is_err());
        assert!(create_link(&base.join("link/git"), Path::new("x"), &private).is_err());
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn what_is_there_already_is_taken_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::write(base.join("file"), "kept").unwrap();
        open_or_create(&base.join("file"), MountPointKind::File, &private(&base, &[])).unwrap();
        assert_eq!(std::fs::read_to_string(base.join("file")).unwrap(), "kept");
        // A directory in the place of a file is moved, not lost.
        std::fs::create_dir(base.join("folder")).unwrap();
        std::fs::write(base.join("folder/x"), "kept").unwrap();
        open_or_create(&base.join("folder"), MountPointKind::File, &private(&base, &[])).unwrap();
        assert_eq!(std::fs::read_to_string(aside(&base, "folder").join("x")).unwrap(), "kept");
    }

    #[test]
    fn the_nearest_mount_decides_whether_something_may_be_renamed() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        let private = PrivateDirs {
            dirs: paths(&["/tmp", "/home/ann"]),
            others: paths(&["/usr", "/home", "/home/ann/p"]),
        };
        for (folder, holds) in [
            ("/", false),
            ("/usr", false),
            ("/home", false),
            ("/tmp", true),
            ("/home/ann", true),
            ("/home/ann/.config", true),
            ("/home/ann/p", false),
            ("/home/ann/p/.git", false),
            ("/home/ann/pp", true),
        ] {
            let folder = Path::new(folder);
            let inner = folder.join("file");
            let names = folder.components().count();
            assert_eq!(private.around(&inner).is_private(names), holds, "{folder:?}");
        }
    }

    #[test]
    fn nothing_of_a_granted_place_within_is_renamed() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for name in ["p", "q"] {
            std::fs::create_dir(home.join(name)).unwrap();
            symlink("elsewhere", home.join(name).join(".claude")).unwrap();
        }
        let private = private(&home, &[home.join("p")]);
        let made =
            |name: &str| open_or_create(&home.join(name), MountPointKind::Dir, &private).map(drop);
        assert_eq!(made("p/.claude"), Err(Errno::ENOTDIR));
        assert!(home.join("p/.claude").is_symlink());
        assert_eq!(made("q/.claude"), Ok(()), "the control");
    }

    #[test]
    fn what_only_has_the_path_of_another_place_is_not_taken_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["host", "decoy"] {
            std::fs::create_dir_all(base.join(name).join("keys")).unwrap();
        }
        let private = private(&base, &[]);
        let host = || {
            let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
            open(&base.join("host/keys"), flags, Mode::empty())
        };
        let made = |name: &str| {
            open_verified(host, &base.join(name), MountPointKind::Dir, &private).map(drop)
        };
        assert_eq!(made("decoy/keys"), Err(Errno::EAGAIN));
        assert_eq!(made("host/keys"), Ok(()), "the control");
    }

    /// A command of another call may take a directory away again while the way through it is made.
    #[test]
    fn a_way_that_changes_meanwhile_is_gone_again() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let (on_the_way, ended) = (home.join(".config"), AtomicBool::new(false));
        let private = private(&home, &[]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let _ = std::fs::remove_dir(on_the_way.join("git"));
                    let _ = std::fs::remove_dir(&on_the_way);
                }
            });
            let at = on_the_way.join("git");
            let made: Vec<_> = (0..2000)
                .map(|_| open_or_create(&at, MountPointKind::Dir, &private).map(drop))
                .collect();
            ended.store(true, Ordering::Relaxed);
            assert!(made.contains(&Ok(())));
            let other = made.iter().find(|made| !matches!(made, Ok(()) | Err(Errno::EAGAIN)));
            assert_eq!(other, None);
        });
    }
}
