//! The policies of `config/confinement/` as types. Only this crate reads them.

use protocol::confinement::Profile;

/// One file of `config/confinement/`.
#[derive(Debug)]
pub(crate) struct ConfinementPolicy {
    /// Its users and purpose.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the reader of the file"))]
    pub purpose: &'static str,
    /// Permission to start programs.
    pub exec: ExecRule,
    /// Which sockets may be made.
    pub sockets: SocketRule,
    /// Granted paths.
    pub grants: &'static [GrantRule],
    /// Further paths for the runner's own work; the command never gets them.
    pub runner: &'static [GrantRule],
    /// Names in the project that stay read-only.
    pub protected: &'static [ProtectedName],
}

impl ConfinementPolicy {
    /// True if the policy does not allow changes of the project.
    pub(crate) fn keeps_project(&self) -> bool {
        !self
            .grants
            .iter()
            .any(|rule| matches!(rule.at, GrantTarget::Project) && rule.access.writes())
    }
}

/// Permission to start programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecRule {
    Allowed,
    Refused,
}

/// Which sockets may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketRule {
    None,
    All,
    /// By the call's network mode and the tier.
    ByNetwork,
}

/// One rule of a policy: a path and the access beneath it.
#[derive(Debug)]
pub(crate) struct GrantRule {
    /// Where.
    pub at: GrantTarget,
    /// The granted access.
    pub access: Access,
    /// The reason.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the reader of the file"))]
    pub why: &'static str,
    /// Handling of a missing path.
    pub absent: IfAbsent,
    /// In which calls it holds.
    pub when: RuleCondition,
    /// Fresh mount that replaces the host's in tier A.
    pub fresh: Option<FreshMount>,
    /// Set if commands in tier A change a copy of it.
    pub overlay: Option<OverlayRule>,
    /// Excluded paths beneath it, relative to it.
    pub except: &'static [&'static str],
}

/// The place of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum GrantTarget {
    Project,
    Added,
    Temp,
    /// The session's directories that tier A shows in place of the host's.
    Private,
    /// The project's package caches.
    Caches,
    /// Git directory of a linked worktree or a submodule, outside the project.
    Git,
    /// An absolute path.
    Path(&'static str),
    /// A path beneath the person's home.
    Home(&'static str),
    /// A path beneath the directory in this environment variable of the user.
    Variable {
        name: &'static str,
        rest: &'static str,
    },
}

/// Access to the files beneath a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// Listing directories only; for the root of tier A, which contains only granted paths.
    List,
    /// Files and lists of files.
    Read,
    /// The same, and programs may be started.
    Run,
    /// Reading, and every change of files and directories.
    Write,
    /// The same, and programs may be started.
    Build,
    /// A device: bytes in and out.
    Device,
    /// The same with the controls of a terminal.
    Terminal,
}

impl Access {
    /// True if files may be changed.
    pub(crate) const fn writes(self) -> bool {
        match self {
            Self::Write | Self::Build => true,
            Self::List | Self::Read | Self::Run | Self::Device | Self::Terminal => false,
        }
    }

    /// True for a device.
    pub(crate) const fn is_device(self) -> bool {
        match self {
            Self::Device | Self::Terminal => true,
            Self::List | Self::Read | Self::Run | Self::Write | Self::Build => false,
        }
    }

    /// True if programs may be started.
    pub(crate) const fn runs(self) -> bool {
        match self {
            Self::Run | Self::Build => true,
            Self::List | Self::Read | Self::Write | Self::Device | Self::Terminal => false,
        }
    }
}

/// Handling of a missing path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfAbsent {
    /// Usual: not every system has it.
    Usual,
    /// The record names it.
    Named,
}

/// In which calls a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleCondition {
    Always,
    /// Only where the network is on.
    Network,
}

/// Fresh mounts that replace the host's in tier A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FreshMount {
    Proc,
    Pts,
    Shm,
}

/// Paths that tier A shows as an overlay, so that commands change a copy. The lower side is the
/// user's; the upper side holds the changes of the project's commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OverlayRule {
    /// Only if the path exists.
    Existing,
    /// The same, and an empty one where the person has none.
    Always,
}

/// A name of `config/protected.toml`.
#[derive(Debug)]
pub struct ProtectedName {
    /// Relative to any directory of the project.
    pub name: &'static str,
    /// Its treatment.
    pub class: NameClass,
    /// The program that runs or believes it, and when: a sentence without its full stop.
    pub why: &'static str,
}

