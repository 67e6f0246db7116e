//! The places of keys, with which the real path of every grant is compared once the place is opened. A
//! policy, a variable or a link may name any place; what counts is where it leads.

use crate::policy::GrantTarget;
use crate::resolved_path::{is_within, plain};
use nix::sys::stat::stat;
use protocol::confinement::{Confinement, FilePath};
use std::path::{Path, PathBuf};

/// Directories of the system that no place of a home leads to: passwords, processes, devices, sockets of
/// services. Policies grant parts of them by their own paths.
const OF_SYSTEM: [&str; 6] = ["/etc", "/proc", "/sys", "/dev", "/boot", "/run"];

/// Places of keys as one call sees them.
#[derive(Debug, Default)]
pub(crate) struct KeyPlaces {
    keys: Vec<PathBuf>,
    /// The project and the added directories, whose own keys are hidden or named.
    chosen: Vec<PathBuf>,
    /// The person's home.
    home: Option<PathBuf>,
}

/// A grant that may be compared: who names it, by which path, and where it leads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenedGrant<'a> {
    pub(crate) at: GrantTarget,
    pub(crate) named: &'a Path,
    pub(crate) real: &'a Path,
}

impl KeyPlaces {
    pub(crate) fn of(wanted: &Confinement) -> Self {
        let chosen = [&wanted.project].into_iter().chain(&wanted.added);
        Self {
            keys: wanted.keys.iter().map(|key| plain(&key.to_path())).collect(),
            chosen: chosen.map(FilePath::to_path).collect(),
            home: wanted.home.as_ref().map(FilePath::to_path),
        }
    }

    /// Adds the working tree around the project, whose own keys are hidden or named too.
    pub(crate) fn choose(&mut self, tree: PathBuf) {
        self.chosen.push(tree);
    }

    /// True for the home, a directory around it, and the root of all.
    pub(crate) fn holds_home(&self, real: &Path) -> bool {
        real.parent().is_none() || self.home.as_ref().is_some_and(|home| home.starts_with(real))
    }

    /// The place of keys for which a grant is left out: the grant lies in it, or contains it.
    ///
    /// A person chose the project, so its own keys are hidden or named instead. A path of the system
    /// loses the keys within it ([`Self::within`]), as by `except`. A path that a policy names in a
    /// directory of keys stays, if it leads to just that name.
    pub(crate) fn reached_by(&self, grant: OpenedGrant<'_>) -> Option<PathBuf> {
        let OpenedGrant { at, named, real } = grant;
        let compared = plain(real);
        let lies_in = |key: &&PathBuf| is_within(&compared, key);
        let holds = |key: &&PathBuf| is_within(key, &compared) && !self.is_chosen(key);
        let of_system = |at: &PathBuf| real.starts_with(at) || at.starts_with(real);
        match at {
            GrantTarget::Project
            | GrantTarget::Temp
            | GrantTarget::Private
            | GrantTarget::Caches => None,
            GrantTarget::Added => self.keys.iter().find(lies_in).cloned(),
            GrantTarget::Git => self.keys.iter().find(|key| lies_in(key) || holds(key)).cloned(),
            GrantTarget::Path(_) => {
                self.keys.iter().find(lies_in).filter(|_| !self.is_of_policy(grant)).cloned()
            }
            GrantTarget::Home(_) | GrantTarget::Variable { .. } => {
                let kept = matches!(at, GrantTarget::Home(_)) && self.is_of_policy(grant);
                let found = self.keys.iter().find(|key| (!kept && lies_in(key)) || holds(key));
                found
                    .cloned()
                    .or_else(|| OF_SYSTEM.map(PathBuf::from).into_iter().find(of_system))
                    // By another path, as a mount gives one: only a link leads there.
                    .or_else(|| (named != real && !kept).then(|| self.same_as(real)).flatten())
            }
        }
    }

    /// The keys within a path of the system.
    pub(crate) fn within(&self, grant: OpenedGrant<'_>) -> Vec<PathBuf> {
        let OpenedGrant { at, real, .. } = grant;
        let GrantTarget::Path(_) = at else { return Vec::new() };
        let around = plain(real);
        let within = self.keys.iter().filter(|key| is_within(key, &around) && **key != around);
        within.cloned().collect()
    }

    /// Keys in the project or an added directory, and keys that contain the project.
    pub(crate) fn of_project(&self) -> impl Iterator<Item = &PathBuf> {
        let around = |key: &PathBuf| self.chosen.first().is_some_and(|dir| dir.starts_with(key));
        self.keys.iter().filter(move |key| self.is_chosen(key) || around(key))
    }

    fn is_chosen(&self, key: &Path) -> bool {
        self.chosen.iter().any(|dir| key.starts_with(dir))
    }

