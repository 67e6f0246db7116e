//! Package caches of a project. Package managers write to their caches even offline, and the user's
//! caches are read-only in a cage. Where the cage shows an overlay of a cache, nothing is needed.
//! For the others, variables point to caches that the project's sessions share; Cargo's and Go's
//! start as links to the user's content. For `command`.

use crate::command::shared_dir::SharedDir;
use sandbox::Cage;
use sandbox::CallScope;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Parts of the user's Cargo home that the command sees unchanged; credentials are not among them.
const AS_IT_IS: [&str; 2] = ["env", "git"];
/// Its programs: cargo installs more beside them.
const PROGRAMS: &str = "bin";
/// Its settings, where no copy without keys is there.
const SETTINGS: [&str; 2] = ["config", "config.toml"];
/// Registry directories to which cargo adds. `index` describes each registry; `cache` and `src`
/// have a file or directory for each package.
const ADDED_TO: [&str; 3] = ["registry/index", "registry/cache", "registry/src"];

/// Files of a module that Go takes from its download cache; it unpacks them again in its own cache.
const OF_GO: [&str; 4] = ["info", "mod", "zip", "ziphash"];

/// Names the directory with copies of the person's settings.
const SETTINGS_HOME: &str = "AGENTD_SETTINGS";

/// Marks that a session has linked the user's caches. If a command removes it, the links are made
/// again.
const LINKED: &str = ".agentd-caches";

/// The cache directories of a command.
pub(crate) struct CacheDirs<'a> {
    /// The project's, a real path.
    pub kept_at: &'a Path,
    /// Where the command finds those.
    pub shown_at: PathBuf,
    /// Parts of the user's home that the command sees as overlays.
    pub overlays: &'a [PathBuf],
}

impl<'a> CacheDirs<'a> {
    pub(crate) fn of(kept_at: &'a Path, scope: &CallScope, cage: &'a Cage) -> Self {
        let home = scope.home.as_ref().filter(|_| cage.shows_private());
        let shown_at = home.map(|home| home.shown_at.join(".cache"));
        let shown_at = shown_at.unwrap_or_else(|| kept_at.to_owned());
        Self { kept_at, shown_at, overlays: cage.overlays() }
    }

    fn overlays(&self, scope: &Path) -> bool {
        self.overlays.iter().any(|overlay| overlay == scope)
    }
}

/// Variables that point package managers to the project's caches. The first call of a session links
/// the user's newest content. If a cache cannot be made, its variable is left out and the program
/// sees the user's cache, read-only. A user's cache inside a writable directory is used as it is,
/// and no link is made to it, because a command may have written it.
pub(crate) fn variables(
    given: &[(String, String)],
    found: &CacheDirs<'_>,
    scope: &CallScope,
) -> Vec<(OsString, OsString)> {
    let caches = found.shown_at.as_path();
    // pip, Go's builds, ccache and others. Go's modules lie elsewhere.
    let mut variables = vec![("XDG_CACHE_HOME".into(), caches.into())];
    let value = |wanted: &str| {
        let found = given.iter().find(|(name, value)| name == wanted && !value.is_empty());
        found.map(|(_, value)| PathBuf::from(value))
    };
    let own_cargo = value("CARGO_HOME").or_else(|| value("HOME").map(|home| home.join(".cargo")));
    // Modules, checksums and programs go to the first of the list, sources are looked for in all.
    let own_go = match value("GOPATH") {
        Some(list) => std::env::split_paths(&list).collect(),
        None => value("HOME").map(|home| home.join("go")).into_iter().collect::<Vec<_>>(),
    };
    let own_cargo = own_cargo.filter(|own| !scope.is_written_at(own));
    let shows_cargo = own_cargo.as_ref().is_some_and(|own| found.overlays(&own.join("registry")));
    let shows_go = own_go.first().is_some_and(|own| found.overlays(own));
    let shows_npm = value("HOME").is_some_and(|home| found.overlays(&home.join(".npm/_cacache")));
    if is_first(scope)
        && let Ok(dir) = SharedDir::open(found.kept_at)
    {
        let copy = value(SETTINGS_HOME).map(|dir| dir.join("cargo/config.toml"));
        let fill = |own: &PathBuf| match shows_cargo {
            true => write_settings(own, copy.as_deref(), scope),
            false => fill_cargo_home(own, copy.as_deref(), &dir.folder("cargo")?),
        };
        let _ = own_cargo.as_ref().map(fill);
        let own = own_go.first().filter(|own| !shows_go && !scope.is_written_at(own));
        let _ = own.map(|own| fill_go_path(own, &dir.folder("go")?));
    }
    if !shows_npm {
        variables.push(("npm_config_cache".into(), caches.join("npm").into()));
    }
    let (cargo, go) = (caches.join("cargo"), caches.join("go"));
    if own_cargo.is_some() && !shows_cargo && found.kept_at.join("cargo").is_dir() {
        variables.push(("CARGO_HOME".into(), cargo.into()));
    }
    if !shows_go
        && found.kept_at.join("go").is_dir()
        && let Ok(list) = std::env::join_paths([&go].into_iter().chain(&own_go))
    {
        variables.push(("GOPATH".into(), list));
    }
    variables
}

