//! The events of a runner, and their meaning to its owner.

use super::life::RunnerStep;
use crate::cage_cleanup::CageCleanup;
use crate::process::{ExitCause, ProcessEvent};
use call::Heard;
use protocol::call::{ProbeReport, TamperedFile};
use protocol::confinement::{Enforced, ProxyConnection, Tier};
use protocol::tool::{CertifiedSession, FromCall, NamespaceKind, ToolLink};
use std::io;
use std::os::fd::OwnedFd;

/// An event of a runner, for `Runner::hear`.
pub enum RunnerEvent {
    /// A message, a descriptor or the end of its process.
    Process(ProcessEvent<ToolLink>),
    /// It has used up its time for this, unless it is done with it.
    Overdue(RunnerStep),
    /// It is to be pinged.
    PingDue,
    /// It ended by this cause, and so did the processes of its cage, or not. The last event; the runner is
    /// gone.
    Buried(ExitCause, CageCleanup),
}

/// What an event means to the runner's owner.
pub enum RunnerNews {
    /// The owner has nothing to do.
    Nothing,
    /// Its cage is complete, or still is after it was taken from the reserve.
    Caged(Enforced),
    /// Its cage stands, for no call.
    Resting {
        /// The tier of its cage.
        tier: Tier,
        /// Names each path that the cage has opened or covers.
        opened: String,
    },
    /// Its cage could not be made.
    Uncaged {
        /// The step that failed.
        step: String,
        /// The reason.
        reason: String,
    },
    /// It lost its cage before its job began.
    Lost(String),
    /// A listening socket for the proxy.
    Listener(OwnedFd),
    /// A namespace of a command that goes on in the background.
    Namespace(NamespaceKind, OwnedFd),
    /// A message of the call that it runs.
    Call(FromCall),
    /// The answer of a probe.
    Probed(Result<ProbeReport, String>),
    /// Decisions of a proxy.
    Proxied {
        /// The connections that it decided about.
        connections: Vec<ProxyConnection>,
        /// How many more there were.
        uncounted: u64,
    },
    /// The answer of a repair: the protected files that it restored or could not restore.
    Repaired(Result<Vec<TamperedFile>, String>),
    /// The certificate, or why there is none.
    Certified(Result<CertifiedSession, String>),
    /// Its processes cannot be listed on disk. One that the next supervisor could not find must not run.
    Unlisted(io::Error),
    /// It was killed: it used up its time.
    Overdue,
    /// It is dead, reaped and drained. A runner with a cage of its own is to be buried.
    Ended(ExitCause, Heard),
}
