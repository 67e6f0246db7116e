//! Grants of directories that the call names itself: the project, added directories, the session's
//! own directories and the git directory of a linked worktree.

use super::grant_list::Grants;
use super::open_path::is_in_project;
use super::path_grant::GrantVia;
use crate::error::{CageError, CageStep};
use crate::policy::{Access, GrantRule, IfAbsent};
use crate::protected::LinkedGitDir;
use crate::resolved_path::ResolvedPath;
use crate::resolved_path::open_path_fd;
use protocol::confinement::{Confinement, FilePath, GitSettings};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

impl Grants {
    /// A directory without which the call makes no sense.
    pub(super) fn grant_required_dir(
        &mut self,
        rule: &GrantRule,
        path: &Path,
        which: &str,
        means: GrantVia,
    ) -> Result<(), CageError> {
        let before = self.list.len();
        // A command that can write around the directory may have put a link there.
        if let Some(name) = ResolvedPath::resolve(path)
            .and_then(|way| Some(way.first_redirect_in(&self.written.here)?.to_owned()))
        {
            let message = format!(
                "the {which} directory {} is reached by a link now, {}, which commands can write",
                path.display(),
                name.display()
            );
            let hint = "see where the link leads, and put the directory back in its place";
            return Err(CageError::new(CageStep::Grants, message).hint(hint));
        }
        self.grant_path(rule, path, IfAbsent::Named, means)?;
        match self.list.get(before) {
            Some(grant) if grant.is_dir => Ok(()),
            Some(_) => Err(CageError::new(
                CageStep::Grants,
                format!("the {which} directory {} is no directory", path.display()),
            )),
            None => Err(CageError::new(
                CageStep::Grants,
                format!("the {which} directory {} does not exist", path.display()),
            )
            .hint("end the session and resume it, which makes the directories of its own again")),
        }
    }

    /// A directory of the session, which tier A shows in place of one of the host's.
    pub(super) fn grant_private(
        &mut self,
        rule: &GrantRule,
        shown_at: PathBuf,
        kept_at: &Path,
        means: GrantVia,
    ) -> Result<(), CageError> {
        // The temporary directory is a private directory too, with a rule of its own.
        if !self.list.iter().any(|grant| grant.host == kept_at) {
            self.grant_required_dir(rule, kept_at, "private", means)?;
        }
        self.check_owner(kept_at)?;
        let grant = self.list.iter_mut().find(|grant| grant.host == kept_at);
        if let (Some(grant), GrantVia::MountedRoot) = (grant, means) {
            grant.path = shown_at;
        }
        Ok(())
    }

    /// Shows the caches where programs look for them by themselves, if that is in the session's home.
    pub(super) fn show_caches(&mut self, wanted: &Confinement, means: GrantVia) {
        let (Some(home), Some(caches), GrantVia::MountedRoot) =
            (&wanted.home, &wanted.caches, means)
        else {
            return;
        };
        let (home, caches) = (home.to_path(), caches.to_path());
        let shown_at = home.join(".cache");
        if !self.private_dirs().contains(&home) || is_in_project(wanted, &shown_at) {
            return;
        }
        if let Some(grant) = self.list.iter_mut().find(|grant| grant.host == caches) {
            grant.path = shown_at;
        }
    }

    /// That this user made the session's directory.
    pub(super) fn check_owner(&self, path: &Path) -> Result<(), CageError> {
        let grant = self.list.iter().find(|grant| grant.host == path);
        grant.map_or(Ok(()), |grant| check_owned_by_us(path, &grant.fd))
    }

    /// Grants an added directory. The broker judged it by its real path; if it is a link by now,
    /// the target was never judged.
    pub(super) fn grant_added(
        &mut self,
        rule: &GrantRule,
        path: &Path,
        means: GrantVia,
    ) -> Result<(), CageError> {
        let before = self.list.len();
        self.grant_path(rule, path, IfAbsent::Named, means)?;
        match self.list.get(before) {
            Some(grant) if grant.path != path => Err(CageError::new(
                CageStep::Grants,
                format!(
                    "the added directory {} is reached by a link now, to {}",
                    path.display(),
                    grant.path.display()
                ),
            )
            .hint("ask for the directory that it leads to")),
            Some(_) | None => Ok(()),
        }
    }

    /// The git folder that lies outside the project.
    pub(super) fn grant_git_dir(
        &mut self,
        rule: &GrantRule,
        linked: &LinkedGitDir,
        settings: GitSettings,
        means: GrantVia,
    ) -> Result<(), CageError> {
        // Hooks may lie in the working tree, too.
        let access = if rule.access.runs() { Access::Run } else { Access::Read };
        let read = GrantRule { access, except: &[], ..*rule };
        if let Some(tree) = &linked.tree {
            self.grant_path(&read, tree, IfAbsent::Usual, means)?;
        }
        match (means, settings) {
            (_, GitSettings::DirectoryKept) => {
                self.grant_path(&read, &linked.common, IfAbsent::Usual, means)
            }
            // Git writes its settings by a new file beside them.
            (GrantVia::MountedRoot, GitSettings::Kept | GitSettings::Writable)
            | (GrantVia::Landlock, GitSettings::Writable) => {
                self.grant_path(rule, &linked.common, IfAbsent::Usual, means)
            }
            (GrantVia::Landlock, GitSettings::Kept) => {
                self.grant_path(&read, &linked.common, IfAbsent::Usual, means)?;
                for part in linked.writable() {
                    self.grant_path(rule, &part, IfAbsent::Usual, means)?;
                }
                Ok(())
            }
        }
    }
}

/// The session's own directories, which may lie beneath a withheld directory.
pub(super) fn own_dirs(wanted: &Confinement) -> Vec<PathBuf> {
    let private = wanted.private_dirs().map(|(_, kept_at)| kept_at);
    let caches = wanted.caches.as_ref().map(FilePath::to_path);
    std::iter::once(wanted.temp.to_path()).chain(private).chain(caches).collect()
}

/// That this user made the session's private directories. In a user namespace all other people have one
/// number (`/proc/sys/kernel/overflowuid`), which may be this user's own: to be asked before it is made.
///
/// # Errors
/// `CageStep::Grants` where another user did.
pub(crate) fn check_private_dirs(wanted: &Confinement) -> Result<(), CageError> {
    let kept = wanted.private_dirs().map(|(_, kept_at)| kept_at);
    let found = kept.filter_map(|path| open_path_fd(&path).ok().map(|place| (path, place)));
    found.into_iter().try_for_each(|(path, place)| check_owned_by_us(&path, &place.into()))
}

/// Checks the owner. If a cleaner of `/tmp` removed the directory, another user may have created it
/// anew, and could read and change the session's files in it.
pub(super) fn check_owned_by_us(path: &Path, place: &OwnedFd) -> Result<(), CageError> {
    let found = nix::sys::stat::fstat(place)
        .map_err(|errno| CageError::os(CageStep::Grants, path.display(), errno))?;
    if found.st_uid == nix::unistd::geteuid().as_raw() {
        return Ok(());
    }
    let message = format!("the directory {} belongs to another user", path.display());
    let hint = "end the session and resume it: it gets a directory by another name";
    Err(CageError::new(CageStep::Grants, message).hint(hint))
}
