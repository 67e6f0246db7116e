//! Explains which path a failed command could not access because of the sandbox. The kernel
//! reports no refused reads, and in tier A a path without a grant does not exist; so the last lines
//! of the program's standard error are examined.
//!
//! The text confirms the existence of a path only if every user of the machine could list it,
//! outside of all home directories. About the person's home it says only what holds for any name,
//! present or not; of a name in the session's own home it says nothing.

use crate::files::safe_open::open_no_links;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Lines at the end of standard error that are read.
const LAST: usize = 20;

/// Well-known paths with an explanation, which is given whether or not the path exists.
const MEANINGS: [(&str, &str); 11] = [
    ("/run/docker.sock", DOCKER),
    ("/var/run/docker.sock", DOCKER),
    ("/run/containerd/containerd.sock", DOCKER),
    ("/run/podman/podman.sock", DOCKER),
    ("/run/dbus/system_bus_socket", BUS),
    ("/var/run/dbus/system_bus_socket", BUS),
    ("/var/lib/dpkg/lock", PACKAGES),
    ("/var/lib/dpkg/lock-frontend", PACKAGES),
    ("/var/lib/apt/lists", PACKAGES),
    (
        "/sys/class",
        "of /sys/class commands see only the names of network interfaces, because it describes the \
            machine's devices; /proc/net/dev lists this command's network interfaces",
    ),
    (
        "/sys/block",
        "of /sys/block commands see only the names of disks, because it describes the machine's \
            disks; `df .` shows the free space of the project",
    ),
];
const DOCKER: &str = "commands cannot use the socket of a container daemon, because it gives root on this \
    machine; ask the user to run the container";
const BUS: &str =
    "commands cannot use the system bus, because it controls the services of this machine";
const PACKAGES: &str = "commands cannot install system packages; ask the user, or install into the project (venv, \
    npm, cargo)";

/// Names in the home directory that are known to hold credentials, present or not.
const KEYS: [&str; 12] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".netrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".vault-token",
];

/// The part of the file system that the sandbox shows, and the rest that notes may mention.
pub(crate) struct SandboxView<'a> {
    /// Places that the command can read.
    pub granted: &'a [PathBuf],
    /// Directories out of reach.
    pub withheld: &'a [PathBuf],
    /// The person's home.
    pub home: Option<&'a Path>,
    /// The directory with the files of the session's own home, which is shown in its place.
    pub own_home: Option<&'a Path>,
}

/// Directories that no call is granted by a right of its own, or whose absence has other reasons.
const SILENT: [&str; 9] =
    ["/proc", "/sys", "/dev", "/etc", "/boot", "/root", "/home", "/tmp", "/var/tmp"];

/// The note about a path that a failed command could not access, from the end of its standard error
/// and its refusals.
pub(crate) fn line<'a>(
    said: &str,
    refused: impl Iterator<Item = &'a Path>,
    view: &SandboxView<'_>,
) -> Option<String> {
    let refused: Vec<&Path> = refused.collect();
    let missed = missed(said);
    let mut all = missed.iter().map(PathBuf::as_path).chain(refused.iter().copied());
    if let Some(meaning) = all.find_map(meaning) {
        return Some(format!("[{meaning}]"));
    }
    // Of a refused change its refusal says more.
    let mut unseen = missed.iter().filter(|path| !refused.contains(&path.as_path()));
    unseen.find_map(|path| ungranted(path, view)).or_else(|| gone(said))
}

/// The line about a process that the command does not see. No refusal says it: whether a number
/// outside of the command's PID namespace is a process must not show.
fn gone(said: &str) -> Option<String> {
    let says_so = said.lines().rev().take(LAST).any(|line| line.contains("No such process"));
    says_so.then(|| {
        "[a command sees only its own processes: start the process in the same command, end one in the \
            background with bash_stop, or ask the user]"
            .to_owned()
    })
}

fn meaning(path: &Path) -> Option<&'static str> {
    MEANINGS.iter().find(|(place, _)| path.starts_with(place)).map(|(_, meaning)| *meaning)
}

