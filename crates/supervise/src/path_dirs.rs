//! Which directories of the person's `PATH` commands may start programs from, beside those that the
//! policy names. For `plan`; looks at the directories and changes nothing.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the policy grants to all (`config/confinement/command.toml`), and what is no place of programs.
const NOT_LOOKED_AT: [&str; 10] = [
    "/usr",
    "/opt",
    "/bin",
    "/sbin",
    "/lib",
    "/nix/store",
    "/gnu/store",
    "/proc",
    "/tmp",
    "/var/tmp",
];

/// Names of a directory whose programs belong to the one above it: that holds their libraries.
const OF_A_ROOT: [&str; 3] = ["bin", "sbin", "shims"];

/// What all of a person's programs keep things in, relative to the home: no root of one of them.
const SHARED: [&str; 4] = [".local", ".local/share", ".config", ".cache"];

/// Most places that are granted so.
const MOST: usize = 64;

/// What such directories may not be, nor lie in, nor hold.
#[derive(Debug)]
pub(crate) struct Apart<'a> {
    /// The person's home, a real path.
    pub(crate) home: &'a Path,
    /// Where keys lie, or would.
    pub(crate) keys: &'a [PathBuf],
    /// What commands can write: a program that one of them left there would be started as the person's.
    pub(crate) writable: &'a [PathBuf],
}

/// The directories of a search path, as real paths, each with the root that it belongs to in its place.
pub(crate) fn granted(path: &str, apart: &Apart<'_>) -> Vec<PathBuf> {
    let mut granted: Vec<PathBuf> = Vec::new();
    for dir in std::env::split_paths(path).filter(|dir| dir.is_absolute()) {
        let Ok(real) = dir.canonicalize() else { continue };
        let writable_by_others = real.metadata().is_ok_and(|found| found.mode() & 0o002 != 0);
        if writable_by_others || NOT_LOOKED_AT.iter().any(|place| real.starts_with(place)) {
            continue;
        }
        let root = real.parent().filter(|root| is_root(&real) && apart.allows(root));
        let place =
            root.map(Path::to_owned).or_else(|| apart.allows(&real).then_some(real.clone()));
        let data = place.iter().flat_map(|place| data_of(place)).filter(|data| apart.allows(data));
        for place in data.chain(place.clone()) {
            if granted.len() < MOST && !granted.iter().any(|other| place.starts_with(other)) {
                granted.push(place);
            }
        }
    }
    granted
}

/// What belongs to the programs of a directory that many share, as `~/.local/bin`: what has the name of
/// one of them in `share` and `lib` beside it.
fn data_of(dir: &Path) -> Vec<PathBuf> {
    let beside =
        dir.parent().filter(|_| is_root(dir)).map(|root| ["share", "lib"].map(|of| root.join(of)));
    let programs = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names: Vec<_> = programs.map(|program| program.file_name()).collect();
    let of = |beside: PathBuf| names.iter().map(move |name| beside.join(name)).collect::<Vec<_>>();
    let found = beside.into_iter().flatten().flat_map(of);
    found.filter(|data| data.symlink_metadata().is_ok_and(|found| found.is_dir())).collect()
}

fn is_root(dir: &Path) -> bool {
    dir.file_name().is_some_and(|name| OF_A_ROOT.iter().any(|own| name == *own))
}

impl Apart<'_> {
    fn allows(&self, dir: &Path) -> bool {
        let below_home = dir.strip_prefix(self.home).ok();
        let is_shared =
            below_home.is_some_and(|below| SHARED.iter().any(|name| below == Path::new(name)));
        let holds = |place: &PathBuf| place.starts_with(dir) || dir.starts_with(place);
        let whole = dir.parent().is_none_or(|above| above.parent().is_none());
        !is_shared
            && !whole
            && !self.home.starts_with(dir)
            && !self.keys.iter().any(holds)
            && !self.writable.iter().any(holds)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_directory_of_path_is_granted_with_its_root_and_nothing_that_holds_keys() {
        // Not in /tmp, whose programs are nobody's own.
        let dir = tempfile::tempdir_in(std::env::var_os("HOME").unwrap()).unwrap();
        let base = dir.path().canonicalize().unwrap();
        let home = base.join("home");
        for name in [
            "home/tools/maven/bin",
            "home/tools/plain",
            "home/.local/bin/tool",
            "home/.local/share/tool",
            "home/.local/share/other",
            "home/.local/share/mise/shims",
            "home/.ssh/bin",
            "home/.cargo/bin",
            "home/bin",
            "home/project/node_modules/.bin",
            "other/bin",
            "all/bin",
        ] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(base.join("all/bin"), open).unwrap();
        let keys = [home.join(".ssh"), home.join(".cargo/credentials.toml")];
        let writable = [home.join("project")];
        let apart = Apart { home: &home, keys: &keys, writable: &writable };
        for (path, wanted) in [
            ("home/tools/maven/bin", &["home/tools/maven"][..]),
            ("home/tools/plain", &["home/tools/plain"]),
            // Not what all programs keep there, nor keys beside programs.
            ("home/.local/bin", &["home/.local/share/tool", "home/.local/bin"]),
            ("home/.cargo/bin", &["home/.cargo/bin"]),
            ("home/bin", &["home/bin"]),
            ("home/.local/share/mise/shims", &["home/.local/share/mise"]),
            ("other/bin", &["other"]),
            ("home", &[]),
            (".", &[]),
            ("home/.ssh/bin", &[]),
            ("home/project/node_modules/.bin", &[]),
            ("home/missing", &[]),
            ("all/bin", &[]),
        ] {
            let found = granted(base.join(path).to_str().unwrap(), &apart);
            let wanted: Vec<PathBuf> = wanted.iter().map(|name| base.join(name)).collect();
            assert_eq!(found, wanted, "{path}");
        }
        assert_eq!(
            granted("bin:/", &apart),
            Vec::<PathBuf>::new(),
            "neither relative ones nor all"
        );
    }
}
