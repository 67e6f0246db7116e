//! The directory of installed packages, `agentd/mcp` of the data home. A package is made beside its place
//! and renamed, so that it is there as a whole or not at all. Used by `install` and `edit`.

use crate::cli_error::{CliError, chain};
use crate::cli_exit::CliExit;
use config::Dirs;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The lock of installations, and the directory of the one that holds it.
const LOCK: &str = ".lock";
const NEW: &str = ".new";

/// The store, with the right to install.
#[derive(Debug)]
pub(super) struct PackageStore {
    root: PathBuf,
    /// Held for its end.
    _lock: File,
}

/// A package that is being made. Dropped, it is removed.
#[derive(Debug)]
pub(super) struct NewPackage {
    root: PathBuf,
}

impl PackageStore {
    /// Opens the store of these directories, and removes the remains of an installation that was killed.
    pub(super) fn open(dirs: &Dirs) -> Result<Self, CliError> {
        let root = dirs.packages().ok_or_else(|| {
            CliError::config("there is no place for packages")
                .hint("set HOME or XDG_DATA_HOME to an absolute path")
        })?;
        let failed = |error: io::Error| failed(&root, &error);
        DirBuilder::new().recursive(true).mode(0o700).create(&root).map_err(failed)?;
        let root = root.canonicalize().map_err(failed)?;
        let mut options = OpenOptions::new();
        let lock =
            options.write(true).create(true).truncate(false).mode(0o600).open(root.join(LOCK));
        let lock = lock.map_err(failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                CliError::user("another `agentd mcp install` runs").exit(CliExit::Failed)
            }
            TryLockError::Error(error) => failed(error),
        })?;
        remove(&root.join(NEW)).map_err(failed)?;
        Ok(Self { root, _lock: lock })
    }

    /// Begins a package.
    pub(super) fn begin(&self) -> Result<NewPackage, CliError> {
        let new = NewPackage { root: self.root.join(NEW) };
        for dir in [new.tree(), new.home().join("tmp")] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
            made.map_err(|error| failed(&dir, &error))?;
        }
        Ok(new)
    }

    /// Its path.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Puts the package at its place, and another one of this name out of it.
    pub(super) fn place(&self, new: &NewPackage, name: &str) -> Result<PlacedPackage, CliError> {
        let (tree, place) = (new.tree(), self.root.join(name));
        let had = fs::symlink_metadata(&place).is_ok();
        let flags = if had { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        let renamed = renameat_with(CWD, &tree, CWD, &place, flags);
        renamed.map_err(|error| failed(&place, &error.into()))?;
        // The other one is now where the new one was made.
        Ok(if had { PlacedPackage::Again } else { PlacedPackage::New(place) })
    }
}

/// A package at its place.
pub(super) enum PlacedPackage {
    /// It took the place of one with the same lock.
    Again,
    /// Nothing was there.
    New(PathBuf),
}

impl PlacedPackage {
    /// Removes a new one, whose server could not be configured.
    pub(super) fn undo(self) {
        if let Self::New(place) = self {
            // The next installation of this lock replaces what is left.
            let _ = remove(&place);
        }
    }
}

impl NewPackage {
    /// What will be the package's directory.
    pub(super) fn tree(&self) -> PathBuf {
        self.root.join("tree")
    }

    /// The home of the package manager.
    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }
}

impl Drop for NewPackage {
    fn drop(&mut self) {
        // The next installation removes what is left.
        let _ = remove(&self.root);
    }
}

/// Removes the packages of a server, except one. Returns what was removed.
pub(in crate::mcp) fn remove_packages(
    dirs: &Dirs,
    server: &str,
    except: Option<&str>,
) -> Result<Vec<PathBuf>, CliError> {
    let found = dirs.packages_of(server).map_err(|error| CliError::config(chain(&error)))?;
    let is_kept = |dir: &PathBuf| {
        except.is_some() && dir.file_name().and_then(|name| name.to_str()) == except
    };
    let gone: Vec<PathBuf> = found.into_iter().filter(|dir| !is_kept(dir)).collect();
    for dir in &gone {
        remove(dir).map_err(|error| failed(dir, &error))?;
    }
    Ok(gone)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn failed(path: &Path, error: &io::Error) -> CliError {
    CliError::config(format!("{} cannot be changed: {error}", path.display())).exit(CliExit::Failed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use config::Environment;

    fn dirs(home: &Path) -> Dirs {
        let environment: Environment = [("HOME", home.to_str().unwrap())].into_iter().collect();
        Dirs::resolve(&environment).unwrap()
    }

    #[test]
    fn a_package_is_placed_as_a_whole_and_leaves_nothing_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let dirs = dirs(home.path());
        let store = PackageStore::open(&dirs).unwrap();
        let name = "a-0123456789abcdef";
        for text in ["old", "new"] {
            let new = store.begin().unwrap();
            fs::write(new.tree().join("file"), text).unwrap();
            let placed = store.place(&new, name).unwrap();
            assert_eq!(matches!(placed, PlacedPackage::New(_)), text == "old");
            drop(new);
            assert_eq!(fs::read_to_string(store.root().join(name).join("file")).unwrap(), text);
        }
        drop(store.begin().unwrap());
        let left = fs::read_dir(store.root()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        assert_eq!(left, [LOCK, name]);
        assert_eq!(remove_packages(&dirs, "a", Some(name)).unwrap(), Vec::<PathBuf>::new());
        assert_eq!(remove_packages(&dirs, "a", None).unwrap(), [store.root().join(name)]);
    }

    #[test]
    fn one_installation_runs_at_a_time_and_clears_what_a_killed_one_left() {
        let home = tempfile::tempdir().unwrap();
        let dirs = dirs(home.path());
        let store = PackageStore::open(&dirs).unwrap();
        assert!(PackageStore::open(&dirs).is_err(), "a second one at the same time");
        std::mem::forget(store.begin().unwrap());
        let left = store.root().join(NEW);
        assert!(left.exists());
        drop(store);
        PackageStore::open(&dirs).unwrap();
        assert!(!left.exists());
    }
}
