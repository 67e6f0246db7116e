//! Confinement: the policy asked for, the policy enforced, and the refusals.

use crate::hosts::HostRule;
use crate::{Decode, Encode};
pub use journal::{
    ConnectionOutcome, Enforced, Level, Limits, PathAct, ProcessAct, ProxyConnection, Refusal,
    RefusalKind, SocketSpec, Subject, Tier,
};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path as the kernel has it: bytes, UTF-8 or not.
#[derive(Clone, PartialEq, Eq, Hash, Encode, Decode)]
pub struct FilePath(pub Vec<u8>);

impl FilePath {
    /// For use with the file system.
    #[must_use]
    pub fn to_path(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.0.clone()))
    }
}

impl std::fmt::Debug for FilePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.to_path())
    }
}

impl<P: AsRef<Path>> From<P> for FilePath {
    fn from(path: P) -> Self {
        Self(path.as_ref().as_os_str().as_bytes().to_vec())
    }
}

/// A named policy from `config/confinement/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Profile {
    /// The look before a verdict: project read-only, no exec, no network.
    Probe,
    /// Tools that look: project read-only, no exec, no network.
    Query,
    /// Tools that change files: project writable, no exec, no network.
    Mutate,
    /// Commands.
    Command,
    /// The conversation's worker: nothing but its channel.
    Session,
    /// The permission broker: nothing but its channel.
    Broker,
    /// The model's stream: network, certificates, resolver.
    Provider,
    /// Memory, skills, instructions and copies: its own directories, the project read-only.
    Store,
    /// Helpers that reach the network for calls which may not: network, certificates, resolver
    /// files.
    Web,
    /// Verifiers: a command's cage with the project read-only and no network.
    Verify,
    /// Formatters: the program runs in a verifier's cage; the runner writes its output to the file.
    Format,
    /// Git, where it changes the repository: the project writable, no other program, no network.
    Git,
    /// Git, where it looks: nothing writable, no other program, no network.
    GitLook,
    /// Hooks that follow an event: a command's cage without the network.
    Hook,
    /// Hooks that decide about a step: a command's cage with the project read-only and no network.
    GuardHook,
    /// Converters of documents: no file but the one on standard input, nothing writable, no network.
    Document,
    /// MCP servers: a command's cage with the project read-only.
    Mcp,
    /// MCP servers that may write the project.
    McpWrite,
    /// The client of an MCP server on another machine: its one host, certificates, no user files.
    McpRemote,
}

impl Profile {
    /// Its file in `config/confinement/`, without the ending.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Query => "query",
            Self::Mutate => "mutate",
            Self::Command => "command",
            Self::Session => "session",
            Self::Broker => "broker",
            Self::Provider => "provider",
            Self::Store => "store",
            Self::Web => "web",
            Self::Verify => "verify",
            Self::Format => "format",
            Self::Git => "git",
            Self::GitLook => "git-look",
            Self::Hook => "hook",
            Self::GuardHook => "guard-hook",
            Self::Document => "document",
            Self::Mcp => "mcp",
            Self::McpWrite => "mcp-write",
            Self::McpRemote => "mcp-remote",
        }
    }

    /// True for a tool process that confines itself instead of a program. Only programs need the
    /// namespaces that distinguish tier A from tier B.
    #[must_use]
    pub fn is_in_process(self) -> bool {
        matches!(self, Self::Probe | Self::Query | Self::Mutate | Self::Web)
    }
}

/// Network access of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Network {
    /// None; loopback inside where the tier has a namespace for it.
    Off,
    /// The host's.
    On,
    /// Hosts of a list, through a proxy of ours that judges each connection.
    Listed,
}

impl Network {
    /// As written in configuration, on the command line and in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Listed => "allow",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Off, Self::On, Self::Listed].into_iter().find(|network| network.name() == name)
    }
}

/// Access of a command to the settings and hooks of the project's git repositories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum GitSettings {
    /// They stay as they are.
    Kept,
    /// The command may change them: this one call was given the right. The record lists the
    /// changes.
    Writable,
    /// They stay as they are, and so does the whole git directory of the project.
    DirectoryKept,
}

/// The name of the step of making a cage that fails because of the session's directories, and not because of this
/// machine.
pub const UNGRANTED_STEP: &str = "grants";

/// By this variable the supervisor tells its own workers that they can have no cage: on a host that
/// makes none, for a session whose person accepted that. It alone makes their environment; no client,
/// project or command has a word in it.
pub const WITHOUT_CAGE: &str = "AGENTD_WITHOUT_CAGE";

