//! The restriction behind a refusal of the kernel or of a path.

use protocol::confinement::{Refusal, Subject};
use sandbox::CallScope;
use std::net::IpAddr;
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

/// True where a command that failed tried to use /tmp or /var/tmp: its refusals, its text or its
/// standard error name such a path. The kernel reports no refused read, so refusals alone are not
/// enough.
pub(crate) fn met_closed_temp(texts: [&str; 2], refusals: &[Refusal], scope: &CallScope) -> bool {
    let refused = |refusal: &Refusal| {
        refusal.subject.path().is_some_and(|path| is_closed_temp(Path::new(path), scope))
    };
    refusals.iter().any(refused) || texts.iter().any(|text| names_closed_temp(text, scope))
}

/// True for a text that names a closed path below /tmp or /var/tmp.
pub(crate) fn names_closed_temp(text: &str, scope: &CallScope) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_-./~+@%".contains(c);
    SHARED_TEMP.iter().any(|shared| {
        text.match_indices(shared).any(|(at, _)| {
            if text[..at].chars().next_back().is_some_and(is_part) {
                return false;
            }
            let path = text[at..].split(|c| !is_part(c)).next().unwrap_or_default();
            is_closed_temp(Path::new(path.trim_end_matches('.')), scope)
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

/// True for a file about one process, as `/proc/7/oom_score_adj`.
fn is_of_process(path: &Path) -> bool {
    let below = path.strip_prefix("/proc").ok().and_then(|below| below.iter().next());
    below.is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// Where the resolver of systemd is asked for names.
const RESOLVER: &str = "/run/systemd/resolve";

/// The port of DNS.
const DNS_PORT: u16 = 53;

/// True for a DNS query.
fn is_name_lookup(subject: &Subject) -> bool {
    matches!(
        subject,
        Subject::Address(address) | Subject::HostAddress(address) if address.port() == DNS_PORT
    ) || matches!(subject, Subject::UnixSocket(path) if Path::new(path).starts_with(RESOLVER))
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
    match &refusal.subject {
        subject if is_name_lookup(subject) => Some(Restriction::Network),
        Subject::Address(address) | Subject::HostAddress(address) if is_local(address.ip()) => {
            Some(Restriction::LocalAddress)
        }
        Subject::Address(_) | Subject::HostAddress(_) => Some(Restriction::Network),
        Subject::Socket(socket) if socket.is_inet() => Some(Restriction::Network),
        Subject::UnixSocket(_) | Subject::AbstractSocket(_) => Some(Restriction::Socket),
        Subject::Namespaces(_) => Some(Restriction::Namespaces),
        Subject::Operation { .. } => Some(Restriction::Kernel),
        Subject::Signal { .. } | Subject::Process { .. } => Some(Restriction::Process),
        Subject::Path { path, .. } | Subject::Program { path, .. }
            if Path::new(path).starts_with(project) =>
        {
            None
        }
        Subject::Program { .. } => Some(Restriction::Program),
        // Files of a process, not of the system: there is no way to be given them.
        Subject::Path { path, .. } if is_of_process(Path::new(path)) => None,
        Subject::Path { path, .. } => Some(match Path::new(path) {
            path if settings.is_some_and(|settings| path.starts_with(settings)) => {
                Restriction::Settings
            }
            path if SYSTEM_DIRS.iter().any(|dir| path.starts_with(dir)) => Restriction::System,
            _ => Restriction::Outside,
        }),
        Subject::Start { .. }
        | Subject::UnnamedSocket
        | Subject::OtherAddress
        | Subject::Socket(_)
        | Subject::SocketPair(_)
        | Subject::Request(_)
        | Subject::Personality(_)
        | Subject::HiddenMemory
        | Subject::Text(_) => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use protocol::confinement::{PathAct, ProcessAct, RefusalKind, SocketSpec};

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
    }

    fn refusal(subject: Subject) -> Refusal {
        let kind = RefusalKind::Predicted;
        Refusal { kind, syscall: String::new(), subject, errno: 1, pid: 1, count: 1 }
    }

    fn address(text: &str) -> Subject {
        Subject::Address(text.parse().unwrap())
    }

    fn socket(family: u32, kind: u32) -> Subject {
        Subject::Socket(SocketSpec { family, kind, protocol: 0 })
    }

    #[test]
    fn a_refusal_is_about_what_a_person_can_open() {
        let path = |path: &str| Subject::Path { path: path.to_owned(), act: PathAct::Write };
        let program = |path: &str| Subject::Program { path: path.to_owned(), script: None };
        let unix = |path: &str| Subject::UnixSocket(path.to_owned());
        let operation = |path: Option<&str>| Subject::Operation {
            what: String::new(),
            path: path.map(Into::into),
        };
        for (subject, barrier) in [
            (address("93.184.216.34:80"), Some(Restriction::Network)),
            (address("[2606:2800::1]:443"), Some(Restriction::Network)),
            (
                Subject::HostAddress("127.0.0.1:5432".parse().unwrap()),
                Some(Restriction::LocalAddress),
            ),
            (Subject::HostAddress("[::1]:5432".parse().unwrap()), Some(Restriction::LocalAddress)),
            (address("10.1.2.3:80"), Some(Restriction::LocalAddress)),
            (address("[fd00::1]:80"), Some(Restriction::LocalAddress)),
            (address("10.1.2.3:53"), Some(Restriction::Network)),
            (Subject::HostAddress("127.0.0.53:53".parse().unwrap()), Some(Restriction::Network)),
            (socket(2, 1), Some(Restriction::Network)),
            (socket(38, 5), None),
            (unix("/run/docker.sock"), Some(Restriction::Socket)),
            (unix("/run/systemd/resolve/io.systemd.Resolve"), Some(Restriction::Network)),
            (Subject::AbstractSocket("x".to_owned()), Some(Restriction::Socket)),
            (address("[2606:2800::1]:53"), Some(Restriction::Network)),
            (
                Subject::HostAddress("127.0.0.1:5353".parse().unwrap()),
                Some(Restriction::LocalAddress),
            ),
            (path("/etc/hosts"), Some(Restriction::System)),
            (path("/proc/7/coredump_filter"), None),
            (path("/proc/sys/vm/swappiness"), Some(Restriction::System)),
            (path("/srv/x"), Some(Restriction::Outside)),
            (path("/usr/x"), Some(Restriction::System)),
            (path("/var/spool/cron/u"), Some(Restriction::System)),
            (path("/var/www/u"), Some(Restriction::Outside)),
            (path("/usrs/u"), Some(Restriction::Outside)),
            (path("/srv/b/settings/git/config"), Some(Restriction::Outside)),
            (path("/tmp/a/settings/git/config.lock"), Some(Restriction::Settings)),
            (path("/projects/x"), Some(Restriction::Outside)),
            (path("/proj/.envrc"), None),
            (program("/opt2/bin/tool"), Some(Restriction::Program)),
            (program("/proj/tool"), None),
            (Subject::Namespaces(vec!["user".to_owned()]), Some(Restriction::Namespaces)),
            (operation(None), Some(Restriction::Kernel)),
            (operation(Some("/etc")), Some(Restriction::Kernel)),
            (Subject::Request(0x5412), None),
            (Subject::Process { act: ProcessAct::Trace, pid: 1 }, Some(Restriction::Process)),
            (Subject::Signal { signal: 9, pid: 1 }, Some(Restriction::Process)),
            (Subject::Start { path: Some("/bin/true".to_owned()) }, None),
            (Subject::Text("/etc/hosts for writing".to_owned()), None),
        ] {
            let refusal = refusal(subject);
            let settings = Some(Path::new("/tmp/a/settings/git"));
            assert_eq!(
                restriction_of(&refusal, Path::new("/proj"), settings),
                barrier,
                "{refusal:?}"
            );
        }
    }
}
