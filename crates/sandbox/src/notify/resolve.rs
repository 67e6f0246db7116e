//! Resolves a path given by the command to the real path at which the kernel will arrive.
//!
//! The result serves the record only, since the command can change directories and links meanwhile.

use super::proc_reader::ProcReader;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{SFlag, fstat};
use nix::sys::statvfs::{FsFlags, fstatvfs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Bytes at the start of a program that the kernel reads to choose its interpreter.
const BEGINNING: usize = 256;

/// The result of resolving a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Resolved {
    /// A file exists there.
    Exists(PathBuf, FileKind),
    /// No such file, but its parent directory exists.
    Missing(PathBuf),
    /// Neither the file nor its parent directory exists.
    NoParent,
    /// This user may not search a directory of the path; the path as given.
    NotSearchable(PathBuf),
    /// Unknown: `/proc` links to open files, or a loop of links.
    Unknown,
}

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// A directory.
    Directory,
    /// A socket.
    Socket,
    /// A FIFO. A read-only mount does not stop writes to it.
    Pipe,
    /// A device node.
    Device,
    /// An executable file.
    Program,
    /// Any other file.
    Other,
}

/// How a symbolic link at the end of a path is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinalLink {
    /// It is followed.
    Followed,
    /// The path means the link itself.
    NotFollowed,
}

/// A root directory, possibly of another mount namespace.
#[derive(Debug)]
pub(super) struct RootDir {
    fd: OwnedFd,
    /// Its path as the kernel prints it for this process.
    path: PathBuf,
    /// Keeps the mount namespace alive. Without it the mounts would vanish with the namespace's
    /// last process, and the kernel would print paths relative to their own mount. A continued call
    /// is predicted only after that.
    _mounts: Option<OwnedFd>,
}

impl RootDir {
    /// A root in this process's own mount namespace. `None` if the kernel does not name the
    /// directory.
    pub(super) fn new(processes: &ProcReader, fd: OwnedFd) -> Option<Self> {
        let path = processes.path_of(fd.as_fd())?;
        Some(Self { fd, path, _mounts: None })
    }

    /// The root of another process, which remains valid after that process ends. `None` if it has
    /// already ended.
    pub(super) fn of(processes: &ProcReader, pid: u32) -> Option<Self> {
        let mounts = processes.mounts(pid)?;
        let fd = processes.directory(pid, "root")?;
        let path = processes.path_of(fd.as_fd())?;
        Some(Self { fd, path, _mounts: Some(mounts) })
    }
}

/// Resolves an absolute path beneath `root`.
pub(super) fn resolve(
    processes: &ProcReader,
    root: &RootDir,
    path: &Path,
    end: FinalLink,
) -> Resolved {
    match open(root, path, end) {
        Ok(fd) => match (real(processes, root, fd.as_fd()), kind(&fd)) {
            (Some(real), Some(kind)) => Resolved::Exists(real, kind),
            _ => Resolved::Unknown,
        },
        // A link that leads nowhere, such as a link into another `/proc`.
        Err(Errno::ENOENT)
            if end == FinalLink::Followed && open(root, path, FinalLink::NotFollowed).is_ok() =>
        {
            Resolved::Unknown
        }
        Err(Errno::ENOENT) => resolve_missing(processes, root, path),
        Err(Errno::EACCES) => Resolved::NotSearchable(path.to_owned()),
        Err(_) => Resolved::Unknown,
    }
}

/// True if the file, or the directory that would contain it, is on a read-only mount. Otherwise it
/// is Landlock that refuses a write there.
pub(super) fn on_read_only_mount(root: &RootDir, real: &Path) -> bool {
    let fd = open(root, real, FinalLink::NotFollowed).or_else(|errno| match real.parent() {
        Some(parent) => open(root, parent, FinalLink::Followed),
        None => Err(errno),
    });
    fd.is_ok_and(|fd| fstatvfs(fd).is_ok_and(|fs| fs.flags().contains(FsFlags::ST_RDONLY)))
}

/// The start of a file, as much as the kernel reads to choose its interpreter. `None` if this
/// process may not read the file.
pub(super) fn beginning(root: &RootDir, real: &Path) -> Option<Vec<u8>> {
    // O_NONBLOCK: another file may have taken its place, such as a FIFO.
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let resolve = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let fd = openat2(&root.fd, real, OpenHow::new().flags(flags).resolve(resolve)).ok()?;
    let mut bytes = vec![0; BEGINNING];
    let got = nix::unistd::read(&fd, &mut bytes).ok()?;
    bytes.truncate(got);
    Some(bytes)
}

