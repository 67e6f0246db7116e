//! Keeps keys in the project and agentd's own directories out of every grant.

use super::grant_list::Grants;
use super::path_grant::GrantVia;
use super::session_dirs::own_dirs;
use crate::error::{CageError, CageStep};
use protocol::confinement::Confinement;
use std::path::{Path, PathBuf};

impl Grants {
    /// Covers keys in the project, where tier A can mount over them; keys that stay readable are
    /// recorded. A key with a grant of its own stays: its policy excludes the secrets in it.
    pub(super) fn hide_keys(&mut self, wanted: &Confinement, means: GrantVia) {
        let project = wanted.project.to_path();
        if !self.list.iter().any(|grant| grant.path == project) {
            return;
        }
        // A link holds no key: where it leads is a place of its own, and named by that. Most keys are
        // absent, which one look tells.
        let is_there = |key: &PathBuf| {
            key.symlink_metadata().is_ok() && key.canonicalize().is_ok_and(|real| real == *key)
        };
        let near: Vec<PathBuf> = self.key_places.of_project().cloned().collect();
        for key in near.into_iter().filter(is_there) {
            match means {
                _ if project.starts_with(&key) => self.keys.push(project.clone()),
                GrantVia::Landlock => self.keys.push(key),
                GrantVia::MountedRoot if self.list.iter().any(|grant| grant.path == key) => {}
                GrantVia::MountedRoot => self.hidden.push(key),
            }
        }
        self.keys.dedup();
        self.covered.extend(self.hidden.iter().cloned());
    }

    /// Keeps our own directories out of every grant.
    pub(super) fn withhold_own_dirs(
        &mut self,
        wanted: &Confinement,
        means: GrantVia,
    ) -> Result<(), CageError> {
        let own = own_dirs(wanted);
        for withheld in wanted.withheld.iter().map(|path| path.to_path()) {
            for grant in &self.list {
                let place = &grant.host;
                if self.empty_overlays.contains(&grant.path) {
                    continue;
                }
                if place.starts_with(&withheld) {
                    if *place != withheld && own.contains(place) {
                        continue;
                    }
                    return Err(withheld_error(place, &withheld));
                }
                if withheld.starts_with(place) {
                    match (means, withheld.exists()) {
                        (GrantVia::MountedRoot, true) => self.covered.push(withheld.clone()),
                        // A directory that does not exist cannot be read. It cannot be covered
                        // either, so a writable grant could create it.
                        (_, false) if !grant.access.writes() => {}
                        (GrantVia::Landlock, _) | (GrantVia::MountedRoot, false) => {
                            return Err(withheld_error(place, &withheld));
                        }
                    }
                }
            }
        }
        self.covered.dedup();
        Ok(())
    }
}

/// Why a grant that would reach our own directories is refused.
fn withheld_error(grant: &Path, withheld: &Path) -> CageError {
    CageError::new(
        CageStep::Grants,
        format!(
            "{} reaches agentd's own directory {}",
            grant.display(),
            withheld.display()
        ),
    )
    .hint("work in a directory that does not contain it, or move it with XDG_STATE_HOME, XDG_CONFIG_HOME or XDG_RUNTIME_DIR; commands in tier A run here all the same, and find it empty")
}
