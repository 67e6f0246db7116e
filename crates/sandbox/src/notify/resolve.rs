//! From a path as the command says it to the real path the kernel will arrive at.
//!
//! The answer is for the record only: the command can change directories and links meanwhile.

use super::proc_reader::ProcReader;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{SFlag, fstat};
use nix::sys::statvfs::{FsFlags, fstatvfs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Bytes of a program that the kernel looks at before it runs it.
const BEGINNING: usize = 256;

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Resolved {
    /// Something.
    Exists(PathBuf, FileKind),
    /// Nothing, in a directory that is there.
    Missing(PathBuf),
    /// Nothing, in no directory either.
    NoParent,
    /// A directory on the way may not be searched by this user: the path as it was said.
    NotSearchable(PathBuf),
    /// It cannot be told: links of `/proc` into open files, loops of links.
    Unknown,
}

/// What kind of thing lies there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// A directory.
    Directory,
    /// A socket.
    Socket,
    /// A FIFO, written through, so that a read-only mount does not hold it.
    Pipe,
    /// A device node.
    Device,
    /// A file that somebody may execute.
    Program,
    /// Anything else.
    Other,
}

/// Whether a link at the end leads on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinalLink {
    /// It does.
    Followed,
    /// The link itself is meant.
    NotFollowed,
}

/// A root directory, perhaps another mount namespace's.
#[derive(Debug)]
pub(super) struct RootDir {
    fd: OwnedFd,
    /// As the kernel words it for this process.
    path: PathBuf,
    /// Without it the mounts go with the namespace's last process, and a path is then worded from
    /// its own mount on: a call that was let go is judged after that.
    _mounts: Option<OwnedFd>,
}

impl RootDir {
    /// In this process's own mount namespace. Nothing where the kernel does not name the directory.
    pub(super) fn new(processes: &ProcReader, fd: OwnedFd) -> Option<Self> {
        let path = processes.path_of(fd.as_fd())?;
        Some(Self { fd, path, _mounts: None })
    }

    /// The root of another process, which stays as it is when that process ends. Nothing where it
    /// has ended already.
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
        // A link at the end that leads nowhere, such as those into another `/proc`.
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

/// Whether the file, or the directory where it would go, is on a mount that takes no writes. If it
/// is not, then what refuses a write there is Landlock.
pub(super) fn on_read_only_mount(root: &RootDir, real: &Path) -> bool {
    let fd = open(root, real, FinalLink::NotFollowed).or_else(|errno| match real.parent() {
        Some(parent) => open(root, parent, FinalLink::Followed),
        None => Err(errno),
    });
    fd.is_ok_and(|fd| fstatvfs(fd).is_ok_and(|fs| fs.flags().contains(FsFlags::ST_RDONLY)))
}

/// The beginning of a file, as far as the kernel reads one to learn what starts it. Nothing where
/// this process may not read it.
pub(super) fn beginning(root: &RootDir, real: &Path) -> Option<Vec<u8>> {
    // Whatever took its place meanwhile is not waited for.
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let resolve = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let fd = openat2(&root.fd, real, OpenHow::new().flags(flags).resolve(resolve)).ok()?;
    let mut bytes = vec![0; BEGINNING];
    let got = nix::unistd::read(&fd, &mut bytes).ok()?;
    bytes.truncate(got);
    Some(bytes)
}

/// Where a name would go that is not there yet.
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

/// `O_PATH` asks for no right on the file, so that neither the runner's own Landlock layer nor
/// the file's mode stand in the way of looking.
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
