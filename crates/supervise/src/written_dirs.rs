//! The directories in which calls of any project could write, now or earlier. A link in one of them leads
//! where a command wanted, so no call is granted anything of the home by it, whichever session it belongs
//! to. One symbolic link for each in the state directory: several supervisors add to them without a lock,
//! and the removal of a session forgets none. Used by the session opener and by each call.

use config::project_dir_name;
use protocol::confinement::{Confinement, FilePath};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// In the state directory.
const DIRECTORY: &str = "written";
/// File systems record times coarsely: a second change may leave the time of a first one.
const COARSE: Duration = Duration::from_secs(2);

/// The directories, as they are on disk.
#[derive(Debug)]
pub(crate) struct WrittenDirs {
    state: PathBuf,
    read: Mutex<Option<Reading>>,
}

#[derive(Debug)]
struct Reading {
    /// Of the directory of links, as it was read.
    modified: SystemTime,
    at: SystemTime,
    dirs: Vec<FilePath>,
}

impl WrittenDirs {
    pub(crate) fn at(state: &Path) -> Self {
        Self { state: state.to_owned(), read: Mutex::default() }
    }

    /// Notes the directories that calls of this confinement write, before the first of them runs.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn add(&self, confinement: &Confinement) -> io::Result<()> {
        let all = self.directory();
        if !all.is_dir() {
            self.begin()?;
        }
        let known = self.all()?;
        let dirs = [&confinement.project].into_iter().chain(&confinement.added);
        dirs.filter(|dir| !known.contains(dir)).try_for_each(|dir| note(&all, &dir.to_path()))
    }

    /// All of them, without those that lie in another one.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn all(&self) -> io::Result<Vec<FilePath>> {
        let all = self.directory();
        let modified = match all.metadata() {
            Ok(found) => found.modified()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = read.as_ref()
            && last.modified == modified
            && last.at.duration_since(modified).is_ok_and(|age| age > COARSE)
        {
            return Ok(last.dirs.clone());
        }
        let at = SystemTime::now();
        let dirs = read_links(&all)?;
        *read = Some(Reading { modified, at, dirs: dirs.clone() });
        Ok(dirs)
    }

    fn directory(&self) -> PathBuf {
        self.state.join(DIRECTORY)
    }

    /// Makes the directory, with the projects of the sessions that an older build left.
    fn begin(&self) -> io::Result<()> {
        let all = self.directory();
        DirBuilder::new().recursive(true).mode(0o700).create(&all)?;
        let sessions = std::fs::read_dir(self.state.join("sessions")).into_iter().flatten();
        for session in sessions.flatten() {
            if let Ok(header) = journal::header(&session.path()) {
                note(&all, &header.project.0)?;
            }
        }
        Ok(())
    }
}

fn note(all: &Path, dir: &Path) -> io::Result<()> {
    match symlink(dir, all.join(project_dir_name(dir))) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Forgets directories that were removed. Looks at each, and so waits for its disk.
pub(crate) fn forget_removed(state: &Path) {
    for entry in std::fs::read_dir(state.join(DIRECTORY)).into_iter().flatten().flatten() {
        let Ok(dir) = std::fs::read_link(entry.path()) else { continue };
        let is_gone =
            dir.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        // It may be on a disk that is not mounted now.
        if is_gone && dir.parent().is_some_and(Path::is_dir) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Where the links lead. The directories themselves are not looked at: their disk may not answer.
fn read_links(all: &Path) -> io::Result<Vec<FilePath>> {
    let entries = std::fs::read_dir(all)?;
    let links = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    // A session for the whole disk is granted nothing.
    let mut found: Vec<PathBuf> = links.filter(|dir| dir.parent().is_some()).collect();
    found.sort();
    let mut outer: Vec<PathBuf> = Vec::new();
    for dir in found {
        if !outer.last().is_some_and(|above| dir.starts_with(above)) {
            outer.push(dir);
        }
    }
    Ok(outer.into_iter().map(FilePath::from).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::confinement::Profile;

    fn confinement() -> Confinement {
        let at = |path: &str| FilePath::from(Path::new(path));
        Confinement::closed(Profile::Command, at("/project"), at("/temp"))
    }

    #[test]
    fn a_directory_is_known_until_it_is_removed_whatever_becomes_of_its_session() {
        let dir = tempfile::tempdir().unwrap();
        let (state, at) = (dir.path().join("state"), |name: &str| dir.path().join(name));
        for made in ["dotfiles/inner", "app", "more"] {
            std::fs::create_dir_all(at(made)).unwrap();
        }
        let of = |project: &str, added: &[&str]| Confinement {
            project: FilePath::from(at(project)),
            added: added.iter().map(|name| FilePath::from(at(name))).collect(),
            ..confinement()
        };
        let (one, other) = (WrittenDirs::at(&state), WrittenDirs::at(&state));
        assert_eq!(one.all().unwrap(), []);
        one.add(&of("dotfiles", &[])).unwrap();
        one.add(&of("dotfiles/inner", &["more"])).unwrap();
        let names = |names: &[&str]| -> Vec<FilePath> {
            names.iter().map(|name| FilePath::from(at(name))).collect()
        };
        assert_eq!(other.all().unwrap(), names(&["dotfiles", "more"]));
        // Another supervisor adds one, at any time.
        other.add(&of("app", &[])).unwrap();
        assert_eq!(one.all().unwrap(), names(&["app", "dotfiles", "more"]));
        std::fs::remove_dir(at("more")).unwrap();
        forget_removed(&state);
        assert_eq!(one.all().unwrap(), names(&["app", "dotfiles"]));
    }

    #[test]
    fn a_reading_is_used_again_until_the_directory_changes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("app")).unwrap();
        let dirs = WrittenDirs::at(dir.path());
        let of = Confinement { project: FilePath::from(dir.path().join("app")), ..confinement() };
        dirs.add(&of).unwrap();
        let links = std::fs::File::open(dirs.directory()).unwrap();
        let old = SystemTime::now() - Duration::from_secs(60);
        links.set_modified(old).unwrap();
        assert_eq!(dirs.all().unwrap().len(), 1);
        for link in std::fs::read_dir(dirs.directory()).unwrap() {
            std::fs::remove_file(link.unwrap().path()).unwrap();
        }
        links.set_modified(old).unwrap();
        assert_eq!(dirs.all().unwrap().len(), 1, "from memory");
        links.set_modified(old + Duration::from_secs(1)).unwrap();
        assert_eq!(dirs.all().unwrap(), []);
    }
}
