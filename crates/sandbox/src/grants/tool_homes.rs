//! Grants of places in the user's home, which tier A may show as an overlay: commands then change a
//! copy.

use super::grant_list::Grants;
use super::open_path::is_in_project;
use super::path_grant::{GrantVia, PathGrant};
use crate::error::CageError;
use crate::mounts::overlay_mounts;
use crate::policy::{Access, GrantRule, OverlayRule};
use crate::resolved_path::open_path_fd;
use nix::errno::Errno;
use protocol::confinement::Confinement;
use std::path::{Path, PathBuf};

impl Grants {
    /// Grants a place in the user's home. Tier A shows it as an overlay if the policy says so, the
    /// session has a home of its own, and the place is not granted for writing itself.
    pub(super) fn grant_tool_home(
        &mut self,
        rule: &GrantRule,
        path: &Path,
        wanted: &Confinement,
        means: GrantVia,
    ) -> Result<(), CageError> {
        let before = self.list.len();
        self.grant_path(rule, path, rule.absent, means)?;
        let (Some(all), Some(overlay), GrantVia::MountedRoot) =
            (&wanted.overlays, rule.overlay, means)
        else {
            return Ok(());
        };
        let real = match self.list.get(before) {
            Some(grant) if grant.is_dir => grant.path.clone(),
            Some(_) => return Ok(()),
            None if overlay == OverlayRule::Always && is_unoccupied(path) => path.to_owned(),
            None => return Ok(()),
        };
        let is_private =
            self.private_dirs().iter().any(|dir| real.starts_with(dir) && real != *dir);
        let is_shown = self.list.iter().any(|grant| grant.path == real && grant.overlay.is_some());
        if !is_private || is_shown || is_in_project(wanted, &real) {
            return Ok(());
        }
        let made = overlay_mounts::create_directory(&all.to_path(), &real).and_then(|directory| {
            let upper = directory.join(overlay_mounts::UPPER);
            Ok((directory, open_path_fd(&upper)?, upper))
        });
        match (made, self.list.get_mut(before)) {
            (Ok((directory, ..)), Some(grant)) => grant.overlay = Some(directory),
            // Where the kernel makes no overlay the upper side is all there is.
            (Ok((directory, place, upper)), None) => {
                self.empty_overlays.push(real.clone());
                self.list.push(PathGrant {
                    path: real,
                    host: upper,
                    access: Access::Build,
                    fd: place.into(),
                    is_dir: true,
                    fresh: None,
                    overlay: Some(directory),
                });
            }
            (Err(error), _) => self.overlay_failures.push(not_overlaid(&real, &error)),
        }
        Ok(())
    }

    /// Drops the overlay of each place that contains a covered path: a cover is mounted on the
    /// host's file. A writable grant within the place already shows the host's files, so its
    /// surroundings keep their overlay.
    pub(super) fn drop_overlays_with_covers(&mut self) {
        for covered in &self.covered {
            let around = self.list.iter_mut().filter(|grant| covered.starts_with(&grant.path));
            let mut around: Vec<_> = around.collect();
            around.sort_by_key(|grant| std::cmp::Reverse(grant.path.components().count()));
            for grant in around.into_iter().take_while(|grant| !grant.access.writes()) {
                if grant.overlay.take().is_some() {
                    let why = format!("{} is taken out of it", covered.display());
                    self.overlay_failures.push(not_overlaid(&grant.path, &why));
                }
            }
        }
    }

    /// Drops these overlays, which could not be mounted. Returns a sentence for each, and for those
    /// that could not be tried.
    pub(crate) fn without_overlays(&mut self, plain: &[(PathBuf, Errno)]) -> Vec<String> {
        for (place, errno) in plain {
            let overlaid = self.list.iter_mut().filter(|grant| grant.path == *place);
            overlaid.for_each(|grant| grant.overlay = None);
            if !self.empty_overlays.contains(place) {
                self.overlay_failures.push(not_overlaid(place, errno));
            }
        }
        std::mem::take(&mut self.overlay_failures)
    }

    /// Paths that are shown as an overlay, or would be if the user had a directory there.
    pub(crate) fn overlays(&self) -> Vec<PathBuf> {
        let is_one = |grant: &&PathGrant| {
            grant.overlay.is_some() || self.empty_overlays.contains(&grant.path)
        };
        self.list.iter().filter(is_one).map(|grant| grant.path.clone()).collect()
    }
}

/// True if the path does not exist and no link lies on the way to it.
fn is_unoccupied(path: &Path) -> bool {
    let there = path.ancestors().find(|folder| folder.symlink_metadata().is_ok());
    there.is_some_and(|folder| {
        folder != path && folder.canonicalize().is_ok_and(|real| real == folder)
    })
}

/// Why a place is shown as it is, read-only.
fn not_overlaid(place: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{} is read-only, for it cannot be shown as an overlay: {error}.", place.display())
}
