//! The directories of a call, and the paths under which commands see them.

use crate::Cage;
use protocol::confinement::{Confinement, FilePath, TEMPORARY};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The directories of a call.
#[derive(Debug, Clone)]
pub struct CallScope {
    /// The project directory, a real path; relative paths start here.
    pub project: PathBuf,
    /// Directories granted beside it, real paths.
    pub added: Vec<PathBuf>,
    /// The session's temporary directory, a real path.
    pub temp: PathBuf,
    /// The session's `/tmp` and `/var/tmp` as commands see them, with the real path of each: a
    /// tool's path means the same as in a command.
    pub private: Vec<(PathBuf, PathBuf)>,
    /// The home directory that commands see. Other tools do not use it: a model would take it for
    /// the user's.
    pub home: Option<PrivateHome>,
    /// The directory of the package caches, a real path that commands see too.
    pub caches: Option<PathBuf>,
    /// Directories that are not accessible even inside a granted one, real paths. `temp` may be
    /// below one of them.
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
    /// True if a real path is inside a granted directory.
    #[must_use]
    pub fn contains(&self, real: &Path) -> bool {
        let own = self.own().any(|own| own.is_absolute() && real.starts_with(own));
        let withheld = self.withheld.iter().any(|withheld| real.starts_with(withheld));
        own || (!withheld && self.roots().any(|root| real.starts_with(root)))
    }

    /// The granted directory that a real path lies in: the deepest where they are nested.
    pub fn root_of(&self, real: &Path) -> Option<&Path> {
        self.roots()
            .filter(|root| real.starts_with(root))
            .max_by_key(|root| root.components().count())
    }

    /// A real path as the model shall write it: relative to the project where it lies there, and as
    /// commands find it where it lies in a private directory.
    pub fn shown<'a>(&self, real: &'a Path) -> Cow<'a, Path> {
        match real.strip_prefix(&self.project) {
            Ok(inside) if inside.as_os_str().is_empty() => Path::new(".").into(),
            Ok(inside) => inside.into(),
            Err(_) => self.in_cage(real),
        }
    }

    /// The private directory that a real path lies in, as commands find it.
    pub fn private_around(&self, real: &Path) -> Option<&Path> {
        let around = self.private.iter().find(|(_, kept_at)| real.starts_with(kept_at));
        around.map(|(shown_at, _)| shown_at.as_path())
    }

    /// Where a person finds the files of the session's `/tmp` or `/var/tmp`, if one of these paths lies
    /// there. They are real, or as commands see them.
    #[must_use]
    pub fn private_note<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) -> Option<String> {
        let leads_there = |path: &Path| {
            let real = self.on_host(path);
            self.private.iter().find(|(_, kept_at)| real.starts_with(kept_at))
        };
        let (shown_at, kept_at) = paths.into_iter().find_map(leads_there)?;
        let (shown_at, kept_at) = (shown_at.display(), kept_at.display());
        Some(format!("{shown_at} is the session's own, on disk {kept_at}"))
    }

    /// The same for what a command's text names.
    #[must_use]
    pub fn private_note_of(&self, command: &str) -> Option<String> {
        let parts = |c: char| c.is_whitespace() || "'\"`;|&<>()=:,".contains(c);
        self.private_note(command.split(parts).map(Path::new))
    }

    /// The path under which the command of this cage sees this real path.
    pub fn seen_in(&self, cage: &Cage, real: &Path) -> PathBuf {
        match cage.shows_private() {
            true => self.in_cage(real).into_owned(),
            false => real.to_owned(),
        }
    }

    /// The path under which a command with its own root sees this real path.
    fn in_cage<'a>(&self, real: &'a Path) -> Cow<'a, Path> {
        moved(real, self.private.iter().map(|(shown_at, kept_at)| (kept_at, shown_at)))
    }

    /// The real path of a path as a command sees it. The project and added directories keep their
    /// paths, even inside a private directory.
    pub fn on_host<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
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

    /// True if commands may have written it, by this path or at the target of its links.
    pub fn is_written_at(&self, path: &Path) -> bool {
        let real = path.canonicalize();
        let paths = [Some(path), real.as_deref().ok()];
        self.roots().any(|root| paths.into_iter().flatten().any(|path| path.starts_with(root)))
    }

    /// True for a directory above the project or an added one; their paths are real.
    pub fn leads_to_granted(&self, path: &Path) -> bool {
        let mut granted = std::iter::once(&self.project).chain(&self.added);
        granted.any(|dir| dir.starts_with(path) && dir != path)
    }

    /// The session's own directories, which may be below a withheld one.
    fn own(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.temp).chain(self.private.iter().map(|(_, kept_at)| kept_at))
    }

    /// The granted directories, and the session's own.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
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
