//! Paths where programs keep keys: below homes, and where variables of the client point. These are
//! paths only; the disk is read only to list homes, the files of other users, and links. Used for the
//! directories that no call is given, and by `doctor`.

use std::collections::VecDeque;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Below a home: files and directories in which programs keep keys or sign-ins.
const IN_HOME: [&str; 20] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".cargo",
    ".password-store",
    ".mozilla",
    ".thunderbird",
    ".terraform.d",
    ".vault-token",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".claude",
    ".codex",
    ".gemini",
];
/// Below `~/.config`, or where it was moved to.
const IN_CONFIG: [&str; 7] =
    ["gcloud", "gh", "git", "op", "google-chrome", "chromium", "containers"];
/// Below `~/.local/share`, or where it was moved to.
const IN_DATA: [&str; 2] = ["keyrings", "kwalletd"];
/// In a home of cargo.
const CARGO_KEYS: [&str; 2] = ["credentials.toml", "credentials"];
/// The same in a directory that is no home, such as a project. Of a directory where projects keep settings of
/// their own, these are the files with keys; `.npmrc` and `.config/git` are settings of projects.
const IN_ANY_DIRECTORY: [&str; 25] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube/config",
    ".docker/config.json",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".password-store",
    ".mozilla",
    ".thunderbird",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".netrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".config/gcloud",
    ".config/gh/hosts.yml",
    ".config/op",
    ".local/share/keyrings",
    ".local/share/kwalletd",
];

/// The same in directories that have more than keys in them, where only homes have them.
const ONLY_IN_HOME: [&str; 2] = ["git/credentials", "containers/auth.json"];

/// Links within a directory of keys are followed to this depth, and among so many names of each.
const LINK_LEVELS: usize = 2;
const LINK_NAMES: usize = 1_000;
/// Of the system: no person keeps keys there.
const NO_KEYS: [&str; 12] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/dev", "/proc", "/sys", "/run",
    "/nix",
];

/// The list of accounts, with the homes of other users.
const ACCOUNTS: &str = "/etc/passwd";

/// The list of mounts, and the file system types that this machine serves itself.
const MOUNTS: &str = "/proc/self/mountinfo";
const LOCAL: [&str; 11] =
    ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "tmpfs", "overlay", "jfs"];

/// Variables that name places where programs keep keys; the one of `KEY_LISTS` is a list, like
/// `PATH`. Commands get none of them except cargo's.
const KEY_PLACES: [&str; 19] = [
    "GNUPGHOME",
    "DOCKER_CONFIG",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "CARGO_HOME",
    "NPM_CONFIG_USERCONFIG",
    "npm_config_userconfig",
    "GH_CONFIG_DIR",
    "AZURE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "PASSWORD_STORE_DIR",
    "PGPASSFILE",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "SSH_AUTH_SOCK",
    "NETRC",
    "KRB5CCNAME",
    "RCLONE_CONFIG",
];
const KEY_LISTS: [&str; 1] = ["KUBECONFIG"];

/// True if the variable of this name points to keys.
#[must_use]
pub fn names_credential_path(name: &str) -> bool {
    KEY_PLACES.contains(&name) || KEY_LISTS.contains(&name)
}

/// Where keys lie as these variables say, as far as they say it in full.
#[must_use]
pub fn credential_paths(variables: &[(String, String)]) -> Vec<PathBuf> {
    let named = variables.iter().filter(|(name, _)| names_credential_path(name));
    let paths = named.flat_map(|(name, value)| match KEY_LISTS.contains(&name.as_str()) {
        true => std::env::split_paths(value).collect(),
        // Kerberos puts the type before the path.
        false => {
            let kinds = ["FILE:", "DIR:"].into_iter();
            let path = kinds.filter(|_| name == "KRB5CCNAME").find_map(|k| value.strip_prefix(k));
            vec![PathBuf::from(path.unwrap_or(value))]
        }
    });
    paths.filter(|path| path.is_absolute()).collect()
}

