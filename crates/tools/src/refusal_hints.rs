//! The restrictions of a session's commands, one row each: a sentence for the system prompt that
//! states the restriction in the session's sandbox, and a hint next to a refusal that explains how
//! to get more access. Used by the system prompt, by command results, by refused paths and by the
//! allow-list proxy.

use crate::files::call_scope::CallScope;
use protocol::confinement::{Confinement, GitSettings, Level, Network, Refusal, RefusalKind, Tier};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The subject of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restriction {
    /// A path outside the session's directories, given to a tool.
    Path,
    /// Changing a path outside the granted directories.
    Outside,
    /// Starting a program outside the executable directories.
    Program,
    /// Network access, or part of it.
    Network,
    /// The same where no allow-list is possible (tier B).
    WholeNetwork,
    /// This machine's own addresses and those of private networks, which no allow-list reaches.
    LocalAddress,
    /// A connection past the proxy of an allow-list.
    Direct,
    /// A host that is on no list.
    Host,
    /// Git's settings and hooks.
    Git,
    /// Signatures of git's commits and tags.
    Signing,
    /// Terminals of a program's own.
    Terminal,
    /// Changing the machine's own places.
    System,
    /// A system call that the filter refuses.
    Kernel,
    /// New namespaces, of which programs make sandboxes of their own.
    Namespaces,
    /// Processes that the command did not start.
    Process,
    /// A socket file that other programs listen on.
    Socket,
    /// The person's settings of git.
    Settings,
    /// Names that are run or believed later.
    Protected,
}

/// A row: the restriction, its sentence for the system prompt, and the hint for a refusal.
struct RestrictionRow {
    restriction: Restriction,
    stated: fn(&Confinement) -> Option<String>,
    hint: Option<&'static str>,
}

/// The table, in the order in which the model reads it.
const RESTRICTIONS: [RestrictionRow; 18] = [
    RestrictionRow {
        restriction: Restriction::Path,
        stated: |_| None,
        hint: Some(
            "only the project and added directories are accessible; the user can add one \
                with :add-dir DIR or --add-dir: ask for it if you need it, and do not try \
                other ways to the same path",
        ),
    },
    RestrictionRow {
        restriction: Restriction::Outside,
        stated: outside,
        hint: Some(
            "only the project, added directories and the temporary directory are writable; \
                a bash call can request one more with `directory`, or the user can add one \
                with :add-dir DIR",
        ),
    },
    RestrictionRow {
        restriction: Restriction::Program,
        stated: |_| None,
        hint: Some(
            "only programs of the system, of toolchains, of the project and of added \
                directories can run; a bash call can request one more directory with \
                `directory`, or the user can add one with :add-dir DIR",
        ),
    },
    RestrictionRow {
        restriction: Restriction::Network,
        stated: network,
        hint: Some(
            "the network is off; a bash call can request `hosts` or `network`, or the user \
                can open it with :net allow HOST or :net on",
        ),
    },
    RestrictionRow {
        restriction: Restriction::WholeNetwork,
        stated: |_| None,
        hint: Some(
            "the network is off; a bash call can request `network`, or the user can open it \
                with :net on",
        ),
    },
    RestrictionRow {
        restriction: Restriction::LocalAddress,
        stated: |_| None,
        hint: Some(
            "servers of this machine and of private networks are not reachable, also not by an \
                allow-list: start the server in this command, or request `network` in a bash \
                call; or the user can open the whole network with :net on",
        ),
    },
    RestrictionRow {
        restriction: Restriction::Direct,
        stated: |_| None,
        hint: Some(
            "only hosts on the allow-list are reachable, through the proxy in http_proxy, \
                and this program did not use it. Without the proxy, a host is reachable by \
                name only if the list has its full name and port. Set the proxy with the \
                program's own option, or use a program that supports proxies, such as curl; \
                the user can open the whole network with :net on",
        ),
    },
    RestrictionRow {
        restriction: Restriction::Host,
        stated: |_| None,
        hint: Some(
            "only hosts on the session's allow-list are reachable; a bash call can request \
                more with `hosts`, or the user can add one with :net allow HOST",
        ),
    },
    RestrictionRow {
        restriction: Restriction::Git,
        stated: git,
        hint: Some(
            "git settings and hooks are read-only; to change them, make the call with \
                git_settings \"write\", which needs the right git-admin",
        ),
    },
    RestrictionRow {
        restriction: Restriction::Signing,
        stated: |_| None,
        hint: Some(
            "commits and tags are not signed; to sign, call bash or run with git_signing \
                \"on\", which needs the right git-sign",
        ),
    },
    RestrictionRow { restriction: Restriction::Terminal, stated: terminal, hint: None },
    RestrictionRow {
        restriction: Restriction::System,
        stated: |_| None,
        hint: Some("commands cannot change system directories; ask the user to make this change"),
    },
    RestrictionRow {
        restriction: Restriction::Kernel,
        stated: |_| None,
        hint: Some(
            "this system call affects the whole kernel or machine, so no command may use \
                it: avoid it, or ask the user to run the command outside the sandbox",
        ),
    },
    RestrictionRow {
        restriction: Restriction::Namespaces,
        stated: |_| None,
        hint: Some(
            "commands cannot create namespaces, because they already run in a sandbox. \
                Switch off the program's own sandbox: `--no-sandbox` for Chromium and \
                Electron, `chromiumSandbox: false` for Playwright; do not use bwrap or unshare",
        ),
    },
    RestrictionRow {
        restriction: Restriction::Process,
        stated: |_| None,
        hint: Some(
            "a command can signal or trace only its own processes: start the process in the \
                same command, or ask the user",
        ),
    },
    RestrictionRow {
        restriction: Restriction::Socket,
        stated: |_| None,
        hint: Some(
            "a command can connect only to sockets of servers that it started itself: start \
                the server in this command, or ask the user",
        ),
    },
    RestrictionRow {
        restriction: Restriction::Settings,
        stated: |_| None,
        hint: Some(
            "commands see a read-only copy of the user's git settings: pass a setting to \
                one git command with `git -c NAME=VALUE`, or ask the user to change it",
        ),
    },
    RestrictionRow {
        restriction: Restriction::Protected,
        stated: |_| None,
        hint: Some(
            "programs outside the sandbox run or trust such files: write to another name, \
                and ask the user to move it into place",
        ),
    },
];

