//! The seccomp filter: the system calls that a confined process may not make (design: sandbox.md
//! 3). The cage installs it as the last step before `exec`, or before work begins.
//!
//! A deny-list over registers, the same in debug and release builds; its rules are in `rule_table`.
//! Sockets are judged when they are created, never at operations on them. With
//! [`Reporting::Notify`] refused and observed calls go to [`crate::notify`], which answers them.
//! With [`Reporting::Errno`] the kernel itself refuses calls, and none are observed.
//!
//! Measured on Linux 6.18 with two busy virtual CPUs (`tests/figures.rs`). Installing the filter
//! takes 58 us without notifications (202 instructions). With them it takes 72 to 87 us (286 to 317
//! instructions, now 329 to 360). The linear programs of seccompiler took 166 us for 60 plain rules
//! and 260 us for 100, hence the search tree in `bpf_program`. seccompiler remains the oracle of
//! its tests and installs the filter without notifications. A call without a rule costs 0.05 to 0.1
//! us more than before.

mod bpf_program;
mod exec_marker;
mod filter_rule;
mod install;
mod rule_table;
mod syscall_numbers;
mod syscall_rules;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use exec_marker::ExecMarker;
pub(crate) use filter_rule::{
    EmulatedCall, FilterAction, FilterRule, FollowLink, MetadataField, MetadataTarget, NameChange,
    ObservedCall, OpenFlags, ProcessAct, ProcessArg, TimeUnit,
};
pub(crate) use install::supports_killable_wait;
pub(crate) use rule_table::{NAMESPACES, SOCKET_TYPE};
pub(crate) use syscall_numbers::Arch;
pub(crate) use syscall_rules::SyscallRules;

use crate::ruleset;
use protocol::confinement::{Network, Tier};
use seccompiler::BpfProgram;
use std::io;
use std::os::fd::OwnedFd;

/// Which internet sockets may be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InetSockets {
    /// None.
    Refused,
    /// TCP, UDP and ICMP echo.
    Allowed,
}

/// Which unix sockets may be created. Connected stream pairs are always allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnixSockets {
    /// None. With [`Reporting::Errno`], `Emulated` means this too, since no process emulates.
    Refused,
    /// Stream sockets; the notify supervisor emulates their `connect`, only below the granted
    /// roots.
    Emulated,
    /// All: the cage's root contains no socket that was not granted.
    Allowed,
}

/// Whether programs may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecRule {
    /// No: for tools that work in their own process.
    Refused,
    /// Yes: for commands. Each exec is observed, except the cage's own, which carries this marker.
    Allowed(ExecMarker),
}

/// Who answers refused calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reporting {
    /// The kernel, without a report.
    Errno,
    /// The notify supervisor in another process.
    Notify,
}

/// How changes of mode, owner, times and attributes outside the grants are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataRule {
    /// Neither refused nor observed.
    Open,
    /// Refused by the notify supervisor, which emulates those within the grants. Like `Open`
    /// without notifications.
    Emulated,
    /// Refused by the kernel, because the tree is mounted read-only.
    ReadOnly,
}

/// What prevents files outside the grants from being emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TruncateGuard {
    /// Landlock from ABI 3 on, or read-only mounts.
    ByKernel,
    /// The filter: an older Landlock checks only descriptors that are opened for writing, and no
    /// other way to change a length.
    ByFilter,
}

impl TruncateGuard {
    /// The mechanism for this tier on a kernel with this Landlock ABI.
    pub(crate) fn of(tier: Tier, abi: u32) -> Self {
        match tier {
            Tier::B | Tier::C if abi < ruleset::TRUNCATE_ABI => Self::ByFilter,
            Tier::A | Tier::B | Tier::C => Self::ByKernel,
        }
    }
}

/// What the filter refuses and observes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterSpec {
    /// Internet sockets.
    pub(crate) inet: InetSockets,
    /// Unix sockets.
    pub(crate) unix: UnixSockets,
    /// Starting programs.
    pub(crate) exec: ExecRule,
    /// Metadata changes, for which Landlock has no right.
    pub(crate) metadata: MetadataRule,
    /// Changes of length that Landlock does not restrict.
    pub(crate) lengths: TruncateGuard,
    /// Who answers refused calls.
    pub(crate) reporting: Reporting,
}

impl FilterSpec {
    /// For a process that confines itself: no unix sockets, no exec, no notifications.
    pub(crate) fn in_process(network: Network, abi: u32) -> Self {
        let inet = match network {
            // An allow-list needs a network namespace, which such a process does not have.
            Network::Off | Network::Listed => InetSockets::Refused,
            Network::On => InetSockets::Allowed,
        };
        Self {
            inet,
            unix: UnixSockets::Refused,
            exec: ExecRule::Refused,
            metadata: MetadataRule::Open,
            lengths: TruncateGuard::of(Tier::B, abi),
            reporting: Reporting::Errno,
        }
    }

