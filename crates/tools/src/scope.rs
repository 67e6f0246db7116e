//! Where a path really leads, and whether that lies in a granted directory.
//!
//! Links are resolved one by one and paths are compared by their parts, so `proj` is not
//! `proj-evil`. This check makes the message; the cage below it is what holds.

use crate::barriers::{self, Barrier};
use crate::failure::{Code, Failure};
use nix::errno::Errno;
use protocol::confinement::{Confinement, FilePath};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows in one path.
const LINKS_MAX: usize = 40;

/// The directories of a call.
#[derive(Debug, Clone)]
pub struct Place {
    /// The project directory, a real path; relative paths start here.
    pub project: PathBuf,
    /// Directories granted beside it, real paths.
    pub added: Vec<PathBuf>,
    /// The session's temporary directory, a real path.
    pub temp: PathBuf,
    /// Directories out of reach even where they lie in a granted one, real paths; `temp` may lie
    /// beneath one of them.
    pub withheld: Vec<PathBuf>,
}

impl From<&Confinement> for Place {
    fn from(confinement: &Confinement) -> Self {
        let paths = |paths: &[FilePath]| paths.iter().map(FilePath::to_path).collect();
        Self {
            project: confinement.project.to_path(),
            added: paths(&confinement.added),
            temp: confinement.temp.to_path(),
            withheld: paths(&confinement.withheld),
        }
    }
}

impl Place {
    /// Whether a real path lies in a granted directory.
    #[must_use]
    pub fn contains(&self, real: &Path) -> bool {
        let temp = self.temp.is_absolute() && real.starts_with(&self.temp);
        let withheld = self.withheld.iter().any(|withheld| real.starts_with(withheld));
        temp || (!withheld && self.roots().any(|root| real.starts_with(root)))
    }

    /// The granted directory that a real path lies in: the deepest where they are nested.
    pub(crate) fn root_of(&self, real: &Path) -> Option<&Path> {
        self.roots()
            .filter(|root| real.starts_with(root))
            .max_by_key(|root| root.components().count())
    }

    /// A real path as the model shall write it: relative to the project where it lies there.
    pub(crate) fn shown<'a>(&self, real: &'a Path) -> &'a Path {
        match real.strip_prefix(&self.project) {
            Ok(inside) if inside.as_os_str().is_empty() => Path::new("."),
            Ok(inside) => inside,
            Err(_) => real,
        }
    }

    fn roots(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.project)
            .chain(&self.added)
            .chain(std::iter::once(&self.temp))
            .map(PathBuf::as_path)
            // An empty root would contain everything.
            .filter(|root| root.is_absolute())
    }
}

/// How the way along a path ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// There is something.
    Found,
    /// There is nothing yet; the nearest existing parent is a directory.
    Missing,
    /// A link leads to something that does not exist.
    Dangling,
    /// Links lead in a circle.
    Circle,
    /// A part that must be a directory is none.
    NotADirectory,
    /// The system refused to look.
    Unreadable(Errno),
}

/// A path and where it leads.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    /// Absolute, without links; what does not exist yet stands behind its nearest existing parent.
    pub real: PathBuf,
    /// How the way ended.
    pub end: End,
    /// Whether the path ends with a slash and so means a directory.
    pub means_directory: bool,
}

/// Follows `named`, from the project where it is relative. Opens nothing.
pub(crate) fn trace(place: &Place, named: &str) -> Trace {
    let path = place.project.join(named);
    let mut walk = Walk { real: PathBuf::from("/"), left: VecDeque::new(), links: 0, in_link: 0 };
    walk.push_front(&path);
    let end = walk.run();
    let means_directory = named.ends_with('/') || named.ends_with("/.") || named == ".";
    Trace { real: walk.real, end, means_directory }
}

struct Walk {
    real: PathBuf,
    left: VecDeque<OsString>,
    links: usize,
    /// How many parts of `left` came out of a link.
    in_link: usize,
}

impl Walk {
    fn run(&mut self) -> End {
        while let Some(part) = self.left.pop_front() {
            let from_link = self.in_link > 0;
            self.in_link = self.in_link.saturating_sub(1);
            if part == ".." {
                self.real.pop();
                continue;
            }
            let next = self.real.join(&part);
            match next.symlink_metadata() {
                Ok(meta) if meta.is_symlink() => match self.follow(&next) {
                    Ok(()) => {}
                    Err(end) => {
                        self.real = next;
                        return end;
                    }
                },
                Ok(meta) => {
                    self.real = next;
                    if !meta.is_dir() && !self.left.is_empty() {
                        return End::NotADirectory;
                    }
                }
                Err(error) => {
                    self.real = next;
                    return self.stopped(&error, from_link);
                }
            }
        }
        End::Found
    }

