//! Package caches of a session: package managers write into theirs even offline, and the person's
//! are read-only in a cage. So each gets one in the session's temporary directory; cargo's begins
//! as links to what the person has. For `bash`.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What of the person's cargo home is seen as it is; credentials are not among it.
const AS_IT_IS: [&str; 5] = ["bin", "config", "config.toml", "env", "git"];
/// Folders of registries that cargo adds to, registry by registry. `index` holds what it knows of
/// each, `cache` and `src` a file or folder for each package.
const ADDED_TO: [&str; 3] = ["registry/index", "registry/cache", "registry/src"];

/// Variables that lead package managers to the session's caches, made where they are not there yet.
/// Where one cannot be made its variable is left out, and the program sees the person's, read-only.
pub(crate) fn variables(given: &[(String, String)], temp: &Path) -> Vec<(OsString, OsString)> {
    let caches = temp.join("caches");
    let mut variables = vec![
        // pip, Go's builds, ccache and others.
        ("XDG_CACHE_HOME".into(), caches.clone().into()),
        ("npm_config_cache".into(), caches.join("npm").into()),
    ];
    let value = |wanted: &str| {
        let found = given.iter().find(|(name, value)| name == wanted && !value.is_empty());
        found.map(|(_, value)| PathBuf::from(value))
    };
    let own = value("CARGO_HOME").or_else(|| value("HOME").map(|home| home.join(".cargo")));
    let cargo = caches.join("cargo");
    if own.is_some_and(|own| make_cargo_home(&own, &cargo).is_ok()) {
        variables.push(("CARGO_HOME".into(), cargo.into()));
    }
    variables
}

/// Makes it whole or not at all: another call of the session may do the same right now.
fn make_cargo_home(own: &Path, at: &Path) -> io::Result<()> {
    if at.is_dir() {
        return Ok(());
    }
    let half = at.with_extension(std::process::id().to_string());
    std::fs::create_dir_all(&half)?;
    for name in AS_IT_IS {
        link(&own.join(name), &half.join(name))?;
    }
    for name in ADDED_TO {
        for registry in entries(&own.join(name)) {
            let folder = half.join(name).join(registry.file_name().unwrap_or_default());
            std::fs::create_dir_all(&folder)?;
            for entry in entries(&registry) {
                link(&entry, &folder.join(entry.file_name().unwrap_or_default()))?;
            }
        }
    }
    match std::fs::rename(&half, at) {
        Err(_) if at.is_dir() => std::fs::remove_dir_all(&half),
        other => other,
    }
}

fn link(to: &Path, at: &Path) -> io::Result<()> {
    if to.symlink_metadata().is_err() {
        return Ok(());
    }
    symlink(to, at)
}

/// What lies in a folder; nothing where there is none, or where it may not be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_cargo_home_can_be_added_to_and_the_person_s_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (own, temp) = (dir.path().join("home/.cargo"), dir.path().join("temp"));
        let package = "registry/src/index.x-1/serde-1.0.0";
        std::fs::create_dir_all(own.join(package)).unwrap();
        std::fs::write(own.join(package).join("lib.rs"), "code").unwrap();
        std::fs::write(own.join("credentials.toml"), "secret").unwrap();
        std::fs::write(own.join("config.toml"), "[build]").unwrap();
        let given = [("HOME".to_owned(), dir.path().join("home").display().to_string())];
        for _ in 0..2 {
            let variables = variables(&given, &temp);
            let cargo = temp.join("caches/cargo");
            assert!(variables.contains(&("CARGO_HOME".into(), cargo.clone().into())));
            let read = |name: &str| std::fs::read_to_string(cargo.join(name)).ok();
            assert_eq!(read(&format!("{package}/lib.rs")).as_deref(), Some("code"));
            assert_eq!(read("config.toml").as_deref(), Some("[build]"));
            assert_eq!(read("credentials.toml"), None);
            std::fs::write(cargo.join("registry/src/index.x-1/new"), "").unwrap();
        }
        assert!(!own.join("registry/src/index.x-1/new").exists());
        assert_eq!(entries(&temp.join("caches")).len(), 1, "nothing half made is left");
    }
}
