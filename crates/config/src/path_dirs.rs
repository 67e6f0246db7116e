//! The directories of the user's `PATH` from which commands may start programs, in addition to
//! those of the policy. For the supervisor and for `doctor`. It inspects directories and changes
//! nothing.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files that belong to the programs of a directory of that name, relative to its parent. Not the
/// whole parent: many programs keep tokens next to their `bin` (`~/.fly/config.yml`).
const BESIDE: [(&str, &[&str]); 3] =
    [("bin", OF_PROGRAMS), ("sbin", OF_PROGRAMS), ("shims", OF_SHIMS)];
const OF_PROGRAMS: &[&str] = &[
    "lib",
    "lib32",
    "lib64",
    "libexec",
    "libs",
    "jars",
    // The Java that a program brings along.
    "jre",
    "share",
    "include",
    // Maven's class loader and its logging; settings.xml beside that may hold passwords.
    "boot",
    "conf/logging",
    // A Python environment, and conda's certificates.
    "pyvenv.cfg",
    "ssl/cert.pem",
];
const OF_DATA: &[&str] = &["bin", "versions"];
const OF_SHIMS: &[&str] = &["installs", "versions", "version", "plugins", "libexec", "bin", "lib"];

/// Where all of these are beside `bin`, the whole is one tool chain that keeps no keys: Java's since 9 and
/// before, Go's, Flutter's.
const WHOLE: [&[&str]; 4] = [
    &["release", "lib/modules"],
    &["bin/javac", "jre/lib/rt.jar"],
    &["VERSION", "pkg/tool"],
    &["packages/flutter_tools"],
];

/// Directories shared by all programs of a user, relative to the home. None of them is the root of
/// one program.
const SHARED: [&str; 4] = [".local", ".local/share", ".config", ".cache"];

/// Most places that are granted so.
const MOST: usize = 64;

/// The context in which a directory is judged.
#[derive(Debug)]
pub struct PathPolicy<'a> {
    /// The user's home, a real path.
    pub home: Option<&'a Path>,
    /// Where commands can start programs already.
    pub known: &'a [PathBuf],
    /// Paths of keys and of agentd's own files, existing or not.
    pub kept: &'a [PathBuf],
    /// Directories that commands can write. A program there could have been left by a command, and
    /// would later run with the user's rights.
    pub writable: &'a [PathBuf],
    /// Directories that commands of other projects can write: a link in them leads anywhere.
    pub elsewhere: &'a [PathBuf],
    /// Returns true if a process that can write in these directories controls the target of the
    /// path. The answer is stable while a command replaces links; only their targets change.
    pub is_led_by: fn(&Path, &[PathBuf], &[PathBuf]) -> bool,
    /// Owners of trusted directories: this user, and the owner of the home.
    pub persons: [u32; 2],
}

/// The paths that a search path adds: its directories, the files that belong to their programs, and
/// programs that links in them point to.
#[must_use]
pub fn granted_path_dirs(path: &str, ground: &PathPolicy<'_>) -> Vec<PathBuf> {
    let dirs = std::env::split_paths(path).filter(|dir| dir.is_absolute());
    let real: Vec<PathBuf> = dirs.filter_map(|dir| ground.real(&dir)).collect();
    let mut granted = Vec::new();
    for dir in &real {
        ground.grant(dir, &mut granted);
    }
    let below_home = |dir: &&PathBuf| ground.home.is_some_and(|home| dir.starts_with(home));
    for data in real.iter().filter(below_home).flat_map(|dir| data(dir)) {
        ground.grant_parts([data], &mut granted);
    }
    for program in real.iter().filter(below_home).flat_map(|dir| ground.linked(dir)) {
        let folder = program.parent().filter(|folder| beside(folder).is_some());
        ground.grant(folder.unwrap_or(&program), &mut granted);
    }
    granted
}

/// The directories of a search path that commands are not given, as they are named, each with the reason.
#[must_use]
pub fn refused_path_dirs(path: &str, ground: &PathPolicy<'_>) -> Vec<(PathBuf, &'static str)> {
    let dirs = std::env::split_paths(path).filter(|dir| dir.is_absolute());
    let reason = |dir: &Path| {
        let real = dir.canonicalize().ok()?;
        let is_known = ground.known.iter().any(|known| real.starts_with(known));
        if is_known {
            return None;
        }
        let led = || ground.is_written(dir).then_some("commands can write a link on the way to it");
        ground.refused(&real).or_else(led)
    };
    dirs.filter_map(|dir| reason(&dir).map(|reason| (dir, reason))).collect()
}

