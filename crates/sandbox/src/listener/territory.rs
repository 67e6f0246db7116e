//! Which real paths the kernel lets the command write, and with what errno it refuses the others.
//! Pure; `writes` asks.

use protocol::confinement::Tier;
use std::path::{Path, PathBuf};

/// Where the command may write.
#[derive(Debug)]
pub(super) struct Territory {
    /// What a refused write is answered with outside.
    outside: i32,
    writable: Vec<PathBuf>,
    read_only: Vec<PathBuf>,
}

impl Territory {
    /// From real paths, directories or files.
    pub(super) fn new(tier: Tier, writable: Vec<PathBuf>, read_only: Vec<PathBuf>) -> Self {
        match tier {
            // The tree is mounted read-only, which the kernel looks at before Landlock.
            Tier::A => Self { outside: libc::EROFS, writable, read_only },
            // Landlock cannot take out a part of what it grants.
            Tier::B | Tier::C => Self { outside: libc::EACCES, writable, read_only: Vec::new() },
        }
    }

    /// The errno with which a change of the file or name at this real path is refused.
    pub(super) fn refusal(&self, real: &Path) -> Option<i32> {
        if beneath(&self.read_only, real) {
            Some(libc::EROFS)
        } else if beneath(&self.writable, real) {
            None
        } else {
            Some(self.outside)
        }
    }

    /// The errno with which the name itself is refused to be made, removed or replaced. A granted
    /// file may be written, but its name belongs to its directory; an island is a mount point.
    pub(super) fn name_refusal(&self, real: &Path) -> Option<i32> {
        if self.read_only.iter().any(|island| island == real) {
            return Some(libc::EBUSY);
        }
        match real.parent() {
            Some(directory) => self.refusal(directory),
            None => Some(self.outside),
        }
    }
}

/// Whether the path is one of the roots or lies below one.
pub(super) fn beneath(roots: &[PathBuf], path: &Path) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn territory(tier: Tier) -> Territory {
        let writable = ["/project", "/tmp/s", "/dev/null"].map(PathBuf::from).to_vec();
        Territory::new(tier, writable, vec![PathBuf::from("/project/.git/hooks")])
    }

    #[test]
    fn files_are_judged_by_the_nearest_line() {
        let (a, b) = (territory(Tier::A), territory(Tier::B));
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
            assert_eq!(a.refusal(Path::new(path)), in_a, "{path}");
            assert_eq!(b.refusal(Path::new(path)), in_b, "{path}");
        }
    }

    #[test]
    fn names_are_judged_by_their_directory() {
        let (a, b) = (territory(Tier::A), territory(Tier::B));
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
