//! The cage of a call, and what it used there.

use super::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// How strong a cage this host allows, or made.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, Serialize, Deserialize,
)]
pub enum Tier {
    /// Weaker than tier B: no cage.
    C,
    /// Landlock and seccomp.
    B,
    /// Namespaces with a root built by allow, Landlock and seccomp.
    A,
}

impl Tier {
    /// As a session shows the cage of its commands.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::A => "sandbox: full (namespaces, Landlock, seccomp)",
            Self::B => "sandbox: partial (Landlock, seccomp)",
            Self::C => "sandbox: NONE",
        }
    }

    /// Name in tables and in JSON output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "NONE",
        }
    }
}

/// Resource limits of a call. Zero means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct Limits {
    /// Processes and threads at once.
    pub processes: u64,
    /// Memory of all processes together, in bytes.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Processor time of all processes together, in seconds.
    #[serde(default)]
    pub cpu_seconds: u64,
    /// Largest file written, in bytes.
    pub file_bytes: u64,
    /// Open files per process.
    pub open_files: u64,
}

impl Limits {
    /// No bound at all.
    pub const NONE: Self =
        Self { processes: 0, memory_bytes: 0, cpu_seconds: 0, file_bytes: 0, open_files: 0 };
}

/// Resources used by a call's processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// User and system time in milliseconds.
    pub cpu_ms: u64,
    /// Largest resident set in KiB.
    pub peak_kib: u64,
    /// Bytes handed to storage, as `getrusage` counts blocks of 512.
    pub written_bytes: u64,
}

/// Action where the kernel cannot enforce a rule that the tier claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Refuse the call.
    Required,
    /// Run it and name the loss. Never runs in tier C.
    BestEffort,
    /// Run it in tier C, which is no cage: a person said so for this session. Its record names the
    /// tier, and the level of the others.
    #[serde(rename = "best_effort", skip_deserializing)]
    Uncaged,
}

/// The enforced confinement.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct Enforced {
    /// The tier reached. Of a tool's own process it is never more than B, in any session.
    pub tier: Tier,
    /// True for a tool process that confined itself. It runs no program; only programs need the
    /// namespaces that distinguish tier A from tier B.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_process: bool,
    /// The policy's name.
    pub profile: String,
    /// Version of Landlock's interface; 0 where it is off.
    pub landlock_abi: u32,
    /// Network as enforced, in words.
    pub network: String,
    /// Namespaces of its own.
    pub namespaces: Vec<String>,
    /// True if the seccomp filter was installed.
    pub seccomp: bool,
    /// True if refused system calls are part of this record.
    pub refusals_observable: bool,
    /// Landlock rights that this kernel does not know.
    pub dropped: Vec<String>,
    /// Limits of the tier, one sentence each.
    pub limits: Vec<String>,
    /// Granted paths that were not there.
    pub missing: Vec<String>,
    /// Granted paths that were left out, since keys lie there or a command could have led the way to
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Resources bounded by the command's own cgroup; empty without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cgroup: Vec<String>,
}

impl Enforced {
    /// The policies of commands, by name.
    const OF_COMMANDS: [&str; 3] = ["command", "git", "git-look"];

    /// Nothing is enforced, for a process of this policy.
    #[must_use]
    pub fn nothing(profile: impl Into<String>) -> Self {
        Self {
            tier: Tier::C,
            in_process: false,
            profile: profile.into(),
            landlock_abi: 0,
            network: String::new(),
            namespaces: Vec::new(),
            seccomp: false,
            refusals_observable: false,
            dropped: Vec::new(),
            limits: Vec::new(),
            missing: Vec::new(),
            left_out: Vec::new(),
            cgroup: Vec::new(),
        }
    }

    /// The tier of a command. A process that confines itself needs no namespaces, in any tier.
    #[must_use]
    pub fn of_command(&self) -> Option<Tier> {
        let is_one = Self::OF_COMMANDS.contains(&self.profile.as_str()) || self.tier == Tier::C;
        is_one.then_some(self.tier)
    }
}
