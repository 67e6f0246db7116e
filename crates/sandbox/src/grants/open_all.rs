//! Opens everything that a confinement policy grants to a call, rule by rule.

use super::grant_list::Grants;
use super::grant_list::WrittenPlaces;
use super::key_places::KeyPlaces;
use super::open_path::{from_variable, is_in_project};
use super::path_grant::GrantVia;
use super::protection::ProtectionSearch;
use super::session_dirs::own_dirs;
use crate::error::CageError;
use crate::policy::{ConfinementPolicy, FreshMount, GrantTarget, RuleCondition};
use crate::protected::LinkedGitDir;
use protocol::confinement::{Confinement, FilePath, Network};
use std::path::Path;

impl Grants {
    /// Opens everything that `policy` grants to this call, and finds the protected paths in it.
    ///
    /// # Errors
    /// `CageStep::Grants` where the project or the temporary directory is missing, or where a grant
    /// would reach a withheld directory.
    pub(crate) fn open_all(
        wanted: &Confinement,
        policy: &ConfinementPolicy,
        means: GrantVia,
    ) -> Result<Self, CageError> {
        let mut grants = Self::open_places(wanted, policy, means)?;
        let writable = grants.list.iter().filter(|grant| grant.access.writes());
        // A fresh mount of tier A is empty.
        let writable =
            writable.filter(|grant| means == GrantVia::Landlock || grant.fresh.is_none());
        let places = (writable.map(|grant| grant.host.clone()).collect(), own_dirs(wanted));
        grants.search = ProtectionSearch::new(wanted, policy, grants.linked.clone(), places, means);
        if let Some(search) = &grants.search {
            let (protection, baseline) = search.run()?;
            (grants.protection, grants.baseline) = (protection, Some(baseline));
        }
        Ok(grants)
    }

    /// Opens everything that `policy` grants to this call.
    ///
    /// # Errors
    /// As [`Grants::open_all`].
    pub(crate) fn open_places(
        wanted: &Confinement,
        policy: &ConfinementPolicy,
        means: GrantVia,
    ) -> Result<Self, CageError> {
        let home = wanted.home.as_ref().map(|home| home.to_path());
        let mut grants = Self {
            written: WrittenPlaces {
                here: wanted.written(),
                elsewhere: wanted.written_elsewhere.iter().map(FilePath::to_path).collect(),
            },
            key_places: KeyPlaces::of(wanted),
            ..Self::default()
        };
        let wanted_tree = wanted.repository.as_ref().map(FilePath::to_path);
        grants.linked = LinkedGitDir::of(&wanted.project.to_path(), home.as_deref())
            .filter(|linked| linked.tree.is_none() || linked.tree == wanted_tree);
        if let Some(tree) = grants.linked.as_ref().and_then(|linked| linked.tree.clone()) {
            grants.key_places.choose(tree);
        }
        for rule in policy.grants {
            if rule.when == RuleCondition::Network && wanted.network == Network::Off {
                continue;
            }
            // Without a fresh mount, `/dev/pts` holds the user's own terminals too. A command could
            // read the user's input there and write to the screen.
            if means == GrantVia::Landlock && rule.fresh == Some(FreshMount::Pts) {
                continue;
            }
            match rule.at {
                GrantTarget::Project => {
                    check_is_real(&wanted.project.to_path())?;
                    grants.grant_required_dir(rule, &wanted.project.to_path(), "project", means)?
                }
                GrantTarget::Temp => {
                    grants.grant_required_dir(rule, &wanted.temp.to_path(), "temporary", means)?;
                    grants.check_owner(&wanted.temp.to_path())?;
                }
                GrantTarget::Private => {
                    for (shown_at, kept_at) in wanted.private_dirs() {
                        grants.grant_private(rule, shown_at, &kept_at, means)?;
                    }
                }
                GrantTarget::Caches => {
                    if let Some(caches) = &wanted.caches {
                        grants.grant_required_dir(rule, &caches.to_path(), "caches", means)?;
                        grants.show_caches(wanted, means);
                    }
                }
                GrantTarget::Added => {
                    for added in &wanted.added {
                        grants.grant_added(rule, &added.to_path(), means)?;
                    }
                }
                GrantTarget::Git => {
                    if let Some(linked) = grants.linked.clone() {
                        grants.grant_git_dir(rule, &linked, wanted.git, means)?;
                    }
                }
                GrantTarget::Path(path) => {
                    grants.grant_path(rule, Path::new(path), rule.absent, means)?
                }
                GrantTarget::Home(rest) => {
                    if let Some(home) = &home {
                        grants.grant_tool_home(rule, &home.join(rest), wanted, means)?;
                    }
                }
                GrantTarget::Variable { name, rest } => {
                    let named = wanted.tool_homes.iter().filter(|(home, _)| home == name);
                    for (_, base) in named {
                        let path = from_variable(Some(base.to_path()), rest, home.as_deref());
                        // A command could put a symbolic link there, and the grant would open the
                        // link's target.
                        if let Some(path) = path.filter(|path| !is_in_project(wanted, path)) {
                            grants.grant_tool_home(rule, &path, wanted, means)?;
                        }
                    }
                }
            }
        }
        if let Some(named) = &wanted.named {
            grants.link_project(&wanted.project.to_path(), &named.to_path());
        }
        grants.withhold_own_dirs(wanted, means)?;
        grants.hide_keys(wanted, means);
        grants.drop_overlays_with_covers();
        Ok(grants)
    }
}

/// The supervisor names a project by its real path. A call of another session may since have put a link there,
/// which would grant any directory.
fn check_is_real(project: &Path) -> Result<(), CageError> {
    match project.canonicalize() {
        Ok(real) if real != project => {
            let (project, real) = (project.display(), real.display());
            let text = format!("a link leads from the project directory {project} to {real}");
            Err(CageError::new(crate::CageStep::Grants, text)
                .hint("put the directory back in its place"))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_project_that_became_a_link_is_not_granted() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("project")).unwrap();
        check_is_real(&real.join("project")).unwrap();
        std::os::unix::fs::symlink(&real, real.join("link")).unwrap();
        let refused = check_is_real(&real.join("link")).unwrap_err().to_string();
        assert!(refused.contains("leads from the project directory"), "{refused}");
    }
}