fn ungranted(path: &Path, view: &SandboxView<'_>) -> Option<String> {
    // In tier A the home as a whole is granted, but it is the session's, not the person's.
    let is_home = |place: &PathBuf| Some(place.as_path()) == view.home;
    let below =
        |places: &[PathBuf]| places.iter().any(|place| !is_home(place) && path.starts_with(place));
    if below(view.granted) || below(view.withheld) || leads_on(path, view) {
        return None;
    }
    let way = "a bash call can request a directory with `directory`, or the user can add one with \
        :add-dir DIR";
    let said = protocol::hidden::line_for_model(path.to_str()?).into_owned();
    if let Some(home) = view.home.filter(|home| path.starts_with(home)) {
        let below = path.strip_prefix(home).ok()?;
        if is_own(below, home, view) {
            return None;
        }
        // A name with a dot may hold keys: no way to those is offered.
        let first = below.iter().next()?;
        if let Some(kept) = KEYS.iter().find(|kept| first == **kept) {
            return Some(format!(
                "[commands cannot read ~/{kept}, which holds credentials; ask the user to \
                    do this step]"
            ));
        }
        let is_plain = !first.as_encoded_bytes().starts_with(b".");
        return is_plain.then(|| {
            format!(
                "[{said} is outside the granted directories; commands see only toolchains of \
                the home directory: {way}]"
            )
        });
    }
    let is_silent = SILENT.iter().any(|place| path.starts_with(place));
    (!is_silent && is_public(path)).then(|| {
        format!("[{said} exists on this machine, but this command has no access to it: {way}]")
    })
}

/// True for a directory on the way to a granted one, as which commands see it.
fn leads_on(path: &Path, view: &SandboxView<'_>) -> bool {
    view.granted.iter().any(|place| place != path && place.starts_with(path))
}

/// True if the session's own home has the first part of the path that does more than lead to a
/// granted directory. No link of the command's is followed: the answer would be about its target.
fn is_own(below: &Path, home: &Path, view: &SandboxView<'_>) -> bool {
    let Some(own) = view.own_home.and_then(|own| File::open(own).ok()) else { return false };
    let parts: Vec<&Path> = below.ancestors().collect();
    let first = parts.into_iter().rev().skip(1).find(|part| !leads_on(&home.join(part), view));
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW;
    first.is_none_or(|part| {
        !matches!(open_no_links(&own, part, flags, Mode::empty()), Err(Errno::ENOENT))
    })
}

/// True if it exists and every user may list each directory on the way, without links.
fn is_public(path: &Path) -> bool {
    let Some(parent) = path.parent() else { return false };
    let open = |dir: &Path| {
        fs::symlink_metadata(dir)
            .is_ok_and(|found| found.is_dir() && found.permissions().mode() & 0o005 == 0o005)
    };
    parent.ancestors().all(open) && fs::symlink_metadata(path).is_ok()
}

/// Absolute paths at the end of standard error, the last line first.
fn missed(said: &str) -> Vec<PathBuf> {
    said.lines().rev().take(LAST).flat_map(paths).collect()
}

