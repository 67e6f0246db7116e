//! The settings of a filter: the calls that it refuses, emulates and observes.

use super::exec_marker::ExecMarker;
use crate::landlock::ruleset;
use protocol::confinement::{Network, Tier};

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

/// The rule for starting programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecFilter {
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

/// The mechanism that prevents files outside the grants from being emptied.
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

/// The settings of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterSpec {
    /// Internet sockets.
    pub(crate) inet: InetSockets,
    /// Unix sockets.
    pub(crate) unix: UnixSockets,
    /// Starting programs.
    pub(crate) exec: ExecFilter,
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
            exec: ExecFilter::Refused,
            metadata: MetadataRule::Open,
            lengths: TruncateGuard::of(Tier::B, abi),
            reporting: Reporting::Errno,
        }
    }

    /// For a command. If the kernel gives no notification descriptor, set `reporting` to
    /// [`Reporting::Errno`].
    pub(crate) fn command(tier: Tier, network: Network, abi: u32, marker: ExecMarker) -> Self {
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
        let exec = ExecFilter::Allowed(marker);
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
            ExecFilter::Refused => None,
            ExecFilter::Allowed(marker) => Some(marker),
        }
    }

    pub(super) fn unix_here(&self) -> UnixSockets {
        match (self.unix, self.reporting) {
            (UnixSockets::Emulated, Reporting::Errno) => UnixSockets::Refused,
            (unix, Reporting::Errno | Reporting::Notify) => unix,
        }
    }
}
