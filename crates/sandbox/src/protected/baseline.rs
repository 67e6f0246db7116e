//! State of all protected paths before a command. `restore` compares it with their state after the
//! command.

use super::asked_files;
use super::disk_reserve::DiskReserve;
use super::file_state::capture;
use super::file_state::{CaptureBudget, FileState, InodeStamp};
use super::hard_links::{self, shared_files};
use super::link_targets::LinkTargets;
use super::linked_git_dir::LinkedGitDir;
use super::path_checks::exists;
use super::path_finder::{ProtectedPaths, find_protected};
use super::persist::persist;
use super::protected_path::{ProtectedKind, ProtectedPath, absent_paths};
use crate::policy::ProtectedName;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

/// Where to search for protected names, and which of them the command may change.
#[derive(Debug)]
pub(crate) struct ProtectionScope {
    /// Directories that it may write.
    pub roots: Vec<PathBuf>,
    /// Where the project's git folder lies, if elsewhere.
    pub linked: Option<LinkedGitDir>,
    pub names: &'static [ProtectedName],
    /// In these, git's settings and hooks may be changed.
    pub git_writable: Vec<PathBuf>,
}

/// State before the command.
#[derive(Debug)]
pub(crate) struct Baseline {
    pub(super) roots: Vec<PathBuf>,
    pub(super) linked: Option<LinkedGitDir>,
    pub(super) names: &'static [ProtectedName],
    /// In these, git's settings and hooks may be changed.
    pub(super) git_writable: Vec<PathBuf>,
    /// More was there than can be watched.
    pub(super) incomplete: bool,
    /// Link targets that are not protected, a sentence each.
    pub(super) limits: Vec<String>,
    /// Link targets that did not exist.
    pub(super) absent: Vec<ProtectedPath>,
    /// State of each path that existed.
    pub(super) recorded: Vec<(ProtectedPath, FileState)>,
    /// Files that may change, of names about which the person is told.
    pub(super) asked: Vec<(PathBuf, InodeStamp)>,
    /// Git folders that existed.
    pub(super) repositories: BTreeSet<PathBuf>,
    /// Folders that the search did not reach: their content before the command is unknown.
    pub(super) unsearched: Vec<PathBuf>,
    /// Disk space for restored files.
    pub(super) reserve: DiskReserve,
}

persist!(struct Baseline { roots, linked, names, git_writable, incomplete, limits, absent, recorded, asked, repositories, unsearched, reserve });

impl Baseline {
    /// Records all protected paths and their link targets, except those that a mount keeps
    /// read-only. A mount does not keep a file that has another hard link.
    ///
    /// # Errors
    /// Where the disk has no room to put them back.
    pub(crate) fn capture(
        territory: ProtectionScope,
        found: ProtectedPaths,
        led: LinkTargets,
        held: &[PathBuf],
    ) -> io::Result<Self> {
        let ProtectionScope { roots, linked, names, git_writable: open } = territory;
        let gits: BTreeSet<_> = found.all().filter_map(|place| place.git_dir.as_ref()).collect();
        let repositories = gits.into_iter().filter(|git| exists(git)).cloned().collect();
        let ProtectedPaths { paths: places, unsearched, .. } = found;
        let mut room = CaptureBudget::new();
        let absent = absent_paths(&led.paths);
        let asked = asked_files::stamps(&places);
        let mut left = hard_links::MOST;
        let seen = places
            .into_iter()
            .filter(|place| place.kind != ProtectedKind::Asked)
            .chain(led.paths)
            .filter_map(|place| {
                let is_held =
                    held.contains(&place.path) && shared_files(&place.path, &mut left).is_empty();
                let seen = match is_held {
                    true => FileState::Unrecorded,
                    false => capture(&place.path, &mut room)?,
                };
                Some((place, seen))
            })
            .collect();
        let common = linked.iter().map(|linked| &linked.common);
        let reserve = DiskReserve::of(roots.iter().chain(common), room.disk_bytes())?;
        Ok(Self {
            roots,
            linked,
            names,
            git_writable: open,
            incomplete: room.is_exhausted(),
            limits: led.limits,
            absent,
            recorded: seen,
            asked,
            repositories,
            unsearched,
            reserve,
        })
    }

    /// True if there were too many protected paths: a change may go unnoticed or cannot be undone.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Takes the present settings and hooks of the repositories that were there for those before the
    /// command: another call was allowed to change them.
    pub(super) fn accept_git_settings(&mut self) {
        let common = self.linked.iter().map(|linked| linked.common.clone());
        let all: Vec<PathBuf> = self.roots.iter().cloned().chain(common).collect();
        let mut room = CaptureBudget::new();
        let found = find_protected(&self.roots, self.linked.as_ref(), self.names);
        let known = |place: &ProtectedPath| {
            let git = place.git_dir.as_ref();
            place.is_git_config_in(&all) && git.is_some_and(|git| self.repositories.contains(git))
        };
        let accepted: Vec<ProtectedPath> =
            found.all().filter(|place| known(place)).cloned().collect();
        for place in accepted {
            let at = self.recorded.iter().position(|(known, _)| known.path == place.path);
            let held = at.and_then(|at| self.recorded.get(at));
            if held.is_some_and(|(_, state)| matches!(state, FileState::Unrecorded)) {
                continue;
            }
            match (capture(&place.path, &mut room), at) {
                (Some(state), Some(at)) => self.recorded[at].1 = state,
                (Some(state), None) => self.recorded.push((place, state)),
                (None, Some(at)) => drop(self.recorded.remove(at)),
                (None, None) => {}
            }
        }
    }

    /// How much cannot be put back: files whose content is not known, and disks without reserved space.
    pub(crate) fn gaps(&self) -> usize {
        let unknown: usize = self.recorded.iter().map(|(_, state)| state.gaps()).sum();
        unknown + self.reserve.gaps()
    }

    /// Link targets of protected paths that are not protected, a sentence each.
    pub(crate) fn limits(&self) -> &[String] {
        &self.limits
    }
}
