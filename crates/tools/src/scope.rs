//! Where a path really leads, and whether that lies in a granted directory.
//!
//! Links are resolved one by one and paths are compared by their parts, so `proj` is not
//! `proj-evil`. This check makes the message; the cage below it is what holds.

use crate::barriers::{self, Restriction};
use crate::failure::{FailureCode, ToolFailure};
use nix::errno::Errno;
use protocol::confinement::{Confinement, FilePath, TEMPORARY};
use sandbox::Cage;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows in one path.
const LINKS_MAX: usize = 40;

/// The directories of a call.
#[derive(Debug, Clone)]
pub struct CallScope {
    /// The project directory, a real path; relative paths start here.
    pub project: PathBuf,
    /// Directories granted beside it, real paths.
    pub added: Vec<PathBuf>,
    /// The session's temporary directory, a real path.
    pub temp: PathBuf,
    /// Where commands find `/tmp` and `/var/tmp` of the session, and the real path of each: a path of a
    /// tool means what it means for a command.
    pub private: Vec<(PathBuf, PathBuf)>,
    /// What commands find as their home. Not for other tools: a model would take it for the person's.
    pub home: Option<PrivateHome>,
    /// Where package managers keep what they download, a real path, which commands find there too.
    pub caches: Option<PathBuf>,
    /// Directories out of reach even where they lie in a granted one, real paths; `temp` may lie
    /// beneath one of them.
    pub withheld: Vec<PathBuf>,
}

/// The home that the session's commands have.
#[derive(Debug, Clone)]
pub struct PrivateHome {
    /// Where commands find it: where the person's is.
    pub shown_at: PathBuf,
    /// Its real path.
    pub kept_at: PathBuf,
}

impl From<&Confinement> for CallScope {
    fn from(confinement: &Confinement) -> Self {
        let home = confinement.home.as_ref().map(FilePath::to_path);
        let of_home = |(shown_at, _): &(PathBuf, PathBuf)| {
            let temporary = TEMPORARY.iter().any(|dir| shown_at == Path::new(dir));
            !temporary && Some(shown_at) == home.as_ref()
        };
        let (own_home, private): (Vec<_>, Vec<_>) = confinement.private_dirs().partition(of_home);
        let own_home = own_home.into_iter().next();
        let paths = |paths: &[FilePath]| paths.iter().map(FilePath::to_path).collect();
        Self {
            project: confinement.project.to_path(),
            added: paths(&confinement.added),
            temp: confinement.temp.to_path(),
            private,
            home: own_home.map(|(shown_at, kept_at)| PrivateHome { shown_at, kept_at }),
            caches: confinement.caches.as_ref().map(FilePath::to_path),
            withheld: paths(&confinement.withheld),
        }
    }
}

impl CallScope {
    /// Whether a real path lies in a granted directory.
    #[must_use]
    pub fn contains(&self, real: &Path) -> bool {
        let own = self.own().any(|own| own.is_absolute() && real.starts_with(own));
        let withheld = self.withheld.iter().any(|withheld| real.starts_with(withheld));
        own || (!withheld && self.roots().any(|root| real.starts_with(root)))
    }

    /// The granted directory that a real path lies in: the deepest where they are nested.
    pub(crate) fn root_of(&self, real: &Path) -> Option<&Path> {
        self.roots()
            .filter(|root| real.starts_with(root))
            .max_by_key(|root| root.components().count())
    }