/// Treatment of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameClass {
    /// It stays as it is.
    Protected,
    /// Projects want it written: a change is asked about or told.
    Asked,
}

/// The files, as the build script translated them.
mod file {
    use super::{
        Access, ConfinementPolicy, ExecRule, FreshMount, GrantRule, GrantTarget, IfAbsent,
        NameClass, OverlayRule, ProtectedName, RuleCondition, SocketRule,
    };
    include!(concat!(env!("OUT_DIR"), "/policies.rs"));
}

/// All names of `config/protected.toml`.
#[must_use]
pub fn protected_names() -> &'static [ProtectedName] {
    file::PROTECTED
}

/// The policy of a profile.
pub(crate) fn of(profile: Profile) -> &'static ConfinementPolicy {
    match profile {
        Profile::Probe => &file::PROBE,
        Profile::Query => &file::QUERY,
        Profile::Mutate => &file::MUTATE,
        Profile::Command => &file::COMMAND,
        Profile::Session => &file::SESSION,
        Profile::Broker => &file::BROKER,
        Profile::Provider => &file::PROVIDER,
        Profile::Store => &file::STORE,
        Profile::Web => &file::WEB,
        Profile::Verify => &file::VERIFY,
        Profile::Format => &file::FORMAT,
        Profile::Git => &file::GIT,
        Profile::GitLook => &file::GIT_LOOK,
        Profile::Hook => &file::HOOK,
        Profile::GuardHook => &file::GUARD_HOOK,
        Profile::Document => &file::DOCUMENT,
        Profile::Mcp => &file::MCP,
        Profile::McpWrite => &file::MCP_WRITE,
        Profile::McpRemote => &file::MCP_REMOTE,
    }
}