/// Paths of keys.
#[derive(Debug, Clone, Default)]
pub struct CredentialPaths {
    /// Paths of this user, including those that do not exist yet.
    own: Vec<PathBuf>,
    /// Cargo's home, if the user moved it.
    cargo_home: Option<PathBuf>,
    /// Homes of other users, of root and of services. Homes of services are often shared work
    /// directories (`/var/www`), so only paths that exist there count.
    other_homes: Vec<PathBuf>,
    /// Paths on file systems that another machine or process serves, unresolved: an access could
    /// block forever.
    unseen: Vec<PathBuf>,
}

impl CredentialPaths {
    /// The paths for a client with this environment and this home, and those of all other users.
    #[must_use]
    pub fn of(env: &[(String, String)], home: Option<&Path>) -> Self {
        // Accounts that no file names, a network's, are not asked for: that can take forever.
        let accounts = fs::read_to_string(ACCOUNTS).unwrap_or_default();
        let mounts = fs::read_to_string(MOUNTS).unwrap_or_default();
        Self::known(env, home, (&accounts, &mounts), nix::unistd::getuid().as_raw())
    }

    fn known(
        env: &[(String, String)],
        home: Option<&Path>,
        (accounts, mounts): (&str, &str),
        person: u32,
    ) -> Self {
        let mut homes: Vec<PathBuf> = home.map(Path::to_owned).into_iter().collect();
        let (mut other_homes, mut unseen) = (Vec::new(), Vec::new());
        for (owner, path) in accounts.lines().filter_map(account) {
            if owner != person && !is_local(&path, mounts) {
                unseen.push(path);
                continue;
            }
            let Some(real) = path.canonicalize().ok().filter(|real| real.is_dir()) else {
                continue;
            };
            let list = if owner == person { &mut homes } else { &mut other_homes };
            if !list.contains(&real) {
                list.push(real);
            }
        }
        other_homes.retain(|other| !homes.contains(other));
        let mut own: Vec<PathBuf> = homes.iter().flat_map(|home| in_home(home)).collect();
        own.extend(credential_paths(env).into_iter().filter(|place| {
            // A variable that names the whole home says nothing about paths in it.
            !homes.iter().any(|home| home.starts_with(place))
        }));
        for (name, list) in [("XDG_CONFIG_HOME", &IN_CONFIG[..]), ("XDG_DATA_HOME", &IN_DATA)] {
            let moved = env.iter().find(|(known, _)| known == name).map(|(_, to)| Path::new(to));
            let moved = moved.filter(|path| path.is_absolute());
            own.extend(moved.into_iter().flat_map(|to| list.iter().map(|name| to.join(name))));
        }
        let cargo_home = env.iter().find(|(name, _)| name == "CARGO_HOME");
        let cargo_home = cargo_home.map(|(_, at)| PathBuf::from(at));
        Self { own, cargo_home, other_homes, unseen }
    }

    /// All of them, by every path that leads to them.
    #[must_use]
    pub fn places(&self) -> Vec<PathBuf> {
        let mut all = every_path(self.seen().collect());
        all.extend(self.seen().flat_map(|place| self.linked(&place)));
        all.extend(self.unseen.iter().flat_map(|home| in_home(home)));
        all
    }

    /// The same without the parts that hold no keys: cargo's home is mostly sources and programs, and
    /// commands get them.
    #[must_use]
    pub fn key_paths(&self) -> Vec<PathBuf> {
        let unseen = self.unseen.iter().flat_map(|home| in_home(home));
        let unseen = unseen.flat_map(|place| self.pieces(&place, &place));
        let seen = self.seen().flat_map(|place| {
            let real = place.canonicalize().ok().filter(|real| *real != place);
            let real = real.map(|real| self.pieces(&place, &real)).unwrap_or_default();
            self.pieces(&place, &place).into_iter().chain(real)
        });
        let files = every_path(seen.collect());
        let linked = self.seen().flat_map(|place| self.linked(&place));
        files.into_iter().chain(linked).chain(unseen).collect()
    }