    /// A real path as the model shall write it: relative to the project where it lies there, and as
    /// commands find it where it lies in a private directory.
    pub(crate) fn shown<'a>(&self, real: &'a Path) -> Cow<'a, Path> {
        match real.strip_prefix(&self.project) {
            Ok(inside) if inside.as_os_str().is_empty() => Path::new(".").into(),
            Ok(inside) => inside.into(),
            Err(_) => self.in_cage(real),
        }
    }

    /// The private directory that a real path lies in, as commands find it.
    pub(crate) fn private_around(&self, real: &Path) -> Option<&Path> {
        let around = self.private.iter().find(|(_, kept_at)| real.starts_with(kept_at));
        around.map(|(shown_at, _)| shown_at.as_path())
    }

    /// Where the command of this cage finds what has this real path.
    pub(crate) fn seen_in(&self, cage: &Cage, real: &Path) -> PathBuf {
        match cage.shows_private() {
            true => self.in_cage(real).into_owned(),
            false => real.to_owned(),
        }
    }

    /// Where a command that has a root of its own finds what has this real path.
    fn in_cage<'a>(&self, real: &'a Path) -> Cow<'a, Path> {
        moved(real, self.private.iter().map(|(shown_at, kept_at)| (kept_at, shown_at)))
    }

    /// The real path of what a command finds here. The project and added directories are in their
    /// places, also where those lie in a private directory.
    fn on_host<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
        let granted = std::iter::once(&self.project).chain(&self.added);
        // A path that a record has is a real one.
        let mut kept = granted.chain(self.private.iter().map(|(_, kept_at)| kept_at));
        match kept.any(|dir| path.starts_with(dir)) {
            true => path.into(),
            false => {
                moved(path, self.private.iter().map(|(shown_at, kept_at)| (shown_at, kept_at)))
            }
        }
    }

    /// Whether commands may have put there what is there, by this path or where its links lead.
    pub(crate) fn is_written_at(&self, path: &Path) -> bool {
        let real = path.canonicalize();
        let paths = [Some(path), real.as_deref().ok()];
        self.roots().any(|root| paths.into_iter().flatten().any(|path| path.starts_with(root)))
    }

    /// Whether this is a directory above the project or an added one; their paths are real.
    fn leads_to_granted(&self, path: &Path) -> bool {
        let mut granted = std::iter::once(&self.project).chain(&self.added);
        granted.any(|dir| dir.starts_with(path) && dir != path)
    }

    /// The session's own directories, which may lie beneath one that is withheld.
    fn own(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.temp).chain(self.private.iter().map(|(_, kept_at)| kept_at))
    }

    pub(crate) fn roots(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.project)
            .chain(&self.added)
            .chain(self.own())
            .map(PathBuf::as_path)
            // An empty root would contain everything.
            .filter(|root| root.is_absolute())
    }
}

/// The path with the first of these beginnings that it has, replaced.
fn moved<'a, 'b>(
    path: &'a Path,
    mut beginnings: impl Iterator<Item = (&'b PathBuf, &'b PathBuf)>,
) -> Cow<'a, Path> {
    let moved = beginnings.find_map(|(from, to)| {
        let below = path.strip_prefix(from).ok()?;
        // Joined with nothing, it would end in a slash.
        Some(if below.as_os_str().is_empty() { to.clone() } else { to.join(below) })
    });
    moved.map_or(path.into(), Cow::from)
}

/// How the way along a path ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceEnd {
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
pub(crate) struct PathTrace {
    /// Absolute, without links; what does not exist yet stands behind its nearest existing parent.
    pub real: PathBuf,
    /// How the way ended.
    pub end: TraceEnd,
    /// Whether the path ends with a slash and so means a directory.
    pub means_directory: bool,
}

/// Follows `named`, from the project where it is relative. Opens nothing.
pub(crate) fn trace_path(place: &CallScope, named: &str) -> PathTrace {
    let path = place.project.join(named);
    let start = PathBuf::from("/");
    let mut walk = PathResolver { place, real: start, left: VecDeque::new(), links: 0, in_link: 0 };
    walk.push_front(&path);
    let end = walk.run();
    let means_directory = named.ends_with('/') || named.ends_with("/.") || named == ".";
    PathTrace { real: place.on_host(&walk.real).into_owned(), end, means_directory }
}

struct PathResolver<'a> {
    place: &'a CallScope,
    /// As a command finds it, without links.
    real: PathBuf,
    left: VecDeque<OsString>,
    links: usize,
    /// How many parts of `left` came out of a link.
    in_link: usize,
}

