//! From a policy and a call's wishes to real places, each opened once. For `cage` only.

use crate::error::{CageError, CageStep};
use crate::exclusions::{
    RemainingEntry, entries_except, expand_pattern, is_harmless_maven_settings, is_readable,
};
use crate::notify::GitConfigFile;
use crate::overlay;
use crate::policy::{
    Access, ConfinementPolicy, FreshMount, GrantRule, GrantTarget, IfAbsent, OverlayRule,
    RuleCondition,
};
use crate::protected::{self, Baseline, LinkedGitDir, ProtectedKind, ProtectionScope};
use crate::resolved_path::{PathLink, ResolvedPath};
use crate::sys;
use nix::errno::Errno;
use protocol::confinement::{Confinement, FilePath, GitSettings, Network};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

/// How the grants will be enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrantVia {
    /// By Landlock alone: what lies beneath a grant cannot be taken out of it again.
    Landlock,
    /// By Landlock and a root of our own, in which places can be covered.
    MountedRoot,
}

/// A place that was found.
#[derive(Debug)]
pub(crate) struct PathGrant {
    /// Where, links resolved.
    pub path: PathBuf,
    /// Where it is on the host; elsewhere than `path` for a private directory alone.
    pub host: PathBuf,
    /// What may be done.
    pub access: Access,
    /// The place itself, opened with `O_PATH`.
    pub fd: OwnedFd,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// What tier A mounts there instead.
    pub fresh: Option<FreshMount>,
    /// The directory of the overlay that tier A shows there: commands change a copy.
    pub overlay: Option<PathBuf>,
}

impl PathGrant {
    /// What commands may do at `path`. On the host nothing more than `access` is granted.
    pub(crate) fn shown(&self) -> Access {
        if self.overlay.is_some() { Access::Build } else { self.access }
    }
}

/// Everything that a cage grants in the file system.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    pub list: Vec<PathGrant>,
    /// Of use to `Means::Root` only.
    pub links: Vec<PathLink>,
    /// Granted, but not there, or reached by a name that calls can write.
    pub missing: Vec<String>,
    /// To be covered by something empty; for `Means::Root` only.
    pub covered: Vec<PathBuf>,
    /// Keys among those.
    pub hidden: Vec<PathBuf>,
    /// Keys in the project that were not taken out of it.
    pub keys: Vec<PathBuf>,
    /// To be read-only though what surrounds it is writable; for `Means::Root` only.
    pub protected: Vec<PathBuf>,
    /// Those of them that git may write anew where the change is harmless; for `Means::Root` only.
    pub git_configs: Vec<GitConfigFile>,
    /// Protected names that this command may change: they may not be moved away together with their
    /// folder all the same. For `Means::Root` only.
    pub writable_protected: Vec<PathBuf>,
    /// What was at the protected names; absent where a policy has none.
    pub baseline: Option<Baseline>,
    /// Why places are not shown by an overlay that should be, a sentence each.
    pub overlay_failures: Vec<String>,
    /// Such of which the person has none: shown is what the project's commands made.
    pub empty_overlays: Vec<PathBuf>,
    /// What calls can write on the host: names in it lead to no grant.
    writable_dirs: Vec<PathBuf>,
    /// The person's home.
    home: Option<PathBuf>,
}

/// What a path was found to be.
enum OpenedPath {
    /// The place itself, opened, and its real path.
    Opened(File, PathBuf),
    /// A place in what calls are given as a whole, which a link of the person's leads to: this call may do
    /// there what it may do around it.
    InWritableDir(PathBuf),
    /// Nothing that may be granted: why.
    Refused(String),
}

