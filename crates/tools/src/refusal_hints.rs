//! The restriction behind a refusal of the kernel or of a path.

use protocol::confinement::{Refusal, RefusalKind};
use sandbox::CallScope;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use tool_specs::Restriction;

/// The directories for temporary files of the whole machine, in whose place a session has one of its own.
const SHARED_TEMP: [&str; 2] = ["/tmp", "/var/tmp"];

/// True for a path below /tmp or /var/tmp that no grant covers.
pub(crate) fn is_closed_temp(path: &Path, scope: &CallScope) -> bool {
    let is_shown = scope.private.iter().any(|(shown_at, _)| path.starts_with(shown_at));
    let is_shared = SHARED_TEMP.iter().any(|shared| path.starts_with(shared));
    is_shared && !is_shown && !scope.contains(path)
}

/// Phrases of error messages about an inaccessible path.
const PATH_ERRORS: [&str; 10] = [
    "Permission denied",
    "No such file or directory",
    "Read-only file system",
    "Directory nonexistent",
    "not permitted",
    "cannot ",
    "Errno ",
    "EACCES",
    "ENOENT",
    "EROFS",
];

/// True where a command tried to use /tmp or /var/tmp: its refusals, its error messages or, where something
/// failed, its own text name such a path. The kernel reports no refused read, so refusals alone are not enough.
pub(crate) fn names_closed_temp_path(
    command: Option<&str>,
    printed: &str,
    refusals: &[Refusal],
    scope: &CallScope,
) -> bool {
    let refused = |refusal: &Refusal| names_closed_temp(&refusal.detail, scope);
    let says_so = |line: &str| {
        PATH_ERRORS.iter().any(|said| line.contains(said)) && names_closed_temp(line, scope)
    };
    refusals.iter().any(refused)
        || printed.lines().any(says_so)
        || command.is_some_and(|command| names_closed_temp(command, scope))
}

/// True for a text that names a closed path below /tmp or /var/tmp.
fn names_closed_temp(text: &str, scope: &CallScope) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_-./~+@%".contains(c);
    SHARED_TEMP.iter().any(|shared| {
        text.match_indices(shared).any(|(at, _)| {
            let is_begun = text[..at].chars().next_back().is_some_and(is_part);
            let path = text[at..].split(|c| !is_part(c)).next().unwrap_or_default();
            !is_begun && is_closed_temp(Path::new(path.trim_end_matches('.')), scope)
        })
    })
}

/// The machine's own places, which people change as its administrators.
const SYSTEM_DIRS: [&str; 13] = [
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/boot",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/var/cache",
    "/var/log",
    "/var/spool",
];

/// Where the resolver of systemd is asked for names.
const RESOLVER: &str = "/run/systemd/resolve/";

/// True for a DNS query, or for a socket that a resolver library opens for one: tier B refuses that
/// socket before it has an address.
pub(crate) fn is_name_lookup(refusal: &Refusal) -> bool {
    let detail = refusal.detail.as_str();
    match refusal.syscall.as_str() {
        "connect" => {
            let mut words = detail.split_whitespace();
            let address = words.find_map(|word| word.parse::<SocketAddr>().ok());
            detail.starts_with(RESOLVER) || address.is_some_and(|address| address.port() == 53)
        }
        "socket" => matches!(detail, "AF_INET datagram socket" | "AF_INET6 datagram socket"),
        _ => false,
    }
}

/// True for an address of this machine or of a private network: the proxy of an allow-list refuses it.
fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let is_shared = v4.octets()[0] == 100 && (64..128).contains(&v4.octets()[1]);
            v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || v4.octets()[0] == 0
                || is_shared
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
        }
    }
}