impl PathResolver<'_> {
    fn run(&mut self) -> TraceEnd {
        while let Some(part) = self.left.pop_front() {
            let from_link = self.in_link > 0;
            self.in_link = self.in_link.saturating_sub(1);
            if part == ".." {
                self.real.pop();
                continue;
            }
            let next = self.real.join(&part);
            // In a private directory there is nothing on the way to a granted one but that.
            if self.place.leads_to_granted(&next) {
                self.real = next;
                continue;
            }
            match self.place.on_host(&next).symlink_metadata() {
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
                        return TraceEnd::NotADirectory;
                    }
                }
                Err(error) => {
                    self.real = next;
                    return self.stopped(&error, from_link);
                }
            }
        }
        TraceEnd::Found
    }

    fn follow(&mut self, link: &Path) -> Result<(), TraceEnd> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(TraceEnd::Circle);
        }
        let target = self
            .place
            .on_host(link)
            .read_link()
            .map_err(|error| TraceEnd::Unreadable(errno(&error)))?;
        if target.is_absolute() {
            self.real = PathBuf::from("/");
        }
        let parts = self.push_front(&target);
        self.in_link += parts;
        Ok(())
    }

    /// The rest of the path cannot be looked at: it is put behind what is known, so that the scope
    /// is judged by where it would lie.
    fn stopped(&mut self, error: &io::Error, from_link: bool) -> TraceEnd {
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
                TraceEnd::NotADirectory
            } else {
                TraceEnd::Unreadable(number)
            };
        }
        if from_link { TraceEnd::Dangling } else { TraceEnd::Missing }
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
pub(crate) fn access_denied(place: &CallScope, real: &Path, named: &str, why: &str) -> ToolFailure {
    let message = format!("ACCESS DENIED: {named:?} {why}");
    let hint = Restriction::Path.hint_sentence();
    let hint = match barriers::is_closed_temp(real, place) {
        true => format!("{} {hint}", barriers::closed_temp(&place.temp)),
        false => hint,
    };
    ToolFailure::new(FailureCode::AccessDenied, message, hint)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn place() -> (tempfile::TempDir, CallScope) {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["proj/sub", "proj-evil", "temp"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        std::fs::write(base.join("proj/file"), "x").unwrap();
        std::fs::write(base.join("secret"), "x").unwrap();
        let place = CallScope {
            project: base.join("proj"),
            added: vec![],
            temp: base.join("temp"),
            private: vec![],
            home: None,
            caches: None,
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
            ("file", "proj/file", true, TraceEnd::Found),
            ("./sub/../file", "proj/file", true, TraceEnd::Found),
            ("", "proj", true, TraceEnd::Found),
            (".", "proj", true, TraceEnd::Found),
            ("new/deep/er", "proj/new/deep/er", true, TraceEnd::Missing),
            ("new/../../secret", "secret", false, TraceEnd::Missing),
            ("../proj-evil/x", "proj-evil/x", false, TraceEnd::Missing),
            ("../proj/file", "proj/file", true, TraceEnd::Found),
            ("../secret", "secret", false, TraceEnd::Found),
            ("out", "secret", false, TraceEnd::Found),
            ("in", "proj/file", true, TraceEnd::Found),
            ("dir-out/secret", "secret", false, TraceEnd::Found),
            ("dir-out/proj/file", "proj/file", true, TraceEnd::Found),
            ("dangling", "proj/nowhere", true, TraceEnd::Dangling),
            ("circle", "proj/circle", true, TraceEnd::Circle),
            ("file/x", "proj/file", true, TraceEnd::NotADirectory),
            ("abs/new", "proj/sub/new", true, TraceEnd::Missing),
            ("../temp/x", "temp/x", true, TraceEnd::Missing),
            ("state/token", "proj/state/token", false, TraceEnd::Missing),
        ] {
            let trace = trace_path(&place, named);
            assert_eq!(trace.real, base.join(real), "{named}");
            assert_eq!(place.contains(&trace.real), inside, "{named}");
            assert_eq!(trace.end, end, "{named}");
        }
        assert!(!place.contains(&trace_path(&place, "dangling-out").real));
        assert!(!place.contains(&trace_path(&place, "/etc/passwd").real));
        assert!(!place.contains(&trace_path(&place, "/proc/self/root/etc/passwd").real));
    }

    #[test]
    fn a_path_means_what_a_command_finds_there() {
        let (_dir, mut place) = place();
        let base = place.project.parent().unwrap().to_owned();
        for name in ["own/tmp", "own/home", "t/added", "home"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        std::fs::write(base.join("own/tmp/file"), "x").unwrap();
        std::fs::write(base.join("t/secret"), "x").unwrap();
        let link = |from: &str, to: PathBuf| symlink(to, base.join(from)).unwrap();
        link("own/home/link", base.join("t/file"));
        link("proj/to-tmp", base.join("t"));
        place.temp = base.join("own/tmp");
        place.added = vec![base.join("t/added")];
        place.private = vec![
            (base.join("t"), base.join("own/tmp")),
            (base.join("home"), base.join("own/home")),
        ];
        for (named, real, shown) in [
            ("t/file", "own/tmp/file", "t/file"),
            ("t/new/deep", "own/tmp/new/deep", "t/new/deep"),
            ("t/secret", "own/tmp/secret", "t/secret"),
            ("t/added/x", "t/added/x", "t/added/x"),
            ("home/link", "own/tmp/file", "t/file"),
            ("proj/to-tmp/file", "own/tmp/file", "t/file"),
            ("home/../t/file", "own/tmp/file", "t/file"),
            ("own/tmp/file", "own/tmp/file", "t/file"),
        ] {
            let found = trace_path(&place, base.join(named).to_str().unwrap());
            assert_eq!(found.real, base.join(real), "{named}");
            assert!(place.contains(&found.real), "{named}");
            assert_eq!(place.shown(&found.real), base.join(shown), "{named}");
        }
        assert_eq!(trace_path(&place, base.join("t").to_str().unwrap()).real, base.join("own/tmp"));
    }
}