/// Cargo's settings without keys, in the session's home, where the cage shows none of the person's.
fn write_settings(own: &Path, copy: Option<&Path>, scope: &CallScope) -> io::Result<()> {
    let (Some(copy), Some(home)) = (copy, &scope.home) else { return Ok(()) };
    let Ok(below) = own.strip_prefix(&home.shown_at) else { return Ok(()) };
    let at = home.kept_at.join(below).join(SETTINGS[1]);
    match (at.symlink_metadata(), std::fs::read(copy)) {
        (Err(_), Ok(settings)) => {
            let folder = SharedDir::open(&home.kept_at)?.folders(below)?;
            folder.write_anew(SETTINGS[1], &settings)
        }
        (Ok(_), _) | (_, Err(_)) => Ok(()),
    }
}

fn is_first(scope: &CallScope) -> bool {
    std::fs::File::create_new(scope.temp.join(LINKED)).is_ok()
}

/// The downloaded modules: builds work offline, and more can be added.
fn fill_go_path(own: &Path, at: &SharedDir) -> io::Result<()> {
    let downloads = Path::new("pkg/mod/cache/download");
    link_downloads(&own.join(downloads), &at.folders(downloads)?)
}

fn link_downloads(from: &Path, at: &SharedDir) -> io::Result<()> {
    for entry in entries(from) {
        let name = entry.file_name().unwrap_or_default();
        if entry.is_dir() && !entry.is_symlink() {
            link_downloads(&entry, &at.folder(name)?)?;
        } else if entry.extension().is_some_and(|end| OF_GO.iter().any(|of| end == *of)) {
            at.link(name, &entry)?;
        }
    }
    Ok(())
}

fn fill_cargo_home(own: &Path, copy: Option<&Path>, at: &SharedDir) -> io::Result<()> {
    for name in AS_IT_IS {
        at.link(name, &own.join(name))?;
    }
    match copy.and_then(|copy| std::fs::read(copy).ok()) {
        Some(settings) => at.write_anew("config.toml", &settings)?,
        None => SETTINGS.iter().try_for_each(|name| at.link(name, &own.join(name)))?,
    }
    let programs = at.folder(PROGRAMS)?;
    for entry in entries(&own.join(PROGRAMS)) {
        programs.link(entry.file_name().unwrap_or_default(), &entry)?;
    }
    for name in ADDED_TO {
        let registries = at.folders(Path::new(name))?;
        for registry in entries(&own.join(name)) {
            let folder = registries.folder(registry.file_name().unwrap_or_default())?;
            for entry in entries(&registry) {
                folder.link(entry.file_name().unwrap_or_default(), &entry)?;
            }
        }
    }
    Ok(())
}

