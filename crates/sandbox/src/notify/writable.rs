//! The real paths that the kernel lets the command write, and the errno for all others. Pure; used
//! by `predicted_write`.

use protocol::confinement::Tier;
use std::path::{Path, PathBuf};

/// The paths that the command may write.
#[derive(Debug)]
pub(super) struct WritablePaths {
    /// The errno of a refused write outside of them.
    outside: i32,
    writable: Vec<PathBuf>,
    read_only: Vec<PathBuf>,
}

impl WritablePaths {
    /// From real paths of directories or files.
    pub(super) fn new(tier: Tier, writable: Vec<PathBuf>, read_only: Vec<PathBuf>) -> Self {
        match tier {
            // The tree is mounted read-only, which the kernel checks before Landlock.
            Tier::A => Self { outside: libc::EROFS, writable, read_only },
            // Landlock cannot exclude a part of a granted directory.
            Tier::B | Tier::C => Self { outside: libc::EACCES, writable, read_only: Vec::new() },
        }
    }

    /// The errno if a change of the file or name at this real path is refused. The deepest matching
    /// path decides.
    pub(super) fn write_refusal(&self, real: &Path) -> Option<i32> {
        match (depth(&self.writable, real), depth(&self.read_only, real)) {
            (writable, Some(island)) if writable <= Some(island) => Some(libc::EROFS),
            (Some(_), _) => None,
            (None, _) => Some(self.outside),
        }
    }

    /// The same for writing to a FIFO or a socket: only Landlock restricts those, by the rights of
    /// all directories around them.
    pub(super) fn special_refusal(&self, real: &Path) -> Option<i32> {
        (!is_beneath(&self.writable, real)).then_some(libc::EACCES)
    }

    /// The errno if the name itself may not be created, removed or replaced. A granted file may be
    /// written, but its name belongs to its directory. A read-only path is a mount point.
    pub(super) fn name_refusal(&self, real: &Path) -> Option<i32> {
        let is_island = || self.read_only.iter().any(|island| island == real);
        match real.parent() {
            Some(directory) => match self.write_refusal(directory) {
                None if is_island() => Some(libc::EBUSY),
                refusal => refusal,
            },
            None => Some(self.outside),
        }
    }
}

/// The paths from which the command may start programs.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunnablePaths {
    /// Directories and files; real paths as the command sees them.
    pub(crate) places: Vec<PathBuf>,
    /// Paths within those from which it may not.
    pub(crate) islands: Vec<PathBuf>,
    /// The members of `places` where the command sees other files than the host has there.
    pub(crate) private: Vec<PathBuf>,
}

impl RunnablePaths {
    /// True if the program at this path in the command's root may be started.
    pub(super) fn allows(&self, real: &Path) -> bool {
        depth(&self.places, real) > depth(&self.islands, real)
    }

    /// True if the program at this path on the host is outside the paths that may be started.
    pub(super) fn leaves_out(&self, real: &Path) -> bool {
        let shown = self.places.iter().filter(|place| !self.private.contains(place));
        !shown.into_iter().any(|place| real.starts_with(place))
    }
}

/// Depth of the deepest root that contains the path.
fn depth(roots: &[PathBuf], path: &Path) -> Option<usize> {
    let around = roots.iter().filter(|root| path.starts_with(root));
    around.map(|root| root.components().count()).max()
}

/// True if the path is one of the roots or below one.
pub(super) fn is_beneath(roots: &[PathBuf], path: &Path) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writable(tier: Tier) -> WritablePaths {
        let writable = ["/project", "/tmp/s", "/dev/null"].map(PathBuf::from).to_vec();
        WritablePaths::new(tier, writable, vec![PathBuf::from("/project/.git/hooks")])
    }

    #[test]
    fn files_are_judged_by_the_nearest_line() {
        let (a, b) = (writable(Tier::A), writable(Tier::B));
        for (path, in_a, in_b) in [
            ("/project", None, None),
            ("/project/x/y", None, None),
            ("/dev/null", None, None),
            ("/projectp", Some(libc::EROFS), Some(libc::EACCES)),
            ("/work", Some(libc::EROFS), Some(libc::EACCES)),
            ("/etc/passwd", Some(libc::EROFS), Some(libc::EACCES)),
            ("/project/.git/hooks/pre-push", Some(libc::EROFS), None),
            ("/project/.git/hooksmith", None, None),
        ] {
            assert_eq!(a.write_refusal(Path::new(path)), in_a, "{path}");
            assert_eq!(b.write_refusal(Path::new(path)), in_b, "{path}");
        }
    }

    #[test]
    fn the_nearest_place_decides_what_is_started() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        let runnable = RunnablePaths {
            places: paths(&["/home/a", "/home/a/.cargo/bin", "/usr"]),
            islands: paths(&["/home/a/.cargo"]),
            private: paths(&["/home/a"]),
        };
        for (path, holds, left_out) in [
            ("/home/a/.local/bin/x", true, true),
            ("/home/a/.cargo/registry/x", false, true),
            ("/home/a/.cargo/bin/x", true, false),
            ("/usr/bin/x", true, false),
            ("/srv/x", false, true),
        ] {
            assert_eq!(runnable.allows(Path::new(path)), holds, "{path}");
            assert_eq!(runnable.leaves_out(Path::new(path)), left_out, "{path}");
        }
    }

    #[test]
    fn a_writable_place_in_a_read_only_one_is_writable() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        let writable = paths(&["/home/a", "/home/a/go/src/p"]);
        let writable = WritablePaths::new(Tier::A, writable, paths(&["/home/a/go"]));
        assert_eq!(writable.write_refusal(Path::new("/home/a/new")), None);
        assert_eq!(writable.write_refusal(Path::new("/home/a/go/pkg")), Some(libc::EROFS));
        assert_eq!(writable.write_refusal(Path::new("/home/a/go/src/p/x")), None);
    }

    #[test]
    fn names_are_judged_by_their_directory() {
        let (a, b) = (writable(Tier::A), writable(Tier::B));
        for (path, in_a, in_b) in [
            ("/project/new", None, None),
            ("/project", Some(libc::EROFS), Some(libc::EACCES)),
            ("/dev/null", Some(libc::EROFS), Some(libc::EACCES)),
            ("/project/.git/hooks", Some(libc::EBUSY), None),
            ("/project/.git/hooks/new", Some(libc::EROFS), None),
            ("/", Some(libc::EROFS), Some(libc::EACCES)),
        ] {
            assert_eq!(a.name_refusal(Path::new(path)), in_a, "{path}");
            assert_eq!(b.name_refusal(Path::new(path)), in_b, "{path}");
        }
    }
}