/// The confinement requested for one process.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Confinement {
    /// Which policy.
    pub profile: Profile,
    /// The project directory, a real path.
    pub project: FilePath,
    /// Directories granted beside it, real paths.
    pub added: Vec<FilePath>,
    /// The session's own temporary directory, a real path.
    pub temp: FilePath,
    /// Directories of the session that tier A shows in place of the host's. None where no command of
    /// the session can reach tier A.
    pub private: Vec<PrivateDir>,
    /// Download cache of package managers, as a real path: one per project, shared by its sessions.
    /// Absent for processes that run no package manager.
    pub caches: Option<FilePath>,
    /// Directory (real path) in which tier A stores the project's changes to copy-on-write
    /// directories of the home. Absent where this process has none.
    pub overlays: Option<FilePath>,
    /// The person's home, from which tool chains are readable; absent when unset.
    pub home: Option<FilePath>,
    /// Variables that say where the person keeps tool chains, and where: `RUSTUP_HOME` and others
    /// that the policy names.
    pub tool_homes: Vec<(String, FilePath)>,
    /// Paths of keys, of all accounts and in the project, existing or not. No grant reaches them. Of
    /// those in or around the project, tier A hides the first; else the record names them.
    pub keys: Vec<FilePath>,
    /// Directories that calls of any project could write, now or earlier: a link in one of them may lead
    /// where a command wanted, so nothing of the home is granted by it.
    pub written_elsewhere: Vec<FilePath>,
    /// Real paths that no grant may cover, even inside the project: agentd's state and run-time
    /// directories. The session's temporary directory may lie below one of them.
    pub withheld: Vec<FilePath>,
    /// The path by which a person opened the project, where links are on it. Tier A makes the links again,
    /// unless a command could have made them.
    pub named: Option<FilePath>,
    /// The root of the git repository around the project, as it was when the session opened: commands
    /// read its files and use its git directory. It counts only if it is still so.
    pub repository: Option<FilePath>,
    /// Network of a command.
    pub network: Network,
    /// The list of `Network::Listed`; it counts for nothing elsewhere.
    pub hosts: Vec<HostRule>,
    /// The call of the session whose network namespace this process joins, in tier A, instead of
    /// making its own. Calls of one session with the same network reach each other's servers so.
    pub joins: Option<u32>,
    /// The file mode creation mask of its processes: that of the person's shell.
    pub umask: u32,
    /// Git's settings and hooks in the project.
    pub git: GitSettings,
    /// No stronger cage than this is tried; it can only lower.
    pub highest_tier: Tier,
    /// Action where a rule cannot be enforced.
    pub level: Level,
    /// Bounds.
    pub limits: Limits,
    /// The cgroup in which a command gets one of its own, where one was delegated to us.
    pub cgroup: Option<FilePath>,
}

/// Temporary directories of the host, in whose places tier A shows the session's.
pub const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// A directory of the session that replaces a directory of the host for commands in tier A, like
/// systemd's `PrivateTmp=`. Files stay until the session ends; no other session sees them.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PrivateDir {
    /// Where commands find it: `/tmp`, `/var/tmp`, the home.
    pub shown_at: FilePath,
    /// Where it is on the host, a real path.
    pub kept_at: FilePath,
}

impl Confinement {
    /// The policy of this profile for these directories, real paths, and nothing beside them: no other directory,
    /// no home, no network, no bounds, the strongest cage, and each rule required.
    #[must_use]
    pub fn closed(
        profile: Profile,
        project: impl Into<FilePath>,
        temp: impl Into<FilePath>,
    ) -> Self {
        Self {
            profile,
            project: project.into(),
            added: Vec::new(),
            temp: temp.into(),
            private: Vec::new(),
            caches: None,
            overlays: None,
            home: None,
            tool_homes: Vec::new(),
            keys: Vec::new(),
            written_elsewhere: Vec::new(),
            withheld: Vec::new(),
            named: None,
            repository: None,
            network: Network::Off,
            hosts: Vec::new(),
            joins: None,
            umask: 0o022,
            git: GitSettings::Kept,
            highest_tier: Tier::A,
            level: Level::Required,
            limits: Limits::NONE,
            cgroup: None,
        }
    }

    /// The private directories in use. A directory that contains the project or an added directory
    /// is not replaced, since the person granted that one.
    pub fn private_dirs(&self) -> impl Iterator<Item = (PathBuf, PathBuf)> {
        let granted: Vec<PathBuf> =
            std::iter::once(&self.project).chain(&self.added).map(FilePath::to_path).collect();
        let pairs = self.private.iter().map(|dir| (dir.shown_at.to_path(), dir.kept_at.to_path()));
        pairs.filter(move |(shown_at, _)| !granted.iter().any(|dir| shown_at.starts_with(dir)))
    }

    /// Everything that calls may write on the host: a name in it leads wherever the last one wanted.
    #[must_use]
    pub fn written(&self) -> Vec<PathBuf> {
        let private = self.private.iter().map(|dir| &dir.kept_at);
        let kept = self.caches.iter().chain(&self.overlays);
        let own = [&self.project, &self.temp].into_iter().chain(&self.added);
        own.chain(private).chain(kept).map(FilePath::to_path).collect()
    }

    /// Where a command of this tier finds the temporary directory.
    #[must_use]
    pub fn temp_in(&self, tier: Tier) -> PathBuf {
        let temp = self.temp.to_path();
        let shown = |(shown_at, kept_at): (PathBuf, PathBuf)| (kept_at == temp).then_some(shown_at);
        match tier {
            Tier::A => self.private_dirs().find_map(shown).unwrap_or(temp),
            Tier::B | Tier::C => temp,
        }
    }
}