/// The entries of a directory; empty if it is missing or unreadable.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use sandbox::PrivateHome;
    use std::os::unix::fs::symlink;

    /// Caches that a command finds where they are.
    fn found<'a>(kept_at: &'a Path, overlays: &'a [PathBuf]) -> CacheDirs<'a> {
        CacheDirs { kept_at, shown_at: kept_at.to_owned(), overlays }
    }

    #[test]
    fn what_an_overlay_shows_is_led_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (home, caches) = (base.join("home"), base.join("caches"));
        let kept_at = base.join("own");
        for made in [&home.join(".cargo/registry"), &home.join("go"), &kept_at] {
            std::fs::create_dir_all(made).unwrap();
        }
        std::fs::create_dir_all(base.join("settings/cargo")).unwrap();
        std::fs::write(base.join("settings/cargo/config.toml"), "copy").unwrap();
        let scope = session(&base);
        let own_home = PrivateHome { shown_at: home.clone(), kept_at: kept_at.clone() };
        let scope = CallScope { home: Some(own_home), ..scope };
        let given = [("HOME", &home), (SETTINGS_HOME, &base.join("settings"))];
        let given = given.map(|(name, value)| (name.to_owned(), value.display().to_string()));
        let overlays = [".cargo/registry", "go", ".npm/_cacache"].map(|name| home.join(name));
        let led = variables(&given, &found(&caches, &overlays), &scope);
        assert_eq!(led, [("XDG_CACHE_HOME".into(), caches.clone().into())]);
        let settings = std::fs::read_to_string(kept_at.join(".cargo/config.toml")).unwrap();
        assert_eq!(settings, "copy");
        // Mounted directories stay.
        std::fs::write(kept_at.join(".cargo/config.toml"), "").unwrap();
        std::fs::remove_file(scope.temp.join(LINKED)).unwrap();
        variables(&given, &found(&caches, &overlays), &scope);
        assert!(std::fs::read(kept_at.join(".cargo/config.toml")).unwrap().is_empty());
    }

    /// A session whose temporary directory lies in this one.
    fn session(at: &Path) -> CallScope {
        std::fs::create_dir_all(at.join("caches")).unwrap();
        std::fs::create_dir_all(at.join("tmp")).unwrap();
        CallScope {
            project: at.join("project"),
            added: Vec::new(),
            temp: at.join("tmp"),
            private: Vec::new(),
            home: None,
            caches: None,
            withheld: Vec::new(),
        }
    }

    #[test]
    fn a_cargo_home_can_be_added_to_and_the_person_s_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (own, caches) = (dir.path().join("home/.cargo"), dir.path().join("caches"));
        let package = "registry/src/index.x-1/serde-1.0.0";
        std::fs::create_dir_all(own.join(package)).unwrap();
        std::fs::write(own.join(package).join("lib.rs"), "code").unwrap();
        std::fs::write(own.join("credentials.toml"), "secret").unwrap();
        std::fs::create_dir(own.join("bin")).unwrap();
        std::fs::write(own.join("bin/tool"), "program").unwrap();
        std::fs::write(own.join("config.toml"), "[build]").unwrap();
        let given = [("HOME".to_owned(), dir.path().join("home").display().to_string())];
        for _ in 0..2 {
            let variables = variables(&given, &found(&caches, &[]), &session(dir.path()));
            let cargo = caches.join("cargo");
            assert!(variables.contains(&("CARGO_HOME".into(), cargo.clone().into())));
            let read = |name: &str| std::fs::read_to_string(cargo.join(name)).ok();
            assert_eq!(read(&format!("{package}/lib.rs")).as_deref(), Some("code"));
            assert_eq!(read("config.toml").as_deref(), Some("[build]"));
            assert_eq!(read("credentials.toml"), None);
            assert_eq!(read("bin/tool").as_deref(), Some("program"));
            std::fs::write(cargo.join("registry/src/index.x-1/new"), "").unwrap();
        }
        assert!(!own.join("registry/src/index.x-1/new").exists());
        // The next session sees content that the user added since.
        let later = "registry/cache/index.x-1/later.crate";
        std::fs::create_dir_all(own.join(later).parent().unwrap()).unwrap();
        std::fs::write(own.join(later), "").unwrap();
        variables(&given, &found(&caches, &[]), &session(dir.path()));
        assert!(!caches.join("cargo").join(later).exists());
        let next = tempfile::tempdir().unwrap();
        variables(&given, &found(&caches, &[]), &session(next.path()));
        assert!(caches.join("cargo").join(later).exists());
        assert!(caches.join("cargo/registry/src/index.x-1/new").exists());
    }

    #[test]
    fn a_cargo_home_has_the_settings_without_keys_where_there_are_such() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let copy = at("settings/cargo/config.toml");
        for (file, text) in [(&at("home/.cargo/config"), "own"), (&copy, "copy")] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let given = [("HOME", "home"), (SETTINGS_HOME, "settings")];
        let given = given.map(|(name, scope)| (name.to_owned(), at(scope).display().to_string()));
        let cargo = at("caches/cargo");
        for text in ["copy", "changed"] {
            std::fs::write(&copy, text).unwrap();
            let later = tempfile::tempdir().unwrap();
            session(dir.path());
            variables(&given, &found(&at("caches"), &[]), &session(later.path()));
            assert_eq!(std::fs::read_to_string(cargo.join("config.toml")).unwrap(), text);
            assert!(cargo.join("config").symlink_metadata().is_err());
        }
    }

    #[test]
    fn each_package_manager_is_led_to_a_cache_of_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let caches = dir.path().join("caches");
        let given = [("HOME".to_owned(), dir.path().join("home").display().to_string())];
        let variables = variables(&given, &found(&caches, &[]), &session(dir.path()));
        for name in ["XDG_CACHE_HOME", "npm_config_cache", "CARGO_HOME", "GOPATH"] {
            let led = variables.iter().find(|(variable, _)| variable == name);
            let led = led.unwrap_or_else(|| panic!("{name} is not led anywhere"));
            let first = std::env::split_paths(&led.1).next().unwrap();
            assert!(first.starts_with(&caches), "{led:?}");
        }
    }

    #[test]
    fn go_finds_what_was_downloaded_and_adds_to_a_cache_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (home, moved) = (dir.path().join("home"), dir.path().join("moved"));
        let version = "pkg/mod/cache/download/example.org/dep/@v";
        for own in [home.join("go"), moved.clone()] {
            let folder = own.join(version);
            std::fs::create_dir_all(&folder).unwrap();
            for file in ["v1.0.0.zip", "v1.0.0.mod", "v1.0.0.lock", "list"] {
                std::fs::write(folder.join(file), own.display().to_string()).unwrap();
            }
        }
        let text = |path: &Path| path.display().to_string();
        let of_home = ("HOME".to_owned(), text(&home));
        let list = ("GOPATH".to_owned(), format!("{}:{}", text(&moved), text(&home)));
        for (given, own, at) in [
            (vec![of_home.clone()], home.join("go"), dir.path().join("one")),
            (vec![of_home, list], moved, dir.path().join("two")),
        ] {
            std::fs::create_dir(&at).unwrap();
            let variables = variables(&given, &found(&at.join("caches"), &[]), &session(&at));
            let (_, list) = variables.iter().find(|(name, _)| name == "GOPATH").unwrap();
            let list: Vec<PathBuf> = std::env::split_paths(list).collect();
            let folder = at.join("caches/go").join(version);
            assert_eq!((&list[0], &list[1]), (&at.join("caches/go"), &own));
            for file in ["v1.0.0.zip", "v1.0.0.mod"] {
                assert_eq!(std::fs::read_to_string(folder.join(file)).unwrap(), text(&own));
            }
            // Written by Go, so the person's are not led to.
            assert!(!folder.join("v1.0.0.lock").exists() && !folder.join("list").exists());
            std::fs::write(folder.join("v1.1.0.zip"), "new").unwrap();
            assert!(!own.join(version).join("v1.1.0.zip").exists());
        }
    }

    /// Commands of an earlier call may have put a link anywhere in the caches, and may have changed
    /// caches inside the project.
    #[test]
    fn nothing_is_made_behind_a_link_that_a_command_left() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (own, outside) = (base.join("home/.cargo"), base.join("outside"));
        for made in ["registry/cache/index.x-1/a.crate", "registry/src/index.x-1/a", "bin"] {
            std::fs::create_dir_all(own.join(made)).unwrap();
        }
        std::fs::create_dir_all(base.join("home/go/pkg/mod/cache/download/a.org/@v")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        let scope = session(&base);
        let given = [("HOME".to_owned(), base.join("home").display().to_string())];
        for name in ["cargo", "go", "cargo/registry", "cargo/registry/src", "go/pkg"] {
            let caches = base.join(name).join("caches");
            let link = caches.join(name);
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(&outside, link).unwrap();
            let _ = std::fs::remove_file(scope.temp.join(LINKED));
            variables(&given, &found(&caches, &[]), &scope);
            assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "{name}");
        }
        let caches = base.join("caches");
        std::fs::remove_file(scope.temp.join(LINKED)).unwrap();
        variables(&given, &found(&caches, &[]), &scope);
        assert!(caches.join("cargo/registry/src/index.x-1/a").is_symlink());
        // In the project it is the person's own that is used.
        let in_project = base.join("project/.cargo");
        std::fs::create_dir_all(&in_project).unwrap();
        let given = [("CARGO_HOME".to_owned(), in_project.display().to_string())];
        let led = variables(&given, &found(&caches, &[]), &scope);
        assert!(!led.iter().any(|(name, _)| name == "CARGO_HOME"), "{led:?}");
    }
}