    /// Where links in a directory of keys lead: people keep such files in a repository of their own, and
    /// tools like stow link them. Of a directory with settings too, these are its files of keys.
    fn linked(&self, place: &Path) -> Vec<PathBuf> {
        let Ok(real) = place.canonicalize() else { return Vec::new() };
        let pieces = self.pieces(place, &real);
        let files = match pieces.as_slice() {
            [whole] if *whole == real => key_files(place, &real),
            _ => pieces,
        };
        let mut waiting: VecDeque<(PathBuf, usize)> =
            files.into_iter().map(|path| (path, 0)).collect();
        let mut found: Vec<PathBuf> = Vec::new();
        let mut names = 0;
        while let Some((path, level)) = waiting.pop_front() {
            let Ok(target) = path.canonicalize() else { continue };
            let is_around = target != real && real.starts_with(&target);
            if is_around || NO_KEYS.iter().any(|dir| target.starts_with(dir)) {
                continue;
            }
            if !std::iter::once(&real).chain(&found).any(|known| target.starts_with(known)) {
                found.push(target);
            }
            if level == LINK_LEVELS || !path.is_dir() {
                continue;
            }
            for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                if names == LINK_NAMES {
                    break;
                }
                names += 1;
                if entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink()) {
                    waiting.push_back((entry.path(), level + 1));
                }
            }
        }
        found
    }

    fn seen(&self) -> impl Iterator<Item = PathBuf> {
        let others = self.other_homes.iter().flat_map(|home| in_home(home));
        self.own.iter().cloned().chain(others.filter(|place| may_be_there(place)))
    }

    /// The parts of a place that hold keys, below the directory where it really is.
    fn pieces(&self, place: &Path, real: &Path) -> Vec<PathBuf> {
        if place.ends_with(".cargo") || self.cargo_home.as_deref() == Some(place) {
            return CARGO_KEYS.map(|name| real.join(name)).into();
        }
        vec![real.to_owned()]
    }
}

/// The files of keys in a place of keys, by their names in a directory that is no home; itself if there
/// are none.
fn key_files(place: &Path, real: &Path) -> Vec<PathBuf> {
    let below = |name: &'static &'static str| {
        let mut parts = Path::new(*name).components();
        parts.find(|part| Some(part.as_os_str()) == place.file_name())?;
        Some(parts.as_path()).filter(|rest| !rest.as_os_str().is_empty())
    };
    let names = IN_ANY_DIRECTORY.iter().chain(&ONLY_IN_HOME);
    let files: Vec<PathBuf> = names.filter_map(below).map(|rest| real.join(rest)).collect();
    if files.is_empty() { vec![real.to_owned()] } else { files }
}

/// Paths of keys in a directory that is no home, existing or not.
pub fn key_paths_in(dir: &Path) -> impl Iterator<Item = PathBuf> {
    IN_ANY_DIRECTORY.iter().map(|name| dir.join(name))
}

/// These and where they lead: calls ask by real paths, and any of these may be a link.
#[must_use]
pub fn every_path(named: Vec<PathBuf>) -> Vec<PathBuf> {
    let real: Vec<PathBuf> = named.iter().filter_map(|path| path.canonicalize().ok()).collect();
    real.into_iter().chain(named).collect()
}

/// The number and the home of an account, from its line.
fn account(line: &str) -> Option<(u32, PathBuf)> {
    let mut fields = line.split(':').skip(2);
    let owner = fields.next()?.parse().ok()?;
    let home = PathBuf::from(fields.nth(2)?);
    home.is_absolute().then_some((owner, home))
}

fn in_home(home: &Path) -> impl Iterator<Item = PathBuf> {
    let (config, data) = (home.join(".config"), home.join(".local/share"));
    let own = IN_HOME.map(|name| home.join(name)).into_iter();
    own.chain(IN_CONFIG.map(|name| config.join(name))).chain(IN_DATA.map(|name| data.join(name)))
}

/// True if a local file system serves the path, and its target if it is a link.
fn is_local(path: &Path, mounts: &str) -> bool {
    let local = |path: &Path| {
        let around = mounts.lines().filter_map(mount).filter(|(at, _)| path.starts_with(at));
        // Of mounts on the same path, the last one is visible.
        let nearest = around.max_by_key(|(at, _)| at.components().count());
        nearest.is_some_and(|(_, kind)| LOCAL.contains(&kind))
    };
    local(path) && path.read_link().map_or(true, |to| local(&path.with_file_name("").join(to)))
}

/// Where something is mounted, and its kind, from a line of `MOUNTS`.
fn mount(line: &str) -> Option<(&Path, &str)> {
    let (before, after) = line.split_once(" - ")?;
    Some((Path::new(before.split(' ').nth(4)?), after.split(' ').next()?))
}

