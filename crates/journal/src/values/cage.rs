//! The cage of a call, and what it used and was refused there.

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

/// How sure a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The filter answered it.
    Refused,
    /// Seen on its way to the kernel, which refuses it by the same grants.
    Predicted,
}

/// One thing that the kernel did not let a call do.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
pub struct Refusal {
    /// How sure.
    pub kind: RefusalKind,
    /// The system call.
    pub syscall: String,
    /// Its decisive argument in words: a path, an address, a socket family.
    pub detail: String,
    /// The errno answered or expected.
    pub errno: i32,
    /// The process, as the host numbers it.
    pub pid: u32,
    /// How often in a row.
    pub count: u64,
}