/// Files of programs in a shared directory such as `~/.local/bin`: known parts of the directory in
/// `../share` that has the program's name.
fn data(dir: &Path) -> Vec<PathBuf> {
    let share = dir.parent().filter(|_| beside(dir).is_some()).map(|root| root.join("share"));
    let programs = share.iter().flat_map(|_| std::fs::read_dir(dir)).flatten().flatten();
    let homes =
        programs.flat_map(|program| share.iter().map(move |at| at.join(program.file_name())));
    homes
        .flat_map(|home| OF_DATA.iter().chain(OF_PROGRAMS).map(move |name| home.join(name)))
        .collect()
}

/// Names of directories next to such a directory that belong to its programs.
fn beside(dir: &Path) -> Option<&'static [&'static str]> {
    let name = dir.file_name()?;
    BESIDE.iter().find(|(known, _)| name == *known).map(|(_, names)| *names)
}

impl PathPolicy<'_> {
    /// True if a command controls the target of this path.
    fn is_written(&self, path: &Path) -> bool {
        (self.is_led_by)(path, self.writable, self.elsewhere)
    }

    /// The real path, unless a command could have created or redirected it.
    fn real(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok().filter(|_| !self.is_written(path))
    }

    /// Programs that links of this directory lead to.
    fn linked(&self, dir: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        let real = links.filter_map(|link| self.real(&link.path()));
        let is_program = |found: Metadata| found.is_file() && found.mode() & 0o111 != 0;
        real.filter(|path| path.metadata().is_ok_and(is_program)).collect()
    }

    /// Adds a directory and its related files, unless it is refused or already granted.
    fn grant(&self, place: &Path, granted: &mut Vec<PathBuf>) {
        if self.refused(place).is_some() {
            return;
        }
        let root = place.parent().filter(|root| !self.is_shared(root));
        let root = root.filter(|root| self.refused(root).is_none());
        let names = root.and_then(|_| beside(place)).unwrap_or_default();
        let is_whole = |root: &&Path| {
            WHOLE.iter().any(|marks| marks.iter().all(|name| root.join(name).exists()))
        };
        let parts = match root.filter(|_| !names.is_empty()).filter(is_whole) {
            Some(root) => vec![root.to_owned()],
            None => {
                let near = root.iter().flat_map(|root| names.iter().map(|name| root.join(name)));
                [place.to_owned()].into_iter().chain(near).collect()
            }
        };
        self.grant_parts(parts, granted);
    }

    /// Adds the parts that exist, by their real paths.
    fn grant_parts(&self, parts: impl IntoIterator<Item = PathBuf>, granted: &mut Vec<PathBuf>) {
        for part in parts.into_iter().filter_map(|part| self.real(&part)) {
            let has = |list: &[PathBuf]| list.iter().any(|other| part.starts_with(other));
            let is_new = !has(granted) && !has(self.known);
            if is_new && granted.len() < MOST && self.refused(&part).is_none() {
                granted.push(part);
            }
        }
    }

    /// Why commands may start no programs from this place, by its real path.
    fn refused(&self, place: &Path) -> Option<&'static str> {
        let near = |list: &[PathBuf]| {
            list.iter().any(|other| other.starts_with(place) || place.starts_with(other))
        };
        let is_whole = place.parent().is_none_or(|above| above.parent().is_none());
        if is_whole || self.home.is_some_and(|home| home.starts_with(place)) {
            Some("much more than programs lies in it")
        } else if near(self.kept) {
            Some("keys or agentd's own files lie in it, or it in their place")
        } else if near(self.writable) {
            Some("commands can write there")
        } else if self.is_changed_by_others(place) {
            Some("other users of this machine can change it")
        } else {
            None
        }
    }

    fn is_shared(&self, dir: &Path) -> bool {
        let below = self.home.and_then(|home| dir.strip_prefix(home).ok());
        below.is_some_and(|below| SHARED.iter().any(|name| below == Path::new(name)))
    }

    /// True if other users can replace it. Directories above the home are not checked: if others
    /// can write those, no program of the user is safe.
    fn is_changed_by_others(&self, place: &Path) -> bool {
        let ours = |dir: &&Path| Some(*dir) != self.home;
        let open = |dir: &Path| {
            dir.metadata().map_or(true, |found| is_open((found.mode(), found.uid()), self.persons))
        };
        place.ancestors().take_while(ours).any(open)
    }
}

