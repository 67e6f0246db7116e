//! The wire between a supervisor and `agentd-fleet`, over a Unix socket of this host. The supervisor connects;
//! `To` goes to `agentd-fleet`.
//!
//! A session that works for a task of a fleet has a seat there. Its records are copied to the fleet's
//! database. A barrier is durable when both copies are.

use crate::confinement::FilePath;
use crate::ids::SessionId;
use crate::{Decode, Encode, Link};
pub use journal::RestoredSession;

/// The wire's name.
#[derive(Debug)]
pub enum FleetLink {}

impl Link for FleetLink {
    type To = ToFleet;
    type From = FromFleet;
    const NAME: &'static str = "fleet";
    /// The records of one append; long texts are beside the journal.
    const MESSAGE_CAP: usize = 32 << 20;
}

/// From a supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ToFleet {
    /// First: take the seat of this session.
    Sit {
        /// Which.
        session: SessionId,
        /// The secret of the seat.
        token: String,
    },
    /// Lines of the journal, in their order.
    Append {
        /// Sequence number of the first.
        first: u64,
        /// Each without its line end.
        lines: Vec<String>,
    },
}

/// From `agentd-fleet`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromFleet {
    /// The seat is taken.
    Seated {
        /// The last record that the database has.
        last_seq: u64,
        /// Until when.
        lease: LeaseClock,
    },
    /// The database has all records up to this one.
    Durable(u64),
    /// The lease was renewed.
    Renewed(LeaseClock),
    /// The lease is lost, and why. Nothing more is taken.
    Lost(String),
}

/// A lease by the clock of this host: milliseconds of `CLOCK_BOOTTIME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct LeaseClock {
    /// From here on nothing new begins, and running commands are frozen.
    pub freeze_at: u64,
    /// From here on the session is ended.
    pub kill_at: u64,
}

/// The seat of a session in a fleet, as the run for a task names it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FleetSeat {
    /// The task's number.
    pub task: i64,
    /// The socket of `agentd-fleet`.
    pub socket: FilePath,
    /// The secret of the seat.
    pub token: String,
    /// True if other hosts see the disk of the workspace.
    pub shared_disk: bool,
    /// Where another host was lost that had the session before.
    pub restored: Option<RestoredSession>,
}
