//! The directories of a call, and the paths under which commands see them.

use protocol::confinement::{Confinement, FilePath, TEMPORARY};
use sandbox::Cage;
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
    pub(crate) fn on_host<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
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
    pub(crate) fn leads_to_granted(&self, path: &Path) -> bool {
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