impl Restriction {
    /// How more is given, as a line beside a refusal.
    #[must_use]
    pub fn hint_line(self) -> Option<String> {
        self.hint().map(|way| format!("[{way}]"))
    }

    /// The same as a sentence of its own; empty where there is no way.
    #[must_use]
    pub fn hint_sentence(self) -> String {
        let mut letters = self.hint().unwrap_or_default().chars();
        letters.next().map_or_else(String::new, |first| {
            format!("{}{}.", first.to_ascii_uppercase(), letters.as_str())
        })
    }

    fn hint(self) -> Option<&'static str> {
        RESTRICTIONS.iter().find(|row| row.restriction == self)?.hint
    }
}

/// The restrictions of this session's commands, one sentence each.
#[must_use]
pub fn restrictions(confinement: &Confinement) -> Vec<String> {
    if confinement.level == Level::Uncaged {
        return vec!["There is no sandbox on this machine: commands are not confined.".to_owned()];
    }
    RESTRICTIONS.iter().filter_map(|row| (row.stated)(confinement)).collect()
}

fn outside(confinement: &Confinement) -> Option<String> {
    let added: String =
        confinement.added.iter().map(|dir| format!(", in {}", dir.to_path().display())).collect();
    let own = temp_dirs(confinement);
    Some(match confinement.private_dirs().next() {
        Some(_) => format!(
            "Commands can change the machine's files only in the project{added}; of the \
                user's home directory they see only toolchains. {own}"
        ),
        None => format!(
            "Commands can change files only in the project{added} and in the temporary \
                directory; of the home directory they can read only toolchains. {own}"
        ),
    })
}

/// The directories for temporary files of the whole machine, in whose place a session has one of its own.
const SHARED_TEMP: [&str; 2] = ["/tmp", "/var/tmp"];

/// Where temporary files go, as a sentence.
#[must_use]
pub fn temp_dirs(confinement: &Confinement) -> String {
    let dirs: Vec<String> =
        confinement.private_dirs().map(|(shown_at, _)| shown_at.display().to_string()).collect();
    match dirs.split_last() {
        Some((last, others)) if !others.is_empty() => format!(
            "{} and {last} are private directories of this session: later calls see files \
                written there, the user and other programs do not. What the user is to find belongs \
                in the project.",
            others.join(", ")
        ),
        Some(_) | None => closed_temp(&confinement.temp.to_path()),
    }
}

/// The same where /tmp and /var/tmp are the host's.
pub(crate) fn closed_temp(temp: &Path) -> String {
    format!(
        "/tmp and /var/tmp are not accessible; put temporary files in $TMPDIR, which is {} \
            here.",
        temp.display()
    )
}

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