/// The policy of git for a task of a fleet.
pub(crate) fn of_fleet_git() -> &'static ConfinementPolicy {
    &file::FLEET_GIT
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::policy_source;
    use std::collections::HashSet;
    use std::path::{Path, PathBuf};

    const ALL: [Profile; 19] = [
        Profile::Probe,
        Profile::Query,
        Profile::Mutate,
        Profile::Command,
        Profile::Session,
        Profile::Broker,
        Profile::Provider,
        Profile::Store,
        Profile::Web,
        Profile::Verify,
        Profile::Format,
        Profile::Git,
        Profile::GitLook,
        Profile::Hook,
        Profile::GuardHook,
        Profile::Document,
        Profile::Mcp,
        Profile::McpWrite,
        Profile::McpRemote,
    ];

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/confinement")
    }

    fn part(name: &str) -> Result<String, String> {
        let file = folder().join("parts").join(format!("{name}.toml"));
        std::fs::read_to_string(file).map_err(|error| error.to_string())
    }

    fn files_in(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        let mut names: Vec<String> =
            files.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn every_file_has_a_use_and_loads() {
        let folder = folder();
        let (files, mut included) = (files_in(&folder), HashSet::new());
        for file in &files {
            let text = std::fs::read_to_string(folder.join(file)).unwrap();
            policy_source::translate(&text, part).unwrap();
            let policy: policy_source::PolicyFile = toml::from_str(&text).unwrap();
            included.extend(policy.include);
        }
        for file in files_in(&folder.join("parts")) {
            let name = file.strip_suffix(".toml").unwrap();
            assert!(included.contains(name), "no policy includes {name}");
        }
        let mut names: Vec<String> = ALL.map(|p| format!("{}.toml", p.name())).to_vec();
        names.push("fleet-git.toml".to_owned());
        names.sort();
        assert_eq!(files, names);
        for policy in ALL.map(of).into_iter().chain([of_fleet_git()]) {
            assert!(!policy.purpose.is_empty());
            for rule in policy.grants.iter().chain(policy.runner) {
                assert!(rule.why.len() > 8, "{:?} {:?} has no reason", policy.purpose, rule.at);
            }
        }
        for profile in ALL.into_iter().filter(|profile| {
            let policy = of(*profile);
            policy.exec == ExecRule::Allowed && !policy.keeps_project()
        }) {
            let own = of(profile).protected;
            assert!(std::ptr::eq(own, protected_names()), "{profile:?} has names of its own");
        }
    }

    /// A path that is shown as an overlay is opened with regard to the places of the session that are known by
    /// then: an overlay of a cache needs to know the home that the session shows.
    #[test]
    fn places_of_the_session_come_before_the_persons_own() {
        for policy in ALL.map(of).into_iter().chain([of_fleet_git()]) {
            let of_session = |rule: &GrantRule| {
                matches!(
                    rule.at,
                    GrantTarget::Project
                        | GrantTarget::Added
                        | GrantTarget::Temp
                        | GrantTarget::Private
                        | GrantTarget::Git
                )
            };
            let of_person = |rule: &GrantRule| {
                let named = matches!(rule.at, GrantTarget::Home(_) | GrantTarget::Variable { .. });
                named && rule.overlay.is_some()
            };
            let last = policy.grants.iter().rposition(of_session);
            let first = policy.grants.iter().position(of_person);
            let (Some(last), Some(first)) = (last, first) else { continue };
            assert!(last < first, "{}: {:?}", policy.purpose, policy.grants[last].at);
        }
    }

    #[test]
    fn an_unknown_word_is_an_error() {
        for damaged in [
            "purpose='x'\nexec='refused'\nsockets='none'\ngrants=[]\ncolour='red'",
            "purpose='x'\nexec='maybe'\nsockets='none'\ngrants=[]",
            "purpose='x'\nexec='refused'\nsockets='none'\ngrants=[{at='here',access='read',why='because'}]",
            "purpose='x'\nexec='refused'\nsockets='none'\ngrants=[{at='/a/../b',access='read',why='because'}]",
            "purpose='x'\nexec='refused'\nsockets='none'\ngrants=[{at='/a',access='all',why='because'}]",
            "purpose='x'\nexec='refused'\nsockets='none'\ninclude=['no-such-part']",
            "purpose='x'\nexec='refused'\nsockets='none'\ninclude=['resolver','resolver']",
            "purpose='x'\nexec='refused'\nsockets='none'\ngrants_of='verify'\ninclude=['resolver']",
        ] {
            assert!(policy_source::translate(damaged, part).is_err(), "{damaged}");
        }
        let whole = "purpose='x'\nexec='refused'\nsockets='none'\ninclude=['resolver']";
        let whole = policy_source::translate(whole, part).unwrap();
        assert!(whole.contains("/etc/resolv.conf"), "{whole}");
        let row = "name='.x',class='asked',who='x',when='runs it later'";
        let whole = format!("names=[{{{row},source='https://x.example',date='2026-11-28'}}]");
        policy_source::translate_names(&whole).unwrap();
        for part in ["source='https://x.example'", "date='2026-11-28'", "who='x'", "2026-11-28"] {
            let damaged = whole.replace(&format!(",{part}"), "").replace(part, "");
            assert!(policy_source::translate_names(&damaged).is_err(), "{damaged}");
        }
    }

    /// Where a line stands: its beginning, and the path beneath that.
    fn stands(at: GrantTarget) -> Option<(&'static str, &'static str)> {
        match at {
            GrantTarget::Path(path) => Some(("/", path)),
            GrantTarget::Home(rest) => Some(("~", rest)),
            GrantTarget::Variable { name, rest } => Some((name, rest)),
            GrantTarget::Project
            | GrantTarget::Added
            | GrantTarget::Temp
            | GrantTarget::Private
            | GrantTarget::Caches
            | GrantTarget::Git => None,
        }
    }

    /// True if the first access includes the second.
    fn gives(has: Access, wants: Access) -> bool {
        use Access::{Build, Device, List, Read, Run, Terminal, Write};
        match has {
            List => wants == List,
            Read => matches!(wants, List | Read),
            Run => matches!(wants, List | Read | Run),
            Write => matches!(wants, List | Read | Write),
            Build => matches!(wants, List | Read | Run | Write | Build),
            Device => wants == Device,
            Terminal => matches!(wants, Device | Terminal),
        }
    }

    /// True if another rule already grants everything that a rule grants.
    fn is_needless(inner: &GrantRule, outer: &GrantRule) -> bool {
        let (Some((base, path)), Some((over, around))) = (stands(inner.at), stands(outer.at))
        else {
            return false;
        };
        // A link that leads out of its directory needs a rule of its own, and so does a fresh
        // mount.
        let own = inner.at == GrantTarget::Path("/etc/resolv.conf") || inner.fresh.is_some();
        let beneath = base == over && path != around && Path::new(path).starts_with(around);
        let as_often = outer.when == RuleCondition::Always || inner.when == RuleCondition::Network;
        let taken_out = outer
            .except
            .iter()
            .any(|name| Path::new(path).starts_with(Path::new(around).join(name)));
        beneath && as_often && gives(outer.access, inner.access) && !own && !taken_out
    }

    #[test]
    fn a_line_beneath_one_that_gives_as_much_is_seen() {
        let rule = |at, access| GrantRule {
            at,
            access,
            why: "for the test",
            absent: IfAbsent::Usual,
            when: RuleCondition::Always,
            fresh: None,
            overlay: None,
            except: &[],
        };
        let home = |rest| GrantTarget::Home(rest);
        let variable = |rest| GrantTarget::Variable { name: "GOPATH", rest };
        for (inner, outer, needless) in [
            (
                rule(GrantTarget::Path("/usr/lib"), Access::Read),
                rule(GrantTarget::Path("/usr"), Access::Run),
                true,
            ),
            (
                rule(GrantTarget::Path("/usr/lib"), Access::Run),
                rule(GrantTarget::Path("/usr"), Access::Read),
                false,
            ),
            (
                rule(GrantTarget::Path("/usrlib"), Access::Read),
                rule(GrantTarget::Path("/usr"), Access::Run),
                false,
            ),
            (rule(home("go/bin"), Access::Run), rule(home("go"), Access::Run), true),
            (rule(home("go/bin"), Access::Run), rule(home("gone"), Access::Run), false),
            (rule(variable("bin"), Access::Read), rule(variable(""), Access::Run), true),
            (rule(home("bin"), Access::Read), rule(variable(""), Access::Run), false),
        ] {
            assert_eq!(is_needless(&inner, &outer), needless, "{:?} in {:?}", inner.at, outer.at);
        }
        let outer = rule(GrantTarget::Path("/usr"), Access::Run);
        let inner = rule(GrantTarget::Path("/usr/lib"), Access::Read);
        assert!(!is_needless(&inner, &GrantRule { when: RuleCondition::Network, ..outer }));
        let outer = GrantRule { except: &["lib"], ..rule(GrantTarget::Path("/usr"), Access::Run) };
        assert!(!is_needless(&inner, &outer));
    }

    /// A rule is dead if it repeats a path, or lies beneath a rule that already grants as much.
    #[test]
    fn no_line_is_dead() {
        for profile in ALL {
            let policy = of(profile);
            let mut seen = HashSet::new();
            for rule in policy.grants {
                assert!(seen.insert(rule.at), "{profile:?}: {:?} twice", rule.at);
                for outer in policy.grants {
                    assert!(
                        !is_needless(rule, outer),
                        "{profile:?}: {:?} is in {:?}",
                        rule.at,
                        outer.at
                    );
                }
            }
        }
        let mut names = HashSet::new();
        for protected in protected_names() {
            assert!(names.insert(protected.name), "{} twice", protected.name);
        }
    }

    /// Paths that no policy may grant.
    #[test]
    fn no_policy_grants_a_place_of_credentials() {
        let secret = [
            "~/.ssh",
            "~/.aws",
            "~/.cargo/credentials.toml",
            "~/.npm",
            "~/.npmrc",
            "~/.docker",
            "~/.kube",
            "~/.gnupg",
            "~/.netrc",
            "~/.condarc",
            "~/.nuget",
            "~/.m2/settings.xml",
            "~/.config",
            "~/.config/gh",
            "~/.local/share/keyrings",
            "~/.local/share/uv/credentials",
            "~/.dotnet/corefx/cryptography/x509stores/my",
            "~/.npm-global/etc/npmrc",
            "~/miniconda3/.condarc",
            "~/.julia/servers",
            "/etc/shadow",
            "/root",
            "/home",
            "/run",
            "/var/run",
            "/tmp",
            "/var",
        ]
        .map(Path::new);
        for profile in ALL {
            for rule in of(profile).grants {
                let text = match rule.at {
                    GrantTarget::Path(path) => path.to_owned(),
                    GrantTarget::Home(rest) => format!("~/{rest}"),
                    GrantTarget::Project
                    | GrantTarget::Added
                    | GrantTarget::Temp
                    | GrantTarget::Private
                    | GrantTarget::Caches
                    | GrantTarget::Git => {
                        continue;
                    }
                    GrantTarget::Variable { .. } => continue,
                };
                let reached = secret.iter().find(|place| {
                    let is_taken_out = |name: &&str| place.starts_with(Path::new(&text).join(name));
                    place.starts_with(&text) && !rule.except.iter().any(is_taken_out)
                });
                assert_eq!(reached, None, "{profile:?} grants {text}");
            }
        }
    }
}
