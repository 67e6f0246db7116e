//! Finds the protected paths of a call. Mounts keep some of them read-only; the state of the others
//! is recorded before the command.

use super::file_identity::{FileIdentity, identity_of};
use super::path_grant::GrantVia;
use crate::error::{CageError, CageStep};
use crate::git_config_file::GitConfigFile;
use crate::policy::{ConfinementPolicy, ProtectedName};
use crate::protected::{
    self, Baseline, LinkedGitDir, ProtectedKind, ProtectedPath, ProtectionScope, WriteScope,
};
use protocol::confinement::{Confinement, FilePath, GitSettings};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Protected paths that mounts of tier A keep as they are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Protection {
    /// Read-only paths within writable directories.
    pub paths: Vec<PathBuf>,
    /// What lies at them.
    identities: Vec<Option<FileIdentity>>,
    /// Git settings files among them that git may replace if the change is harmless.
    pub git_configs: Vec<GitConfigFile>,
    /// Protected names that this command may change: they may not be moved away together with their
    /// folder all the same.
    pub writable: Vec<PathBuf>,
}

impl Protection {
    /// Keeps these directories read-only too. Git replaces no settings in them then.
    fn keep(&mut self, dirs: Vec<PathBuf>) {
        self.git_configs.retain(|config| !dirs.iter().any(|dir| config.file.starts_with(dir)));
        let new: Vec<PathBuf> = dirs.into_iter().filter(|dir| !self.paths.contains(dir)).collect();
        self.identities.extend(new.iter().map(|dir| identity_of(dir)));
        self.paths.extend(new);
    }
}

/// Finds the protected paths of a call, as often as it is asked.
#[derive(Debug)]
pub(crate) struct ProtectionSearch {
    roots: Vec<PathBuf>,
    linked: Option<LinkedGitDir>,
    names: &'static [ProtectedName],
    ground: WriteScope,
    /// The session's directories, whose paths are others in the new root.
    own: Vec<PathBuf>,
    /// In these, git's settings and hooks may be changed.
    git_writable: Vec<PathBuf>,
    git: GitSettings,
    means: GrantVia,
}

impl ProtectionSearch {
    /// `None` if the policy protects nothing. `writable` are the places that the call may write, and
    /// `own` the session's directories.
    pub(super) fn new(
        wanted: &Confinement,
        policy: &ConfinementPolicy,
        linked: Option<LinkedGitDir>,
        (writable, own): (Vec<PathBuf>, Vec<PathBuf>),
        means: GrantVia,
    ) -> Option<Self> {
        if policy.protected.is_empty() {
            return None;
        }
        let roots = [&wanted.project].into_iter().chain(&wanted.added).map(FilePath::to_path);
        let git_writable = match wanted.git {
            GitSettings::Kept | GitSettings::DirectoryKept => Vec::new(),
            GitSettings::Writable => {
                let common = linked.iter().map(|linked| linked.common.clone());
                std::iter::once(wanted.project.to_path()).chain(common).collect()
            }
        };
        let home = wanted.home.as_ref().map(FilePath::to_path);
        Some(Self {
            roots: roots.collect(),
            linked,
            names: policy.protected,
            ground: WriteScope { writable, home },
            own,
            git_writable,
            git: wanted.git,
            means,
        })
    }

    /// The paths for mounts, and the state of the others.
    ///
    /// # Errors
    /// `CageStep::Grants` where the disk has no room to put protected files back.
    pub(crate) fn run(&self) -> Result<(Protection, Baseline), CageError> {
        let named = protected::find_protected(&self.roots, self.linked.as_ref(), self.names);
        let places = &named.paths;
        let outside = protected::outside_repos(&self.roots, places);
        let led = protected::find_link_targets(&named, &outside, &self.ground);
        let mut protection = Protection::default();
        if self.means == GrantVia::MountedRoot {
            // A path in a private directory has another path in the new root.
            let shown =
                |place: &&ProtectedPath| !self.own.iter().any(|dir| place.path.starts_with(dir));
            let held = places.iter().chain(&led.paths).filter(|place| place.is_mounted_read_only());
            let (open, held): (Vec<_>, Vec<_>) =
                held.filter(shown).partition(|place| place.is_git_config_in(&self.git_writable));
            let paths =
                |places: &[&ProtectedPath]| places.iter().map(|place| place.path.clone()).collect();
            protection = Protection {
                paths: paths(&held),
                identities: held.iter().map(|place| identity_of(&place.path)).collect(),
                git_configs: kept_settings(&held, &self.roots),
                writable: paths(&open),
            };
        }
        let git_dirs = git_dirs(places, &self.roots);
        let territory = ProtectionScope {
            roots: self.roots.clone(),
            linked: self.linked.clone(),
            names: self.names,
            git_writable: self.git_writable.clone(),
        };
        let baseline = Baseline::capture(territory, named, led, &protection.paths);
        let baseline = baseline.map_err(|error| {
            CageError::os(
                CageStep::Grants,
                "room to put protected names back after the call",
                error,
            )
            .hint("free some space on the project's disk")
        })?;
        if (self.git, self.means) == (GitSettings::DirectoryKept, GrantVia::MountedRoot) {
            protection.keep(git_dirs);
        }
        Ok((protection, baseline))
    }
}

/// The outermost git directories in the granted directories, nested ones too. A link is no way to another one: what is
/// there is protected as such.
fn git_dirs(places: &[ProtectedPath], roots: &[PathBuf]) -> Vec<PathBuf> {
    let lies_within = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    let is_dir = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let found: BTreeSet<&Path> =
        places.iter().filter_map(|place| place.git_dir.as_deref()).collect();
    let own = found.iter().filter(|git| lies_within(git) && is_dir(git));
    let outermost = own.filter(|git| !git.ancestors().skip(1).any(|above| found.contains(above)));
    outermost.map(|git| git.to_path_buf()).collect()
}

/// Git settings files that a mount keeps read-only. Where the hooks directory next to a file is
/// read-only too, it serves as staging directory for the replacement. A file without a hooks
/// directory is recorded too, so that no other process replaces it.
fn kept_settings(held: &[&ProtectedPath], roots: &[PathBuf]) -> Vec<GitConfigFile> {
    let hooks: Vec<_> = held.iter().filter(|place| place.kind == ProtectedKind::Hooks).collect();
    let room = |git: &Path| {
        let of_same = hooks.iter().find(|hooks| hooks.git_dir.as_deref() == Some(git))?;
        Some(of_same.path.clone()).filter(|room| room.is_dir())
    };
    let settings = held.iter().filter(|place| place.kind == ProtectedKind::GitConfig);
    let kept = settings.filter_map(|place| {
        let git = place.git_dir.clone()?;
        Some(GitConfigFile {
            file: place.path.clone(),
            staging_dir: room(&git),
            git_dir: git,
            roots: roots.to_owned(),
        })
    });
    kept.collect()
}