fn network(confinement: &Confinement) -> Option<String> {
    let own = match confinement.highest_tier {
        Tier::A => "a call can reach servers that it starts itself on 127.0.0.1",
        Tier::B | Tier::C => "127.0.0.1 is not reachable either",
    };
    Some(match (confinement.network, confinement.hosts.as_slice()) {
        (Network::On, _) => "Commands have network access.".to_owned(),
        (Network::Off, _) | (Network::Listed, []) => {
            format!("Commands have no network access; {own}.")
        }
        (Network::Listed, hosts) => {
            let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            format!(
                "Commands can reach only {}, through the proxy set in `http_proxy` and \
                    similar variables, or directly by the full host name; {own}.",
                hosts.join(", ")
            )
        }
    })
}

fn git(confinement: &Confinement) -> Option<String> {
    let held = match confinement.highest_tier {
        Tier::A => "cannot be changed",
        Tier::B | Tier::C => "are restored after a call that changes them",
    };
    match confinement.git {
        GitSettings::Kept => Some(format!(
            "Git settings and hooks, `.agentd`, and other files that programs later run or \
                trust {held}."
        )),
        GitSettings::Writable => None,
    }
}

fn terminal(confinement: &Confinement) -> Option<String> {
    match confinement.highest_tier {
        Tier::A => None,
        Tier::B | Tier::C => Some("Programs cannot open new terminals.".to_owned()),
    }
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
    use protocol::confinement::{FilePath, Profile};

    fn confinement(highest_tier: Tier, network: Network) -> Confinement {
        Confinement {
            network,
            highest_tier,
            ..Confinement::closed(
                Profile::Command,
                FilePath::from(Path::new("/proj")),
                FilePath::from(Path::new("/tmp/t")),
            )
        }
    }

    #[test]
    fn each_row_stands_once_and_is_told_or_has_a_way_on() {
        for (at, row) in RESTRICTIONS.iter().enumerate() {
            assert_eq!(
                RESTRICTIONS.iter().position(|other| other.restriction == row.restriction),
                Some(at)
            );
            let told = (row.stated)(&confinement(Tier::B, Network::Off)).is_some();
            assert!(told || row.hint.is_some(), "{:?}", row.restriction);
            let (line, sentence) = (row.restriction.hint_line(), row.restriction.hint_sentence());
            assert_eq!(line.is_none(), sentence.is_empty(), "{:?}", row.restriction);
            let same = |line: String| line.trim_matches(['[', ']']).to_lowercase() + ".";
            assert_eq!(line.map(same).unwrap_or_default(), sentence.to_lowercase());
        }
    }

    #[test]
    fn the_model_is_told_what_holds_in_this_session_and_nothing_else() {
        for tier in [Tier::A, Tier::B] {
            let told = restrictions(&confinement(tier, Network::Off)).join("\n");
            assert!(
                told.contains(
                    "/tmp and /var/tmp are not accessible; put temporary files in $TMPDIR"
                )
            );
            assert!(told.contains("which is /tmp/t here"), "{told}");
        }
        let all = |tier, network| restrictions(&confinement(tier, network)).join("\n");
        let of_tier = [
            (Tier::A, "can reach servers that it starts itself on 127.0.0.1", "cannot be changed"),
            (Tier::B, "127.0.0.1 is not reachable either", "are restored after a call"),
        ];
        for (tier, own, names) in of_tier {
            let off = all(tier, Network::Off);
            assert!(off.contains("Commands have no network") && off.contains(own), "{off}");
            assert!(off.contains(names), "{off}");
            assert_eq!(off.contains("open new terminals"), tier == Tier::B, "{off}");
            let on = all(tier, Network::On);
            assert!(on.contains("Commands have network access.") && !on.contains(own), "{on}");
        }
        let mut listed = confinement(Tier::A, Network::Listed);
        assert!(
            restrictions(&listed).join("\n").contains("Commands have no network"),
            "no host yet"
        );
        listed.hosts.extend("*.crates.io".parse());
        let told = restrictions(&listed).join("\n");
        assert!(told.contains("reach only *.crates.io"), "{told}");
        listed.added.push(FilePath::from(Path::new("/more")));
        listed.git = GitSettings::Writable;
        let told = restrictions(&listed).join("\n");
        assert!(told.contains("in the project, in /more and in the temporary"), "{told}");
        assert!(!told.contains("settings and hooks"), "{told}");
    }

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
