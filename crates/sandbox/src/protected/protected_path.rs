//! One protected path and its place in the project.

use super::path_checks::exists;
use super::persist::persist;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Kind of a protected path, which decides if a new one may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProtectedKind {
    /// A name that no new one of is believed.
    Plain,
    /// Settings of git.
    GitConfig,
    /// Its hooks.
    Hooks,
    /// A file of a worktree's own folder in the repository.
    WorktreeFile,
    /// A `.git` that is no directory.
    GitFile,
    /// Pending steps of a rebase or the like. Git runs programs by them when the user continues it.
    SequencerFile,
    /// A link in a git directory, which redirects git's writes.
    LinkInGitDir,
    /// A name that projects want written: a change stays and is told.
    Asked,
}

/// Where a place lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnerDir {
    /// In a granted directory's own project.
    Project,
    /// In this folder deeper in the project. Builds create and remove such folders, so no mount
    /// protects them; changes are undone after the command.
    Nested(PathBuf),
}

impl OwnerDir {
    /// Where a place lies that is reached from both: it goes only where neither is left.
    fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Nested(one), Self::Nested(two)) => {
                let both = one.ancestors().find(|above| two.starts_with(above));
                both.map_or(Self::Project, |both| Self::Nested(both.to_owned()))
            }
            (Self::Project, _) | (_, Self::Project) => Self::Project,
        }
    }
}

/// A protected name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProtectedPath {
    pub path: PathBuf,
    /// The git folder that it is part of.
    pub git_dir: Option<PathBuf>,
    pub kind: ProtectedKind,
    pub owner: OwnerDir,
}

impl ProtectedPath {
    /// True if tier A mounts it read-only while the command runs, provided that it exists.
    pub(crate) fn is_mounted_read_only(&self) -> bool {
        // Git removes a worktree's files together with their folder, and each pending step. What
        // projects want written is no mount's either.
        let gits = matches!(
            self.kind,
            ProtectedKind::WorktreeFile
                | ProtectedKind::SequencerFile
                | ProtectedKind::LinkInGitDir
                | ProtectedKind::Asked
        );
        let goes = gits || self.owner != OwnerDir::Project;
        !goes && self.path.symlink_metadata().is_ok_and(|found| !found.is_symlink())
    }

    /// True for settings or hooks of a repository that lies in one of these folders.
    pub(crate) fn is_git_config_in(&self, folders: &[PathBuf]) -> bool {
        let gits = match self.kind {
            ProtectedKind::GitConfig | ProtectedKind::Hooks | ProtectedKind::SequencerFile => true,
            ProtectedKind::WorktreeFile => self.path.ends_with("config.worktree"),
            ProtectedKind::Plain => {
                self.git_dir.is_some() && self.path.ends_with("info/attributes")
            }
            ProtectedKind::GitFile | ProtectedKind::LinkInGitDir | ProtectedKind::Asked => false,
        };
        gits && folders.iter().any(|folder| self.path.starts_with(folder))
    }
}

/// Each place once, as the first that came, but for where it lies.
pub(super) fn merged_by_path(
    places: impl IntoIterator<Item = ProtectedPath>,
) -> Vec<ProtectedPath> {
    let mut once: Vec<ProtectedPath> = Vec::new();
    let mut at: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for place in places {
        match at.get(&place.path).and_then(|at| once.get_mut(*at)) {
            Some(known) => known.owner = known.owner.and(&place.owner),
            None => {
                at.insert(place.path.clone(), once.len());
                once.push(place);
            }
        }
    }
    once
}

/// The outermost link on the way to a path, which the kernel reaches first, or the path itself.
pub(super) fn outermost_link(place: &ProtectedPath, roots: &[PathBuf]) -> ProtectedPath {
    if place.kind == ProtectedKind::Asked {
        return place.clone();
    }
    let root = roots.iter().filter(|root| place.path.starts_with(root));
    let root = root.max_by_key(|root| root.components().count());
    let inside = |above: &&Path| root.is_none_or(|root| above != root);
    let mut way: Vec<&Path> = place.path.ancestors().skip(1).take_while(inside).collect();
    way.reverse();
    match way.into_iter().find(|above| above.is_symlink()) {
        Some(link) => plain_path(link.to_owned(), &place.owner),
        None => place.clone(),
    }
}

/// The paths that do not exist, so that the command may create them.
pub(super) fn absent_paths(places: &[ProtectedPath]) -> Vec<ProtectedPath> {
    places.iter().filter(|place| !exists(&place.path)).cloned().collect()
}

pub(super) fn plain_path(path: PathBuf, within: &OwnerDir) -> ProtectedPath {
    ProtectedPath { path, git_dir: None, kind: ProtectedKind::Plain, owner: within.clone() }
}

persist!(struct ProtectedPath { path, git_dir, kind, owner });
persist!(enum OwnerDir { 0 => Project, 1 => Nested(folder) });
persist!(enum ProtectedKind {
    0 => Plain, 1 => GitConfig, 2 => Hooks, 3 => WorktreeFile, 4 => GitFile, 5 => SequencerFile, 6 => LinkInGitDir,
    7 => Asked
});