fn paths(line: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut end = 0;
    for (at, _) in line.match_indices('/') {
        let before = line[..at].chars().next_back();
        let begins = before.is_none_or(|c| c.is_whitespace() || "'\"`‘“(=:[<".contains(c));
        if at < end || !begins {
            continue;
        }
        let rest = &line[at..];
        let length = match before {
            Some(quote @ ('\'' | '"' | '`')) => rest.find(quote),
            Some('‘') => rest.find('’'),
            Some('“') => rest.find('”'),
            _ => None,
        };
        let plain = || rest.find(|c: char| c.is_whitespace() || "'\"`’”),;>]".contains(c));
        let length = length.or_else(plain).unwrap_or(rest.len());
        end = at + length;
        let path = Path::new(rest[..length].trim_end_matches([':', '.', '/']));
        let is_straight = path.components().all(|part| part != Component::ParentDir);
        if is_straight && path.parent().is_some() {
            // Without empty parts: `unix:///run/x`.
            found.push(path.components().collect());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn paths_are_read_from_the_last_words_of_programs() {
        for (line, expected) in [
            ("cat: /srv/x: No such file or directory", "/srv/x"),
            ("ls: cannot access '/srv/a b': No such file or directory", "/srv/a b"),
            ("FileNotFoundError: [Errno 2] No such file or directory: '/srv/x'", "/srv/x"),
            ("Error: ENOENT: no such file or directory, open '/srv/x'", "/srv/x"),
            ("java.nio.file.NoSuchFileException: /srv/x", "/srv/x"),
            ("open(\"/srv/x\"): No such file or directory", "/srv/x"),
            ("sh: 1: /srv/tool: not found", "/srv/tool"),
            ("cp: cannot stat ‘/srv/x’: No such file or directory", "/srv/x"),
            ("cd: /srv/x/: No such file or directory", "/srv/x"),
            ("path=/srv/x: Permission denied", "/srv/x"),
            (
                "Cannot connect to the Docker daemon at unix:///run/docker.sock. Is it?",
                "/run/docker.sock",
            ),
        ] {
            assert_eq!(missed(line), [PathBuf::from(expected)], "{line}");
        }
        for line in [
            "cat: src/x: No such file or directory",
            "./srv/x: No such file or directory",
            "cat: /srv/../root/x: No such file or directory",
            "cat: /: Permission denied",
        ] {
            assert_eq!(missed(line), Vec::<PathBuf>::new(), "{line}");
        }
        let long = format!("cat: /srv/x: No such file\n{}", "more\n".repeat(LAST));
        assert_eq!(missed(&long), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_is_told_of_a_path_that_was_not_granted() {
        let granted = ["/usr", "/home/u", "/home/u/work/proj", "/var/spool/x/y"].map(PathBuf::from);
        let withheld = [PathBuf::from("/var/lib")];
        let own = tempfile::tempdir().unwrap();
        fs::create_dir_all(own.path().join("made-here/.ssh")).unwrap();
        fs::create_dir_all(own.path().join("work/proj")).unwrap();
        fs::create_dir(own.path().join(".aws")).unwrap();
        // A link to a name that is there, and one to a name that is not.
        std::os::unix::fs::symlink(own.path(), own.path().join("there")).unwrap();
        std::os::unix::fs::symlink("/no/such/name", own.path().join("nowhere")).unwrap();
        let view = SandboxView {
            granted: &granted,
            withheld: &withheld,
            home: Some(Path::new("/home/u")),
            own_home: Some(own.path()),
        };
        let told = |path: &str| {
            line(&format!("cat: {path}: No such file or directory"), std::iter::empty(), &view)
        };
        for (path, part) in [
            ("/var/run/docker.sock", Some("gives root on this machine")),
            ("/var/lib/dpkg/lock-frontend", Some("system packages")),
            ("/sys/class/net/lo", Some("/proc/net/dev")),
            ("/sys/block", Some("disks")),
            (
                "/var/cache",
                Some("/var/cache exists on this machine, but this command has no access"),
            ),
            ("/var/spool", None),
            ("/var/nothing-there", None),
            ("/var/lib", None),
            ("/usr/bin", None),
            ("/etc/shadow", None),
            ("/root/.bashrc", None),
            ("/home/other/x", None),
            ("/home/u/work/x", Some("outside the granted directories")),
            ("/home/u/.ssh/id_rsa", Some("commands cannot read ~/.ssh, which holds credentials")),
            ("/home/u/.ssh2/id_rsa", None),
            ("/home/u/made-here/x", None),
            ("/home/u/made-here/.ssh/id_rsa", None),
            ("/home/u/.aws/credentials", None),
            ("/home/u/work", None),
            ("/home/u/work/proj/x", None),
            ("/home/u/there/.aws", None),
            ("/home/u/there/none", None),
            ("/home/u/nowhere/x", None),
            ("/home/u", None),
            ("/tmp/x", None),
        ] {
            match (told(path), part) {
                (Some(line), Some(part)) => assert!(line.contains(part), "{path}: {line}"),
                (line, part) => assert_eq!(line.as_deref(), part, "{path}"),
            }
        }
        let killed = line("kill: (7) - No such process", std::iter::empty(), &view);
        assert!(killed.unwrap().contains("sees only its own processes"));
        let written = [Path::new("/var/cache")].into_iter();
        assert_eq!(line("sh: /var/cache: No such file or directory", written, &view), None);
        let refused = [Path::new("/run/docker.sock")].into_iter();
        assert!(line("", refused, &view).unwrap().contains("root on this machine"));
    }

    #[test]
    fn what_not_everybody_may_list_is_not_told() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("x"), "").unwrap();
        let open = |mode| fs::set_permissions(&inner, fs::Permissions::from_mode(mode)).unwrap();
        open(0o755);
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let outer = place
            .path()
            .ancestors()
            .skip(1)
            .all(|dir| fs::metadata(dir).unwrap().permissions().mode() & 0o005 == 0o005);
        assert_eq!(is_public(&inner.join("x")), outer, "the control");
        assert!(!is_public(&inner.join("none")));
        for mode in [0o700, 0o751, 0o754] {
            open(mode);
            assert!(!is_public(&inner.join("x")), "{mode:o}");
        }
        open(0o755);
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&inner, &link).unwrap();
        assert!(!is_public(&link.join("x")));
    }
}
