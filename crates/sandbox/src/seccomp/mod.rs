//! The seccomp filter: which system calls a confined process may not make (design: sandbox.md 3).
//! Called by the cage only, as the last step before `exec` or before work begins.
//!
//! A deny-list over registers, the same in debug and release, kept as the table in `table`. Sockets
//! are judged where they are made, never at operations on them. With [`Reporting::Notify`] what is
//! refused or looked at goes to [`crate::listener`], which answers it; with [`Reporting::Errno`]
//! the kernel answers refusals itself and nothing is looked at.
//!
//! Measured on Linux 6.18, two busy virtual cores (`tests/figures.rs`): putting the filter in force
//! takes 58 us without a listener (202 instructions) and 72 to 87 us with one (286 to 317, by now
//! 329 to 360). The linear shape that seccompiler compiles to took 166 us for 60 plain rules and
//! 260 us for 100, hence the search tree in `program`; seccompiler remains the oracle of its tests
//! and installs the silent filter. A call that no rule names costs 0.05 to 0.1 us more than before.

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

/// Whether internet sockets may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InetSockets {
    /// None at all.
    Refused,
    /// TCP, UDP and ICMP echo.
    Allowed,
}

/// Whether unix sockets may be made. Connected stream pairs always may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnixSockets {
    /// None. With [`Reporting::Errno`] `Carried` means this too, for nobody is there to carry.
    Refused,
    /// Streams, whose `connect` the listener carries out itself, beneath the granted roots only.
    Emulated,
    /// All: the root holds no socket that was not granted.
    Allowed,
}

/// Whether programs may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecRule {
    /// Tools that work in their own process.
    Refused,
    /// Commands. The listener looks at each start but those with this mark, the cage's own.
    Allowed(ExecMarker),
}

/// Who answers what is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reporting {
    /// The kernel, silently.
    Errno,
    /// A listener in another process.
    Notify,
}

/// Whether changes of mode, owner, times and attributes are refused outside the grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataRule {
    /// Not refused, thus not looked at.
    Open,
    /// Refused by the listener, which makes those within the grants itself. Open without a listener.
    Emulated,
    /// Refused, because the tree is mounted read-only.
    ReadOnly,
}

/// Who keeps files outside the grants from being emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TruncateGuard {
    /// Landlock from version 3 on, or read-only mounts.
    ByKernel,
    /// The filter: an older Landlock looks at descriptors that are opened for writing, and at no other
    /// way to change a length.
    ByFilter,
}

impl TruncateGuard {
    /// Whose task it is in this tier on a kernel with this version of Landlock.
    pub(crate) fn of(tier: Tier, abi: u32) -> Self {
        match tier {
            Tier::B | Tier::C if abi < ruleset::TRUNCATE_ABI => Self::ByFilter,
            Tier::A | Tier::B | Tier::C => Self::ByKernel,
        }
    }
}

/// What the filter is to refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterSpec {
    /// Internet sockets.
    pub(crate) inet: InetSockets,
    /// Unix sockets.
    pub(crate) unix: UnixSockets,
    /// Starting programs.
    pub(crate) exec: ExecRule,
    /// Changes that Landlock has no right for.
    pub(crate) metadata: MetadataRule,
    /// Changes of length that Landlock does not hold back.
    pub(crate) lengths: TruncateGuard,
    /// Who answers.
    pub(crate) reporting: Reporting,
}

impl FilterSpec {
    /// For a process that confines itself: no unix sockets, no exec, no listener.
    pub(crate) fn in_process(network: Network, abi: u32) -> Self {
        let inet = match network {
            // A list is kept by a namespace, which such a process has not.
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

    /// For a command. Where no listener can be had, set `reporting` to [`Reporting::Errno`].
    pub(crate) fn command(tier: Tier, network: Network, abi: u32, mark: ExecMarker) -> Self {
        let (inet, unix, metadata) = match (tier, network) {
            // An empty network namespace keeps the host away, and loopback inside works.
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

    /// The same, and changes of mode, owner, times and attributes outside the grants are refused where
    /// mounts do not refuse them.
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

    /// What the cage's own exec carries.
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

/// Why the filter does not stand. Nothing was added, except that no_new_privs may be set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    /// The promise that must come first.
    #[error("the kernel refused no_new_privs")]
    NoNewPrivs(#[source] io::Error),
    /// The program itself.
    #[error("the kernel refused the system call filter")]
    Filter(#[source] seccompiler::Error),
    /// The program with a listener: an old kernel (EINVAL), or a listener stands already (EBUSY).
    #[error("the kernel gave no listener for refused system calls")]
    Listener(#[source] io::Error),
    /// A rule has grown past what a jump reaches: a fault in the table.
    #[error("the system call filter is too long")]
    TooLong,
}

/// A compiled filter, to be made before a fork and put in force after it.
#[derive(Debug)]
pub(crate) struct CompiledFilter {
    program: BpfProgram,
    reporting: Reporting,
}

impl CompiledFilter {
    /// Compiles the filter of `plan` for this machine.
    ///
    /// # Errors
    /// [`InstallError::TooLong`].
    pub(crate) fn new(plan: &FilterSpec) -> Result<Self, InstallError> {
        let program = bpf_program::compile(&SyscallRules::new(plan, Arch::HOST))?;
        Ok(Self { program, reporting: plan.reporting })
    }

    /// Puts the filter in force for good, with no_new_privs: with a listener over the calling
    /// thread, which must be the only one; else over all threads of this process.
    ///
    /// With a listener the descriptor is close-on-exec, and looked-at calls (writing opens,
    /// `connect`, `kill` ...) wait until the listener runs: hand it over by `sendmsg` first.
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

/// Compiles the filter of `plan` and puts it in force: see [`Filter::install`].
///
/// # Errors
/// [`InstallError`].
pub(crate) fn install(plan: &FilterSpec) -> Result<Option<OwnedFd>, InstallError> {
    CompiledFilter::new(plan)?.install()
}