/// The restriction behind a refusal of a command in this project, if there is a hint for it.
/// `settings` is the directory with the copy of the user's git settings.
pub(crate) fn restriction_of(
    refusal: &Refusal,
    project: &Path,
    settings: Option<&Path>,
) -> Option<Restriction> {
    let Refusal { kind, syscall, detail, .. } = refusal;
    let address = match syscall.as_str() {
        "connect" | "sendto" | "sendmsg" | "sendmmsg" => {
            detail.split_whitespace().find_map(|word| word.parse::<SocketAddr>().ok())
        }
        _ => None,
    };
    let is_socket = syscall == "socket" && detail.starts_with("AF_INET");
    match address {
        _ if is_socket || is_name_lookup(refusal) => return Some(Restriction::Network),
        Some(address) if is_local(address.ip()) => return Some(Restriction::LocalAddress),
        Some(_) => return Some(Restriction::Network),
        None => {}
    }
    match (kind, syscall.as_str()) {
        (RefusalKind::Refused, _) if detail.starts_with("new namespaces") => {
            return Some(Restriction::Namespaces);
        }
        (_, "connect") if detail.starts_with('/') => return Some(Restriction::Socket),
        (
            RefusalKind::Refused,
            "socket" | "socketpair" | "ioctl" | "personality" | "execve" | "execveat",
        ) => return None,
        (RefusalKind::Refused, _) if !detail.contains('/') => return Some(Restriction::Kernel),
        (_, "ptrace" | "kill" | "tkill" | "tgkill") => return Some(Restriction::Process),
        _ => {}
    }
    // The path comes first in the words for it.
    let outside = *kind == RefusalKind::Predicted
        && detail.starts_with('/')
        && !Path::new(detail).starts_with(project);
    match (outside, syscall.as_str()) {
        (false, _) | (true, "connect") => None,
        (true, "execve" | "execveat") => Some(Restriction::Program),
        (true, _) if settings.is_some_and(|settings| Path::new(detail).starts_with(settings)) => {
            Some(Restriction::Settings)
        }
        (true, _) if SYSTEM_DIRS.iter().any(|scope| Path::new(detail).starts_with(scope)) => {
            Some(Restriction::System)
        }
        (true, _) => Some(Restriction::Outside),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_directory_for_temporary_files_is_known_by_its_path() {
        let path = |text: &str| Path::new(text).to_path_buf();
        let scope = CallScope {
            project: path("/tmp/proj"),
            added: vec![path("/var/tmp/more")],
            temp: path("/tmp/agentd-1"),
            private: vec![],
            home: None,
            caches: None,
            withheld: Vec::new(),
        };
        for (text, expected) in [
            ("/tmp/x for writing", true),
            ("cat: /tmp/x: No such file", true),
            ("cd /tmp && ls", true),
            ("echo a >/var/tmp/b", true),
            ("open(\"/tmp/x\")", true),
            ("/tmp/project2/x", true),
            ("/tmp/proj/a and /tmp/agentd-1/b", false),
            ("/var/tmp/more/x", false),
            ("/proj/tmp/x ./tmp/x src/tmp", false),
            ("/tmpfs /var/tmpx", false),
            ("nothing of it", false),
        ] {
            assert_eq!(names_closed_temp(text, &scope), expected, "{text}");
        }
        let met = |command, printed| names_closed_temp_path(command, printed, &[], &scope);
        assert!(met(None, "sh: 1: cannot create /tmp/x: Permission denied"));
        assert!(!met(None, "wrote /tmp/x"), "it is only named");
        assert!(met(Some("cat /tmp/x"), "") && !met(Some("cat x"), ""));
    }

    #[test]
    fn a_refusal_is_about_what_a_person_can_open() {
        let (refused, predicted) = (RefusalKind::Refused, RefusalKind::Predicted);
        for (kind, syscall, detail, barrier) in [
            (predicted, "connect", "93.184.216.34:80", Some(Restriction::Network)),
            (predicted, "connect", "[2606:2800::1]:443", Some(Restriction::Network)),
            (predicted, "connect", "127.0.0.1:5432 of the host", Some(Restriction::LocalAddress)),
            (predicted, "connect", "[::1]:5432 of the host", Some(Restriction::LocalAddress)),
            (predicted, "connect", "10.1.2.3:80", Some(Restriction::LocalAddress)),
            (predicted, "sendto", "[fd00::1]:80", Some(Restriction::LocalAddress)),
            (predicted, "connect", "10.1.2.3:53", Some(Restriction::Network)),
            (refused, "socket", "AF_INET stream socket", Some(Restriction::Network)),
            (refused, "socket", "AF_ALG type 5 socket", None),
            (predicted, "connect", "/run/docker.sock", Some(Restriction::Socket)),
            (predicted, "openat", "/etc/hosts for writing", Some(Restriction::System)),
            (predicted, "openat", "/srv/x for writing", Some(Restriction::Outside)),
            (predicted, "mkdirat", "/usr/x, making it", Some(Restriction::System)),
            (predicted, "openat", "/var/spool/cron/u for writing", Some(Restriction::System)),
            (predicted, "openat", "/var/www/u for writing", Some(Restriction::Outside)),
            (predicted, "openat", "/usrs/u for writing", Some(Restriction::Outside)),
            (predicted, "connect", "127.0.0.53:53 of the host", Some(Restriction::Network)),
            (
                predicted,
                "connect",
                "/run/systemd/resolve/io.systemd.Resolve",
                Some(Restriction::Network),
            ),
            (refused, "clone", "new namespaces: user", Some(Restriction::Namespaces)),
            (refused, "unshare", "new namespaces: user, mount", Some(Restriction::Namespaces)),
            (refused, "bpf", "programs in the kernel", Some(Restriction::Kernel)),
            (
                predicted,
                "openat",
                "/srv/b/settings/git/config for writing",
                Some(Restriction::Outside),
            ),
            (
                predicted,
                "openat",
                "/tmp/a/settings/git/config.lock for writing",
                Some(Restriction::Settings),
            ),
            (refused, "ioctl", "TIOCSTI", None),
            (refused, "add_key", "the kernel's key rings", Some(Restriction::Kernel)),
            (predicted, "ptrace", "attaching to pid 1", Some(Restriction::Process)),
            (predicted, "mkdirat", "/projects/x, making it", Some(Restriction::Outside)),
            (predicted, "openat", "/proj/.envrc for writing", None),
            (predicted, "execve", "/opt2/bin/tool, running it", Some(Restriction::Program)),
            (predicted, "execveat", "/x/sh, running /proj/a with it", Some(Restriction::Program)),
            (predicted, "execve", "/proj/tool, running it", None),
            (refused, "execve", "starting a program /bin/true", None),
            (refused, "mount", "mounting /etc", None),
            (predicted, "kill", "SIGKILL to pid 1", Some(Restriction::Process)),
        ] {
            let (syscall, detail) = (syscall.to_owned(), detail.to_owned());
            let refusal = Refusal { kind, syscall, detail, errno: 1, pid: 1, count: 1 };
            let settings = Some(Path::new("/tmp/a/settings/git"));
            assert_eq!(
                restriction_of(&refusal, Path::new("/proj"), settings),
                barrier,
                "{refusal:?}"
            );
        }
    }

    #[test]
    fn a_question_for_a_name_is_known_by_its_port_or_its_socket() {
        for (syscall, detail, expected) in [
            ("connect", "127.0.0.53:53 of the host", true),
            ("connect", "[2606:2800::1]:53", true),
            ("connect", "/run/systemd/resolve/io.systemd.Resolve", true),
            ("socket", "AF_INET datagram socket", true),
            ("connect", "127.0.0.1:5353 of the host", false),
            ("connect", "93.184.216.34:443", false),
            ("connect", "/run/docker.sock", false),
            ("socket", "AF_INET stream socket", false),
            ("openat", "/srv/a:53 for writing", false),
        ] {
            let (kind, syscall, detail) =
                (RefusalKind::Predicted, syscall.to_owned(), detail.to_owned());
            let refusal = Refusal { kind, syscall, detail, errno: 1, pid: 1, count: 1 };
            assert_eq!(is_name_lookup(&refusal), expected, "{refusal:?}");
        }
    }
}