/// A path that this user cannot access now may become accessible later.
fn may_be_there(place: &Path) -> bool {
    match place.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn variables(list: &[(&str, String)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn variables_name_places_of_keys_in_the_ways_of_their_programs() {
        let named =
            |name: &str, value: &str| credential_paths(&[(name.to_owned(), value.to_owned())]);
        for (name, value, place) in [
            ("NETRC", "/k/netrc", Some("/k/netrc")),
            ("KRB5CCNAME", "FILE:/k/cc", Some("/k/cc")),
            ("KRB5CCNAME", "DIR:/k/ccs", Some("/k/ccs")),
            ("KRB5CCNAME", "/k/cc", Some("/k/cc")),
            ("KRB5CCNAME", "KEYRING:persistent:7", None),
            ("RCLONE_CONFIG", "/k/rclone.conf", Some("/k/rclone.conf")),
        ] {
            let place: Vec<PathBuf> = place.map(PathBuf::from).into_iter().collect();
            assert_eq!(named(name, value), place, "{name}={value}");
        }
    }

    #[test]
    fn other_peoples_homes_count_where_they_and_their_keys_are() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for made in ["ann", "bob/.ssh", "www/site", "moved/.config/gh"] {
            fs::create_dir_all(base.join(made)).unwrap();
        }
        std::os::unix::fs::symlink(base.join("moved"), base.join("carol")).unwrap();
        let at = |name: &str| base.join(name);
        let line =
            |uid: u32, home: &str| format!("x:x:{uid}:1:,,:{}:/bin/sh\n", at(home).display());
        let accounts = [(7, "ann"), (8, "bob"), (9, "www"), (10, "carol"), (11, "nowhere")]
            .map(|(uid, home)| line(uid, home))
            .concat();
        let mounts = format!(
            "1 0 8:1 / / rw - ext4 /dev/x rw\n2 1 0:9 / {} rw - nfs4 host:/x rw\n",
            at("far").display()
        );
        let accounts = format!("{accounts}{}half a line\n", line(12, "far/dave"));
        let found = CredentialPaths::known(&[], None, (&accounts, &mounts), 7).places();
        assert!(found.contains(&at("ann/.ssh")), "HOME is not set, and it is not made yet");
        assert!(found.contains(&at("bob/.ssh")) && !found.contains(&at("bob/.aws")), "{found:?}");
        assert!(found.contains(&at("moved/.config/gh")), "where a link leads");
        assert!(!found.iter().any(|place| place.starts_with(at("www"))), "a service's, and empty");
        assert!(!found.iter().any(|place| place.starts_with(at("nowhere"))), "{found:?}");
        assert!(
            found.contains(&at("far/dave/.ssh")),
            "nobody looks there, so it may be: {found:?}"
        );
    }

    #[test]
    fn of_a_cargo_home_only_the_keys_count_also_where_a_link_leads_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let home = base.join("ann");
        fs::create_dir_all(base.join("data/cargo")).unwrap();
        fs::create_dir(&home).unwrap();
        std::os::unix::fs::symlink(base.join("data/cargo"), home.join(".cargo")).unwrap();
        let known = CredentialPaths::known(&[], Some(&home), ("", ""), 7);
        let (places, keys) = (known.places(), known.key_paths());
        assert!(places.contains(&base.join("data/cargo")));
        assert!(!keys.contains(&base.join("data/cargo")) && !keys.contains(&home.join(".cargo")));
        for place in ["data/cargo/credentials.toml", "ann/.cargo/credentials.toml", "ann/.ssh"] {
            assert!(keys.contains(&base.join(place)), "{place}: {keys:?}");
        }
    }

    #[test]
    fn a_key_counts_also_where_a_link_in_a_directory_of_keys_leads_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let home = base.join("ann");
        for made in
            ["ann/.ssh/own/deep", "ann/.docker", "ann/.config/git", "ann/.aws", "dot/team", "gpg"]
        {
            fs::create_dir_all(base.join(made)).unwrap();
        }
        let files =
            ["id", "credentials", "docker", "plugin", "gitconfig", "git", "deep", "team/id"];
        for file in files {
            fs::write(base.join("dot").join(file), "").unwrap();
        }
        for (at, to) in [
            ("ann/.ssh/id", "../../dot/id"),
            ("ann/.ssh/own/team", "../../../dot/team"),
            ("ann/.ssh/own/deep/x", "../../../../dot/deep"),
            ("ann/.ssh/self", "own"),
            ("ann/.ssh/all", "/"),
            ("ann/.ssh/home", ".."),
            ("ann/.ssh/none", "/dev/null"),
            ("ann/.ssh/gone", "../../dot/gone"),
            ("ann/.aws/credentials", "../../dot/credentials"),
            ("ann/.docker/config.json", "../../dot/docker"),
            ("ann/.docker/plugin", "../../dot/plugin"),
            ("ann/.config/git/config", "../../../dot/gitconfig"),
            ("ann/.config/git/credentials", "../../../dot/git"),
            ("gpg/x", "../dot/plugin"),
        ] {
            std::os::unix::fs::symlink(to, base.join(at)).unwrap();
        }
        let known = CredentialPaths::known(&[], Some(&home), ("", ""), 7);
        for found in [known.places(), known.key_paths()] {
            let beside = found.iter().filter(|path| !path.starts_with(&home));
            let beside: Vec<_> = beside.map(|path| path.strip_prefix(&base).unwrap()).collect();
            let beside: std::collections::BTreeSet<_> = beside.into_iter().collect();
            // Not: settings and programs beside keys, what lies deeper, and all that there is.
            let wanted =
                ["credentials", "docker", "git", "id", "team"].map(|name| format!("dot/{name}"));
            assert!(
                beside.iter().eq(wanted.iter().map(Path::new).collect::<Vec<_>>().iter()),
                "{beside:?}"
            );
        }
        // The control for the programs: a directory of keys that a variable names has nothing else.
        let env = variables(&[("GNUPGHOME", base.join("gpg").display().to_string())]);
        let known = CredentialPaths::known(&env, Some(&home), ("", ""), 7);
        assert!(known.key_paths().contains(&base.join("dot/plugin")));
    }

    #[test]
    fn in_a_project_keys_have_the_names_that_they_have_in_a_home_and_settings_are_none() {
        let found: Vec<PathBuf> = key_paths_in(Path::new("/p")).collect();
        for place in ["/p/.ssh", "/p/.gnupg", "/p/.aws", "/p/.docker/config.json"] {
            assert!(found.contains(&PathBuf::from(place)), "{place}");
        }
        for place in ["/p/.npmrc", "/p/.claude", "/p/.cargo", "/p/.docker", "/p/.config/git"] {
            assert!(!found.contains(&PathBuf::from(place)), "{place}");
        }
        let of_homes: Vec<PathBuf> = in_home(Path::new("/p")).collect();
        for place in &found {
            assert!(of_homes.iter().any(|known| place.starts_with(known)), "{}", place.display());
        }
    }

    #[test]
    fn what_was_moved_is_found_by_its_variable() {
        let home = Path::new("/h/ann");
        let env = variables(&[
            ("XDG_CONFIG_HOME", "/settings".into()),
            ("GNUPGHOME", "/keys/gpg".into()),
            ("KUBECONFIG", "/keys/one::relative:/keys/two".into()),
            ("SSH_AUTH_SOCK", "/tmp/ssh-1/agent.2".into()),
            ("AZURE_CONFIG_DIR", "/h/ann".into()),
            ("DOCKER_CONFIG", "docker".into()),
            ("PATH", "/bin".into()),
        ]);
        let found = CredentialPaths::known(&env, Some(home), ("", ""), 7).places();
        for place in ["/settings/gh", "/keys/gpg", "/keys/one", "/keys/two", "/h/ann/.config/gh"] {
            assert!(found.contains(&PathBuf::from(place)), "{place}: {found:?}");
        }
        assert!(found.contains(&PathBuf::from("/tmp/ssh-1/agent.2")), "and so what it lies in");
        for place in ["/h/ann", "/bin", "/h", "/settings", "relative", "docker"] {
            assert!(!found.contains(&PathBuf::from(place)), "{place}: {found:?}");
        }
    }
}