impl Grants {
    /// Opens what `policy` grants to this call.
    ///
    /// # Errors
    /// `Step::Grants` where the project or the temporary directory is missing, or where a grant
    /// would reach what is withheld.
    pub(crate) fn open_all(
        wanted: &Confinement,
        policy: &ConfinementPolicy,
        means: GrantVia,
    ) -> Result<Self, CageError> {
        let home = wanted.home.as_ref().map(|home| home.to_path());
        let (written, of_person) = (wanted.written(), home.clone());
        let mut grants = Self { writable_dirs: written, home: of_person, ..Self::default() };
        let linked = LinkedGitDir::of(&wanted.project.to_path(), home.as_deref());
        for rule in policy.grants {
            if rule.when == RuleCondition::Network && wanted.network == Network::Off {
                continue;
            }
            // The person's own terminals are in the same place: whoever may open those of its own
            // there could read what the person types and draw on their screen.
            if means == GrantVia::Landlock && rule.fresh == Some(FreshMount::Pts) {
                continue;
            }
            match rule.at {
                GrantTarget::Project => {
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
                    if let Some(linked) = &linked {
                        grants.grant_git_dir(rule, linked, wanted.git, means)?;
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
                        // Where a command can put a link it would open what that leads to.
                        if let Some(path) = path.filter(|path| !is_in_project(wanted, path)) {
                            grants.grant_tool_home(rule, &path, wanted, means)?;
                        }
                    }
                }
            }
        }
        grants.withhold_own_dirs(wanted, means)?;
        grants.hide_keys(wanted, means);
        grants.drop_overlays_with_covers();
        grants.protect(wanted, linked, policy, means)?;
        Ok(grants)
    }

    /// Where the root of tier A shows something else than the host has there.
    pub(crate) fn private_dirs(&self) -> Vec<PathBuf> {
        let shown = |grant: &&PathGrant| grant.host != grant.path && grant.overlay.is_none();
        let private = self.list.iter().filter(shown);
        private.map(|grant| grant.path.clone()).collect()
    }

    /// Whether only a mount keeps the programs of this place from being started: the nearest place around
    /// it from where they are is a private directory, and Landlock takes the rights of what is around a
    /// mount together with its own. Within a place of the host it is a part of that, as in tier B.
    pub(crate) fn is_no_exec(&self, place: &PathGrant) -> bool {
        let around = self.list.iter().filter(|grant| place.path.starts_with(&grant.path));
        let running = around.filter(|grant| grant.shown().runs());
        let nearest = running.max_by_key(|grant| grant.path.components().count());
        nearest.is_some_and(|grant| grant.host != grant.path && grant.overlay.is_none())
    }

