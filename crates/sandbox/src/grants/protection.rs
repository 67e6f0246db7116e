//! Finds the protected paths of a call. Mounts keep some of them read-only; the state of the others
//! is recorded before the command.

use super::grant_list::Grants;
use super::path_grant::GrantVia;
use super::session_dirs::own_dirs;
use crate::error::{CageError, CageStep};
use crate::git_config_file::GitConfigFile;
use crate::policy::ConfinementPolicy;
use crate::protected::{self, Baseline, LinkedGitDir, ProtectedKind, ProtectionScope};
use protocol::confinement::{Confinement, FilePath, GitSettings};
use std::path::{Path, PathBuf};

impl Grants {
    /// Finds the protected paths, and records the state of those that no mount protects.
    pub(super) fn protect(
        &mut self,
        wanted: &Confinement,
        linked: Option<LinkedGitDir>,
        policy: &ConfinementPolicy,
        means: GrantVia,
    ) -> Result<(), CageError> {
        if policy.protected.is_empty() {
            return Ok(());
        }
        let roots: Vec<PathBuf> =
            [&wanted.project].into_iter().chain(&wanted.added).map(FilePath::to_path).collect();
        let named = protected::find_protected(&roots, linked.as_ref(), policy.protected);
        let places = &named.paths;
        let writable = self.list.iter().filter(|grant| grant.access.writes());
        // A fresh mount of tier A is empty.
        let writable =
            writable.filter(|grant| means == GrantVia::Landlock || grant.fresh.is_none());
        let ground = protected::WriteScope {
            writable: writable.map(|grant| grant.host.clone()).collect(),
            home: wanted.home.as_ref().map(FilePath::to_path),
        };
        let led = protected::find_link_targets(
            places,
            &protected::outside_repos(&roots, places),
            &ground,
        );
        let open = match wanted.git {
            GitSettings::Kept => Vec::new(),
            GitSettings::Writable => {
                let common = linked.iter().map(|linked| linked.common.clone());
                std::iter::once(wanted.project.to_path()).chain(common).collect()
            }
        };
        if means == GrantVia::MountedRoot {
            let own = own_dirs(wanted);
            let shown = |place: &&protected::ProtectedPath| {
                !own.iter().any(|dir| place.path.starts_with(dir))
            };
            let held = places.iter().chain(&led.paths).filter(|place| place.is_mounted_read_only());
            // A path in a private directory has another path in the new root.
            let held = held.filter(shown);
            let (open, held): (Vec<_>, Vec<_>) =
                held.partition(|place| place.is_git_config_in(&open));
            let paths = |places: Vec<&protected::ProtectedPath>| {
                places.into_iter().map(|place| place.path.clone()).collect()
            };
            self.git_configs = kept_settings(&held, &roots);
            (self.writable_protected, self.protected) = (paths(open), paths(held));
        }
        let territory =
            ProtectionScope { roots, linked, names: policy.protected, git_writable: open };
        let before =
            Baseline::capture(territory, named, led, &self.protected).map_err(|error| {
                CageError::os(
                    CageStep::Grants,
                    "room to put protected names back after the call",
                    error,
                )
                .hint("free some space on the project's disk")
            })?;
        self.baseline = Some(before);
        Ok(())
    }
}

/// Git settings files that a mount keeps read-only. Where the hooks directory next to a file is
/// read-only too, it serves as staging directory for the replacement. A file without a hooks
/// directory is recorded too, so that no other process replaces it.
fn kept_settings(held: &[&protected::ProtectedPath], roots: &[PathBuf]) -> Vec<GitConfigFile> {
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
