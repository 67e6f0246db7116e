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
mod filter_spec;
mod install;
mod install_error;
mod rule_table;
mod syscall_numbers;
mod syscall_rules;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use exec_marker::ExecMarker;
pub(crate) use filter_rule::{
    EmulatedCall, EntryChange, FilterAction, FilterRule, FollowLink, MetadataField, MetadataTarget,
    ObservedCall, OpenFlags, ProcessAct, ProcessArg, TimeUnit,
};
pub(crate) use filter_spec::{FilterSpec, InetSockets, Reporting, TruncateGuard};
pub(crate) use install::supports_killable_wait;
pub(crate) use install_error::InstallError;
pub(crate) use rule_table::{NAMESPACES, SOCKET_TYPE};
pub(crate) use syscall_numbers::Arch;
pub(crate) use syscall_rules::SyscallRules;

use seccompiler::BpfProgram;
use std::os::fd::OwnedFd;

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
    pub(crate) fn new(spec: &FilterSpec) -> Result<Self, InstallError> {
        let program = bpf_program::compile(&SyscallRules::new(spec, Arch::HOST))?;
        Ok(Self { program, reporting: spec.reporting })
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

/// Compiles and installs the filter: see [`CompiledFilter::install`].
///
/// # Errors
/// [`InstallError`].
pub(crate) fn install(spec: &FilterSpec) -> Result<Option<OwnedFd>, InstallError> {
    CompiledFilter::new(spec)?.install()
}
