//! The restrictions of a session's commands, one row each: a sentence for the system prompt that
//! states the restriction in the session's sandbox, and a hint next to a refusal that explains how
//! to get more access. Used by the system prompt, by command results, by refused paths and by the
//! allow-list proxy.

use protocol::confinement::{Confinement, GitSettings, Level, Network, Tier};
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

/// Where temporary files go, as a sentence.
fn temp_dirs(confinement: &Confinement) -> String {
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
#[must_use]
pub fn closed_temp(temp: &Path) -> String {
    format!(
        "/tmp and /var/tmp are not accessible; put temporary files in $TMPDIR, which is {} \
            here.",
        temp.display()
    )
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
        GitSettings::Kept | GitSettings::DirectoryKept => Some(format!(
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
}