/// True if a user other than root and these can write a directory with this mode and owner.
fn is_open((mode, owner): (u32, u32), persons: [u32; 2]) -> bool {
    mode & 0o002 != 0 || (owner != 0 && !persons.contains(&owner))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_directory_that_others_can_write_is_known_by_mode_and_owner() {
        for (mode, owner, open) in [
            (0o755, 0, false),
            (0o775, 7, false),
            (0o777, 7, true),
            (0o1777, 0, true),
            (0o755, 8, false),
            (0o755, 9, true),
        ] {
            assert_eq!(is_open((mode, owner), [7, 8]), open, "{mode:o} of {owner}");
        }
    }

    /// A final `*` marks a program, a final `/` a directory.
    const THERE: [&str; 37] = [
        "home/tools/maven/bin/mvn*",
        "home/tools/maven/lib/",
        "home/tools/maven/boot/",
        "home/tools/maven/conf/logging/",
        "home/tools/maven/conf/settings.xml",
        "home/jdk/bin/java*",
        "home/jdk/release",
        "home/jdk/lib/modules",
        "home/jdk8/bin/javac*",
        "home/jdk8/jre/lib/rt.jar",
        "home/scanner/bin/scanner*",
        "home/scanner/conf/scanner.properties",
        "home/scanner/jre/lib/modules",
        "home/scanner/jre/lib/rt.jar",
        "home/scanner/jre/release",
        "home/scanner/lib/",
        "home/tools/plain/",
        "home/.fly/bin/fly*",
        "home/.fly/config.yml",
        "home/.local/bin/tool*",
        "home/.local/lib/",
        "home/.local/share/tool/auth.json",
        "home/.local/share/tool/lib/",
        "home/.local/share/other/lib/",
        "home/.local/share/apps/app*",
        "home/.local/share/mise/shims/",
        "home/.local/share/mise/installs/",
        "home/.ssh/bin/",
        "home/.ssh/key*",
        "home/.cargo/bin/",
        "home/bin/",
        "home/lib/",
        "home/project/bin/",
        "home/known/bin/",
        "home/open/bin/",
        "home/state/agentd/",
        "all/bin/",
    ];

    fn made(base: &Path) {
        for name in THERE {
            let path = base.join(name.trim_end_matches('*'));
            if name.ends_with('/') {
                std::fs::create_dir_all(&path).unwrap();
                continue;
            }
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            let mode = if name.ends_with('*') { 0o755 } else { 0o644 };
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }
        for (target, link) in [
            ("tools/maven/bin/mvn", ".local/bin/mvn"),
            (".local/share/apps/app", ".local/bin/app"),
            (".ssh/key", ".local/bin/key"),
            (".local/share/tool/auth.json", ".local/bin/text"),
            ("known/bin", ".local/bin/folder"),
            ("tools/maven/bin", "maven-now"),
        ] {
            symlink(base.join("home").join(target), base.join("home").join(link)).unwrap();
        }
        let open = |name: &str| {
            std::fs::set_permissions(base.join(name), PermissionsExt::from_mode(0o777)).unwrap();
        };
        open("all");
        open("home/open");
    }

    #[test]
    fn what_a_command_could_have_led_elsewhere_is_no_directory_of_programs() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home");
        let at = |name: &str| home.join(name);
        for made in ["project", "private/bin", "tools/bin", "own/bin"] {
            std::fs::create_dir_all(at(made)).unwrap();
        }
        for program in ["private/bin/notes", "tools/bin/tool"] {
            std::fs::write(at(program), "").unwrap();
            std::fs::set_permissions(at(program), PermissionsExt::from_mode(0o755)).unwrap();
        }
        for (to, link) in [
            ("private/bin", "project/bin"),
            ("project/bin", "bin"),
            ("tools/bin", "tools-now"),
            ("private/bin/notes", "project/notes"),
            ("project/notes", "own/bin/notes"),
            ("tools/bin/tool", "own/bin/tool"),
            ("private", "project/share"),
            ("project/share", "own/lib"),
        ] {
            symlink(at(to), at(link)).unwrap();
        }
        let ground = PathPolicy {
            home: Some(&home),
            known: &[],
            kept: &[],
            writable: &[at("project")],
            elsewhere: &[],
            is_led_by: sandbox::is_led_by_commands,
            persons: [home.metadata().unwrap().uid(); 2],
        };
        let climbing = "project/../private/bin";
        for (path, wanted) in [
            ("bin", &[][..]),
            ("project/bin", &[]),
            (climbing, &[]),
            ("tools-now", &["tools/bin"]),
            ("private/bin", &["private/bin"]),
            ("own/bin", &["own/bin", "tools/bin"]),
        ] {
            let found = granted_path_dirs(at(path).to_str().unwrap(), &ground);
            let wanted: Vec<PathBuf> = wanted.iter().map(|name| at(name)).collect();
            assert_eq!(found, wanted, "{path}");
        }
        let path = ["bin", climbing, "tools-now"].map(|name| at(name).display().to_string());
        let found = refused_path_dirs(&path.join(":"), &ground);
        let named: Vec<_> = found.iter().map(|(dir, _)| dir.clone()).collect();
        assert_eq!(named, [at("bin"), at(climbing)]);
        assert!(found[0].1.contains("link"), "{found:?}");
    }

    #[test]
    fn a_directory_of_path_is_granted_with_what_its_programs_need_and_nothing_beside() {
        // All users can write /tmp, so only the home counts there.
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        made(&base);
        let home = base.join("home");
        let kept = [".ssh", ".cargo", "state/agentd"].map(|name| home.join(name));
        let (known, writable) = ([home.join("known")], [home.join("project")]);
        let ground = PathPolicy {
            home: Some(&home),
            known: &known,
            kept: &kept,
            writable: &writable,
            elsewhere: &[],
            is_led_by: sandbox::is_led_by_commands,
            persons: [home.metadata().unwrap().uid(); 2],
        };
        let maven =
            ["bin", "lib", "boot", "conf/logging"].map(|name| format!("tools/maven/{name}"));
        let maven: Vec<&str> = maven.iter().map(String::as_str).collect();
        let local =
            [&[".local/bin", ".local/share/tool/lib"][..], &maven, &[".local/share/apps/app"]]
                .concat();
        for (path, wanted) in [
            ("tools/maven/bin", &maven[..]),
            ("maven-now", &maven),
            ("jdk/bin", &["jdk"]),
            ("jdk8/bin", &["jdk8"]),
            ("scanner/bin", &["scanner/bin", "scanner/lib", "scanner/jre"]),
            ("tools/plain", &["tools/plain"]),
            (".fly/bin", &[".fly/bin"]),
            (".local/share/mise/shims", &[".local/share/mise/shims", ".local/share/mise/installs"]),
            ("bin", &["bin"]),
            ("", &[]),
            ("..", &[]),
            (".ssh/bin", &[]),
            (".cargo/bin", &[]),
            ("state", &[]),
            ("project/bin", &[]),
            ("known/bin", &[]),
            ("open/bin", &[]),
            ("../all/bin", &[]),
            ("missing", &[]),
        ] {
            let mut found = granted_path_dirs(home.join(path).to_str().unwrap(), &ground);
            let mut wanted: Vec<PathBuf> = wanted.iter().map(|name| home.join(name)).collect();
            found.sort();
            wanted.sort();
            assert_eq!(found, wanted, "{path}");
        }
        let mut found = granted_path_dirs(home.join(".local/bin").to_str().unwrap(), &ground);
        let mut wanted: Vec<PathBuf> = local.iter().map(|name| home.join(name)).collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "and what its links lead to");
        let path = [".ssh/bin", "known/bin", "project/bin", "open/bin", "bin", "missing", ""]
            .map(|name| home.join(name).display().to_string());
        let found = refused_path_dirs(&path.join(":"), &ground);
        let said: Vec<_> =
            found.iter().map(|(_, reason)| reason.split(' ').next().unwrap()).collect();
        assert_eq!(said, ["keys", "commands", "other", "much"], "{found:?}");
        assert!(granted_path_dirs("bin:/:/usr", &ground).is_empty(), "nor relative ones, nor all");
    }
}