/// The real path that a missing name would have.
fn resolve_missing(processes: &ProcReader, root: &RootDir, path: &Path) -> Resolved {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Resolved::Unknown;
    };
    match open(root, parent, FinalLink::Followed) {
        Ok(fd) => match real(processes, root, fd.as_fd()) {
            Some(real) => Resolved::Missing(real.join(name)),
            None => Resolved::Unknown,
        },
        Err(Errno::ENOENT) => Resolved::NoParent,
        Err(_) => Resolved::Unknown,
    }
}

/// `O_PATH` needs no permission on the file. So neither the runner's own Landlock ruleset nor the
/// file's mode prevents this.
fn open(root: &RootDir, path: &Path, end: FinalLink) -> Result<OwnedFd, Errno> {
    let flags = match end {
        FinalLink::Followed => OFlag::O_PATH | OFlag::O_CLOEXEC,
        FinalLink::NotFollowed => OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW,
    };
    let resolve = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    openat2(&root.fd, path, OpenHow::new().flags(flags).resolve(resolve))
}

/// The path of an open file as seen from `root`.
fn real(processes: &ProcReader, root: &RootDir, fd: BorrowedFd<'_>) -> Option<PathBuf> {
    let path = processes.path_of(fd)?;
    let below = path.strip_prefix(&root.path).ok()?;
    Some(Path::new("/").join(below))
}

fn kind(fd: &OwnedFd) -> Option<FileKind> {
    let mode = fstat(fd).ok()?.st_mode;
    Some(match SFlag::from_bits_truncate(mode) & SFlag::S_IFMT {
        SFlag::S_IFDIR => FileKind::Directory,
        SFlag::S_IFSOCK => FileKind::Socket,
        SFlag::S_IFIFO => FileKind::Pipe,
        SFlag::S_IFCHR | SFlag::S_IFBLK => FileKind::Device,
        SFlag::S_IFREG if mode & 0o111 != 0 => FileKind::Program,
        _ => FileKind::Other,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::File;
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::symlink;
    use std::process::{Command, Stdio};

    fn look(root: &Path, path: &str, end: FinalLink) -> Resolved {
        let processes = ProcReader::new(File::open("/proc").unwrap().into()).unwrap();
        let root = RootDir::new(&processes, File::open(root).unwrap().into()).unwrap();
        resolve(&processes, &root, Path::new(path), end)
    }

    #[test]
    fn paths_are_resolved_beneath_their_root() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        std::fs::create_dir_all(root.join("p/sub")).unwrap();
        std::fs::write(root.join("p/file"), "").unwrap();
        symlink("/p/file", root.join("link")).unwrap();
        symlink("../../../../p", root.join("p/sub/up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("nothing", root.join("dangling")).unwrap();
        let there = |path: &str, kind| Resolved::Exists(PathBuf::from(path), kind);
        let followed = |path| look(root, path, FinalLink::Followed);
        assert_eq!(followed("/p/sub"), there("/p/sub", FileKind::Directory));
        assert_eq!(followed("/p/sub/../file"), there("/p/file", FileKind::Other));
        assert_eq!(followed("/link"), there("/p/file", FileKind::Other));
        assert_eq!(followed("/p/sub/up/new"), Resolved::Missing(PathBuf::from("/p/new")));
        assert_eq!(look(root, "/link", FinalLink::NotFollowed), there("/link", FileKind::Other));
        assert_eq!(followed("/p/none/new"), Resolved::NoParent);
        assert_eq!(followed("/loop"), Resolved::Unknown);
        assert_eq!(followed("/dangling"), Resolved::Unknown);
        assert_eq!(followed("/p/file/under"), Resolved::Unknown);
        assert_eq!(followed("/"), there("/", FileKind::Directory));
    }

    #[test]
    fn a_root_outlives_its_last_process() {
        let place = tempfile::tempdir().unwrap();
        let mounted = std::fs::canonicalize(place.path()).unwrap();
        let script = "mount -t tmpfs none \"$1\" && mkdir \"$1/p\" && echo there && read end";
        let mut process = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
            .arg(&mounted)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare, of util-linux");
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "there\n", "a mount namespace of one's own is needed");
        let processes = ProcReader::new(File::open("/proc").unwrap().into()).unwrap();
        let root = RootDir::of(&processes, process.id()).unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        let new = mounted.join("p/new");
        assert_eq!(
            resolve(&processes, &root, &new, FinalLink::Followed),
            Resolved::Missing(new.clone())
        );
        assert_eq!(RootDir::of(&processes, process.id()).map(|root| root.path), None);
    }

    #[test]
    fn open_files_of_a_process_are_not_guessed() {
        let own = format!("/proc/{}/fd/0", std::process::id());
        assert_eq!(look(Path::new("/"), &own, FinalLink::Followed), Resolved::Unknown);
    }
}