    fn follow(&mut self, link: &Path) -> Result<(), End> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(End::Circle);
        }
        let target = link.read_link().map_err(|error| End::Unreadable(errno(&error)))?;
        if target.is_absolute() {
            self.real = PathBuf::from("/");
        }
        let parts = self.push_front(&target);
        self.in_link += parts;
        Ok(())
    }

    /// The rest of the path cannot be looked at: it is put behind what is known, so that the scope
    /// is judged by where it would lie.
    fn stopped(&mut self, error: &io::Error, from_link: bool) -> End {
        let number = errno(error);
        while let Some(part) = self.left.pop_front() {
            if part == ".." {
                self.real.pop();
            } else {
                self.real.push(part);
            }
        }
        if number != Errno::ENOENT {
            return if number == Errno::ENOTDIR {
                End::NotADirectory
            } else {
                End::Unreadable(number)
            };
        }
        if from_link { End::Dangling } else { End::Missing }
    }

    /// Puts the parts of `path` before what is left; returns how many.
    fn push_front(&mut self, path: &Path) -> usize {
        let parts: Vec<OsString> = path
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name.to_owned()),
                Component::ParentDir => Some(OsString::from("..")),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
            })
            .collect();
        let count = parts.len();
        for part in parts.into_iter().rev() {
            self.left.push_front(part);
        }
        count
    }
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

/// Why a path that leads out of the granted directories is not used.
pub(crate) fn access_denied(place: &Place, real: &Path, named: &str, why: &str) -> Failure {
    let message = format!("ACCESS DENIED: {named:?} {why}");
    let way_on = Barrier::Path.sentence();
    let hint = match barriers::is_closed_temp(real, place) {
        true => format!("{} {way_on}", barriers::temporary(&place.temp)),
        false => way_on,
    };
    Failure::new(Code::AccessDenied, message, hint)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn place() -> (tempfile::TempDir, Place) {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["proj/sub", "proj-evil", "temp"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        std::fs::write(base.join("proj/file"), "x").unwrap();
        std::fs::write(base.join("secret"), "x").unwrap();
        let place = Place {
            project: base.join("proj"),
            added: vec![],
            temp: base.join("temp"),
            withheld: vec![base.join("proj/state")],
        };
        (dir, place)
    }

    #[test]
    fn where_paths_lead() {
        let (_dir, place) = place();
        let base = place.project.parent().unwrap().to_owned();
        let link = |from: &str, to: &str| symlink(to, place.project.join(from)).unwrap();
        link("out", "../secret");
        link("in", "sub/../file");
        link("dir-out", "..");
        link("dangling", "nowhere");
        link("dangling-out", "/nowhere/at/all");
        link("circle", "circle");
        link("abs", base.join("proj/sub").to_str().unwrap());
        for (named, real, inside, end) in [
            ("file", "proj/file", true, End::Found),
            ("./sub/../file", "proj/file", true, End::Found),
            ("", "proj", true, End::Found),
            (".", "proj", true, End::Found),
            ("new/deep/er", "proj/new/deep/er", true, End::Missing),
            ("new/../../secret", "secret", false, End::Missing),
            ("../proj-evil/x", "proj-evil/x", false, End::Missing),
            ("../proj/file", "proj/file", true, End::Found),
            ("../secret", "secret", false, End::Found),
            ("out", "secret", false, End::Found),
            ("in", "proj/file", true, End::Found),
            ("dir-out/secret", "secret", false, End::Found),
            ("dir-out/proj/file", "proj/file", true, End::Found),
            ("dangling", "proj/nowhere", true, End::Dangling),
            ("circle", "proj/circle", true, End::Circle),
            ("file/x", "proj/file", true, End::NotADirectory),
            ("abs/new", "proj/sub/new", true, End::Missing),
            ("../temp/x", "temp/x", true, End::Missing),
            ("state/token", "proj/state/token", false, End::Missing),
        ] {
            let trace = trace(&place, named);
            assert_eq!(trace.real, base.join(real), "{named}");
            assert_eq!(place.contains(&trace.real), inside, "{named}");
            assert_eq!(trace.end, end, "{named}");
        }
        assert!(!place.contains(&trace(&place, "dangling-out").real));
        assert!(!place.contains(&trace(&place, "/etc/passwd").real));
        assert!(!place.contains(&trace(&place, "/proc/self/root/etc/passwd").real));
    }
}