    /// For a command. If the kernel gives no notification descriptor, set `reporting` to
    /// [`Reporting::Errno`].
    pub(crate) fn command(tier: Tier, network: Network, abi: u32, mark: ExecMarker) -> Self {
        let (inet, unix, metadata) = match (tier, network) {
            // An empty network namespace keeps the host out of reach, and loopback inside works.
            (Tier::A, Network::Off | Network::On | Network::Listed) => {
                (InetSockets::Allowed, UnixSockets::Allowed, MetadataRule::ReadOnly)
            }
            (Tier::B | Tier::C, Network::Off | Network::Listed) => {
                (InetSockets::Refused, UnixSockets::Emulated, MetadataRule::Open)
            }
            (Tier::B | Tier::C, Network::On) => {
                (InetSockets::Allowed, UnixSockets::Emulated, MetadataRule::Open)
            }
        };
        let lengths = TruncateGuard::of(tier, abi);
        let exec = ExecRule::Allowed(mark);
        Self { inet, unix, exec, metadata, lengths, reporting: Reporting::Notify }
    }

    /// The same, with changes of mode, owner, times and attributes outside the grants refused even
    /// without read-only mounts.
    pub(crate) fn emulating_metadata(self) -> Self {
        let metadata = match (self.metadata, self.reporting) {
            (MetadataRule::Open | MetadataRule::Emulated, Reporting::Notify) => {
                MetadataRule::Emulated
            }
            (
                metadata @ (MetadataRule::Open | MetadataRule::Emulated | MetadataRule::ReadOnly),
                _,
            ) => metadata,
        };
        Self { metadata, ..self }
    }

    /// The marker of the cage's own exec.
    pub(crate) fn marker(&self) -> Option<ExecMarker> {
        match self.exec {
            ExecRule::Refused => None,
            ExecRule::Allowed(mark) => Some(mark),
        }
    }

    fn unix_here(&self) -> UnixSockets {
        match (self.unix, self.reporting) {
            (UnixSockets::Emulated, Reporting::Errno) => UnixSockets::Refused,
            (unix, Reporting::Errno | Reporting::Notify) => unix,
        }
    }
}

/// Why the filter was not installed. Nothing was changed, except that no_new_privs may be set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    /// no_new_privs, which must be set first.
    #[error("the kernel refused no_new_privs")]
    NoNewPrivs(#[source] io::Error),
    /// The program itself.
    #[error("the kernel refused the system call filter")]
    Filter(#[source] seccompiler::Error),
    /// The program with notifications: an old kernel (EINVAL), or an earlier filter already
    /// notifies (EBUSY).
    #[error("the kernel gave no listener for refused system calls")]
    Listener(#[source] io::Error),
    /// A rule is longer than a jump can reach: a bug in the table.
    #[error("the system call filter is too long")]
    TooLong,
}

/// A compiled filter, to be built before a fork and installed after it.
#[derive(Debug)]
pub(crate) struct CompiledFilter {
    program: BpfProgram,
    reporting: Reporting,
}

impl CompiledFilter {
    /// Compiles the filter for this machine.
    ///
    /// # Errors
    /// [`InstallError::TooLong`].
    pub(crate) fn new(plan: &FilterSpec) -> Result<Self, InstallError> {
        let program = bpf_program::compile(&SyscallRules::new(plan, Arch::HOST))?;
        Ok(Self { program, reporting: plan.reporting })
    }

    /// Installs the filter for good, with no_new_privs. With notifications it applies to the
    /// calling thread, which must be the only one; else to all threads of this process.
    ///
    /// With notifications, the descriptor is close-on-exec. Observed calls (writing opens,
    /// `connect`, `kill` ...) wait until the notify supervisor runs, so send it the descriptor by
    /// `sendmsg` first.
    ///
    /// # Errors
    /// [`InstallError`].
    pub(crate) fn install(&self) -> Result<Option<OwnedFd>, InstallError> {
        match self.reporting {
            Reporting::Notify => install::with_listener(&self.program).map(Some),
            Reporting::Errno => seccompiler::apply_filter_all_threads(&self.program)
                .map(|()| None)
                .map_err(InstallError::Filter),
        }
    }
}

/// Compiles and installs the filter: see [`SeccompFilter::install`].
///
/// # Errors
/// [`InstallError`].
pub(crate) fn install(plan: &FilterSpec) -> Result<Option<OwnedFd>, InstallError> {
    CompiledFilter::new(plan)?.install()
}