    /// True if the policy names a path in a directory of keys, and no link within that leads elsewhere.
    fn is_of_policy(&self, grant: OpenedGrant<'_>) -> bool {
        let OpenedGrant { named, real, .. } = grant;
        self.keys.iter().any(|key| {
            let Ok(below) = named.strip_prefix(key) else { return false };
            key.canonicalize().is_ok_and(|key| key.join(below) == *real)
        })
    }

    /// The key that is the same directory or file as the grant, one around it, or one within it.
    fn same_as(&self, real: &Path) -> Option<PathBuf> {
        let identity = |path: &Path| stat(path).ok().map(|found| (found.st_dev, found.st_ino));
        let around: Vec<_> = real.ancestors().filter_map(identity).collect();
        let own = identity(real)?;
        let mut outside = self.keys.iter().filter(|key| !self.is_chosen(key));
        let is_same = |key: &&PathBuf| {
            identity(key).is_some_and(|key| around.contains(&key))
                || key.ancestors().any(|above| identity(above) == Some(own))
        };
        outside.find(is_same).cloned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn places(keys: &[&Path], chosen: &[&Path]) -> KeyPlaces {
        let owned = |paths: &[&Path]| paths.iter().map(|path| path.to_path_buf()).collect();
        KeyPlaces { keys: owned(keys), chosen: owned(chosen), home: None }
    }

    #[test]
    fn a_place_is_compared_by_where_it_leads_in_both_directions() {
        let keys = ["/h/ann/.ssh", "/h/bob/.aws", "/p/.ssh", "/opt/git/.ssh", "/dev/null"];
        let keys: Vec<_> = keys.iter().map(Path::new).collect();
        let places = places(&keys, &[Path::new("/p")]);
        let home = GrantTarget::Home(".nvm");
        let variable = GrantTarget::Variable { name: "PATH", rest: "" };
        for (at, real, reached) in [
            (home, "/h/ann/.ssh", Some("/h/ann/.ssh")),
            (home, "/h/ann/.ssh/sub", Some("/h/ann/.ssh")),
            (home, "/h/ann", Some("/h/ann/.ssh")),
            (home, "/h/bob", Some("/h/bob/.aws")),
            (variable, "/h/bob/.aws/cli", Some("/h/bob/.aws")),
            (variable, "/etc/ssl", Some("/etc")),
            (home, "/run/secrets", Some("/run")),
            (home, "/h/ann/.nvm", None),
            (home, "/h/ann/.ssh2", None),
            (home, "/opt/nvm", None),
            // The project's own keys are hidden or named, and so what lies around it stays.
            (home, "/p", None),
            (home, "/p/.ssh", Some("/p/.ssh")),
            (GrantTarget::Project, "/h/ann", None),
            (GrantTarget::Added, "/h/ann/.ssh/x", Some("/h/ann/.ssh")),
            (GrantTarget::Added, "/p", None),
            (GrantTarget::Git, "/h/ann", Some("/h/ann/.ssh")),
            // A path of the system loses what lies within.
            (GrantTarget::Path("/opt"), "/opt", None),
            (GrantTarget::Path("/opt"), "/opt/git/.ssh", Some("/opt/git/.ssh")),
        ] {
            let grant = OpenedGrant { at, named: Path::new("/h/ann/.nvm"), real: Path::new(real) };
            let found = places.reached_by(grant);
            assert_eq!(found.as_deref(), reached.map(Path::new), "{at:?} {real}");
        }
        let opt = OpenedGrant {
            at: GrantTarget::Path("/opt"),
            named: Path::new("/opt"),
            real: Path::new("/opt"),
        };
        assert_eq!(places.within(opt), [PathBuf::from("/opt/git/.ssh")]);
        let null = Path::new("/dev/null");
        let null = OpenedGrant { at: GrantTarget::Path("/dev/null"), named: null, real: null };
        assert_eq!(places.reached_by(null), None, "a variable names it in place of a file of keys");
        assert_eq!(places.within(null), [""; 0].map(PathBuf::from));
    }

    #[test]
    fn what_a_policy_names_in_a_directory_of_keys_stays_where_it_leads_to_that_name() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let at = |name: &str| base.join(name);
        for made in ["dot/git", ".ssh"] {
            std::fs::create_dir_all(at(made)).unwrap();
        }
        for file in ["dot/git/ignore", "dot/git/credentials", ".ssh/id"] {
            std::fs::write(at(file), "").unwrap();
        }
        std::os::unix::fs::symlink(at("dot/git"), at("git")).unwrap();
        let (named, target) = (at("git/ignore"), GrantTarget::Home("git/ignore"));
        let [linked, real, ssh] = [at("git"), at("dot/git"), at(".ssh")];
        let places = places(&[&linked, &real, &ssh], &[]);
        for (leads_to, stays) in
            [("dot/git/ignore", true), ("dot/git/credentials", false), (".ssh/id", false)]
        {
            let grant = OpenedGrant { at: target, named: &named, real: &at(leads_to) };
            assert_eq!(places.reached_by(grant).is_none(), stays, "{leads_to}");
        }
    }
}
