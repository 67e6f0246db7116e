//! Folders that a command closed to their owner, opened for as long as it takes to put things right
//! in them. For the rest of this folder.

use super::path_checks::is_real_dir;
use super::real_dirs::set_mode;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Rights that the owner needs to list a folder and to change names in it.
const OPEN: u32 = 0o700;

/// Folders that were opened, with the modes that they had.
#[derive(Debug, Default)]
pub(super) struct OpenedDirs(Vec<(PathBuf, u32)>);

impl OpenedDirs {
    /// Gives the owner access to this folder. Another user's folder stays as it is; later
    /// operations in it fail and report why.
    pub(super) fn open(&mut self, folder: &Path) {
        let Ok(found) = folder.symlink_metadata() else { return };
        let mode = found.permissions().mode() & 0o7777;
        if found.is_dir() && mode & OPEN != OPEN && set_mode(folder, mode | OPEN).is_ok() {
            self.0.push((folder.to_owned(), mode));
        }
    }

    /// The same of all folders from `root` on the way to `path`.
    pub(super) fn open_path_to(&mut self, root: &Path, path: &Path) {
        let inside = |folder: &&Path| folder.starts_with(root);
        let mut way: Vec<&Path> = path.ancestors().skip(1).take_while(inside).collect();
        way.reverse();
        for folder in way {
            self.open(folder);
        }
    }

    /// The mode that it had, where it was opened.
    pub(super) fn mode_of(&self, folder: &Path) -> Option<u32> {
        self.0.iter().find(|(opened, _)| opened == folder).map(|(_, mode)| *mode)
    }

    /// Gives it this mode, which it keeps.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn keep_mode(&mut self, folder: &Path, mode: u32) -> std::io::Result<()> {
        self.0.retain(|(opened, _)| opened != folder);
        set_mode(folder, mode)
    }

    /// Restores the modes in reverse order, except of folders that were removed.
    pub(super) fn close(self) {
        for (folder, mode) in self.0.into_iter().rev() {
            if is_real_dir(&folder) {
                let _ = set_mode(&folder, mode);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn folders_are_opened_from_the_root_down_and_closed_again() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let mode = |name: &str| at(name).symlink_metadata().unwrap().permissions().mode() & 0o7777;
        std::fs::create_dir_all(at("root/a/b")).unwrap();
        std::fs::write(at("root/a/b/file"), "x").unwrap();
        for (name, mode) in [("root/a/b", 0o000), ("root/a", 0o111), ("root", 0o555)] {
            set_mode(&at(name), mode).unwrap();
        }
        let mut doors = OpenedDirs::default();
        doors.open_path_to(&at("root"), &at("root/a/b/file"));
        assert_eq!([mode("root"), mode("root/a"), mode("root/a/b")], [0o755, 0o711, 0o700]);
        doors.close();
        assert_eq!([mode("root"), mode("root/a")], [0o555, 0o111]);
        let mut doors = OpenedDirs::default();
        doors.open_path_to(&at("root"), &at("root/a/b/file"));
        std::fs::remove_dir_all(at("root/a")).unwrap();
        doors.close();
        assert_eq!(mode("root"), 0o555);
        set_mode(&at("root"), 0o755).unwrap();
    }
}