    /// A directory without which the call makes no sense.
    fn grant_required_dir(
        &mut self,
        rule: &GrantRule,
        path: &Path,
        which: &str,
        means: GrantVia,
    ) -> Result<(), CageError> {
        let before = self.list.len();
        // A command that can write what lies around it may have put a link there.
        if let Some(name) = ResolvedPath::resolve(path)
            .and_then(|way| Some(way.first_redirect_in(&self.writable_dirs)?.to_owned()))
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
    fn grant_private(
        &mut self,
        rule: &GrantRule,
        shown_at: PathBuf,
        kept_at: &Path,
        means: GrantVia,
    ) -> Result<(), CageError> {
        // The temporary directory is one of them, and granted by its own line.
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

    /// A place of the person's, by an overlay where the policy says so, the home is the session's and
    /// nobody granted the place itself for writing.
    fn grant_tool_home(
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
        let made = overlay::create_directory(&all.to_path(), &real).and_then(|directory| {
            let upper = directory.join(overlay::UPPER);
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

    /// Takes the overlay from each place in which something is covered: what covers is mounted on what the
    /// host has there. What a writable place within shows is the host's all the same.
    fn drop_overlays_with_covers(&mut self) {
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

    /// Takes back that these are shown as overlays, and says why for each and for those that could not
    /// be tried.
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

    /// What is shown as an overlay, or would be if the person had something there.
    pub(crate) fn overlays(&self) -> Vec<PathBuf> {
        let is_one = |grant: &&PathGrant| {
            grant.overlay.is_some() || self.empty_overlays.contains(&grant.path)
        };
        self.list.iter().filter(is_one).map(|grant| grant.path.clone()).collect()
    }

    /// Shows the caches where programs look for them by themselves, if that is in the session's home.
    fn show_caches(&mut self, wanted: &Confinement, means: GrantVia) {
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
    fn check_owner(&self, path: &Path) -> Result<(), CageError> {
        let grant = self.list.iter().find(|grant| grant.host == path);
        grant.map_or(Ok(()), |grant| check_owned_by_us(path, &grant.fd))
    }

    /// A directory that was judged by its real path: where a link leads now, nobody looked.
    fn grant_added(
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
    fn grant_git_dir(
        &mut self,
        rule: &GrantRule,
        linked: &LinkedGitDir,
        settings: GitSettings,
        means: GrantVia,
    ) -> Result<(), CageError> {
        match (means, settings) {
            // Git writes its settings by a new file beside them.
            (GrantVia::MountedRoot, _) | (GrantVia::Landlock, GitSettings::Writable) => {
                self.grant_path(rule, &linked.common, IfAbsent::Usual, means)
            }
            (GrantVia::Landlock, GitSettings::Kept) => {
                let read = GrantRule { access: Access::Read, except: &[], ..*rule };
                self.grant_path(&read, &linked.common, IfAbsent::Usual, means)?;
                for part in linked.writable() {
                    self.grant_path(rule, &part, IfAbsent::Usual, means)?;
                }
                Ok(())
            }
        }
    }

    /// One place; a missing one is noted as `absent` says.
    fn grant_path(
        &mut self,
        rule: &GrantRule,
        path: &Path,
        absent: IfAbsent,
        means: GrantVia,
    ) -> Result<(), CageError> {
        let (place, real) = match self.open_noting_links(rule, path) {
            Ok(OpenedPath::Opened(place, real)) => (place, real),
            Ok(OpenedPath::InWritableDir(real)) => {
                self.cover_secrets(rule, &real, means);
                return Ok(());
            }
            Ok(OpenedPath::Refused(why)) => {
                self.missing.push(format!("{}: left out, for {why}", path.display()));
                return Ok(());
            }
            Err(error) => {
                let usual = absent == IfAbsent::Usual
                    && matches!(
                        error.raw_os_error(),
                        Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES)
                    );
                if !usual {
                    self.missing.push(format!("{}: {error}", path.display()));
                }
                return Ok(());
            }
        };
        if real.parent().is_none() {
            // Everything would be in it, our own directories too: nothing can be mounted over a
            // root that the whole host is bound onto.
            return Err(CageError::new(
                CageStep::Grants,
                "the root directory would be granted, and with it everything",
            )
            .hint("work in a directory below it"));
        }
        let folder = place
            .metadata()
            .map_err(|error| CageError::os(CageStep::Grants, path.display(), error))?
            .is_dir();
        let secret = excluded_in(rule, &real);
        match means {
            GrantVia::Landlock => {
                let secret: Vec<&Path> = secret.iter().map(PathBuf::as_path).collect();
                if !secret.is_empty() {
                    for piece in entries_except(path, &secret)? {
                        let RemainingEntry { path, place, folder } = piece;
                        let access = rule.access;
                        let host = path.clone();
                        self.list.push(PathGrant {
                            path,
                            host,
                            access,
                            fd: place,
                            is_dir: folder,
                            fresh: None,
                            overlay: None,
                        });
                    }
                    return Ok(());
                }
            }
            GrantVia::MountedRoot => self.covered.extend(secret.iter().map(|name| real.join(name))),
        }
        self.list.push(PathGrant {
            host: real.clone(),
            path: real,
            access: rule.access,
            fd: place.into(),
            is_dir: folder,
            fresh: rule.fresh,
            overlay: None,
        });
        Ok(())
    }

    /// What is secret in a place of which no more is granted than around it.
    fn cover_secrets(&mut self, rule: &GrantRule, real: &Path, means: GrantVia) {
        let is_shown = self.list.iter().any(|grant| real.starts_with(&grant.path));
        if means == GrantVia::MountedRoot && is_shown {
            self.covered.extend(excluded_in(rule, real).iter().map(|name| real.join(name)));
        }
    }

    /// Opens a place; where links lead to it, judges and notes them.
    fn open_noting_links(&mut self, rule: &GrantRule, named: &Path) -> io::Result<OpenedPath> {
        // One call for the usual case, in which there is no link at all.
        match sys::open_without_links(named) {
            Ok(place) => return Ok(OpenedPath::Opened(place.into(), named.to_owned())),
            // ELOOP: there is a link. ENOSYS: a kernel before 5.6, or a filter around us.
            Err(Errno::ELOOP | Errno::ENOSYS | Errno::EPERM) => {}
            Err(errno) => return Err(errno.into()),
        }
        let way = ResolvedPath::resolve(named).ok_or(Errno::ELOOP)?;
        // An added directory is given by its real path or not at all.
        let name =
            way.first_redirect_in(&self.writable_dirs).filter(|_| rule.at != GrantTarget::Added);
        if let Some(name) = name {
            let why =
                format!("{}, on the way to it, is a name that commands can write", name.display());
            return Ok(OpenedPath::Refused(why));
        }
        let is_led = !way.links.is_empty();
        let is_person_s = matches!(
            rule.at,
            GrantTarget::Path(_) | GrantTarget::Home(_) | GrantTarget::Variable { .. }
        );
        let in_own = is_led && is_person_s && way.ends_in(&self.writable_dirs);
        let found = if in_own {
            way.end.symlink_metadata()?;
            OpenedPath::InWritableDir(way.end)
        } else {
            let place = open_path_fd(named)?;
            let real = std::fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd()))?;
            if real != way.end {
                let why = "a link on the way to it changed meanwhile";
                return Ok(OpenedPath::Refused(why.to_owned()));
            }
            let of_home = matches!(rule.at, GrantTarget::Home(_) | GrantTarget::Variable { .. });
            let holds_home = self.home.as_ref().is_some_and(|home| home.starts_with(&real));
            if is_led && of_home && (holds_home || real.parent().is_none()) {
                let why = format!("it leads to {}, where much more lies", real.display());
                return Ok(OpenedPath::Refused(why));
            }
            OpenedPath::Opened(place, real)
        };
        for link in way.links {
            if !self.links.contains(&link) {
                self.links.push(link);
            }
        }
        Ok(found)
    }

    /// Takes keys out of the project, where something can be mounted over them; what it cannot take out
    /// is noted. What is granted by its own name stays: its policy takes out what is secret in it.
    fn hide_keys(&mut self, wanted: &Confinement, means: GrantVia) {
        let project = wanted.project.to_path();
        if !self.list.iter().any(|grant| grant.path == project) {
            return;
        }
        // A link holds no key: where it leads is a place of its own, and named by that.
        let is_there = |key: &PathBuf| key.canonicalize().is_ok_and(|real| real == *key);
        for key in wanted.keys.iter().map(FilePath::to_path).filter(is_there) {
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
    fn withhold_own_dirs(
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
                if own.contains(place) && place.starts_with(&withheld) && *place != withheld {
                    continue;
                }
                if place.starts_with(&withheld) {
                    return Err(withheld_error(place, &withheld));
                }
                if withheld.starts_with(place) {
                    match (means, withheld.exists()) {
                        (GrantVia::MountedRoot, true) => self.covered.push(withheld.clone()),
                        // What is not there cannot be read; nor covered, so that it could be made.
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

    /// Finds the protected names, and looks at those that no mount will hold.
    fn protect(
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
        // What tier A mounts afresh is empty.
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
            // What lies in a private directory has another path in the root.
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

/// Settings of git that a mount holds. Beside hooks they can be replaced: in that directory, which is read-only too,
/// new ones are made ready. Without hooks they are kept all the same, so that nobody else replaces them.
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

/// What a rule takes out of a place, as paths within it. What this user cannot read needs no cover: the
/// kernel refuses it by itself.
fn excluded_in(rule: &GrantRule, real: &Path) -> Vec<PathBuf> {
    let secret = rule.except.iter().flat_map(|name| expand_pattern(real, name));
    let secret = secret.filter(|name| {
        is_readable(&real.join(name)) && !is_harmless_maven_settings(&real.join(name))
    });
    // Nothing is mounted on a link; what it leads to elsewhere is granted there or is not.
    let secret = secret.filter_map(|name| {
        let at = real.join(name);
        Some(at.canonicalize().unwrap_or(at).strip_prefix(real).ok()?.to_owned())
    });
    secret.collect()
}

/// The session's own directories, which may lie beneath one that is withheld.
fn own_dirs(wanted: &Confinement) -> Vec<PathBuf> {
    let private = wanted.private_dirs().map(|(_, kept_at)| kept_at);
    let caches = wanted.caches.as_ref().map(FilePath::to_path);
    std::iter::once(wanted.temp.to_path()).chain(private).chain(caches).collect()
}

/// That this user made the session's private directories. In a user namespace all other people have one
/// number (`/proc/sys/kernel/overflowuid`), which may be this user's own: to be asked before it is made.
///
/// # Errors
/// `Step::Grants` where another user did.
pub(crate) fn check_private_dirs(wanted: &Confinement) -> Result<(), CageError> {
    let kept = wanted.private_dirs().map(|(_, kept_at)| kept_at);
    let found = kept.filter_map(|path| open_path_fd(&path).ok().map(|place| (path, place)));
    found.into_iter().try_for_each(|(path, place)| check_owned_by_us(&path, &place.into()))
}

/// What a cleaner of `/tmp` took away another user may have made again, and would read and change what
/// the session keeps there.
fn check_owned_by_us(path: &Path, place: &OwnedFd) -> Result<(), CageError> {
    let found = nix::sys::stat::fstat(place)
        .map_err(|errno| CageError::os(CageStep::Grants, path.display(), errno))?;
    if found.st_uid == nix::unistd::geteuid().as_raw() {
        return Ok(());
    }
    let message = format!("the directory {} belongs to another user", path.display());
    let hint = "end the session and resume it: it gets a directory by another name";
    Err(CageError::new(CageStep::Grants, message).hint(hint))
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

/// Opens a place without reading it.
pub(crate) fn open_path_fd(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_PATH).open(path)
}

/// Whether a place lies in what the call is given as a whole.
fn is_in_project(wanted: &Confinement, path: &Path) -> bool {
    let own = [&wanted.project].into_iter().chain(&wanted.added);
    own.map(FilePath::to_path).any(|own| path.starts_with(own))
}

/// Whether nothing is at this path, and no link on the way to it.
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

/// The place that a variable names, unless it would open the whole home or the whole system.
pub(crate) fn from_variable(
    base: Option<PathBuf>,
    rest: &str,
    home: Option<&Path>,
) -> Option<PathBuf> {
    let base = base?;
    let climbs = base.components().any(|part| matches!(part, Component::ParentDir));
    // The home is a real path, and a variable may name it by a link.
    let real = base.canonicalize().unwrap_or_else(|_| base.clone());
    let whole = [&base, &real]
        .iter()
        .any(|base| base.parent().is_none() || home.is_some_and(|home| home.starts_with(base)));
    if !base.is_absolute() || climbs || whole {
        return None;
    }
    Some(if rest.is_empty() { base } else { base.join(rest) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_private_directory_around_a_place_starts_nothing_in_it() {
        use Access::{Build, Read, Run, Write};
        let grants = |list: &[(&str, Access)]| Grants {
            list: list
                .iter()
                .map(|(path, access)| PathGrant {
                    // Private ones are written with a slash at the end.
                    path: path.trim_end_matches('/').into(),
                    host: if path.ends_with('/') { "/state".into() } else { path.into() },
                    access: *access,
                    fd: open_path_fd(Path::new("/")).unwrap().into(),
                    is_dir: true,
                    fresh: None,
                    overlay: None,
                })
                .collect(),
            ..Grants::default()
        };
        for (around, place, inert) in [
            (&[("/home/a/", Build)][..], ("/home/a/x", Read), true),
            (&[("/home/a/", Build)], ("/home/a/x", Run), false),
            (&[("/home/a/", Build)], ("/home/b", Read), false),
            (&[("/home/a/", Write)], ("/home/a/x", Read), false),
            (&[("/home/a", Build)], ("/home/a/x", Read), false),
            (&[("/home/a/", Build), ("/home/a/p", Build)], ("/home/a/p/x", Read), false),
            (&[("/home/a/", Build), ("/home/a/p", Read)], ("/home/a/p/x", Read), true),
            (&[("/home", Run), ("/home/a/", Build)], ("/home/a/x", Read), true),
            (&[("/tmp/", Build), ("/tmp/a/", Write)], ("/tmp/a/x", Read), true),
        ] {
            let grants = grants(&[around, &[place]].concat());
            let place = grants.list.last().unwrap();
            assert_eq!(grants.is_no_exec(place), inert, "{:?} in {around:?}", place.path);
        }
    }

    #[test]
    fn a_variable_never_opens_the_whole_home() {
        let home = Path::new("/home/ann");
        let from = |value: &str, rest: &str| from_variable(Some(value.into()), rest, Some(home));
        assert_eq!(from("/home/ann", ""), None);
        assert_eq!(from("/home", "bin"), None);
        assert_eq!(from("/", "bin"), None);
        assert_eq!(from("relative", "bin"), None);
        assert_eq!(from("/home/ann/../ann", ""), None);
        assert_eq!(from("/opt/cargo", "bin"), Some("/opt/cargo/bin".into()));
        assert_eq!(from("/home/ann/rust", ""), Some("/home/ann/rust".into()));
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("data");
        let link = dir.path().join("ann");
        std::fs::create_dir_all(home.join("go")).unwrap();
        std::os::unix::fs::symlink(&home, &link).unwrap();
        let linked = |name: &str| from_variable(Some(link.join(name)), "", Some(&home));
        assert_eq!(linked(""), None);
        assert_eq!(linked("go"), Some(link.join("go")));
    }
}
