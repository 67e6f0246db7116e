//! Settings of git that lie outside every repository, for who hands them over to commands: read with
//! the parser and the bounds of the rest of this folder.

use super::bounded_read::{self, Symlinks};
use super::git_config::{GitConfig, GitSetting, included_path};
use std::path::{Path, PathBuf};

/// The settings of a file of git's, in order; `None` where there is no regular file of up to 256 KiB.
#[must_use]
pub fn git_settings(file: &Path) -> Option<Vec<GitSetting>> {
    Some(GitConfig::parse(&small_file(file)?).written().collect())
}

/// A regular file of up to 256 KiB.
#[must_use]
pub fn small_file(file: &Path) -> Option<Vec<u8>> {
    bounded_read::bytes(file, bounded_read::SETTINGS, Symlinks::Follow).ok()
}

/// The path of a setting in the file `by`; `None` if only git can resolve it.
#[must_use]
pub fn git_path(named: &[u8], by: &Path, home: Option<&Path>) -> Option<PathBuf> {
    included_path(named, by, home)
}
