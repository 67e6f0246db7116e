//! A runner whose cage stands, as the reserve hands it to a call.

use crate::orphans::RecordedProcess;
use crate::worker::process::WorkerProcess;
use protocol::confinement::{Confinement, Tier};
use protocol::tool::ToolLink;
use std::time::Duration;

/// A runner whose cage stands, without a call.
pub(crate) struct RestingRunner {
    pub(crate) process: WorkerProcess<ToolLink>,
    /// The processes of its cage.
    pub(crate) cage: Vec<RecordedProcess>,
    /// As it was sent to the runner.
    pub(crate) confinement: Confinement,
    pub(crate) tier: Tier,
    /// The identities of the paths that its cage has opened; see [`sandbox::opened_paths`].
    pub(crate) opened: String,
    /// From its start to its complete cage.
    pub(crate) built_in: Duration,
}
