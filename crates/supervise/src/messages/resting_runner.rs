//! A runner whose cage stands, as the reserve hands it to a call.

use launch::runner::Runner;
use protocol::confinement::Tier;
use std::time::Duration;

/// A runner whose cage stands, without a call.
pub(crate) struct RestingRunner {
    pub(crate) runner: Runner,
    pub(crate) tier: Tier,
    /// The identities of the paths that its cage has opened; see [`sandbox::opened_paths`].
    pub(crate) opened: String,
    /// From its start to its complete cage.
    pub(crate) built_in: Duration,
}
